-- The findings as they were stored: of one comparison, or everything ever said of one key, in the order of saving.
SELECT record
FROM findings
WHERE ($comparison IS NULL OR comparison = $comparison) AND ($key IS NULL OR key = $key)
ORDER BY comparison, position
