-- The valid points, one row per point and metric.
WITH wide AS (
    SELECT
        format('{}/{}', r.id, r.attempt) AS run, r.started_at, r.official, s.curve, s.key AS series, s.config, s.conc, s.multinode,
        p.image, p.recipe, p.pool, /* withdrawn column */
        /* metrics */
    FROM points_now AS p
    INNER JOIN series AS s ON s.id = p.series
    INNER JOIN runs_now AS r ON r.id = p.run_id AND r.attempt = p.attempt
    WHERE p.invalid IS NULL AND ((p.current AND NOT p.contested) /* or withdrawn */)
)
UNPIVOT wide ON /* metrics */ INTO NAME metric VALUE value
