-- The scores that count, oldest run first: of one run as it stood after an attempt, of some series, or of everything before a moment.
WITH ranked AS (
    SELECT
        *,
        rank() OVER (
            PARTITION BY run_id, series, task
            ORDER BY created_at DESC NULLS LAST, attempt DESC, collected, richness DESC
        ) AS tier
    FROM scores
    WHERE ($id IS NULL OR run_id = $id) AND ($as_of IS NULL OR attempt <= $as_of)
),
eras AS (
    SELECT id, max(attempt) AS newest
    FROM runs
    WHERE $as_of IS NULL OR attempt <= $as_of
    GROUP BY id
)
SELECT
    format('{}/{}', r.id, r.attempt) AS run,
    r.started_at,
    r.official,
    s.key,
    s.curve,
    s.config,
    s.conc,
    c.run_id, c.attempt, c.task, c.strict, c.strict_se, c.flexible, c.flexible_se, c.n, c.score, c.score_name,
    c.image, c.recipe, c.pool, c.place, c.place_index, c.created_at, c.collected, c.invalid, c.caveats,
    count(*) OVER (PARTITION BY c.run_id, c.series, c.task) > 1 AS contested,
    s.record AS series,
    c.record
FROM ranked AS c
INNER JOIN series AS s ON s.id = c.series
INNER JOIN eras AS e ON e.id = c.run_id
INNER JOIN runs AS r ON r.id = e.id AND r.attempt = e.newest
WHERE
    c.tier = 1
    AND ($keys IS NULL OR s.key IN (SELECT unnest($keys)))
    AND c.run_id NOT IN (SELECT unnest($without))
    AND (
        $started_at IS NULL
        OR (r.started_at, r.attempt, r.id) < ($started_at::TIMESTAMP, $attempt::INTEGER, $before_id::BIGINT)
    )
ORDER BY r.started_at, r.attempt, r.id, s.key, c.task, c.place, c.place_index, c.file
