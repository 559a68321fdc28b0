-- The store, version 8. The latency distribution of each second. Trials from before have none. A table of its own: the
-- checksums of the rows of second stay as they were made.

CREATE TABLE second_histogram (
    trial     INTEGER NOT NULL REFERENCES trial (id),
    t_s       INTEGER NOT NULL,                   -- as in second
    latencies INTEGER NOT NULL,                   -- how many it holds
    counts    BLOB NOT NULL,                      -- 64 buckets an octave from 1 µs on: docs/export.md
    PRIMARY KEY (trial, t_s)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER second_histogram_no_update BEFORE UPDATE ON second_histogram BEGIN SELECT RAISE(ABORT, 'the store is append-only'); END;
CREATE TRIGGER second_histogram_no_delete BEFORE DELETE ON second_histogram BEGIN SELECT RAISE(ABORT, 'the store is append-only'); END;
