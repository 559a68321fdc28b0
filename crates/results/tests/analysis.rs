//! What is said about a run is what its trials say.
#![allow(missing_docs, clippy::unwrap_used)]

#[allow(dead_code)]
mod common;

use common::{RUN, failed_trial, fill, plan, run_record, session_record, store, trial};
use pgdyno_model::RunRecord;
use pgdyno_model::record::{RunState, SessionEnd};
use pgdyno_results::analysis::TrialState;
use pgdyno_results::{RunView, analyse};
use serde_json::Value;

fn close(a: f64, b: f64) {
    assert!((a - b).abs() <= 1e-9 * b.abs(), "{a} is not {b}");
}

fn view_of(record: &RunRecord, failing: Option<u32>) -> RunView {
    let (_folder, mut store) = store();
    fill(&mut store, record, failing);
    analyse(&store, RUN).unwrap()
}

#[test]
fn the_json_keeps_its_keys() {
    let json = serde_json::to_value(view_of(&run_record(plan(3)), None)).unwrap();
    assert_eq!(json["run"]["id"], RUN);
    assert_eq!(json["run"]["recipe"], "quickstart");
    assert_eq!(json["run"]["state"], "completed");
    let treatments = json["treatments"].as_array().unwrap();
    assert_eq!(treatments.len(), 4);
    for t in treatments {
        assert!(t["factors"]["clients"].is_number() && t["factors"]["synchronous_commit"].is_string());
        assert_eq!(t["trials"], 3);
        let mean = t["tps"]["mean"].as_f64().unwrap();
        let (lo, hi) = (t["tps"]["ci95"][0].as_f64().unwrap(), t["tps"]["ci95"][1].as_f64().unwrap());
        assert!(lo < mean && mean < hi);
        let latency = |key: &str| t["latency_us"][key].as_f64().unwrap();
        assert!(
            latency("p50") <= latency("p95")
                && latency("p95") <= latency("p99")
                && latency("p99") <= latency("max")
        );
        assert!(t["ratio_to_best"]["value"].as_f64().unwrap() <= 1.0);
        assert!(t["ratio_to_best"]["verdict"].is_string());
    }
    let trials = json["trials"].as_array().unwrap();
    assert_eq!(trials.len(), 12);
    for t in trials {
        assert!(t["factors"].is_object() && t["repeat"].as_u64().unwrap() >= 1);
        assert!(t["tps"].is_f64() && t["failed"].is_u64());
        let series = t["series"].as_array().unwrap();
        assert_eq!(series.len(), 5);
        let sum: f64 =
            series.iter().map(|s| s["tps"].as_f64().unwrap() * s["length_s"].as_f64().unwrap()).sum();
        close(sum, t["transactions"].as_f64().unwrap());
        assert!(series.iter().all(|s| s["t_s"].is_u64() && s["latency_us_p99"].is_f64()));
        assert!(!t["telemetry"].as_array().unwrap().is_empty());
    }
}

#[test]
fn a_treatment_is_the_sum_of_its_trials() {
    let record = run_record(plan(3));
    let view = view_of(&record, None);
    for t in &view.treatments {
        let trials: Vec<_> = record
            .plan
            .trials
            .iter()
            .filter(|p| p.treatment == t.index)
            .map(|p| trial(&record.plan, *p).measurement.unwrap())
            .collect();
        let mean = trials.iter().map(|m| m.tps().unwrap()).sum::<f64>() / 3.0;
        close(t.tps.as_ref().unwrap().mean, mean);
        assert_eq!(t.transactions, trials.iter().map(|m| m.transactions).sum::<u64>());
        assert_eq!(t.latency_us.as_ref().unwrap().count, t.transactions);
        let longest = trials.iter().map(|m| m.latency.max_us().unwrap()).fold(0.0, f64::max);
        close(t.latency_us.as_ref().unwrap().max, longest);
        assert_eq!(t.statements.len(), 3);
        assert_eq!(t.statements[1].latency_us.as_ref().unwrap().count, t.transactions);
        assert_eq!(t.fsync_per_second.is_some(), t.index < 2, "commits wait where synchronous_commit is on");
    }
    assert_eq!(view.comparisons.len(), 4, "two factors of two levels, each under the other's two");
    assert!(view.comparisons.iter().all(|c| c.ratio.told_apart == Some(true)), "{:#?}", view.comparisons);
    assert!(view.comparisons[0].words.starts_with("With clients=1: synchronous_commit=off has 3."));
    assert!(view.answer[0].starts_with("synchronous_commit=off clients=8 is fastest"), "{:?}", view.answer);
}

