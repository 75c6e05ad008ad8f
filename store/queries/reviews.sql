-- What was kept of the judged runs under one version of the rules, oldest run first.
SELECT record
FROM reviews
WHERE rules_version = $rules_version
ORDER BY started_at, attempt, run_id
