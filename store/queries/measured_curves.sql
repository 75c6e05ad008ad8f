-- Which run ever measured points or evals of which curve, whatever became of the rows.
SELECT DISTINCT m.run_id, s.curve
FROM (SELECT run_id, series FROM points UNION ALL SELECT run_id, series FROM scores) AS m
INNER JOIN series AS s ON s.id = m.series
ORDER BY m.run_id, s.curve
