-- One run by its id: the attempt asked for, or the newest one when none is.
SELECT record
FROM runs
WHERE id = $id AND ($attempt IS NULL OR attempt = $attempt)
ORDER BY attempt DESC
LIMIT 1
