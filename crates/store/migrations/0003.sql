-- The store, version 3. Probes of a storage, by themselves or in a run.

CREATE TABLE probe_record (
    id             TEXT PRIMARY KEY,
    run            TEXT REFERENCES run (id),          -- NULL: a probe by itself
    session        INTEGER REFERENCES session (id),
    kind           TEXT NOT NULL,                     -- fsync, disk, …
    name           TEXT NOT NULL,                     -- the storage's name, or the directory or device as given
    started_at     INTEGER NOT NULL,
    pgdyno_version TEXT NOT NULL,
    host           TEXT NOT NULL,                     -- JSON
    storage        TEXT NOT NULL,                     -- JSON
    result         TEXT NOT NULL,                     -- JSON: what was measured, by kind
    complete       INTEGER GENERATED ALWAYS AS (result ->> '$.complete') VIRTUAL
) STRICT;
CREATE INDEX probe_record_by_run ON probe_record (run);

CREATE TRIGGER probe_record_no_update BEFORE UPDATE ON probe_record BEGIN SELECT RAISE(ABORT, 'the store is append-only'); END;
CREATE TRIGGER probe_record_no_delete BEFORE DELETE ON probe_record BEGIN SELECT RAISE(ABORT, 'the store is append-only'); END;
