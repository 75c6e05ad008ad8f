-- What tells apart the versions of a point: a hash of the values of its metrics.
CREATE OR REPLACE TEMP TABLE contents AS
SELECT
    parse_filename(filename, true) AS file,
    file_row_number AS position,
    hash(/* values */) AS content
FROM (
    SELECT extra, filename, file_row_number, /* compared */
    FROM read_parquet($files, union_by_name = true, filename = true, file_row_number = true, hive_partitioning = false)
    WHERE kind = 'point'
)
