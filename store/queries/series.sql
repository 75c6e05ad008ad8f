-- The records of the series with the given keys; all of them when none is given.
SELECT key, record
FROM series
WHERE $keys IS NULL OR key IN (SELECT unnest($keys))
ORDER BY key
