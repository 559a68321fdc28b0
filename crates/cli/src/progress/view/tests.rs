//! The view of states that a run may have, and of hostile ones.

use pgdyno_model::PlannedTrial;
use pgdyno_model::facts::Owner;
use pgdyno_model::live::Outlook;
use pgdyno_model::units::Epoch;
use pgdyno_report::live::LiveRecord;
use pgdyno_test_support::live_run;

use super::*;

const HOSTILE: &str = "\u{1b}[2J\u{1b}]0;owned\u{7}\r\n\u{9b}2J\u{202e}x";

fn planned(ordinal: u32) -> PlannedTrial {
    let treatment = usize::try_from(ordinal % 4).unwrap();
    PlannedTrial { ordinal, block: ordinal / 4 + 1, treatment, repeat: ordinal / 4 + 1 }
}

fn begun(treatments: [&str; 4], trials: u32) -> LiveRecord {
    let owner = Owner { pid: 1, started_ticks: 2, boot_id: "b".into(), host: None };
    LiveRecord::Begun(LiveRun {
        recipe: "quickstart".into(),
        started_at: Epoch(0),
        treatments: treatments.map(str::to_owned).to_vec(),
        trials: (0..trials).map(planned).collect(),
        done: vec![0],
        warm_up_s: 5.0,
        window_s: Some(30.0),
        is_open_ended: true,
        ..live_run("quickstart-20261122-081503-kwjz", owner)
    })
}

fn done(ordinal: u32, failure: Option<&str>) -> LiveRecord {
    LiveRecord::TrialDone {
        ordinal,
        tps: failure.is_none().then_some(1234.5),
        latency_us_p99: failure.is_none().then_some(4321.0),
        failure: failure.map(str::to_owned),
        left_s: 300.0,
    }
}

fn second(n: u32) -> LiveRecord {
    let bell = [1_u64, 4, 30, 200, 420, 310, 120, 40, 9, 2, 0, 0, 1];
    let latencies = bell.into_iter().enumerate().filter(|(_, count)| *count > 0);
    LiveRecord::Second(LoadSecond {
        elapsed_s: if n <= 5 { n.into() } else { f64::from(n - 5) },
        measuring: n > 5,
        tps: 5000.0 + 400.0 * f64::from(n * 7 % 11) - if n <= 2 { 3000.0 } else { 0.0 },
        failed: 0,
        latency_us_p50: Some(1234.0),
        latency_us_p99: Some(9876.0),
        latencies: latencies.map(|(n, count)| (u16::try_from(n).unwrap() + 36, count)).collect(),
        event_loop_lag_us_p99: Some(23.0),
        waits: vec![("IO:WALSync".into(), 3.21), ("CPU".into(), 2.0)],
        left_s: 245.0,
    })
}

fn add(records: impl IntoIterator<Item = LiveRecord>) -> LiveState {
    let mut state = LiveState::default();
    records.into_iter().for_each(|record| state.add(record));
    state
}

/// The seventh of 24 trials, after some seconds of its window.
fn under_load() -> LiveState {
    let names = ["on clients=1", "on clients=8", "off clients=1", "off clients=8"]
        .map(|name| format!("synchronous_commit={name}"));
    let mut records = vec![begun(names.each_ref().map(String::as_str), 24)];
    records.extend((1..6).map(|n| done(n, (n == 3).then_some("no room"))));
    let outlook =
        Outlook { blocks: 1, decided: 2, comparisons: 4, blocks_left: Some(3), ceiling: 30 };
    records.push(LiveRecord::Outlook(outlook));
    records.push(LiveRecord::Trial { planned: planned(6), at: Epoch(0), left_s: 250.0 });
    records.extend((1..17).map(second));
    add(records)
}

fn at(state: &LiveState, width: usize) -> String {
    let lines = view(state, Duration::ZERO, Look { width, is_colored: false });
    lines.iter().map(|line| format!("{}\n", line.text.trim_end())).collect()
}

#[test]
fn the_view_at_80_columns() {
    insta::assert_snapshot!(at(&under_load(), 79));
}

#[test]
fn the_view_at_200_columns() {
    insta::assert_snapshot!(at(&under_load(), 199));
}

#[test]
fn the_view_at_40_columns() {
    insta::assert_snapshot!(at(&under_load(), 39));
}

#[test]
fn work_without_transactions_shows_how_far_it_is_and_for_how_long() {
    let work = LiveRecord::Working {
        what: "loading tpcb-like at scale 10, seed 1".into(),
        share: Some(0.43),
        detail: Some("430 of 1000 rows".into()),
    };
    let state = add([work.clone()]);
    assert_eq!(
        at(&state, 99),
        "now      ████······ 43%  loading tpcb-like at scale 10, seed 1: 430 of 1000 rows\n"
    );
    let storage =
        LiveRecord::Working { what: "making storage disk".into(), share: None, detail: None };
    let mut state = add([begun(["a", "b", "c", "d"], 24), storage, LiveRecord::Stopping]);
    let lines = view(&state, Duration::from_secs(65), Look { width: 99, is_colored: false });
    assert_eq!(lines[2].text, "now      making storage disk, for 1:05");
    assert_eq!(lines[3].text, "         asked to stop: the run ends after this trial");
    state.add(LiveRecord::Ended { state: "completed".into(), error: None });
    assert_eq!(at(&state, 99), "");
}

#[test]
fn every_width_is_kept_and_no_name_moves_the_terminal() {
    let mut hostile = add([begun([HOSTILE; 4], 500), done(1, Some(HOSTILE))]);
    hostile.add(LiveRecord::Trial { planned: planned(2), at: Epoch(0), left_s: f64::NAN });
    let LiveRecord::Second(load) = second(9) else { panic!("a second") };
    let waits = vec![(HOSTILE.to_owned(), 1.0)];
    hostile.add(LiveRecord::Second(LoadSecond { waits, tps: f64::INFINITY, ..load }));
    for state in [&hostile, &under_load(), &LiveState::default()] {
        for width in 1..210 {
            for line in view(state, Duration::ZERO, Look { width, is_colored: false }) {
                assert!(line.columns <= width, "{width}: {line:?}");
                assert!(!line.text.chars().any(char::is_control), "{width}: {line:?}");
                assert!(!line.text.contains('\u{202e}'), "{width}: {line:?}");
            }
        }
    }
}
