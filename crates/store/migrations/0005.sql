-- The store, version 5. Figures that pgdyno did not measure: what `pgdyno audit` recognised in others' reports. They stand apart
-- from runs, so that nothing that asks for trials gets them.

CREATE TABLE imported_run (
    id             TEXT PRIMARY KEY,
    source         TEXT NOT NULL,                     -- the report's file, as it was named
    sha256         TEXT NOT NULL,                     -- of the file
    imported_at    INTEGER NOT NULL,
    pgdyno_version TEXT NOT NULL,
    recognised     TEXT NOT NULL,                     -- JSON: figures with their lines in the file
    provenance     TEXT GENERATED ALWAYS AS ('imported') VIRTUAL
) STRICT;
CREATE INDEX imported_run_by_file ON imported_run (sha256);

CREATE TRIGGER imported_run_no_update BEFORE UPDATE ON imported_run BEGIN SELECT RAISE(ABORT, 'the store is append-only'); END;
CREATE TRIGGER imported_run_no_delete BEFORE DELETE ON imported_run BEGIN SELECT RAISE(ABORT, 'the store is append-only'); END;
