-- What each withdrawal takes out: the run attempts that it touches, and how many versions of points and of scores.
WITH touched AS (
    SELECT number, id, attempt FROM taken_runs
    UNION
    SELECT number, run_id, attempt FROM taken_points
    UNION
    SELECT number, run_id, attempt FROM taken_scores
)
SELECT
    e.number,
    (
        SELECT list(format('{}/{}', t.id, t.attempt) ORDER BY t.id, t.attempt)
        FROM touched AS t
        WHERE t.number = e.number
    ) AS runs,
    (SELECT count(*) FROM taken_points AS p WHERE p.number = e.number) AS points,
    (SELECT count(*) FROM taken_scores AS c WHERE c.number = e.number) AS scores
FROM withdrawals AS e
ORDER BY e.number
