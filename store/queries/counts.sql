-- How much there is: files, runs, series, curves, and points and scores by status.
SELECT
    (SELECT count(*) FROM landed) AS files,
    (SELECT count(DISTINCT id) FROM runs_now) AS runs,
    (SELECT count(*) FROM runs_now) AS attempts,
    (SELECT count(*) FROM series) AS series,
    (SELECT count(DISTINCT curve) FROM series) AS curves,
    (SELECT count(*) FROM points_now) AS points,
    (SELECT count(*) FROM points_now WHERE current AND NOT contested AND invalid IS NULL) AS valid,
    (SELECT count(*) FROM points_now WHERE contested OR (current AND invalid IS NOT NULL)) AS invalid,
    (SELECT count(*) FROM points_now WHERE NOT current AND NOT contested AND withdrawn IS NULL) AS superseded,
    (SELECT count(*) FROM points_now WHERE withdrawn IS NOT NULL) AS withdrawn,
    (SELECT count(*) FROM scores_now WHERE current) AS scores,
    (SELECT count(*) FROM details WHERE kind = 'rejection') AS rejections,
    (SELECT count(*) FROM findings) AS findings
