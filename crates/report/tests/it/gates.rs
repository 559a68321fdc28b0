//! Gates of comparisons: passed, exceeded or undecided, beside the noise floor and across runs.
#![allow(missing_docs, clippy::unwrap_used)]

use pgdyno_analysis::Withheld;
use pgdyno_analysis::comparison::runs::{CompareOptions, CompareView, GateState, Outcome, compare};
use pgdyno_analysis::gate::{self, Form};
use pgdyno_model::{Latencies, LevelValue, Levels, Plan, RunRecord, TrialRecord};
use pgdyno_store::Store;
use pgdyno_store::Stored;
use pgdyno_test_support::records;
use pgdyno_test_support::records::{fill_with, plan, run_record, store};

/// A plan of the treatments called `names`, which differ in nothing.
fn same(names: &[&str], repeats: u32) -> Plan {
    let mut plan = plan(repeats);
    plan.factors = vec!["name".into()];
    let first = plan.treatments[0].clone();
    let named = |name: &&str| {
        let levels = Levels(vec![("name".into(), LevelValue::Text((*name).into()))]);
        pgdyno_model::Treatment { levels, ..first.clone() }
    };
    plan.treatments = names.iter().map(named).collect();
    plan.trials.retain(|t| t.treatment < names.len());
    (0..).zip(&mut plan.trials).for_each(|(i, t)| t.ordinal = i);
    plan
}

/// Gives a trial of five seconds that tps.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn tps(t: &mut TrialRecord, tps: f64) {
    let m = t.measurement.as_mut().unwrap();
    m.transactions = (tps * 5.0) as u64;
    m.measured_s = 5.0;
}

/// A run of one treatment with five trials around `level`, within 1% of it.
fn one(store: &mut Store, id: &str, level: f64) {
    let record = RunRecord { id: id.into(), ..run_record(same(&["only"], 5)) };
    fill_with(store, &record, |t| {
        tps(t, level * (1.0 + 0.004 * (f64::from(t.block * 7 % 5) - 2.0)));
    });
}

/// A run of two treatments whose ratio in block b is `ratio` × (1 + `spread` × one of -1, 0, 1).
/// They are equal only in an A/A run.
fn pair(store: &mut Store, id: &str, ratio: f64, spread: f64) {
    let mut plan = same(&["a", "b"], 6);
    plan.treatments[1].clients += u32::from(id != "floor");
    let record = RunRecord { id: id.into(), ..run_record(plan) };
    fill_with(store, &record, |t| {
        let around = 1.0 + spread * (f64::from(t.block % 3) - 1.0);
        tps(t, if t.treatment == 0 { 100_000.0 } else { 100_000.0 * ratio * around });
    });
}

fn gated(store: &Store, a: &str, b: &str, form: Form, text: &str) -> CompareView {
    compare(
        store,
        a,
        b,
        &CompareOptions { gates: gate::parse(text, form).unwrap(), ..CompareOptions::default() },
    )
    .unwrap()
}

fn state(store: &Store, a: &str, b: &str, text: &str) -> (GateState, Outcome) {
    let view = gated(store, a, b, Form::FailIf, text);
    assert_eq!(view.exceeded, view.outcome == Some(Outcome::Exceeded));
    let g = &view.gates[0];
    if let (Some([lo, hi]), true) = (g.ci95, view.exceeded) {
        assert!(if g.gate.below { hi < g.gate.margin } else { lo > g.gate.margin }, "{g:?}");
    }
    assert_eq!(g.outcome, g.state.outcome(g.form));
    (g.state, g.outcome)
}

/// The gate of treatment 2 beside treatment 1 of `run`.
fn within(store: &Store, run: &str, text: &str) -> (GateState, Outcome) {
    state(store, &format!("{run}:1"), &format!("{run}:2"), text)
}

#[test]
fn a_gate_within_one_run_is_exceeded_passed_or_undecided_by_its_interval() {
    let (_folder, mut store) = store();
    pair(&mut store, "slower", 0.8, 0.01);
    pair(&mut store, "again", 1.0, 0.005);
    // The interval of the change is −20% ± about 0.7 points.
    assert_eq!(within(&store, "slower", "tps < -3%"), (GateState::Exceeded, Outcome::Exceeded));
    assert_eq!(within(&store, "slower", "tps < -20%"), (GateState::Open, Outcome::Undecided));
    assert_eq!(within(&store, "slower", "tps < -40%"), (GateState::Kept, Outcome::Passed));
    assert_eq!(within(&store, "slower", "tps > +3%"), (GateState::Kept, Outcome::Passed));
    assert_eq!(within(&store, "again", "tps < -3%"), (GateState::Kept, Outcome::Passed));
}

