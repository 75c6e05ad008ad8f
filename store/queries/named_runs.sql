-- Some run attempts by their text keys, oldest first.
SELECT record
FROM runs
WHERE format('{}/{}', id, attempt) IN (SELECT unnest($keys))
ORDER BY started_at, attempt, id
