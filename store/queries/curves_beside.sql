-- Some curves of some kinds of GPU that an official run measured between two moments, without those of some configs.
-- Where there are too many the digest of the key chooses: a sample that does not depend on the order of landing.
SELECT s.curve
FROM points_now AS p
INNER JOIN series AS s ON s.id = p.series
INNER JOIN runs_now AS r ON r.id = p.run_id
WHERE
    p.current
    AND r.official
    AND r.withdrawn IS NULL
    AND r.started_at BETWEEN $first::TIMESTAMP AND $last::TIMESTAMP
    AND s.gpu IN (SELECT unnest($gpus))
    AND s.config NOT IN (SELECT unnest($configs))
GROUP BY s.curve
ORDER BY md5(s.curve)
LIMIT $most
