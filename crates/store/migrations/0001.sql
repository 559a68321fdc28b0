-- The store, version 1. Times are nanoseconds since the Unix epoch; names carry their units.
-- Rows are only ever added: triggers at the end abort every UPDATE and DELETE.

CREATE TABLE run (
    id             TEXT PRIMARY KEY,
    recipe         TEXT NOT NULL,
    started_at     INTEGER NOT NULL,
    pgdyno_version TEXT NOT NULL,
    experiment     TEXT NOT NULL,                 -- the experiment file's text
    folder         TEXT NOT NULL,                 -- where its relative paths start from
    overrides      TEXT NOT NULL,                 -- JSON: ["key=value", …]
    plan           TEXT NOT NULL,                 -- JSON: factors, treatments, trials in order
    question       TEXT    GENERATED ALWAYS AS (plan ->> '$.question') VIRTUAL,
    trials_planned INTEGER GENERATED ALWAYS AS (json_array_length(plan, '$.trials')) VIRTUAL
) STRICT;

CREATE TABLE session (
    id                  INTEGER PRIMARY KEY,
    run                 TEXT NOT NULL REFERENCES run (id),
    started_at          INTEGER NOT NULL,
    owner_pid           INTEGER NOT NULL,
    owner_started_ticks INTEGER NOT NULL,
    owner_boot_id       TEXT NOT NULL,
    host                TEXT NOT NULL,            -- JSON
    storage             TEXT NOT NULL             -- JSON: one element a storage
) STRICT;
CREATE INDEX session_by_run ON session (run);

CREATE TABLE session_end (
    session  INTEGER PRIMARY KEY REFERENCES session (id),
    ended_at INTEGER NOT NULL,
    state    TEXT NOT NULL CHECK (state IN ('completed', 'failed', 'interrupted'))
) STRICT;

CREATE TABLE trial (
    id           INTEGER PRIMARY KEY,
    run          TEXT NOT NULL REFERENCES run (id),
    session      INTEGER NOT NULL REFERENCES session (id),
    ordinal      INTEGER NOT NULL,                -- its place in the plan, from 0
    block        INTEGER NOT NULL,
    treatment    INTEGER NOT NULL,                -- index into the plan's treatments
    repeat       INTEGER NOT NULL,
    started_at   INTEGER NOT NULL,
    measured_at  INTEGER,
    failure      TEXT,                            -- NULL: completed
    measurement  TEXT,                            -- JSON, without the series (see second)
    server_count TEXT,                            -- JSON
    server       TEXT,                            -- JSON, without the settings (see setting)
    measured_s          REAL    GENERATED ALWAYS AS (measurement ->> '$.measured_s') VIRTUAL,
    transactions        INTEGER GENERATED ALWAYS AS (measurement ->> '$.transactions') VIRTUAL,
    failed_transactions INTEGER GENERATED ALWAYS AS (measurement ->> '$.failed') VIRTUAL,
    tps                 REAL    GENERATED ALWAYS AS
        ((measurement ->> '$.transactions') / NULLIF(CAST(measurement ->> '$.measured_s' AS REAL), 0.0)) VIRTUAL,
    server_version      TEXT    GENERATED ALWAYS AS (server ->> '$.version') VIRTUAL
) STRICT;
CREATE INDEX trial_by_run ON trial (run, treatment, repeat);

CREATE TABLE second (
    trial          INTEGER NOT NULL REFERENCES trial (id),
    t_s            INTEGER NOT NULL,              -- from the window's opening to the second's beginning
    length_s       REAL NOT NULL,
    transactions   INTEGER NOT NULL,
    failed         INTEGER NOT NULL,
    latency_us_p50 REAL,
    latency_us_p95 REAL,
    latency_us_p99 REAL,
    latency_us_max REAL,
    tps            REAL GENERATED ALWAYS AS (transactions / NULLIF(length_s, 0.0)) VIRTUAL,
    PRIMARY KEY (trial, t_s)
) STRICT, WITHOUT ROWID;

CREATE TABLE histogram (
    trial          INTEGER NOT NULL REFERENCES trial (id),
    scope          TEXT NOT NULL CHECK (scope IN ('trial', 'script', 'statement')),
    script         INTEGER NOT NULL,              -- index into the measurement's scripts; -1 for the whole trial
    statement      INTEGER NOT NULL,              -- index into the script's statements; -1 for the whole script
    latencies      INTEGER NOT NULL,              -- how many it holds
    latency_us_p50 REAL,
    latency_us_p99 REAL,
    latency_us_max REAL,
    v2             BLOB NOT NULL,                 -- HdrHistogram's V2 encoding, nanoseconds
    PRIMARY KEY (trial, scope, script, statement)
) STRICT, WITHOUT ROWID;

CREATE TABLE setting (
    trial    INTEGER NOT NULL REFERENCES trial (id),
    position INTEGER NOT NULL,
    name     TEXT NOT NULL,
    value    TEXT NOT NULL,
    unit     TEXT,
    source   TEXT NOT NULL,
    PRIMARY KEY (trial, position)
) STRICT, WITHOUT ROWID;

CREATE TABLE telemetry (
    id          INTEGER PRIMARY KEY,
    trial       INTEGER NOT NULL REFERENCES trial (id),
    probe       TEXT NOT NULL,
    columns     TEXT NOT NULL,                    -- JSON: [{"name", "unit", "kind"}, …]
    unavailable TEXT                              -- why there are no samples, or fewer than expected
) STRICT;
CREATE INDEX telemetry_by_trial ON telemetry (trial);

CREATE TABLE sample (
    telemetry INTEGER NOT NULL REFERENCES telemetry (id),
    position  INTEGER NOT NULL,
    t_s       REAL NOT NULL,                      -- from the window's opening
    readings  TEXT NOT NULL,                      -- JSON: one raw value or null a column
    PRIMARY KEY (telemetry, position)
) STRICT, WITHOUT ROWID;