#[test]
fn a_gate_that_asks_for_less_than_the_noise_floor_is_undecided_unless_the_change_is_beyond_it() {
    let (_folder, mut store) = store();
    pair(&mut store, "floor", 1.03, 0.06);
    pair(&mut store, "less", 0.95, 0.003);
    pair(&mut store, "halved", 0.5, 0.003);
    pair(&mut store, "doubled", 2.0, 0.003);
    let view = gated(&store, "less:1", "less:2", Form::FailIf, "tps < -3%");
    let floor = view.gates[0].noise_floor.unwrap();
    assert!((0.05..0.12).contains(&floor), "{floor}");
    insta::assert_snapshot!("below_noise_floor", view.gates[0].words);
    // −5% ± 0.3 points is beyond −3% by its interval, and within what equal treatments differ by
    // here.
    assert_eq!(within(&store, "less", "tps < -3%"), (GateState::Open, Outcome::Undecided));
    assert_eq!(within(&store, "halved", "tps < -3%"), (GateState::Exceeded, Outcome::Exceeded));
    assert_eq!(within(&store, "doubled", "tps < -3%"), (GateState::Kept, Outcome::Passed));
    // Asked for more than the floor, it decides as without one.
    assert_eq!(within(&store, "less", "tps < -30%"), (GateState::Kept, Outcome::Passed));
}

#[test]
fn runs_of_one_treatment_under_two_names_are_found_also_after_others_went() {
    let (_folder, mut store) = store();
    pair(&mut store, "other", 0.9, 0.01);
    pair(&mut store, "floor", 1.0, 0.01);
    assert_eq!(store.runs_with_equal_treatments().unwrap(), ["floor"]);
    // Its number in the store passes on to the next.
    store.remove(&[Stored::Run("floor".into())], "rm").unwrap();
    assert_eq!(store.runs_with_equal_treatments().unwrap(), [""; 0]);
    let record = RunRecord { id: "again".into(), ..run_record(same(&["a", "b"], 2)) };
    fill_with(&mut store, &record, |_| ());
    assert_eq!(store.runs_with_equal_treatments().unwrap(), ["again"]);
}

#[test]
fn a_gate_says_which_change_it_catches_in_most_such_runs() {
    let (_folder, mut store) = store();
    pair(&mut store, "slower", 0.8, 0.01);
    let view = gated(&store, "slower:1", "slower:2", Form::FailIf, "tps < -3%, p99 > +10%");
    let of = |i: usize| &view.gates[i];
    let catches = of(0).catches.unwrap();
    assert!((-0.08..-0.03).contains(&catches), "{catches}");
    insta::assert_snapshot!("catches", of(0).words);
    assert!(of(1).catches.unwrap() > 0.1);
}

#[test]
fn proof_is_asked_by_the_other_form_and_what_is_not_shown_fails() {
    let (_folder, mut store) = store();
    pair(&mut store, "alike", 1.0, 0.005);
    pair(&mut store, "noisy", 1.0, 0.2);
    pair(&mut store, "slower", 0.8, 0.01);
    let state = |run: &str| {
        let view =
            gated(&store, &format!("{run}:1"), &format!("{run}:2"), Form::FailUnless, "tps > -3%");
        (view.gates[0].state, view.outcome)
    };
    assert_eq!(state("alike"), (GateState::Kept, Some(Outcome::Passed)));
    assert_eq!(state("noisy"), (GateState::NotShown, Some(Outcome::Exceeded)));
    assert_eq!(state("slower"), (GateState::NotShown, Some(Outcome::Exceeded)));
    assert_eq!(within(&store, "noisy", "tps < -3%").1, Outcome::Undecided);
}

/// A run of two treatments with `repeats` trials each; the second has the tps `of_b`.
fn beside(store: &mut Store, id: &str, repeats: u32, of_b: impl Fn(u32) -> Option<f64>) {
    let mut plan = same(&["a", "b"], repeats);
    plan.treatments[1].clients += 1;
    let record = RunRecord { id: id.into(), ..run_record(plan) };
    fill_with(store, &record, |t| match (t.treatment, of_b(t.block)) {
        (0, _) => tps(t, 100_000.0),
        (_, Some(value)) => tps(t, value),
        (_, None) => {
            t.measurement = None;
            t.failure = Some("the server did not start".into());
        }
    });
}

