-- The points of a run as it stood after an attempt: one row per version of a point, all metrics, the status of each version.
-- Points that a partial rerun left alone keep the value of the attempt that measured them.
-- Of a withdrawn attempt every row is withdrawn, since the run does not stand as it was after it; other attempts stand as without it.
WITH held AS (
    SELECT p.* EXCLUDE (withdrawn), coalesce(p.withdrawn, r.withdrawn) AS withdrawn
    FROM points_now AS p
    INNER JOIN runs_now AS r ON r.id = p.run_id AND r.attempt = $attempt
    WHERE p.run_id = $id AND p.attempt <= $attempt
),
versions AS (
    SELECT
        *,
        rank() OVER (
            PARTITION BY series, recipe, withdrawn IS NULL
            ORDER BY collected, attempt DESC, created_at DESC NULLS LAST, richness DESC
        ) AS tier
    FROM held
)
SELECT
    format('{}/{}', v.run_id, $attempt) AS run,
    r.started_at,
    CASE
        WHEN v.tier > 1 THEN 'superseded'
        WHEN v.withdrawn IS NOT NULL THEN 'withdrawn'
        WHEN count(*) OVER (PARTITION BY v.series, v.recipe, v.withdrawn IS NULL, v.tier) > 1 THEN 'contested'
        WHEN v.invalid IS NOT NULL THEN 'invalid'
        ELSE 'valid'
    END AS status,
    s.key AS series,
    s.curve,
    s.config,
    s.conc,
    s.multinode,
    v.image,
    v.recipe,
    v.pool,
    v.attempt,
    r.official,
    v.place,
    v.place_index,
    v.created_at,
    v.collected,
    v.invalid,
    v.withdrawn,
    v.caveats,
    v.extra,
    v.file,
    /* metrics */
FROM versions AS v
INNER JOIN series AS s ON s.id = v.series
INNER JOIN runs_now AS r ON r.id = v.run_id AND r.attempt = $attempt
ORDER BY s.curve, s.conc, s.key, v.recipe, v.withdrawn IS NULL, v.tier, v.place, v.place_index, v.file
