-- The newest image of each config before a moment in official runs, since when it has been measured, and the newest run with it.
WITH measured AS (
    SELECT
        s.config,
        p.image,
        min(r.started_at) AS first_at,
        max(struct_pack(last_at := r.started_at, attempt := r.attempt, id := r.id)) AS newest
    FROM points_now AS p
    INNER JOIN series AS s ON s.id = p.series
    INNER JOIN runs_now AS r ON r.id = p.run_id AND r.attempt = p.attempt
    WHERE p.current AND p.image IS NOT NULL AND r.official AND r.started_at < $until::TIMESTAMP
    GROUP BY s.config, p.image
)
SELECT config, image, first_at, newest.last_at, newest.id, newest.attempt
FROM measured
QUALIFY row_number() OVER (PARTITION BY config ORDER BY newest DESC, first_at DESC, image) = 1
ORDER BY config
