-- What the files hold, but for the metrics and the long raw rows of points, with the name of each file.
CREATE OR REPLACE TEMP TABLE incoming AS
SELECT
    kind, run_id, attempt, series AS fields, recipe, image, pool, place, place_index,
    -- A moment is kept without a zone, as UTC: a cast would follow the zone of the session.
    make_timestamp(epoch_us(created_at)) AS created_at,
    collected, invalid, caveats, richness, parse_filename(filename, true) AS file, filename AS path, file_row_number AS position,
    task, strict, strict_se, flexible, flexible_se, n, score, score_name, record,
    CASE WHEN kind = 'score' THEN extra END AS extra,
    NULL::UBIGINT AS series
FROM read_parquet($files, union_by_name = true, filename = true, file_row_number = true, hive_partitioning = false)
