-- Which run attempts measured which image: one row for each pair.
SELECT DISTINCT run_id, attempt, image
FROM points_now
WHERE current AND image IS NOT NULL
ORDER BY run_id, attempt, image
