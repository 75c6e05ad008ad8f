-- The run that started last, by start, attempt and id; only official ones when that is asked, else any.
SELECT record
FROM runs
WHERE official OR NOT $official_only
ORDER BY started_at DESC, attempt DESC, id DESC
LIMIT 1
