-- What a database holds of one landed file, in the columns of an archive file: the run, its measurements, and the small records of its run attempt.
SELECT 'run' AS kind, run_id, attempt, NULL AS series, NULL AS image, NULL AS recipe, NULL AS pool, NULL AS place,
    NULL::BIGINT AS place_index, NULL::TIMESTAMP AS created_at, NULL::BOOLEAN AS collected, NULL AS invalid, NULL AS caveats,
    NULL AS extra, NULL::INTEGER AS richness, NULL AS task, NULL::DOUBLE AS strict, NULL::DOUBLE AS strict_se,
    NULL::DOUBLE AS flexible, NULL::DOUBLE AS flexible_se, NULL::BIGINT AS n, NULL::DOUBLE AS score, NULL AS score_name,
    run AS record, NULL AS raw
FROM landed
WHERE file = '/* file */'
UNION ALL BY NAME
SELECT 'point' AS kind, p.run_id, p.attempt, s.record AS series, p.image, p.recipe, p.pool, p.place, p.place_index,
    p.created_at, p.collected, p.invalid, p.caveats, p.extra, p.richness, '' AS raw /* metrics */
FROM points AS p
INNER JOIN series AS s ON s.id = p.series
WHERE p.file = '/* file */'
UNION ALL BY NAME
SELECT 'score' AS kind, c.run_id, c.attempt, s.record AS series, c.image, c.recipe, c.pool, c.place, c.place_index,
    c.created_at, c.collected, c.invalid, c.caveats, c.extra, c.richness, c.task, c.strict, c.strict_se, c.flexible,
    c.flexible_se, c.n, c.score, c.score_name, c.record
FROM scores AS c
INNER JOIN series AS s ON s.id = c.series
WHERE c.file = '/* file */'
UNION ALL BY NAME
SELECT d.kind, d.run_id, d.attempt, d.record
FROM details AS d
INNER JOIN landed AS l ON l.run_id = d.run_id AND l.attempt = d.attempt
WHERE l.file = '/* file */'
