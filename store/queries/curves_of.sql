-- Every curve that some configs ever had.
SELECT DISTINCT s.curve
FROM series AS s
WHERE s.config IN (SELECT unnest($configs))
ORDER BY s.curve
