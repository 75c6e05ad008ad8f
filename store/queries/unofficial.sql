-- How many run attempts are not official, by the code of each reason; a run with three reasons counts in three lines.
SELECT code, count(*) AS attempts
FROM (
    SELECT unnest(json_extract_string(reasons, '$[*].code')) AS code FROM runs_now
    UNION ALL
    SELECT 'withdrawn' FROM runs_now WHERE withdrawn IS NOT NULL
)
GROUP BY code
ORDER BY attempts DESC, code
