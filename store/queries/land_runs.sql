-- Everything that landed files say of the runs that are coming in.
SELECT run_id, attempt, run
FROM landed
WHERE (run_id, attempt) IN (SELECT (run_id, attempt) FROM incoming)
