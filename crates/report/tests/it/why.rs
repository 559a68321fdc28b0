//! Where the difference between two treatments lies.
#![allow(missing_docs, clippy::unwrap_used)]

use pgdyno_analysis::RunView;
use pgdyno_analysis::analyse;
use pgdyno_analysis::{GapView, Part, WhyView};
use pgdyno_model::measurement::StatementMeasurement;
use pgdyno_model::{Latencies, LevelValue, Levels, Plan, TrialRecord};
use pgdyno_report as report;
use pgdyno_test_support::records;
use pgdyno_test_support::records::{RUN, fill_with, plan, run_record, store};

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

fn filesystems(repeats: u32) -> Plan {
    let mut plan = plan(repeats);
    plan.treatments.truncate(2);
    plan.factors = vec!["storage".into()];
    plan.trials.retain(|t| t.treatment < 2);
    (0..).zip(&mut plan.trials).for_each(|(i, t)| t.ordinal = i);
    for (t, name) in plan.treatments.iter_mut().zip(["zfs", "xfs"]) {
        t.levels = Levels(vec![("storage".into(), LevelValue::Text(name.into()))]);
        t.clients = 48;
    }
    plan
}

/// Some latencies around a mean of `ms`, which they keep.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn around(ms: f64) -> Latencies {
    let mut latencies = Latencies::new();
    for i in 0..2000 {
        latencies.record((1e6 * ms * (0.5 + f64::from(i % 1000) / 999.0)) as u64);
    }
    latencies
}

