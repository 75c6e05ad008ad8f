-- What the rows of some series said beside their metrics, by run; the rows that said nothing are left out.
SELECT format('{}/{}', p.run_id, e.newest) AS run, s.key AS series, p.extra
FROM points AS p
INNER JOIN series AS s ON s.id = p.series
INNER JOIN (SELECT id, max(attempt) AS newest FROM runs GROUP BY id) AS e ON e.id = p.run_id
WHERE s.key IN (SELECT unnest($keys)) AND p.current AND p.extra IS NOT NULL
ORDER BY run, series
