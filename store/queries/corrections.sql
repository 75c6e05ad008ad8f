-- The baseline runs that stored findings of a comparison stood on and that are withdrawn, or whose rows of that very point or curve are.
WITH stood_on AS (
    SELECT
        key,
        unnest(from_json(json_extract(record, '$.baseline_runs'), '[{"id":"BIGINT","attempt":"INTEGER"}]')) AS run
    FROM findings
    WHERE comparison = $comparison
),
taken AS (
    SELECT number, id AS run_id, attempt, NULL AS key, NULL AS curve, NULL AS config FROM taken_runs
    UNION ALL
    SELECT number, run_id, attempt, key, curve, config FROM taken_points WHERE current
    UNION ALL
    SELECT number, run_id, attempt, key, curve, config FROM taken_scores WHERE current
)
SELECT format('{}/{}', s.run.id, s.run.attempt) AS run, any_value(e.caveat ORDER BY e.number) AS caveat
FROM stood_on AS s
INNER JOIN taken AS t
    ON
        t.run_id = s.run.id
        AND (
            (t.key IS NULL AND t.attempt = s.run.attempt)
            OR (t.attempt <= s.run.attempt AND (t.key = s.key OR t.curve = s.key OR t.config = s.key))
        )
INNER JOIN withdrawals AS e ON e.number = t.number
GROUP BY s.run.id, s.run.attempt
ORDER BY s.run.id, s.run.attempt
