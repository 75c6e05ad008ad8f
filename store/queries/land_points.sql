-- Which version of each point stays, and which one counts: of equal rows the best placed one stays; of the versions of a point the first by
-- per-point artifact, attempt, time of the artifact and number of metrics counts, and is contested when that does not decide.
CREATE OR REPLACE TEMP TABLE ranked AS
WITH versions AS (
    SELECT
        rowid AS old, NULL AS file_row, run_id, attempt, series, recipe, collected, created_at, place, place_index, file,
        richness, current AS was_current, contested AS was_contested,
        hash(/* values */) AS content
    FROM points
    WHERE run_id IN (/* run ids */)
    UNION ALL
    SELECT
        NULL, i.position, i.run_id, i.attempt, i.series, i.recipe, i.collected, i.created_at, i.place, i.place_index, i.file,
        i.richness, NULL, NULL, c.content
    FROM incoming AS i
    LEFT JOIN contents AS c ON c.file = i.file AND c.position = i.position
    WHERE i.kind = 'point'
),
kept AS (
    SELECT
        *,
        row_number() OVER (
            PARTITION BY run_id, attempt, series, recipe, content
            ORDER BY collected, created_at DESC NULLS LAST, richness DESC, place, place_index, file
        ) = 1 AS stays
    FROM versions
),
placed AS (
    SELECT
        *,
        rank() OVER (
            PARTITION BY stays, run_id, series, recipe
            ORDER BY collected, attempt DESC, created_at DESC NULLS LAST, richness DESC
        ) AS tier,
        row_number() OVER (
            PARTITION BY stays, run_id, series, recipe
            ORDER BY collected, attempt DESC, created_at DESC NULLS LAST, richness DESC, place, place_index, file
        ) AS rank
    FROM kept
)
SELECT
    * EXCLUDE (tier, rank),
    stays AND rank = 1 AS current,
    stays AND tier = 1 AND count(*) OVER (PARTITION BY stays, run_id, series, recipe, tier) > 1 AS contested
FROM placed;

DELETE FROM points WHERE rowid IN (SELECT old FROM ranked WHERE old IS NOT NULL AND NOT stays);

UPDATE points
SET current = r.current, contested = r.contested
FROM ranked AS r
WHERE r.old = points.rowid AND (r.current <> points.current OR r.contested <> points.contested);

INSERT INTO points BY NAME
SELECT
    r.run_id, r.attempt, r.series, r.current, r.contested, i.recipe, i.image, i.pool, i.place, i.place_index,
    make_timestamp(epoch_us(i.created_at)) AS created_at, i.collected, i.invalid, i.caveats, i.extra, r.richness, r.file
    /* incoming */
FROM read_parquet(
    /* files */, union_by_name = true, filename = true, file_row_number = true, hive_partitioning = false
) AS i
INNER JOIN ranked AS r ON r.file = parse_filename(i.filename, true) AND r.file_row = i.file_row_number
WHERE i.kind = 'point' AND r.stays
