-- The points of a run as it stood after an attempt: one row per version of a point, all metrics, the status of each version.
-- Points that a partial rerun left alone keep the value of the attempt that measured them.
WITH versions AS (
    SELECT
        *,
        rank() OVER (
            PARTITION BY series, recipe
            ORDER BY collected, attempt DESC, created_at DESC NULLS LAST, richness DESC
        ) AS tier
    FROM points
    WHERE run_id = $id AND attempt <= $attempt
)
SELECT
    format('{}/{}', v.run_id, $attempt) AS run,
    r.started_at,
    CASE
        WHEN v.tier > 1 THEN 'superseded'
        WHEN count(*) OVER (PARTITION BY v.series, v.recipe, v.tier) > 1 THEN 'contested'
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
    v.caveats,
    v.extra,
    v.file,
    /* metrics */
FROM versions AS v
INNER JOIN series AS s ON s.id = v.series
INNER JOIN runs AS r ON r.id = v.run_id AND r.attempt = $attempt
ORDER BY s.curve, s.conc, s.key, v.recipe, v.tier, v.place, v.place_index, v.file
