//! Words of a comparison about its gates: beside the noise floor, and where a proof is missing.

use pgdyno_analysis::comparison::runs::{GateState, Outcome};
use pgdyno_analysis::gate::Form;
use pgdyno_model::{Failure, FailureKind, Latencies};
use pgdyno_report::CompareReport;
use pgdyno_store::Store;
use pgdyno_test_support::records::{
    self, alike, fill_with, run_at, run_called, run_of_two, set_tps, store,
};

fn gated(store: &Store, a: &str, b: &str, form: Form, text: &str) -> CompareReport {
    CompareReport::new(records::gated(store, a, b, form, text))
}

#[test]
fn a_gate_that_asks_for_less_than_the_noise_floor_says_so() {
    let (_folder, mut store) = store();
    run_of_two(&mut store, "floor", 1.03, 0.06);
    run_of_two(&mut store, "less", 0.95, 0.003);
    let report = gated(&store, "less:1", "less:2", Form::FailIf, "tps < -3%");
    insta::assert_snapshot!("below_noise_floor", report.gates[0]);
}

#[test]
fn a_gate_says_which_change_it_catches_in_most_such_runs() {
    let (_folder, mut store) = store();
    run_of_two(&mut store, "slower", 0.8, 0.01);
    let report = gated(&store, "slower:1", "slower:2", Form::FailIf, "tps < -3%, p99 > +10%");
    let catches = |gate: usize| report.view.gates[gate].catches.unwrap();
    assert!((-0.08..-0.03).contains(&catches(0)), "{}", catches(0));
    insta::assert_snapshot!("catches", report.gates[0]);
    assert!(catches(1) > 0.1);
}

/// A run of two treatments with `repeats` trials each; the second has the tps `of_b`.
fn beside(store: &mut Store, id: &str, repeats: u32, of_b: impl Fn(u32) -> Option<f64>) {
    let mut plan = alike(&["a", "b"], repeats);
    plan.treatments[1].clients += 1;
    let record = run_called(id, plan);
    fill_with(store, &record, |t| match (t.treatment, of_b(t.block)) {
        (0, _) => set_tps(t, 100_000.0),
        (_, Some(value)) => set_tps(t, value),
        (_, None) => {
            t.measurement = None;
            t.failure = Some(Failure::new(FailureKind::Server, "the server did not start"));
        }
    });
}

#[test]
fn a_proof_that_is_not_there_does_not_pass_and_says_why_it_is_not() {
    // Beside nothing that would tell how far two runs differ.
    let (_alone, mut alone) = store();
    run_at(&mut alone, "before", 100_000.0);
    run_at(&mut alone, "after", 57_100.0);
    let (_folder, mut store) = store();
    beside(&mut store, "once", 1, |_| Some(57_100.0));
    beside(&mut store, "equal", 4, |_| Some(57_100.0));
    beside(&mut store, "crashed", 4, |_| None);
    beside(&mut store, "empty", 4, |block| Some(if block == 1 { 0.0 } else { 57_100.0 }));
    let record = run_called("few", alike(&["a", "b"], 4));
    fill_with(&mut store, &record, |t| {
        let m = t.measurement.as_mut().unwrap();
        m.latency = Latencies::new();
        (0..20).for_each(|i| m.latency.record(1_000_000 + i));
    });
    let mut words = Vec::new();
    for (run, condition, state) in [
        ("once", "tps > -3%", GateState::Unknown),
        ("equal", "tps > -3%", GateState::Unknown),
        ("crashed", "tps > -3%", GateState::NoTrial),
        ("empty", "tps > -3%", GateState::Unknown),
        ("few", "p99 < +10%", GateState::Unknown),
        ("before", "tps > -3%", GateState::Unknown),
    ] {
        let sides = match run {
            "before" => ["before".to_owned(), "after".to_owned()],
            _ => [1, 2].map(|treatment| format!("{run}:{treatment}")),
        };
        for (form, outcome) in
            [(Form::FailUnless, Outcome::Exceeded), (Form::FailIf, Outcome::Undecided)]
        {
            let store = if run == "before" { &alone } else { &store };
            let CompareReport { view, gates, .. } =
                gated(store, &sides[0], &sides[1], form, condition);
            assert_eq!((view.gates[0].state, view.outcome), (state, Some(outcome)), "{run}");
            words.push(format!("{run}: {}", gates[0]));
        }
    }
    insta::assert_snapshot!("no_proof", words.join("\n"));
}
