-- The store, version 2. Histograms of two more scopes: service time, where a rate makes it differ from latency, and the
-- time to the first byte of a statement's reply. A CHECK cannot be changed, so the table is made anew with its rows.

DROP VIEW result;
CREATE TABLE wider_histogram (
    trial          INTEGER NOT NULL REFERENCES trial (id),
    scope          TEXT NOT NULL CHECK (scope IN ('trial', 'script', 'statement', 'service', 'first_byte')),
    script         INTEGER NOT NULL,              -- index into the measurement's scripts; -1 for the whole trial
    statement      INTEGER NOT NULL,              -- index into the script's statements; -1 for the whole script
    latencies      INTEGER NOT NULL,              -- how many it holds
    latency_us_p50 REAL,
    latency_us_p99 REAL,
    latency_us_max REAL,
    v2             BLOB NOT NULL,                 -- HdrHistogram's V2 encoding, nanoseconds
    PRIMARY KEY (trial, scope, script, statement)
) STRICT, WITHOUT ROWID;
INSERT INTO wider_histogram SELECT * FROM histogram;
DROP TABLE histogram;
ALTER TABLE wider_histogram RENAME TO histogram;
CREATE TRIGGER histogram_no_update BEFORE UPDATE ON histogram BEGIN SELECT RAISE(ABORT, 'the store is append-only'); END;
CREATE TRIGGER histogram_no_delete BEFORE DELETE ON histogram BEGIN SELECT RAISE(ABORT, 'the store is append-only'); END;

CREATE VIEW result AS
SELECT t.run, r.recipe, t.ordinal, t.block, t.repeat,
       json_extract(r.plan, '$.treatments[' || t.treatment || '].levels') AS levels,
       t.tps, t.transactions, t.failed_transactions, t.measured_s,
       h.latency_us_p50, h.latency_us_p99, h.latency_us_max, t.failure, t.id AS trial
FROM trial t
JOIN run r ON r.id = t.run
LEFT JOIN histogram h ON h.trial = t.id AND h.scope = 'trial';
