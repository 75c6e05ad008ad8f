-- Every curve with its config, its points that count, its runs, and when it was first and last measured.
SELECT
    s.curve,
    any_value(s.config) AS config,
    count(*) AS points,
    count(DISTINCT p.run_id) AS runs,
    min(r.started_at) AS first_at,
    max(r.started_at) AS last_at
FROM points_now AS p
INNER JOIN series AS s ON s.id = p.series
INNER JOIN runs_now AS r ON r.id = p.run_id AND r.attempt = p.attempt
WHERE p.current
GROUP BY s.curve
ORDER BY s.curve
