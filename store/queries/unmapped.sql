-- Spellings that no table of names holds, with the field, the number of series and the number of points that count.
WITH spellings AS (
    UNPIVOT (SELECT id, model, gpu, framework, "precision", spec FROM series)
    ON model, gpu, framework, "precision", spec
    INTO NAME field VALUE spelling
),
counts AS (
    SELECT series, count(*) AS points
    FROM points_now
    WHERE current
    GROUP BY series
)
SELECT s.field, substr(s.spelling, 2) AS spelling, count(*) AS series, coalesce(sum(c.points), 0)::BIGINT AS points
FROM spellings AS s
LEFT JOIN counts AS c ON c.series = s.id
WHERE starts_with(s.spelling, '?')
GROUP BY s.field, s.spelling
ORDER BY points DESC, s.field, s.spelling