#[test]
fn a_trial_that_failed_and_was_repeated_counts_once() {
    let (_folder, mut store) = store();
    let record = run_record(plan(2));
    fill(&mut store, &record, Some(2));
    let before = analyse(&store, RUN).unwrap();
    assert_eq!(before.run.state, RunState::Failed);
    assert_eq!((before.treatments[2].trials, before.treatments[2].attempts_failed), (1, 1));
    assert!(before.treatments[2].tps.as_ref().unwrap().ci95.is_none());
    assert!(before.treatments[2].reason.as_ref().unwrap().contains("one repeat"));

    let session = store.begin_session(RUN, &session_record()).unwrap();
    let again = trial(&record.plan, record.plan.trials[2]);
    store.add_trial(RUN, session, &again).unwrap();
    let mut twice = again.clone();
    twice.measurement.as_mut().unwrap().transactions = 1;
    store.add_trial(RUN, session, &twice).unwrap();
    store.end_session(session, SessionEnd::Completed).unwrap();
    let after = analyse(&store, RUN).unwrap();
    assert_eq!(after.run.state, RunState::Completed);
    assert_eq!((after.treatments[2].trials, after.run.trials_completed), (2, 8));
    let states: Vec<TrialState> = after.trials.iter().filter(|t| t.ordinal == 2).map(|t| t.state).collect();
    assert_eq!(states, [TrialState::Failed, TrialState::Completed, TrialState::Superfluous]);
    let undisturbed = view_of(&record, None);
    assert_eq!(
        after.treatments[2].tps.as_ref().unwrap().ci95,
        undisturbed.treatments[2].tps.as_ref().unwrap().ci95
    );
}

#[test]
fn nothing_measured_is_said_in_words() {
    // All failed.
    let (_folder, mut store) = store();
    let record = run_record(plan(2));
    store.begin_run(&record).unwrap();
    let empty = analyse(&store, RUN).unwrap();
    assert!(empty.answer[0].contains("No trial is completed"));
    let session = store.begin_session(RUN, &session_record()).unwrap();
    for planned in &record.plan.trials {
        store.add_trial(RUN, session, &failed_trial(*planned)).unwrap();
    }
    store.end_session(session, SessionEnd::Failed).unwrap();
    let json = serde_json::to_value(analyse(&store, RUN).unwrap()).unwrap();
    for t in json["treatments"].as_array().unwrap() {
        assert_eq!(
            (&t["tps"], &t["latency_us"], &t["ratio_to_best"]),
            (&Value::Null, &Value::Null, &Value::Null)
        );
        assert_eq!(t["reason"], "no trial is completed");
    }
    assert_eq!(json["comparisons"], Value::Array(Vec::new()));
    assert_eq!(json["trials"][0]["tps"], Value::Null);
}

#[test]
fn trials_without_a_transaction_have_no_ratio() {
    let (_folder, mut store) = store();
    let record = run_record(plan(2));
    store.begin_run(&record).unwrap();
    let session = store.begin_session(RUN, &session_record()).unwrap();
    for planned in &record.plan.trials {
        let mut t = trial(&record.plan, *planned);
        let m = t.measurement.as_mut().unwrap();
        m.transactions = 0;
        m.latency.clear();
        m.scripts.clear();
        m.series.clear();
        store.add_trial(RUN, session, &t).unwrap();
    }
    store.end_session(session, SessionEnd::Completed).unwrap();
    let view = analyse(&store, RUN).unwrap();
    for t in &view.treatments {
        let tps = t.tps.as_ref().unwrap();
        assert_eq!((tps.mean, tps.ci95), (0.0, None));
        assert_eq!(t.ratio_to_best.as_ref().unwrap().value, None);
        assert!(t.latency_us.is_none() && t.quantiles.is_empty());
    }
    assert!(view.answer[0].contains("No transaction"));
    assert!(
        view.comparisons.iter().all(|c| c.ratio.value.is_none() && c.words.contains("cannot be compared"))
    );
}

#[test]
fn equal_treatments_cannot_be_told_apart() {
    let (_folder, mut store) = store();
    let record = run_record(plan(3));
    store.begin_run(&record).unwrap();
    let session = store.begin_session(RUN, &session_record()).unwrap();
    for planned in &record.plan.trials {
        let mut t = trial(&record.plan, *planned);
        let m = t.measurement.as_mut().unwrap();
        // The same three values for all treatments, in another order for each.
        m.transactions = [1000, 1020, 1050][(planned.treatment + planned.repeat as usize) % 3];
        store.add_trial(RUN, session, &t).unwrap();
    }
    store.end_session(session, SessionEnd::Completed).unwrap();
    let view = analyse(&store, RUN).unwrap();
    assert!(view.answer[0].contains("cannot be told apart"), "{:?}", view.answer);
    for c in &view.comparisons {
        assert_eq!(c.ratio.told_apart, Some(false), "{}", c.words);
        assert!(
            c.words.contains("cannot be told apart") && c.words.contains("resolve differences from about")
        );
    }
}
