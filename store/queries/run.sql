-- One run by its id: the attempt asked for, or else the newest one that is not withdrawn, or the newest.
SELECT record
FROM runs_now
WHERE id = $id AND ($attempt IS NULL OR attempt = $attempt)
ORDER BY withdrawn IS NULL DESC, attempt DESC
LIMIT 1