CREATE TABLE server_log (
    trial INTEGER PRIMARY KEY REFERENCES trial (id),
    text  TEXT NOT NULL
) STRICT;

CREATE TABLE fsync_rate (
    id             INTEGER PRIMARY KEY,
    run            TEXT NOT NULL REFERENCES run (id),
    session        INTEGER NOT NULL REFERENCES session (id),
    storage        TEXT NOT NULL,
    method         TEXT NOT NULL,
    block_bytes    INTEGER NOT NULL,
    flushes        INTEGER NOT NULL,
    seconds        REAL NOT NULL,
    measured_at    INTEGER NOT NULL,
    latency_us_p50 REAL,
    latency_us_p99 REAL,
    latency_us_max REAL,
    v2             BLOB NOT NULL,
    per_second     REAL GENERATED ALWAYS AS (flushes / NULLIF(seconds, 0.0)) VIRTUAL
) STRICT;
CREATE INDEX fsync_rate_by_run ON fsync_rate (run);

-- Trials beside their levels: SELECT levels ->> '$.clients', avg(tps) FROM result GROUP BY 1.
CREATE VIEW result AS
SELECT t.run, r.recipe, t.ordinal, t.block, t.repeat,
       json_extract(r.plan, '$.treatments[' || t.treatment || '].levels') AS levels,
       t.tps, t.transactions, t.failed_transactions, t.measured_s,
       h.latency_us_p50, h.latency_us_p99, h.latency_us_max, t.failure, t.id AS trial
FROM trial t
JOIN run r ON r.id = t.run
LEFT JOIN histogram h ON h.trial = t.id AND h.scope = 'trial';

-- One row a telemetry value, raw: counters are not yet differences.
CREATE VIEW telemetry_value AS
SELECT t.trial, t.probe, s.t_s, c.value ->> '$.name' AS name, c.value ->> '$.unit' AS unit,
       c.value ->> '$.kind' AS kind, json_extract(s.readings, '$[' || c.key || ']') AS value
FROM telemetry t
JOIN sample s ON s.telemetry = t.id
JOIN json_each(t.columns) c;

CREATE TRIGGER run_no_update BEFORE UPDATE ON run BEGIN SELECT RAISE(ABORT, 'the store is append-only'); END;
CREATE TRIGGER run_no_delete BEFORE DELETE ON run BEGIN SELECT RAISE(ABORT, 'the store is append-only'); END;
CREATE TRIGGER session_no_update BEFORE UPDATE ON session BEGIN SELECT RAISE(ABORT, 'the store is append-only'); END;
CREATE TRIGGER session_no_delete BEFORE DELETE ON session BEGIN SELECT RAISE(ABORT, 'the store is append-only'); END;
CREATE TRIGGER session_end_no_update BEFORE UPDATE ON session_end BEGIN SELECT RAISE(ABORT, 'the store is append-only'); END;
CREATE TRIGGER session_end_no_delete BEFORE DELETE ON session_end BEGIN SELECT RAISE(ABORT, 'the store is append-only'); END;
CREATE TRIGGER trial_no_update BEFORE UPDATE ON trial BEGIN SELECT RAISE(ABORT, 'the store is append-only'); END;
CREATE TRIGGER trial_no_delete BEFORE DELETE ON trial BEGIN SELECT RAISE(ABORT, 'the store is append-only'); END;
CREATE TRIGGER second_no_update BEFORE UPDATE ON second BEGIN SELECT RAISE(ABORT, 'the store is append-only'); END;
CREATE TRIGGER second_no_delete BEFORE DELETE ON second BEGIN SELECT RAISE(ABORT, 'the store is append-only'); END;
CREATE TRIGGER histogram_no_update BEFORE UPDATE ON histogram BEGIN SELECT RAISE(ABORT, 'the store is append-only'); END;
CREATE TRIGGER histogram_no_delete BEFORE DELETE ON histogram BEGIN SELECT RAISE(ABORT, 'the store is append-only'); END;
CREATE TRIGGER setting_no_update BEFORE UPDATE ON setting BEGIN SELECT RAISE(ABORT, 'the store is append-only'); END;
CREATE TRIGGER setting_no_delete BEFORE DELETE ON setting BEGIN SELECT RAISE(ABORT, 'the store is append-only'); END;
CREATE TRIGGER telemetry_no_update BEFORE UPDATE ON telemetry BEGIN SELECT RAISE(ABORT, 'the store is append-only'); END;
CREATE TRIGGER telemetry_no_delete BEFORE DELETE ON telemetry BEGIN SELECT RAISE(ABORT, 'the store is append-only'); END;
CREATE TRIGGER sample_no_update BEFORE UPDATE ON sample BEGIN SELECT RAISE(ABORT, 'the store is append-only'); END;
CREATE TRIGGER sample_no_delete BEFORE DELETE ON sample BEGIN SELECT RAISE(ABORT, 'the store is append-only'); END;
CREATE TRIGGER server_log_no_update BEFORE UPDATE ON server_log BEGIN SELECT RAISE(ABORT, 'the store is append-only'); END;
CREATE TRIGGER server_log_no_delete BEFORE DELETE ON server_log BEGIN SELECT RAISE(ABORT, 'the store is append-only'); END;
CREATE TRIGGER fsync_rate_no_update BEFORE UPDATE ON fsync_rate BEGIN SELECT RAISE(ABORT, 'the store is append-only'); END;
CREATE TRIGGER fsync_rate_no_delete BEFORE DELETE ON fsync_rate BEGIN SELECT RAISE(ABORT, 'the store is append-only'); END;
