-- The same for scores: equal accuracies are one result, in whatever shape; the time of the artifact counts before the attempt.
CREATE OR REPLACE TEMP TABLE ranked AS
WITH versions AS (
    SELECT
        rowid AS old, NULL::BIGINT AS file_row, run_id, attempt, series, task, collected, created_at, place, place_index, file,
        richness, current AS was_current, contested AS was_contested,
        hash(strict, flexible, CASE WHEN strict IS NULL AND flexible IS NULL THEN score END) AS content
    FROM scores
    WHERE run_id IN (/* run ids */)
    UNION ALL
    SELECT
        NULL, position, run_id, attempt, series, task, collected, created_at, place, place_index, file,
        richness, NULL, NULL,
        hash(strict, flexible, CASE WHEN strict IS NULL AND flexible IS NULL THEN score END)
    FROM incoming
    WHERE kind = 'score'
),
kept AS (
    SELECT
        *,
        row_number() OVER (
            PARTITION BY run_id, attempt, series, task, content
            ORDER BY richness DESC, created_at DESC NULLS LAST, collected, place, place_index, file
        ) = 1 AS stays
    FROM versions
),
placed AS (
    SELECT
        *,
        rank() OVER (
            PARTITION BY stays, run_id, series, task
            ORDER BY created_at DESC NULLS LAST, attempt DESC, collected, richness DESC
        ) AS tier,
        row_number() OVER (
            PARTITION BY stays, run_id, series, task
            ORDER BY created_at DESC NULLS LAST, attempt DESC, collected, richness DESC, place, place_index, file
        ) AS rank
    FROM kept
)
SELECT
    * EXCLUDE (tier, rank),
    stays AND rank = 1 AS current,
    stays AND tier = 1 AND count(*) OVER (PARTITION BY stays, run_id, series, task, tier) > 1 AS contested
FROM placed;

DELETE FROM scores WHERE rowid IN (SELECT old FROM ranked WHERE old IS NOT NULL AND NOT stays);

UPDATE scores
SET current = r.current, contested = r.contested
FROM ranked AS r
WHERE r.old = scores.rowid AND (r.current <> scores.current OR r.contested <> scores.contested);

INSERT INTO scores BY NAME
SELECT
    i.run_id, i.attempt, i.series, r.current, r.contested, i.recipe, i.image, i.pool, i.place, i.place_index, i.created_at,
    i.collected, i.invalid, i.caveats, i.richness, i.file, i.task, i.strict, i.strict_se, i.flexible, i.flexible_se, i.n, i.score,
    i.score_name, i.record, i.extra
FROM incoming AS i
INNER JOIN ranked AS r ON r.file = i.file AND r.file_row = i.position
WHERE i.kind = 'score' AND r.stays
