-- What a landing changed: rows added, rows that were there already, rows that count no more, rows that contradict each other.
SELECT
    count(*) FILTER (old IS NULL AND stays) - count(*) FILTER (old IS NOT NULL AND NOT stays) AS added,
    count(*) FILTER (NOT stays) AS duplicates,
    count(*) FILTER (stays AND NOT current AND NOT contested)
        - count(*) FILTER (NOT was_current AND NOT was_contested) AS superseded,
    count(*) FILTER (contested) - count(*) FILTER (was_contested) AS contested
FROM ranked
