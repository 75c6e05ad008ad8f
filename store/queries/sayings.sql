-- What the rows of some series said of their workload, in the runs that a history may hold: beside their metrics, and by some of them.
SELECT format('{}/{}', p.run_id, e.newest) AS run, s.key AS series, p.extra, /* metrics */
FROM points_now AS p
INNER JOIN series AS s ON s.id = p.series
INNER JOIN (SELECT id, max(attempt) AS newest FROM runs_now WHERE withdrawn IS NULL GROUP BY id) AS e ON e.id = p.run_id
WHERE s.key IN (SELECT unnest($keys)) AND p.current
ORDER BY run, series
