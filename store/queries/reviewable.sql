-- Every official run under its newest attempt, oldest first, with a mark of what it holds.
WITH held AS (
    SELECT
        run_id,
        count(*) FILTER (current) AS points,
        count(*) FILTER (contested OR (current AND invalid IS NOT NULL)) AS invalid
    FROM points_now
    GROUP BY run_id
),
evals AS (
    SELECT run_id, count(*) FILTER (current) AS scores
    FROM scores_now
    GROUP BY run_id
),
unread AS (
    SELECT run_id, count(*) AS rows
    FROM details
    WHERE kind = 'rejection'
    GROUP BY run_id
)
SELECT
    r.id,
    r.attempt,
    r.started_at,
    format(
        '{} {} {} {}', coalesce(h.points, 0), coalesce(h.invalid, 0), coalesce(e.scores, 0), coalesce(u.rows, 0)
    ) AS content
FROM runs_now AS r
LEFT JOIN held AS h ON h.run_id = r.id
LEFT JOIN evals AS e ON e.run_id = r.id
LEFT JOIN unread AS u ON u.run_id = r.id
WHERE r.official AND (coalesce(h.points, 0) > 0 OR coalesce(e.scores, 0) > 0 OR coalesce(u.rows, 0) > 0)
QUALIFY row_number() OVER (PARTITION BY r.id ORDER BY r.attempt DESC) = 1
ORDER BY r.started_at, r.attempt, r.id
