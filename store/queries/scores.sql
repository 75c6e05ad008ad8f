-- The scores that count, or those that are withdrawn, oldest run first: of one run as it stood after an attempt, of some series or runs, or
-- of everything before a moment.
-- An eval row names no image: it has the image and recipe that the same run measured the same deployment with, if there is one.
WITH held AS (
    SELECT
        * EXCLUDE (withdrawn),
        coalesce(withdrawn, (SELECT withdrawn FROM runs_now WHERE id = $id AND attempt = $as_of)) AS withdrawn
    FROM scores_now
    WHERE ($id IS NULL OR run_id = $id) AND ($as_of IS NULL OR attempt <= $as_of)
),
ranked AS (
    SELECT
        *,
        rank() OVER (
            PARTITION BY run_id, series, task
            ORDER BY created_at DESC NULLS LAST, attempt DESC, collected, richness DESC
        ) AS tier
    FROM held
    WHERE (withdrawn IS NOT NULL) = $withdrawn
),
eras AS (
    SELECT id, max(attempt) AS newest
    FROM runs_now
    WHERE ($as_of IS NULL AND withdrawn IS NULL) OR attempt <= $as_of
    GROUP BY id
),
chosen AS (
    SELECT
        c.* EXCLUDE (series), s AS series,
        r.id, r.attempt AS newest, r.started_at, r.official
    FROM ranked AS c
    INNER JOIN series AS s ON s.id = c.series
    INNER JOIN eras AS e ON e.id = c.run_id
    INNER JOIN runs_now AS r ON r.id = e.id AND r.attempt = e.newest
    WHERE
        c.tier = 1
        AND (
            ($keys IS NULL AND $runs IS NULL)
            OR s.key IN (SELECT unnest($keys))
            OR c.run_id IN (SELECT unnest($runs))
        )
        AND c.run_id NOT IN (SELECT unnest($without))
        AND (
            $started_at IS NULL
            OR (r.started_at, r.attempt, r.id) < ($started_at::TIMESTAMP, $attempt::INTEGER, $before_id::BIGINT)
        )
),
deployments AS (
    SELECT
        p.run_id, s.model, s.gpu, s.framework, s."precision", s.spec, s.layout,
        -- Evals run on the longest prompts of a deployment.
        min(p.image) AS image, arg_max(p.recipe, s.isl) AS recipe
    FROM points_now AS p
    INNER JOIN series AS s ON s.id = p.series
    WHERE p.current AND p.run_id IN (SELECT run_id FROM chosen WHERE image IS NULL OR recipe IS NULL)
    GROUP BY ALL
    HAVING count(DISTINCT p.image) = 1
)
SELECT
    format('{}/{}', c.id, c.newest) AS run,
    c.started_at,
    c.official,
    c.series.key,
    c.series.curve,
    c.series.config,
    c.series.conc,
    c.run_id, c.attempt, c.task, c.strict, c.strict_se, c.flexible, c.flexible_se, c.n, c.score, c.score_name,
    coalesce(c.image, d.image) AS image,
    coalesce(c.recipe, d.recipe) AS recipe,
    c.pool, c.place, c.place_index, c.created_at, c.collected, c.invalid, c.withdrawn, c.caveats,
    count(*) OVER (PARTITION BY c.run_id, c.series.id, c.task) > 1 AS contested,
    c.series.record AS series,
    c.record,
    c.extra
FROM chosen AS c
LEFT JOIN deployments AS d
    ON
        d.run_id = c.run_id
        AND d.model = c.series.model
        AND d.gpu = c.series.gpu
        AND d.framework = c.series.framework
        AND d."precision" = c.series."precision"
        AND d.spec = c.series.spec
        AND d.layout = c.series.layout
ORDER BY c.started_at, c.newest, c.id, c.series.key, c.task, c.place, c.place_index, c.file
