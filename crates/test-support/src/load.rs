//! Loads for tests of the load engine, on the server of `pgdyno-test-support`.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use pgdyno_engine::script::{Script, Value};
use pgdyno_engine::{LoadObserver, LoadSpec, WeightedScript};
use pgdyno_model::Measurement;
use pgdyno_model::experiment::{Length, Protocol};
use pgdyno_model::target::Target;
use pgdyno_model::units::Span;

/// TPC-B-like, one statement a line.
pub const TPCB: &str = "\
\\set aid random(1, 1000 * :scale)
\\set bid random(1, 1 * :scale)
\\set tid random(1, 10 * :scale)
\\set delta random(-5000, 5000)
BEGIN;
UPDATE accounts SET abalance = abalance + :delta WHERE aid = :aid;
SELECT abalance FROM accounts WHERE aid = :aid;
UPDATE tellers SET tbalance = tbalance + :delta WHERE tid = :tid;
UPDATE branches SET bbalance = bbalance + :delta WHERE bid = :bid;
INSERT INTO history (tid, bid, aid, delta, mtime) \
    VALUES (:tid, :bid, :aid, :delta, CURRENT_TIMESTAMP);
END;
";

/// Tables for [`TPCB`] at scale 1.
pub const TPCB_TABLES: &str = "
    CREATE TABLE accounts (aid int PRIMARY KEY, abalance int NOT NULL DEFAULT 0);
    CREATE TABLE tellers (tid int PRIMARY KEY, tbalance int NOT NULL DEFAULT 0);
    CREATE TABLE branches (bid int PRIMARY KEY, bbalance int NOT NULL DEFAULT 0);
    CREATE TABLE history (tid int, bid int, aid int, delta int, mtime timestamp);
    INSERT INTO accounts SELECT generate_series(1, 1000);
    INSERT INTO tellers SELECT generate_series(1, 10);
    INSERT INTO branches VALUES (1);";

/// A load of one script on `target`; tests change what they are about.
pub fn spec(target: Target, script: &str) -> LoadSpec {
    let one = std::num::NonZeroU32::MIN;
    let script = WeightedScript::new(Script::parse("test", script).unwrap().into(), 1);
    LoadSpec {
        clients: one,
        threads: one,
        protocol: Protocol::Simple,
        warm_up: Duration::ZERO,
        length: Length::Transactions(10),
        seed: 42,
        variables: vec![("scale".into(), Value::Int(1).into())],
        ..LoadSpec::new(target, vec![script])
    }
}

/// As [`Length::Duration`] has it.
pub fn lasting(span: Duration) -> Length {
    Length::Duration(Span(span))
}

/// Asserts how many transactions of a load succeeded and failed, and how many clients were aborted.
#[track_caller]
pub fn assert_counts(m: &Measurement, expected: (u64, u64, u32)) {
    let counts = (m.transactions, m.failed, m.counters.aborted_clients);
    assert_eq!(counts, expected, "{:?}", m.counters.abort_reasons);
}

/// Asserts why the first client of a load was aborted.
#[track_caller]
pub fn assert_aborted(m: &Measurement, words: &str) {
    let reasons = &m.counters.abort_reasons;
    assert!(reasons[0].contains(words), "no `{words}` in {reasons:?}");
}

/// Nobody watches.
pub fn unwatched(stop: &AtomicBool) -> LoadObserver<'_> {
    LoadObserver { stop, on_open: &|_| {}, on_second: &|_| {} }
}
