//! A run on two filesystems as somebody measured them: one is slower by a known part of each
//! transaction.

use pgdyno_analysis::{GapView, PartView, RunView};
use pgdyno_model::measurement::StatementMeasurement;
use pgdyno_model::{Latencies, LevelValue, Levels, Plan, TrialRecord};

use super::{fill_with, first_treatments, run_record, store};

/// Statement latencies that somebody measured on ZFS and on XFS (PostgreSQL 9.5, pgbench -M
/// prepared -c 48, two hours each): in milliseconds, as pgbench printed them.
const STATEMENTS: [(&str, f64, f64); 7] = [
    ("BEGIN;", 0.146576, 0.096122),
    (
        "UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid;",
        3.357134,
        1.521620,
    ),
    ("SELECT abalance FROM pgbench_accounts WHERE aid = :aid;", 0.199865, 0.121572),
    (
        "UPDATE pgbench_tellers SET tbalance = tbalance + :delta WHERE tid = :tid;",
        1.036640,
        1.035498,
    ),
    (
        "UPDATE pgbench_branches SET bbalance = bbalance + :delta WHERE bid = :bid;",
        0.636415,
        0.631052,
    ),
    (
        "INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) \
         VALUES (:tid, :bid, :aid, :delta, CURRENT_TIMESTAMP);",
        0.523942,
        0.524147,
    ),
    ("END;", 0.434377, 0.450451),
];

/// A plan of the treatments `zfs` and `xfs`.
pub fn filesystems(repeats: u32) -> Plan {
    let mut plan = first_treatments(2, repeats);
    plan.factors = vec!["storage".into()];
    for (t, name) in plan.treatments.iter_mut().zip(["zfs", "xfs"]) {
        t.levels = Levels(vec![("storage".into(), LevelValue::Text(name.into()))]);
        t.clients = 48;
    }
    plan
}

/// Some latencies around a mean of `ms`, which they keep.
fn around(ms: f64) -> Latencies {
    let mut latencies = Latencies::new();
    for i in 0..2000 {
        latencies.record((1e6 * ms * (0.5 + f64::from(i % 1000) / 999.0)) as u64);
    }
    latencies
}

/// Makes a trial of what was set_statements, `off` times as long.
pub fn set_statements(t: &mut TrialRecord, off: f64) {
    let zfs = t.treatment == 0;
    let m = t.measurement.as_mut().unwrap();
    let latency = off * if zfs { 6.370 } else { 4.400 };
    m.latency = around(latency);
    m.transactions = 2000;
    // 48 clients in a closed loop.
    m.measured_s = 2000.0 * latency / 1e3 / 48.0;
    m.scripts[0].latency = m.latency.clone();
    m.scripts[0].statements = (8..)
        .zip(STATEMENTS)
        .map(|(line, (text, on_zfs, on_xfs))| StatementMeasurement {
            text: text.into(),
            line,
            latency: around(off * if zfs { on_zfs } else { on_xfs }),
            ..StatementMeasurement::default()
        })
        .collect();
}

/// Analyses a run of [`filesystems`] as set_statements, each trial after `change`.
pub fn zfs_and_xfs(repeats: u32, change: impl Fn(&mut TrialRecord)) -> RunView {
    let (_folder, mut store) = store();
    fill_with(&mut store, &run_record(filesystems(repeats)), |t| {
        set_statements(t, 1.0 + 0.004 * f64::from((t.block * 3 + u32::from(t.treatment == 0)) % 4));
        change(t);
    })
}

/// Fails if the parts of `gap` do not add up to it.
pub fn assert_adds_up(gap: &GapView) {
    let sum = |of: fn(&PartView) -> f64| gap.parts.iter().map(of).sum::<f64>();
    let close =
        |a: f64, b: f64| assert!((a - b).abs() < 1e-6 * gap.b_us.abs().max(1.0), "{a} is not {b}");
    close(sum(|p| p.a_us), gap.a_us);
    close(sum(|p| p.b_us), gap.b_us);
    close(sum(|p| p.gap_us.value), gap.gap_us.value);
    if gap.parts.iter().all(|p| p.share.is_some()) {
        close(sum(|p| p.share.unwrap_or_default()), 1.0);
    }
}
