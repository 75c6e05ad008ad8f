-- The valid points of the given curves in all runs before a moment, oldest run first, some metrics wide; one value per point and run.
-- A run stands under its newest attempt, since attempts are no replicates of it; `attempt` says which one measured the point.
-- Where only the newest runs of each curve are asked for, the others are left alone: the metrics are wide, the keys are not.
WITH asked AS (
    SELECT *, row_number() OVER (ORDER BY curve, conc, key) AS place
    FROM series
    WHERE curve IN (SELECT unnest($curves))
),
eras AS (
    SELECT id, max(attempt) AS newest
    FROM runs_now
    WHERE withdrawn IS NULL
    GROUP BY id
),
eligible AS (
    SELECT DISTINCT s.curve, p.run_id, r.started_at, r.attempt, r.official
    FROM points_now AS p
    INNER JOIN asked AS s ON s.id = p.series
    INNER JOIN eras AS e ON e.id = p.run_id
    INNER JOIN runs_now AS r ON r.id = e.id AND r.attempt = e.newest
    WHERE
        p.current
        AND p.run_id NOT IN (SELECT unnest($without))
        AND (
            $started_at IS NULL
            OR (r.started_at, r.attempt, r.id) < ($started_at::TIMESTAMP, $attempt::INTEGER, $id::BIGINT)
        )
    QUALIFY
        $most IS NULL
        OR dense_rank() OVER (
            PARTITION BY s.curve ORDER BY r.official DESC, r.started_at DESC, r.attempt DESC, p.run_id DESC
        ) <= $most
)
SELECT
    format('{}/{}', r.id, r.attempt) AS run,
    r.started_at,
    p.image,
    p.recipe,
    s.curve,
    s.key AS series,
    s.conc,
    s.multinode,
    p.pool,
    s.config,
    p.attempt,
    r.official,
    /* metrics */
FROM points_now AS p
INNER JOIN asked AS s ON s.id = p.series
INNER JOIN eligible AS l ON l.curve = s.curve AND l.run_id = p.run_id
INNER JOIN runs_now AS r ON r.id = l.run_id AND r.attempt = l.attempt
WHERE p.current AND NOT p.contested AND p.invalid IS NULL
ORDER BY r.started_at, r.attempt, r.id, s.place, p.recipe
