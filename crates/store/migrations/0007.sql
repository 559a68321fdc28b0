-- The store, version 7. Checksums of what is stored, in a chain for each run, so that damage shows. Rows from before have
-- none: unsealed says how far they go.

CREATE TABLE seal (
    id        INTEGER PRIMARY KEY,
    chain     TEXT NOT NULL,                      -- the run, or the probe, crash test or import by itself
    position  INTEGER NOT NULL,                   -- its place in the chain, from 0
    part      TEXT NOT NULL,                      -- the table
    key       ANY NOT NULL,                       -- whose rows: the trial's id, else the row's own
    checksums BLOB NOT NULL,                      -- SHA-256 of each of the rows in their order, 32 bytes each
    head      BLOB NOT NULL,                      -- SHA-256 of the head before, the part, the key and the checksums
    UNIQUE (chain, position)
) STRICT;
CREATE INDEX seal_by_part ON seal (part, key);

CREATE TABLE unsealed (
    part TEXT PRIMARY KEY,
    last INTEGER NOT NULL                         -- the last row that was stored before there were checksums
) STRICT;
INSERT INTO unsealed
SELECT 'run', coalesce(max(rowid), 0) FROM run UNION ALL
SELECT 'run_extension', coalesce(max(id), 0) FROM run_extension UNION ALL
SELECT 'session', coalesce(max(id), 0) FROM session UNION ALL
SELECT 'session_end', coalesce(max(session), 0) FROM session_end UNION ALL
SELECT 'trial', coalesce(max(id), 0) FROM trial UNION ALL
SELECT 'fsync_rate', coalesce(max(id), 0) FROM fsync_rate UNION ALL
SELECT 'probe_record', coalesce(max(rowid), 0) FROM probe_record UNION ALL
SELECT 'crash_record', coalesce(max(rowid), 0) FROM crash_record UNION ALL
SELECT 'imported_run', coalesce(max(rowid), 0) FROM imported_run;

CREATE TRIGGER seal_no_update BEFORE UPDATE ON seal BEGIN SELECT RAISE(ABORT, 'the store is append-only'); END;
CREATE TRIGGER seal_no_delete BEFORE DELETE ON seal BEGIN SELECT RAISE(ABORT, 'the store is append-only'); END;
CREATE TRIGGER unsealed_no_update BEFORE UPDATE ON unsealed BEGIN SELECT RAISE(ABORT, 'the store is append-only'); END;
CREATE TRIGGER unsealed_no_delete BEFORE DELETE ON unsealed BEGIN SELECT RAISE(ABORT, 'the store is append-only'); END;
