-- The run attempts that each withdrawal speaks of: its run, the run on main that published its rows, the runs whose rows it published.
CREATE OR REPLACE TEMP TABLE targets AS
WITH links AS (
    SELECT
        id, attempt,
        TRY_CAST(json_extract_string(record, '$.reused_by.id') AS BIGINT) AS by_id,
        TRY_CAST(json_extract_string(record, '$.reused_by.attempt') AS INTEGER) AS by_attempt
    FROM runs
    WHERE json_extract_string(record, '$.reused_by.id') IS NOT NULL
),
named AS (
    SELECT e.number, r.id, r.attempt
    FROM withdrawals AS e
    INNER JOIN runs AS r ON r.id = e.run_id AND (e.attempt IS NULL OR e.attempt = r.attempt)
)
SELECT number, id, attempt
FROM named
UNION
SELECT n.number, l.by_id, l.by_attempt
FROM named AS n
INNER JOIN links AS l ON l.id = n.id AND l.attempt = n.attempt
UNION
SELECT e.number, l.id, l.attempt
FROM withdrawals AS e
INNER JOIN links AS l ON l.by_id = e.run_id AND (e.attempt IS NULL OR e.attempt = l.by_attempt)
