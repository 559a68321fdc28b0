//! Gates of a comparison: passed, exceeded or undecided, beside the noise floor and across runs.

use pgdyno_analysis::Withheld;
use pgdyno_analysis::comparison::runs::{CompareNote, GateState, Outcome};
use pgdyno_analysis::gate::Form;
use pgdyno_store::{Store, Stored};
use pgdyno_test_support::records::{
    self, alike, fill_with, gated, run_at, run_called, run_of_two, set_tps, store,
};

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
    run_of_two(&mut store, "slower", 0.8, 0.01);
    run_of_two(&mut store, "again", 1.0, 0.005);
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
    run_of_two(&mut store, "floor", 1.03, 0.06);
    run_of_two(&mut store, "less", 0.95, 0.003);
    run_of_two(&mut store, "halved", 0.5, 0.003);
    run_of_two(&mut store, "doubled", 2.0, 0.003);
    let view = gated(&store, "less:1", "less:2", Form::FailIf, "tps < -3%");
    let floor = view.gates[0].noise_floor.unwrap();
    assert!((0.05..0.12).contains(&floor), "{floor}");
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
    run_of_two(&mut store, "other", 0.9, 0.01);
    run_of_two(&mut store, "floor", 1.0, 0.01);
    assert_eq!(store.runs_with_equal_treatments().unwrap(), ["floor"]);
    // Its number in the store passes on to the next.
    store.remove(&[Stored::Run("floor".into())], "rm").unwrap();
    assert_eq!(store.runs_with_equal_treatments().unwrap(), [""; 0]);
    let record = run_called("again", alike(&["a", "b"], 2));
    fill_with(&mut store, &record, |_| ());
    assert_eq!(store.runs_with_equal_treatments().unwrap(), ["again"]);
}

#[test]
fn proof_is_asked_by_the_other_form_and_what_is_not_shown_fails() {
    let (_folder, mut store) = store();
    run_of_two(&mut store, "alike", 1.0, 0.005);
    run_of_two(&mut store, "noisy", 1.0, 0.2);
    run_of_two(&mut store, "slower", 0.8, 0.01);
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

#[test]
fn two_runs_alone_decide_nothing_however_far_they_differ() {
    let (_folder, mut store) = store();
    run_at(&mut store, "before", 100_000.0);
    run_at(&mut store, "after", 7_000.0);
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
        run_at(&mut store, &format!("earlier-{i}"), 100_000.0 * level);
    }
    run_at(&mut store, "before", 100_000.0);
    run_at(&mut store, "after", 95_000.0);
    let view = gated(&store, "before", "after", Form::FailIf, "tps < -3%");
    let ratio = &view.pairs[0].ratio;
    let ([lo, hi], [least, most]) = (ratio.ci95.unwrap(), ratio.within_runs.unwrap());
    // By their own trials they differ; S of the earlier means is 2%, so that the interval is 0.95 ×
    // exp(± t(2) √2 × 2%).
    assert!(most < 0.97 && hi > 1.0 && lo < least, "{ratio:?}");
    assert!((hi.ln() - 0.95f64.ln() - 4.302_653 * 2f64.sqrt() * 0.02).abs() < 2e-3, "{hi}");
    assert_eq!((ratio.significant, view.outcome), (Some(false), Some(Outcome::Undecided)));
    let CompareNote::TwoRuns(earlier) = &view.notes[0] else { panic!("{:?}", view.notes) };
    assert_eq!((earlier.least, earlier.most), (3, 3));
    run_at(&mut store, "far", 60_000.0);
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
        let mut plan = alike(&["only"], 5);
        plan.warm_up = pgdyno_model::units::Span::from_secs(9);
        let record = run_called(&format!("longer-{i}"), plan);
        fill_with(&mut store, &record, |t| set_tps(t, 1000.0 + f64::from(i)));
        let mut elsewhere = records::session_record();
        elsewhere.host.cpus = 64;
        let record = run_called(&format!("elsewhere-{i}"), alike(&["only"], 5));
        records::fill_on(&mut store, &record, &elsewhere, |t| set_tps(t, 1000.0 + f64::from(i)));
    }
    run_at(&mut store, "before", 100_000.0);
    run_at(&mut store, "after", 95_000.0);
    let view = gated(&store, "before", "after", Form::FailIf, "tps < -3%");
    assert!(
        view.pairs[0].ratio.withheld == Some(Withheld::TooFewRuns { found: 0 }),
        "{:?}",
        view.pairs[0].ratio
    );
}
