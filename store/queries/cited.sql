-- The stored comparisons whose findings have one of the given run attempts on their baseline's or candidate's side.
SELECT DISTINCT comparison
FROM (
    SELECT
        comparison,
        unnest(list_concat(
            from_json(json_extract(record, '$.baseline_runs'), '[{"id":"BIGINT","attempt":"INTEGER"}]'),
            from_json(json_extract(record, '$.candidate_runs'), '[{"id":"BIGINT","attempt":"INTEGER"}]')
        )) AS run
    FROM findings
)
WHERE format('{}/{}', run.id, run.attempt) IN (SELECT unnest($runs))
ORDER BY comparison
