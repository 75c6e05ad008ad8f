-- The archive files of the runs that ever measured the given curves, with all that other files say of these runs.
SELECT file, run_id, attempt
FROM landed
WHERE
    run_id IN (
        SELECT p.run_id
        FROM points AS p
        INNER JOIN series AS s ON s.id = p.series
        WHERE s.curve IN (SELECT unnest($curves))
    )
ORDER BY run_id, attempt, file
