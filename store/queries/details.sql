-- The rejections, changelog entries or job counts of a run up to an attempt, in the order in which they stood.
SELECT DISTINCT ON (attempt, record) attempt, record, position
FROM details
WHERE kind = $kind AND run_id = $id AND attempt <= $attempt
ORDER BY attempt, position, record
