//! Runs that end by themselves: what is open, why they ended, and that their intervals pay for the
//! looks.

use pgdyno_analysis::Ended;
use pgdyno_model::record::{RunState, SessionEnd};
use pgdyno_model::{Plan, Stopping};
use pgdyno_report::{self as report, NoteKind, RunReport};
use pgdyno_test_support::records::{
    add_run, first_treatments, run_record, session_record, store, trial,
};
use serde_json::Value;

/// synchronous_commit=on with 1 and 8 clients: from 4 to `ceiling` blocks.
fn two(ceiling: u32, stopping: Option<Stopping>) -> Plan {
    Plan { stopping, ..first_treatments(2, ceiling) }
}

fn rule(ceiling: u32, precision: f64) -> Option<Stopping> {
    Some(Stopping {
        floor: 4,
        ceiling,
        precision: Some(precision),
        budget: Some("5m".parse().unwrap()),
    })
}

/// A run of `plan` of which `blocks` were run, with the tps that `tps` gives for (treatment,
/// block).
fn run(plan: Plan, blocks: u32, end: SessionEnd, tps: impl Fn(usize, u32) -> u64) -> RunReport {
    let (_folder, mut store) = store();
    let record = run_record(plan);
    let trials = record.plan.trials.iter().filter(|t| t.block <= blocks).map(|planned| {
        let mut t = trial(&record.plan, *planned);
        t.measurement.as_mut().unwrap().transactions = 5 * tps(planned.treatment, planned.block);
        t
    });
    let report = RunReport::new(add_run(&mut store, &record, &session_record(), end, trials));
    let summary = store.runs().unwrap().remove(0);
    let run = &report.view.run;
    assert_eq!((summary.state, summary.trials_done as usize), (run.state, run.trials_completed));
    assert_eq!(summary.trials_planned as usize, run.trials_planned);
    report
}

/// Returns `stopping` of the document of a run.
fn stopping(report: &RunReport) -> Value {
    serde_json::to_value(report).unwrap()["stopping"].clone()
}

fn shaken(base: u64, treatment: usize, block: u32) -> u64 {
    base * (1000 + 10 * ((u64::from(block) * 7 + treatment as u64 * 3) % 4)) / 1000
}

#[test]
fn a_run_that_ended_early_is_complete_and_says_why() {
    let report = run(two(30, rule(30, 0.01)), 4, SessionEnd::Completed, |t, b| {
        shaken(1000 + 1000 * t as u64, t, b)
    });
    let view = &report.view;
    assert_eq!((view.run.state, view.run.trials_planned), (RunState::Completed, 8));
    assert!(view.treatments.iter().all(|t| (t.trials, t.trials_planned) == (4, 4)));
    let state = view.stopping.as_ref().unwrap();
    assert_eq!((state.ended, state.blocks, state.decided), (Some(Ended::Decided), 4, 1));
    assert_eq!(state.looks, [4, 6, 9, 13, 19, 28, 30]);
    let begin = "The run ended after 4 blocks, everything being decided: 1 different.";
    assert!(stopping(&report)["words"].as_str().unwrap().starts_with(begin));
    let text = report::terminal(&report, 200, report::Detail::Full);
    assert!(text.contains("The run ended after 4 blocks"));
    let caution = report.cautions.iter().find(|caution| caution.kind == "stopping").unwrap();
    assert!(caution.text.starts_with("The run ended after 4 blocks"), "{caution:?}");
}

#[test]
fn budget_ceiling_and_a_run_that_is_not_over_are_told_apart() {
    let alike = |t: usize, b: u32| shaken(1000, t, b);
    let budget = run(two(30, rule(30, 0.0001)), 6, SessionEnd::Completed, alike);
    let of = |report: &RunReport| report.view.stopping.clone().unwrap();
    let words = |report: &RunReport| stopping(report)["words"].as_str().unwrap().to_owned();
    assert_eq!(of(&budget).ended, Some(Ended::Budget));
    let spent = "its budget of 5m being spent: nothing is decided; still open: ";
    assert!(words(&budget).contains(spent), "{}", words(&budget));
    let ceiling = run(two(6, rule(6, 0.0001)), 6, SessionEnd::Completed, alike);
    assert_eq!(of(&ceiling).ended, Some(Ended::Ceiling));
    let interrupted = run(two(30, rule(30, 0.0001)), 6, SessionEnd::Interrupted, alike);
    assert_eq!(
        (interrupted.view.run.state, interrupted.view.run.trials_planned),
        (RunState::Interrupted, 60)
    );
    assert_eq!(of(&interrupted).ended, None);
    assert_eq!(
        (interrupted.view.run.trials_completed, interrupted.notes[0].kind),
        (12, NoteKind::Progress)
    );
    let precise = run(two(30, rule(30, 0.5)), 4, SessionEnd::Completed, alike);
    let open = &stopping(&precise)["open"];
    assert_eq!((of(&precise).decided, open.as_array().unwrap().len()), (1, 0));
    let nothing = run(two(30, rule(30, 0.5)), 0, SessionEnd::Interrupted, alike);
    assert_eq!((of(&nothing).blocks, of(&nothing).decided), (0, 1));
    let words = [&ceiling, &interrupted, &precise, &nothing].map(words);
    insta::assert_snapshot!("words", words.join("\n"));
}

#[test]
fn intervals_and_verdicts_pay_for_the_looks() {
    let tps = |t: usize, b: u32| shaken(1000 + 10 * t as u64, t, b);
    let fixed = run(two(6, None), 6, SessionEnd::Completed, tps).view;
    let looked = run(two(6, rule(6, 0.0001)), 6, SessionEnd::Completed, tps).view;
    let (f, l) = (&fixed.comparisons[0].ratio, &looked.comparisons[0].ratio);
    assert_eq!(f.value, l.value);
    let width = |ci: Option<[f64; 2]>| ci.map(|[lo, hi]| hi / lo).unwrap();
    assert!(width(l.ci95) > width(f.ci95));
    // The last look spends a third, and is the one that found most.
    let dearer = l.p.unwrap() / f.p.unwrap();
    assert!((dearer - 3.0).abs() < 1e-9 || l.p.unwrap() < 3.0 * f.p.unwrap(), "{dearer}");
    assert!(l.minimum_detectable.unwrap() > f.minimum_detectable.unwrap());
    for (f, l) in fixed.treatments.iter().zip(&looked.treatments) {
        let mean = |t: &pgdyno_analysis::TreatmentView| width(t.tps.as_ref().unwrap().ci95);
        assert!(mean(l) > mean(f));
        assert!(width(l.latency_intervals[0].ci95) > width(f.latency_intervals[0].ci95));
    }
}
