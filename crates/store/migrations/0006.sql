-- The store, version 6. Runs that were given more repeats: the plan and the overrides that hold from then on. The row of the run stays as
-- it was begun.

CREATE TABLE run_extension (
    id             INTEGER PRIMARY KEY,
    run            TEXT NOT NULL REFERENCES run (id),
    extended_at    INTEGER NOT NULL,
    overrides      TEXT NOT NULL,                     -- JSON: ["key=value", …]
    plan           TEXT NOT NULL,                     -- JSON, as in run: the old trials, then the new ones
    trials_planned INTEGER GENERATED ALWAYS AS (json_array_length(plan, '$.trials')) VIRTUAL
) STRICT;
CREATE INDEX run_extension_by_run ON run_extension (run);

CREATE TRIGGER run_extension_no_update BEFORE UPDATE ON run_extension BEGIN SELECT RAISE(ABORT, 'the store is append-only'); END;
CREATE TRIGGER run_extension_no_delete BEFORE DELETE ON run_extension BEGIN SELECT RAISE(ABORT, 'the store is append-only'); END;
