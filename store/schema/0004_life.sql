-- What each judged run said, once per run and version of the rules, and what people said about changes.

CREATE TABLE reviews (
    run_id BIGINT NOT NULL,
    attempt INTEGER NOT NULL,
    rules_version VARCHAR NOT NULL,
    started_at TIMESTAMP NOT NULL,
    content VARCHAR NOT NULL,
    record VARCHAR NOT NULL,
    PRIMARY KEY (run_id, attempt, rules_version)
);

CREATE TABLE events (
    at_time TIMESTAMP NOT NULL,
    change VARCHAR NOT NULL,
    action VARCHAR NOT NULL,
    record VARCHAR NOT NULL
);
