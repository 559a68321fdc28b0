-- The store, version 9. What was removed from it, what was thinned, and what came from another store.

CREATE TABLE removal (
    id             INTEGER PRIMARY KEY,
    record         TEXT NOT NULL,                     -- the run, probe, crash test or import that is gone
    kind           TEXT NOT NULL,                     -- run, probe, crash test, import
    removed_at     INTEGER NOT NULL,
    pgdyno_version TEXT NOT NULL,
    command        TEXT NOT NULL                      -- by which it was removed: rm
) STRICT;

CREATE TABLE thinning (
    id             INTEGER PRIMARY KEY,
    run            TEXT NOT NULL REFERENCES run (id),
    thinned_at     INTEGER NOT NULL,
    pgdyno_version TEXT NOT NULL,
    every_s        INTEGER NOT NULL,                  -- seconds between the samples that stayed
    samples        INTEGER NOT NULL,                  -- samples of telemetry that were removed
    seconds        INTEGER NOT NULL                   -- seconds whose latency distribution was removed
) STRICT;
CREATE INDEX thinning_by_run ON thinning (run);

CREATE TABLE arrival (
    id             INTEGER PRIMARY KEY,
    record         TEXT NOT NULL,                     -- the run, probe, crash test or import
    source         TEXT NOT NULL,                     -- the file that it was in, as it was named
    arrived_at     INTEGER NOT NULL,
    pgdyno_version TEXT NOT NULL
) STRICT;
CREATE INDEX arrival_by_record ON arrival (record);

CREATE TRIGGER removal_no_update BEFORE UPDATE ON removal BEGIN SELECT RAISE(ABORT, 'the store is append-only'); END;
CREATE TRIGGER removal_no_delete BEFORE DELETE ON removal BEGIN SELECT RAISE(ABORT, 'the store is append-only'); END;
CREATE TRIGGER thinning_no_update BEFORE UPDATE ON thinning BEGIN SELECT RAISE(ABORT, 'the store is append-only'); END;
CREATE TRIGGER thinning_no_delete BEFORE DELETE ON thinning BEGIN SELECT RAISE(ABORT, 'the store is append-only'); END;
CREATE TRIGGER arrival_no_update BEFORE UPDATE ON arrival BEGIN SELECT RAISE(ABORT, 'the store is append-only'); END;
CREATE TRIGGER arrival_no_delete BEFORE DELETE ON arrival BEGIN SELECT RAISE(ABORT, 'the store is append-only'); END;
