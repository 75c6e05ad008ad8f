-- The newest official run before a moment that measured each of the given configs.
SELECT s.config, p.run_id, max(r.attempt) AS attempt
FROM points_now AS p
INNER JOIN series AS s ON s.id = p.series
INNER JOIN runs_now AS r ON r.id = p.run_id
WHERE
    s.config IN (SELECT unnest($configs))
    AND r.official
    AND p.current
    AND p.run_id NOT IN (SELECT unnest($without))
    AND (r.started_at, r.attempt, r.id) < ($started_at::TIMESTAMP, $attempt::INTEGER, $id::BIGINT)
GROUP BY s.config, p.run_id
QUALIFY row_number() OVER (PARTITION BY s.config ORDER BY max(r.started_at) DESC, max(r.attempt) DESC, p.run_id DESC) = 1
ORDER BY s.config
