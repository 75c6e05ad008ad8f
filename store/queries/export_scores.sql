-- The scores that count, one row each.
SELECT
    format('{}/{}', r.id, r.attempt) AS run, r.started_at, r.official, s.key AS series, s.config, s.conc, p.task, p.strict, p.strict_se,
    p.flexible, p.flexible_se, p.n, p.score, p.score_name, p.image, p.recipe, p.pool, p.invalid, /* withdrawn column */
FROM scores_now AS p
INNER JOIN series AS s ON s.id = p.series
INNER JOIN runs_now AS r ON r.id = p.run_id AND r.attempt = p.attempt
WHERE (p.current AND NOT p.contested) /* or withdrawn */
