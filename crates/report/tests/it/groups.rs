//! Groups of clients: told apart in reports, and compared by the headline script.

use std::num::NonZeroU32;

use pgdyno_model::{ClientGroup, TrialRecord};
use pgdyno_report::{self as report, Detail, RunReport};
use pgdyno_test_support::assert_contains;
use pgdyno_test_support::records::{RUN, fill_with, first_treatments, run_record, store};

/// Makes the trial's transactions those of readers, and a quarter as many more those of writers,
/// which take twice as long.
fn divided(trial: &mut TrialRecord) {
    let m = trial.measurement.as_mut().unwrap();
    let mut reads = m.scripts.remove(0);
    let mut writes = reads.clone();
    writes.transactions /= 4;
    writes.latency = pgdyno_model::Latencies::new();
    writes.latency.record_many(50_000_000, writes.transactions);
    writes.failed = 3;
    (reads.name, writes.name) = ("read".into(), "write".into());
    (reads.group, writes.group) = (Some("readers".into()), Some("writers".into()));
    m.transactions += writes.transactions;
    m.failed += 3;
    m.latency.merge(&writes.latency);
    m.series[0].transactions += writes.transactions;
    m.headline = Some("write".into());
    m.scripts = vec![writes, reads];
}

#[test]
fn groups_are_told_apart_and_compared_by_the_headline_script() {
    let mut plan = first_treatments(2, 3);
    plan.headline = Some("write".into());
    let group = |name: &str, clients| ClientGroup {
        clients: NonZeroU32::new(clients).unwrap(),
        ..ClientGroup::new(name, 1)
    };
    let writers = ClientGroup { rate: Some("300".parse().unwrap()), ..group("writers", 6) };
    let think_time = "40ms".parse().unwrap();
    let server = Some("replica".into());
    let readers = ClientGroup { think_time, server, ..group("readers", 2) };
    for treatment in &mut plan.treatments {
        treatment.groups = vec![writers.clone(), readers.clone()];
    }
    let (_folder, mut store) = store();
    fill_with(&mut store, &run_record(plan), divided);
    let report = RunReport::read(&store, RUN).unwrap();
    let view = &report.view;
    for t in &view.treatments {
        let [writers, readers] = &t.groups[..] else { panic!("{:?}", t.groups) };
        let tps = |group: &pgdyno_analysis::GroupView| group.tps.as_ref().unwrap().mean;
        assert!((tps(readers) / tps(writers) - 4.0).abs() < 0.01, "{t:?}");
        assert_eq!(t.tps.as_ref().unwrap().mean, tps(writers), "the headline script is theirs");
        assert_eq!(writers.transactions + readers.transactions, t.transactions);
        assert_eq!((writers.failed, readers.failed, t.failed), (9, 0, 9));
        let p50 = writers.latency_us.as_ref().unwrap().p50;
        assert!((p50 / 50_000.0 - 1.0).abs() < 0.01, "{p50}");
        assert!(t.little.is_none(), "not all clients are in a closed loop");
    }
    let told = report::terminal(&report, 160, Detail::Full);
    let (_, table) = told.split_once("\nGroups of clients\n").unwrap();
    let rows: Vec<Vec<&str>> = table
        .lines()
        .skip(2)
        .take(4)
        .map(|row| row.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect())
        .collect();
    assert_eq!(rows[0][1..4], ["writers", "6", "300"], "{table}");
    assert_eq!(rows[1][0], "readers (thinks 40ms, server replica)", "{table}");
    assert_contains(&told, &["tps of write"]);
    let page = report::Page::run(&report).unwrap().to_html();
    assert_contains(&page, &["tps of write", "\"name\":\"readers\""]);
}