#[test]
fn a_proof_that_is_not_there_does_not_pass_and_says_why_it_is_not() {
    // Beside nothing that would tell how far two runs differ.
    let (_alone, mut alone) = store();
    one(&mut alone, "before", 100_000.0);
    one(&mut alone, "after", 57_100.0);
    let (_folder, mut store) = store();
    beside(&mut store, "once", 1, |_| Some(57_100.0));
    beside(&mut store, "equal", 4, |_| Some(57_100.0));
    beside(&mut store, "crashed", 4, |_| None);
    beside(&mut store, "empty", 4, |block| Some(if block == 1 { 0.0 } else { 57_100.0 }));
    let record = RunRecord { id: "few".into(), ..run_record(same(&["a", "b"], 4)) };
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
            let view = gated(store, &sides[0], &sides[1], form, condition);
            assert_eq!((view.gates[0].state, view.outcome), (state, Some(outcome)), "{run}");
            words.push(format!("{run}: {}", view.gates[0].words));
        }
    }
    insta::assert_snapshot!("no_proof", words.join("\n"));
}

#[test]
fn two_runs_alone_decide_nothing_however_far_they_differ() {
    let (_folder, mut store) = store();
    one(&mut store, "before", 100_000.0);
    one(&mut store, "after", 7_000.0);
    let view = gated(&store, "before", "after", Form::FailIf, "tps < -3%");
    let ratio = &view.pairs[0].ratio;
    assert_eq!((ratio.significant, ratio.p, ratio.ci95), (None, None, None));
    assert!(
        ratio.within_runs.is_some() && ratio.withheld == Some(Withheld::TooFewRuns { found: 0 }),
        "{ratio:?}"
    );
    assert_eq!((view.gates[0].state, view.outcome), (GateState::Unknown, Some(Outcome::Undecided)));
}

#[test]
fn three_earlier_runs_widen_the_interval_by_their_spread() {
    let (_folder, mut store) = store();
    for (i, level) in [1.02, 0.98, 1.00].into_iter().enumerate() {
        one(&mut store, &format!("earlier-{i}"), 100_000.0 * level);
    }
    one(&mut store, "before", 100_000.0);
    one(&mut store, "after", 95_000.0);
    let view = gated(&store, "before", "after", Form::FailIf, "tps < -3%");
    let ratio = &view.pairs[0].ratio;
    let ([lo, hi], [least, most]) = (ratio.ci95.unwrap(), ratio.within_runs.unwrap());
    // By their own trials they differ; S of the earlier means is 2%, so that the interval is 0.95 ×
    // exp(± t(2) √2 × 2%).
    assert!(most < 0.97 && hi > 1.0 && lo < least, "{ratio:?}");
    assert!((hi.ln() - 0.95f64.ln() - 4.302_653 * 2f64.sqrt() * 0.02).abs() < 2e-3, "{hi}");
    assert_eq!((ratio.significant, view.outcome), (Some(false), Some(Outcome::Undecided)));
    assert!(view.notes[0].contains("by 3 earlier runs"), "{:?}", view.notes);
    one(&mut store, "far", 60_000.0);
    let view = gated(&store, "before", "far", Form::FailIf, "tps < -3%");
    assert_eq!(
        (view.pairs[0].ratio.significant, view.outcome),
        (Some(true), Some(Outcome::Exceeded))
    );
}

#[test]
fn runs_of_other_machines_and_lengths_tell_nothing_of_this_one() {
    let (_folder, mut store) = store();
    for i in 0..3 {
        let mut plan = same(&["only"], 5);
        plan.warm_up = pgdyno_model::units::Span::from_secs(9);
        let record = RunRecord { id: format!("longer-{i}"), ..run_record(plan) };
        fill_with(&mut store, &record, |t| tps(t, 1000.0 + f64::from(i)));
        let mut elsewhere = records::session_record();
        elsewhere.host.cpus = 64;
        let record = RunRecord { id: format!("elsewhere-{i}"), ..run_record(same(&["only"], 5)) };
        records::fill_on(&mut store, &record, &elsewhere, |t| tps(t, 1000.0 + f64::from(i)));
    }
    one(&mut store, "before", 100_000.0);
    one(&mut store, "after", 95_000.0);
    let view = gated(&store, "before", "after", Form::FailIf, "tps < -3%");
    assert!(
        view.pairs[0].ratio.withheld == Some(Withheld::TooFewRuns { found: 0 }),
        "{:?}",
        view.pairs[0].ratio
    );
}
