-- What landed, and as what. A new store has a column for every metric; a metric that joins the table later gets its
-- column when a store is opened for writing.
-- No primary key on the large tables: it would cost five times the time and the space of a load. That nothing lands
-- twice is held by `landed`, in the same transaction. Times are UTC.

CREATE TABLE landed (
    file VARCHAR PRIMARY KEY,
    run_id BIGINT NOT NULL,
    attempt INTEGER NOT NULL,
    run VARCHAR NOT NULL
);

CREATE TABLE runs (
    id BIGINT NOT NULL,
    attempt INTEGER NOT NULL,
    started_at TIMESTAMP NOT NULL,
    repository VARCHAR,
    path VARCHAR,
    event VARCHAR,
    head_branch VARCHAR,
    head_sha VARCHAR,
    status VARCHAR,
    conclusion VARCHAR,
    pull_request BIGINT,
    published BOOLEAN NOT NULL,
    official BOOLEAN NOT NULL,
    record VARCHAR NOT NULL,
    PRIMARY KEY (id, attempt)
);

CREATE TABLE series (
    id UBIGINT PRIMARY KEY,
    key VARCHAR NOT NULL,
    curve VARCHAR NOT NULL,
    config VARCHAR NOT NULL,
    model VARCHAR NOT NULL,
    gpu VARCHAR NOT NULL,
    framework VARCHAR NOT NULL,
    "precision" VARCHAR NOT NULL,
    spec VARCHAR NOT NULL,
    scenario VARCHAR NOT NULL,
    isl INTEGER,
    osl INTEGER,
    offload BOOLEAN NOT NULL,
    layout VARCHAR NOT NULL,
    multinode BOOLEAN NOT NULL,
    conc INTEGER,
    record VARCHAR NOT NULL
);

CREATE TABLE points (
    run_id BIGINT NOT NULL,
    attempt INTEGER NOT NULL,
    series UBIGINT NOT NULL,
    current BOOLEAN NOT NULL,
    contested BOOLEAN NOT NULL,
    recipe VARCHAR,
    image VARCHAR,
    pool VARCHAR,
    place VARCHAR NOT NULL,
    place_index BIGINT NOT NULL,
    created_at TIMESTAMP,
    collected BOOLEAN NOT NULL,
    invalid VARCHAR,
    caveats VARCHAR,
    extra VARCHAR,
    richness INTEGER NOT NULL,
    file VARCHAR NOT NULL,
    /* metrics */
);

CREATE TABLE scores (
    run_id BIGINT NOT NULL,
    attempt INTEGER NOT NULL,
    series UBIGINT NOT NULL,
    current BOOLEAN NOT NULL,
    contested BOOLEAN NOT NULL,
    recipe VARCHAR,
    image VARCHAR,
    pool VARCHAR,
    place VARCHAR NOT NULL,
    place_index BIGINT NOT NULL,
    created_at TIMESTAMP,
    collected BOOLEAN NOT NULL,
    invalid VARCHAR,
    caveats VARCHAR,
    richness INTEGER NOT NULL,
    file VARCHAR NOT NULL,
    task VARCHAR NOT NULL,
    strict DOUBLE,
    strict_se DOUBLE,
    flexible DOUBLE,
    flexible_se DOUBLE,
    n BIGINT,
    score DOUBLE,
    score_name VARCHAR,
    record VARCHAR NOT NULL
);

CREATE TABLE details (
    kind VARCHAR NOT NULL,
    run_id BIGINT NOT NULL,
    attempt INTEGER NOT NULL,
    position BIGINT NOT NULL,
    record VARCHAR NOT NULL
);
