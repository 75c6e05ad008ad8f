-- The files that hold a point of which there is another version, here or in the database.
WITH clashing AS (
    SELECT run_id
    FROM incoming
    WHERE kind = 'point'
    GROUP BY run_id, series, recipe
    HAVING count(*) > 1
    UNION
    SELECT id
    FROM runs
    WHERE id IN (SELECT run_id FROM incoming)
)
SELECT DISTINCT path
FROM incoming
WHERE kind = 'run' AND run_id IN (SELECT run_id FROM clashing)
