-- Every run attempt with what it holds, newest first: points and scores that count, and what was superseded, invalid, withdrawn or rejected.
WITH point_counts AS (
    SELECT
        run_id,
        attempt,
        count(*) AS points,
        count(*) FILTER (current AND NOT contested AND invalid IS NULL) AS valid,
        count(*) FILTER (contested OR (current AND invalid IS NOT NULL)) AS invalid,
        count(*) FILTER (NOT current AND NOT contested AND withdrawn IS NULL) AS superseded,
        count(*) FILTER (withdrawn IS NOT NULL) AS withdrawn
    FROM points_now
    GROUP BY run_id, attempt
),
score_counts AS (
    SELECT run_id, attempt, count(*) FILTER (current) AS scores
    FROM scores_now
    GROUP BY run_id, attempt
),
rejection_counts AS (
    SELECT run_id, attempt, count(*) AS rejections
    FROM details
    WHERE kind = 'rejection'
    GROUP BY run_id, attempt
)
SELECT
    format('{}/{}', r.id, r.attempt) AS run,
    r.id,
    r.attempt,
    r.started_at,
    r.repository,
    r.path,
    r.event,
    r.head_branch,
    r.head_sha,
    r.status,
    r.conclusion,
    r.pull_request,
    r.published,
    r.official,
    r.reasons,
    r.withdrawn AS withdrawal,
    coalesce(p.points, 0) AS points,
    coalesce(p.valid, 0) AS valid,
    coalesce(p.invalid, 0) AS invalid,
    coalesce(p.superseded, 0) AS superseded,
    coalesce(p.withdrawn, 0) AS withdrawn,
    coalesce(s.scores, 0) AS scores,
    coalesce(j.rejections, 0) AS rejections
FROM runs_now AS r
LEFT JOIN point_counts AS p ON p.run_id = r.id AND p.attempt = r.attempt
LEFT JOIN score_counts AS s ON s.run_id = r.id AND s.attempt = r.attempt
LEFT JOIN rejection_counts AS j ON j.run_id = r.id AND j.attempt = r.attempt
ORDER BY r.started_at DESC, r.attempt DESC, r.id DESC
