-- When each run measured each of the given curves, first and last row: by the artifact's time, else by the start of the attempt that did.
-- A run stands under its newest attempt, as in a history.
SELECT
    format('{}/{}', p.run_id, e.newest) AS run,
    s.curve,
    min(coalesce(p.created_at, r.started_at)) AS earliest,
    max(coalesce(p.created_at, r.started_at)) AS latest
FROM points AS p
INNER JOIN series AS s ON s.id = p.series
INNER JOIN runs AS r ON r.id = p.run_id AND r.attempt = p.attempt
INNER JOIN (SELECT id, max(attempt) AS newest FROM runs GROUP BY id) AS e ON e.id = p.run_id
WHERE s.curve IN (SELECT unnest($curves)) AND p.current
GROUP BY ALL
ORDER BY run, s.curve
