-- When each of the given runs measured, its first and its last row: by the artifacts' times, NULL where none is known.
-- Scores count as measured too.
SELECT run_id, min(created_at) AS earliest, max(created_at) AS latest
FROM (
    SELECT run_id, created_at FROM points WHERE run_id IN (SELECT unnest($ids)) AND current
    UNION ALL
    SELECT run_id, created_at FROM scores WHERE run_id IN (SELECT unnest($ids)) AND current
)
GROUP BY run_id
ORDER BY run_id
