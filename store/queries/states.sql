-- How many rows of each run attempt, or of one run, have which status, and for which reason: points, then scores.
WITH rows AS (
    SELECT 'points' AS kind, run_id, attempt, current, contested, invalid, withdrawn FROM points_now
    UNION ALL
    SELECT 'scores', run_id, attempt, current, contested, invalid, withdrawn FROM scores_now
)
SELECT
    run_id,
    attempt,
    kind,
    CASE
        WHEN withdrawn IS NOT NULL THEN 'withdrawn'
        WHEN contested THEN 'contested'
        WHEN NOT current THEN 'superseded'
        WHEN invalid IS NOT NULL THEN 'invalid'
        ELSE 'valid'
    END AS status,
    coalesce(
        CASE status
            WHEN 'withdrawn' THEN json_extract_string(withdrawn, '$.values[3][1]')
            WHEN 'invalid' THEN json_extract_string(invalid, '$.code')
        END,
        ''
    ) AS reason,
    count(*) AS number
FROM rows
WHERE $id IS NULL OR run_id = $id
GROUP BY ALL
ORDER BY run_id, attempt, kind, status DESC, reason
