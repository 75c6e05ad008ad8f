-- The archive files of the runs that ever measured a point or an eval of some kin (the first five words of a curve), and of some runs by their ids.
WITH alike AS (
    SELECT id
    FROM series
    WHERE array_to_string(list_slice(string_split(curve, ' '), 1, 5), ' ') IN (SELECT unnest($kin))
)
SELECT file, run_id, attempt
FROM landed
WHERE
    run_id IN (SELECT unnest($runs))
    OR run_id IN (SELECT p.run_id FROM points AS p INNER JOIN alike AS a ON a.id = p.series)
    OR run_id IN (SELECT p.run_id FROM scores AS p INNER JOIN alike AS a ON a.id = p.series)
ORDER BY run_id, attempt, file
