-- The store, version 4. Crash tests, by themselves or in a run.

CREATE TABLE crash_record (
    id             TEXT PRIMARY KEY,
    run            TEXT REFERENCES run (id),          -- NULL: crash tests by themselves
    session        INTEGER REFERENCES session (id),
    treatment      INTEGER,                           -- index into the plan's treatments
    name           TEXT NOT NULL,                     -- what was crashed
    started_at     INTEGER NOT NULL,
    pgdyno_version TEXT NOT NULL,
    host           TEXT NOT NULL,                     -- JSON
    storage        TEXT NOT NULL,                     -- JSON
    outcome        TEXT NOT NULL,                     -- JSON: options, faults with their rounds, controls
    verdict        TEXT    GENERATED ALWAYS AS (outcome ->> '$.verdict') VIRTUAL,
    complete       INTEGER GENERATED ALWAYS AS (outcome ->> '$.complete') VIRTUAL
) STRICT;
CREATE INDEX crash_record_by_run ON crash_record (run);

CREATE TRIGGER crash_record_no_update BEFORE UPDATE ON crash_record BEGIN SELECT RAISE(ABORT, 'the store is append-only'); END;
CREATE TRIGGER crash_record_no_delete BEFORE DELETE ON crash_record BEGIN SELECT RAISE(ABORT, 'the store is append-only'); END;