/// Makes a trial of what was measured, `off` times as long.
fn measured(t: &mut TrialRecord, off: f64) {
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

fn view(repeats: u32, change: impl Fn(&mut TrialRecord)) -> RunView {
    let (_folder, mut store) = store();
    fill_with(&mut store, &run_record(filesystems(repeats)), |t| {
        measured(t, 1.0 + 0.004 * f64::from((t.block * 3 + u32::from(t.treatment == 0)) % 4));
        change(t);
    })
}

fn adds_up(gap: &GapView) {
    let sum = |of: fn(&pgdyno_analysis::PartView) -> f64| gap.parts.iter().map(of).sum::<f64>();
    let close =
        |a: f64, b: f64| assert!((a - b).abs() < 1e-6 * gap.b_us.abs().max(1.0), "{a} is not {b}");
    close(sum(|p| p.a_us), gap.a_us);
    close(sum(|p| p.b_us), gap.b_us);
    close(sum(|p| p.gap_us.value), gap.gap_us.value);
    if gap.parts.iter().all(|p| p.share.is_some()) {
        close(sum(|p| p.share.unwrap_or_default()), 1.0);
    }
}

fn only(view: &RunView) -> &WhyView {
    assert_eq!(view.why.len(), 1, "{:?}", view.why);
    &view.why[0]
}

#[test]
fn most_of_the_gap_between_zfs_and_xfs_is_in_one_update() {
    let view = view(4, |_| {});
    let why = only(&view);
    assert_eq!((why.treatment, why.to), (0, 1));
    let latency = why.latency.as_ref().unwrap();
    adds_up(latency);
    assert!(latency.parts.iter().all(|part| part.share.is_some()));
    let update = &latency.parts[0];
    assert!(update.what.starts_with("UPDATE pgbench_accounts"));
    // (3.357134 − 1.521620) / (6.370 − 4.400) = 0.9317.
    assert!((update.share.unwrap() - 0.9317).abs() < 0.002, "{update:?}");
    let [lo, hi] = update.ci95.unwrap();
    assert!(lo < 0.9317 && 0.9317 < hi && hi - lo < 0.05, "{lo} {hi}");
    assert!((latency.b_us / 6370.0 - 1.0).abs() < 0.01, "{latency:?}");
    assert!((latency.a_us / 4400.0 - 1.0).abs() < 0.01, "{latency:?}");
    insta::assert_snapshot!("statement", why.words.join("\n"));
    let terminal = report::terminal(&view, 100, report::Detail::Full);
    assert!(terminal.contains("\nWhy\n- 93% (95% CI"), "{terminal}");
    let json = serde_json::to_value(&view).unwrap();
    assert_eq!(json["why"][0]["latency"]["parts"][0]["part"]["statement"]["line"], 9);
}

#[test]
fn sides_and_gap_are_of_the_same_trials() {
    // Of the second treatment's trials two have no place in a block of the first.
    let (_folder, mut store) = store();
    let record = run_record(filesystems(4));
    store.begin_run(&record).unwrap();
    let session = store.begin_session(RUN, &records::session_record()).unwrap();
    for planned in &record.plan.trials {
        let mut t = records::trial(&record.plan, *planned);
        let off = 1.0 + 0.1 * f64::from(t.block) + 0.002 * f64::from((t.ordinal * 3) % 4);
        measured(&mut t, off);
        if t.treatment == 1 && t.block > 2 {
            t = records::failed_trial(*planned);
        }
        store.add_trial(RUN, session, &t).unwrap();
    }
    store.end_session(session, pgdyno_model::record::SessionEnd::Failed).unwrap();
    let view = analyse(&store, RUN).unwrap();
    // Whatever is said adds up.
    for why in &view.why {
        let latency = why.latency.as_ref().unwrap();
        adds_up(latency);
        assert!((latency.b_us - latency.a_us - latency.gap_us.value).abs() < 1e-6, "{latency:?}");
    }
    assert_eq!(view.why.len(), 1, "{:?}", view.comparisons);
}

#[test]
fn active_time_by_wait_event_adds_up_and_the_load_is_none_of_it() {
    let view = view(4, |t| {
        let waits = t.telemetry.iter_mut().find(|table| table.probe == "wait_events").unwrap();
        let on_zfs = t.treatment == 0;
        for sample in &mut waits.samples {
            // 10 looks a second; of 48 backends 40 write WAL on ZFS and 30 on XFS, 4 run, the rest
            // wait for the load.
            for (i, backends) in [(2, if on_zfs { 40.0 } else { 30.0 }), (3, 4.0), (4, 4.0)] {
                sample.values[i] = Some(10.0 * backends * sample.t_s);
            }
            sample.values[0] = Some(10.0 * sample.t_s);
        }
    });
    let active = only(&view).active.as_ref().unwrap();
    adds_up(active);
    let names: Vec<&str> = active.parts.iter().map(|p| p.what.as_str()).collect();
    assert_eq!(names, ["IO:WALSync", "CPU"]);
    // 44 of 48 backends for 6.37 ms each, to a part in a hundred.
    assert!((active.b_us / (44.0 / 48.0 * 6370.0) - 1.0).abs() < 0.02, "{active:?}");
    insta::assert_snapshot!("wait_event", only(&view).words[1]);
}

#[test]
fn a_trial_whose_polls_found_every_backend_idle_has_no_active_time() {
    let polled = |idle_block: Option<u32>, load: f64| {
        view(4, move |t| {
            let waits = t.telemetry.iter_mut().find(|table| table.probe == "wait_events").unwrap();
            let is_idle = idle_block.is_none_or(|block| t.treatment == 1 && t.block == block);
            let active = if is_idle { 0.0 } else { 40.0 };
            for sample in &mut waits.samples {
                sample.values.fill(Some(0.0));
                for (i, backends) in [(0, 1.0), (2, active * load), (4, (48.0 - active) * load)] {
                    sample.values[i] = Some(10.0 * backends * sample.t_s);
                }
            }
        })
    };
    // One of four trials on XFS: the mean has it as 0.
    let one = polled(Some(2), 1.0);
    let active = only(&one).active.as_ref().unwrap();
    adds_up(active);
    assert!((active.a_us / (0.75 * 40.0 / 48.0 * 4400.0) - 1.0).abs() < 0.02, "{active:?}");
    // No backend at all was seen.
    let none = polled(None, 0.0);
    assert!(only(&none).active.is_none());
    assert_eq!(only(&none).missing, ["time by wait event: no poll saw a backend of the load"]);
}

#[test]
fn figures_are_given_for_each_transaction_and_what_was_not_watched_is_said() {
    let view = view(3, |t| {
        t.telemetry.retain(|table| table.probe != "cpu" && table.probe != "wait_events");
    });
    let why = only(&view);
    let names: Vec<&str> = why.figures.iter().map(|f| f.name).collect();
    assert!(
        names.contains(&"WAL per transaction") && names.contains(&"device writes"),
        "{names:?}"
    );
    let wal = why.figures.iter().find(|f| f.name == "WAL per transaction").unwrap();
    assert!(wal.ratio.is_some() && wal.a.unwrap() > 0.0);
    assert!(why.active.is_none());
    assert_eq!(
        why.missing,
        ["CPU: `cpu` was not watched", "time by wait event: `wait_events` was not watched"]
    );
}

#[test]
fn where_nothing_differs_or_the_loads_do_nothing_is_explained() {
    // The same on both.
    let same = view(4, |t| {
        t.treatment = 1;
        measured(t, 1.0 + 0.004 * f64::from((t.ordinal * 3) % 5));
        t.treatment = (t.ordinal as usize + usize::from(t.block % 2 == 0)) % 2;
    });
    assert!(same.why.is_empty(), "{:?}", same.why);
    // One and eight clients: more latency explains no tps.
    let (_folder, mut store) = store();
    records::fill(&mut store, &run_record(plan(3)), None);
    let clients = analyse(&store, RUN).unwrap();
    for why in &clients.why {
        let of = |i: usize| clients.plan.treatments[i].clients;
        assert_eq!(of(why.treatment), of(why.to));
    }
    assert_eq!(clients.why.len(), 2);
    // Without a transaction, or without statements.
    let nothing = view(2, |t| t.measurement.as_mut().unwrap().latency = Latencies::new());
    assert!(
        nothing.why.iter().all(|why| why.latency.is_none() && why.words.is_empty()),
        "{:?}",
        nothing.why
    );
    let bare = view(3, |t| t.measurement.as_mut().unwrap().scripts.clear());
    let largest = &only(&bare).latency.as_ref().unwrap().parts[0];
    assert_eq!(largest.part, Some(Part::BetweenStatements));
}

#[test]
fn scripts_without_a_statement_in_common_share_out_nothing() {
    let view = view(4, |t| {
        if t.treatment == 0 {
            let statements = &mut t.measurement.as_mut().unwrap().scripts[0].statements;
            statements.iter_mut().for_each(|s| s.text.insert_str(0, "EXPLAIN "));
        }
    });
    let why = only(&view);
    let latency = why.latency.as_ref().unwrap();
    adds_up(latency);
    assert!(latency.parts.iter().all(|part| part.share.is_none()), "{latency:?}");
    insta::assert_snapshot!("no_common_statement", why.words.join("\n"));
}
