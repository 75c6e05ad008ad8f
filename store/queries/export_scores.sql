-- The scores that count, one row each.
SELECT
    format('{}/{}', r.id, r.attempt) AS run, r.started_at, r.official, s.key AS series, s.config, s.conc, c.task, c.strict, c.strict_se,
    c.flexible, c.flexible_se, c.n, c.score, c.score_name, c.image, c.recipe, c.pool, c.invalid
FROM scores AS c
INNER JOIN series AS s ON s.id = c.series
INNER JOIN runs AS r ON r.id = c.run_id AND r.attempt = c.attempt
WHERE c.current AND NOT c.contested
