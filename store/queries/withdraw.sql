-- What the withdrawals take out, kept beside the tables for as long as the store is open: the tables themselves stay as they are.
-- The rows of every run that is spoken of are marked, and ranked as if the withdrawn ones had never landed. They are not copied: a row of
-- some hundred metrics took 2 s for ten thousand of them, where their numbers take 0.2 s.
CREATE OR REPLACE TEMP TABLE taken_runs AS
SELECT t.number, t.id, t.attempt
FROM targets AS t
INNER JOIN withdrawals AS e ON e.number = t.number
INNER JOIN runs AS r ON r.id = t.id AND r.attempt = t.attempt
WHERE NOT e.in_part;

CREATE OR REPLACE TEMP TABLE taken_points AS
SELECT t.number, p.rowid AS row, p.run_id, p.attempt, s.key, s.curve, s.config, p.current
FROM targets AS t
INNER JOIN withdrawals AS e ON e.number = t.number
INNER JOIN points AS p ON p.run_id = t.id AND p.attempt = t.attempt
INNER JOIN series AS s ON s.id = p.series
WHERE e.task IS NULL AND /* fits */;

CREATE OR REPLACE TEMP TABLE taken_scores AS
SELECT t.number, p.rowid AS row, p.run_id, p.attempt, s.key, s.curve, s.config, p.current
FROM targets AS t
INNER JOIN withdrawals AS e ON e.number = t.number
INNER JOIN scores AS p ON p.run_id = t.id AND p.attempt = t.attempt
INNER JOIN series AS s ON s.id = p.series
WHERE (NOT e.in_part OR e.task = p.task) AND /* fits */;

CREATE OR REPLACE TEMP TABLE held_points AS
WITH marked AS (
    SELECT
        p.rowid AS row, p.run_id, p.series, p.recipe, p.collected, p.attempt, p.created_at, p.richness,
        p.place, p.place_index, p.file,
        e.caveat AS withdrawn
    FROM points AS p
    LEFT JOIN (SELECT row, min(number) AS number FROM taken_points GROUP BY row) AS t ON t.row = p.rowid
    LEFT JOIN withdrawals AS e ON e.number = t.number
    WHERE p.run_id IN (/* run ids */)
),
ranked AS (
    SELECT
        row,
        run_id, series, recipe, withdrawn,
        rank() OVER (
            PARTITION BY run_id, series, recipe, withdrawn IS NULL
            ORDER BY collected, attempt DESC, created_at DESC NULLS LAST, richness DESC
        ) AS tier,
        row_number() OVER (
            PARTITION BY run_id, series, recipe, withdrawn IS NULL
            ORDER BY collected, attempt DESC, created_at DESC NULLS LAST, richness DESC, place, place_index, file
        ) AS place_in_rank
    FROM marked
)
SELECT
    row,
    withdrawn,
    withdrawn IS NULL AND place_in_rank = 1 AS current,
    withdrawn IS NULL AND tier = 1
        AND count(*) OVER (PARTITION BY run_id, series, recipe, withdrawn IS NULL, tier) > 1 AS contested
FROM ranked;

CREATE OR REPLACE TEMP TABLE held_scores AS
WITH marked AS (
    SELECT
        p.rowid AS row, p.run_id, p.series, p.task, p.collected, p.attempt, p.created_at, p.richness,
        p.place, p.place_index, p.file,
        e.caveat AS withdrawn
    FROM scores AS p
    LEFT JOIN (SELECT row, min(number) AS number FROM taken_scores GROUP BY row) AS t ON t.row = p.rowid
    LEFT JOIN withdrawals AS e ON e.number = t.number
    WHERE p.run_id IN (/* run ids */)
),
ranked AS (
    SELECT
        row,
        run_id, series, task, withdrawn,
        rank() OVER (
            PARTITION BY run_id, series, task, withdrawn IS NULL
            ORDER BY created_at DESC NULLS LAST, attempt DESC, collected, richness DESC
        ) AS tier,
        row_number() OVER (
            PARTITION BY run_id, series, task, withdrawn IS NULL
            ORDER BY created_at DESC NULLS LAST, attempt DESC, collected, richness DESC, place, place_index, file
        ) AS place_in_rank
    FROM marked
)
SELECT
    row,
    withdrawn,
    withdrawn IS NULL AND place_in_rank = 1 AS current,
    withdrawn IS NULL AND tier = 1
        AND count(*) OVER (PARTITION BY run_id, series, task, withdrawn IS NULL, tier) > 1 AS contested
FROM ranked;

CREATE OR REPLACE TEMP VIEW points_now AS
SELECT *, NULL::VARCHAR AS withdrawn FROM points WHERE run_id NOT IN (/* run ids */)
UNION ALL
SELECT p.* REPLACE (h.current AS current, h.contested AS contested), h.withdrawn
FROM points AS p
INNER JOIN held_points AS h ON h.row = p.rowid
WHERE p.run_id IN (/* run ids */);

CREATE OR REPLACE TEMP VIEW scores_now AS
SELECT *, NULL::VARCHAR AS withdrawn FROM scores WHERE run_id NOT IN (/* run ids */)
UNION ALL
SELECT p.* REPLACE (h.current AS current, h.contested AS contested), h.withdrawn
FROM scores AS p
INNER JOIN held_scores AS h ON h.row = p.rowid
WHERE p.run_id IN (/* run ids */);

CREATE OR REPLACE TEMP VIEW runs_now AS
SELECT r.* REPLACE (r.official AND e.caveat IS NULL AS official), e.caveat AS withdrawn
FROM runs AS r
LEFT JOIN (SELECT id, attempt, min(number) AS number FROM taken_runs GROUP BY id, attempt) AS t
    ON t.id = r.id AND t.attempt = r.attempt
LEFT JOIN withdrawals AS e ON e.number = t.number
