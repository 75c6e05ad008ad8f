-- How many points of each status each run holds: valid, invalid, contested, superseded, withdrawn.
SELECT
    format('{}/{}', run_id, attempt) AS run,
    CASE
        WHEN withdrawn IS NOT NULL THEN 'withdrawn'
        WHEN contested THEN 'contested'
        WHEN NOT current THEN 'superseded'
        WHEN invalid IS NOT NULL THEN 'invalid'
        ELSE 'valid'
    END AS status,
    count(*) AS points
FROM points_now
GROUP BY run_id, attempt, status
ORDER BY run_id, attempt, status
