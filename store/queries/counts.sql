-- How much there is: files, runs, series, curves, and points and scores by status.
SELECT
    (SELECT count(*) FROM landed) AS files,
    (SELECT count(DISTINCT id) FROM runs) AS runs,
    (SELECT count(*) FROM runs) AS attempts,
    (SELECT count(*) FROM series) AS series,
    (SELECT count(DISTINCT curve) FROM series) AS curves,
    (SELECT count(*) FROM points) AS points,
    (SELECT count(*) FROM points WHERE current AND NOT contested AND invalid IS NULL) AS valid,
    (SELECT count(*) FROM points WHERE contested OR (current AND invalid IS NOT NULL)) AS invalid,
    (SELECT count(*) FROM points WHERE NOT current AND NOT contested) AS superseded,
    (SELECT count(*) FROM scores WHERE current) AS scores,
    (SELECT count(*) FROM details WHERE kind = 'rejection') AS rejections,
    (SELECT count(*) FROM findings) AS findings
