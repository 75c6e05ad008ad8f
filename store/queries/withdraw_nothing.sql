-- The tables as they are, under the names that the questions ask by: nothing is withdrawn.
CREATE OR REPLACE TEMP VIEW points_now AS SELECT *, NULL::VARCHAR AS withdrawn FROM points;
CREATE OR REPLACE TEMP VIEW scores_now AS SELECT *, NULL::VARCHAR AS withdrawn FROM scores;
CREATE OR REPLACE TEMP VIEW runs_now AS SELECT *, NULL::VARCHAR AS withdrawn FROM runs
