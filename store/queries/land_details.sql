-- The small records (rejections, changelog entries, job counts, jobs, expected points) that the run attempt did not have yet, each once.
INSERT INTO details BY NAME
SELECT kind, run_id, attempt, min(position) AS position, record
FROM incoming AS i
WHERE
    kind IN ('rejection', 'changelog', 'job', 'job_run', 'expected')
    AND NOT EXISTS (
        SELECT 1
        FROM details AS d
        WHERE (d.kind, d.run_id, d.attempt, d.record) = (i.kind, i.run_id, i.attempt, i.record)
    )
GROUP BY kind, run_id, attempt, record
