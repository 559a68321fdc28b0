//! Where the difference between two treatments lies, in words.

use pgdyno_analysis::{GapPart, Part, RunView, WhyView, analyse};
use pgdyno_model::Latencies;
use pgdyno_report::{self as report, RunReport};
use pgdyno_test_support::records::{
    RUN, assert_adds_up, filled, plan, set_statements, zfs_and_xfs,
};
use serde_json::Value;

fn only(view: &RunView) -> &WhyView {
    assert_eq!(view.why.len(), 1, "{:?}", view.why);
    &view.why[0]
}

/// Sentences on the only difference of a report.
fn words(report: &Value) -> Vec<&str> {
    let words = report["why"][0]["words"].as_array().unwrap();
    words.iter().map(|words| words.as_str().unwrap()).collect()
}

#[test]
fn most_of_the_gap_between_zfs_and_xfs_is_in_one_update() {
    let report = RunReport::new(zfs_and_xfs(4, |_| {}));
    let json = serde_json::to_value(&report).unwrap();
    let why = only(&report.view);
    assert_eq!((why.treatment, why.to), (0, 1));
    let latency = why.latency.as_ref().unwrap();
    assert_adds_up(latency);
    assert!(latency.parts.iter().all(|part| part.share.is_some()));
    let update = &latency.parts[0];
    let what = &json["why"][0]["latency"]["parts"][0]["what"];
    assert!(what.as_str().unwrap().starts_with("UPDATE pgbench_accounts"));
    // (3.357134 − 1.521620) / (6.370 − 4.400) = 0.9317.
    assert!((update.share.unwrap() - 0.9317).abs() < 0.002, "{update:?}");
    let [lo, hi] = update.ci95.unwrap();
    assert!(lo < 0.9317 && 0.9317 < hi && hi - lo < 0.05, "{lo} {hi}");
    assert!((latency.b_us / 6370.0 - 1.0).abs() < 0.01, "{latency:?}");
    assert!((latency.a_us / 4400.0 - 1.0).abs() < 0.01, "{latency:?}");
    insta::assert_snapshot!("statement", words(&json).join("\n"));
    let terminal = report::terminal(&report, 100, report::Detail::Full);
    assert!(terminal.contains("\nWhy\n- 93% (95% CI"), "{terminal}");
    assert_eq!(json["why"][0]["latency"]["parts"][0]["part"]["statement"]["line"], 9);
}

#[test]
fn active_time_by_wait_event_adds_up_and_the_load_is_none_of_it() {
    let report = RunReport::new(zfs_and_xfs(4, |t| {
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
    }));
    let active = only(&report.view).active.as_ref().unwrap();
    assert_adds_up(active);
    let events: Vec<GapPart> = active.parts.iter().map(|p| p.part.clone()).collect();
    assert_eq!(events, ["IO:WALSync", "CPU"].map(|name| GapPart::Event(name.into())));
    // 44 of 48 backends for 6.37 ms each, to a part in a hundred.
    assert!((active.b_us / (44.0 / 48.0 * 6370.0) - 1.0).abs() < 0.02, "{active:?}");
    let json = serde_json::to_value(&report).unwrap();
    insta::assert_snapshot!("wait_event", words(&json)[1]);
}

#[test]
fn where_nothing_differs_or_the_loads_do_nothing_is_explained() {
    // The same on both.
    let same = zfs_and_xfs(4, |t| {
        t.treatment = 1;
        set_statements(t, 1.0 + 0.004 * f64::from((t.ordinal * 3) % 5));
        t.treatment = (t.ordinal as usize + usize::from(t.block % 2 == 0)) % 2;
    });
    assert!(same.why.is_empty(), "{:?}", same.why);
    // One and eight clients: more latency explains no tps.
    let clients = analyse(&filled(plan(3), None).1, RUN).unwrap();
    for why in &clients.why {
        let of = |i: usize| clients.plan.treatments[i].clients;
        assert_eq!(of(why.treatment), of(why.to));
    }
    assert_eq!(clients.why.len(), 2);
    // Without a transaction, or without statements.
    let nothing = zfs_and_xfs(2, |t| t.measurement.as_mut().unwrap().latency = Latencies::new());
    assert!(nothing.why.iter().all(|why| why.latency.is_none()), "{:?}", nothing.why);
    let json = serde_json::to_value(RunReport::new(nothing)).unwrap();
    let mut why = json["why"].as_array().unwrap().iter();
    assert!(why.all(|why| why["words"] == Value::Array(Vec::new())), "{}", json["why"]);
    let bare = zfs_and_xfs(3, |t| t.measurement.as_mut().unwrap().scripts.clear());
    let largest = &only(&bare).latency.as_ref().unwrap().parts[0];
    assert_eq!(largest.part, GapPart::Latency(Part::BetweenStatements));
}

#[test]
fn scripts_without_a_statement_in_common_share_out_nothing() {
    let view = zfs_and_xfs(4, |t| {
        if t.treatment == 0 {
            let statements = &mut t.measurement.as_mut().unwrap().scripts[0].statements;
            statements.iter_mut().for_each(|s| s.text.insert_str(0, "EXPLAIN "));
        }
    });
    let why = only(&view);
    let latency = why.latency.as_ref().unwrap();
    assert_adds_up(latency);
    assert!(latency.parts.iter().all(|part| part.share.is_none()), "{latency:?}");
    let json = serde_json::to_value(RunReport::new(view)).unwrap();
    insta::assert_snapshot!("no_common_statement", words(&json).join("\n"));
}
