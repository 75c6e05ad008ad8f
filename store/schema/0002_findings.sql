-- Verdicts are facts of history: kept as they were said, with the version of the rules. Notes are small learned values.

CREATE TABLE findings (
    comparison VARCHAR NOT NULL,
    position INTEGER NOT NULL,
    scope VARCHAR NOT NULL,
    key VARCHAR NOT NULL,
    metric VARCHAR NOT NULL,
    verdict VARCHAR NOT NULL,
    config VARCHAR NOT NULL,
    rules_version VARCHAR NOT NULL,
    record VARCHAR NOT NULL
);

CREATE TABLE notes (
    key VARCHAR PRIMARY KEY,
    value VARCHAR NOT NULL
);
