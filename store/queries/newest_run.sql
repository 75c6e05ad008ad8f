-- The run that started last, by start, attempt and id; only official ones when that is asked, else any that is not withdrawn.
SELECT record
FROM runs_now
WHERE withdrawn IS NULL AND (official OR NOT $official_only)
ORDER BY started_at DESC, attempt DESC, id DESC
LIMIT 1
