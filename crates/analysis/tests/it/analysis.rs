//! Figures of a run are those of its trials.

use pgdyno_analysis::{TrialState, analyse};
use pgdyno_model::record::{RunState, SessionEnd};
use pgdyno_stats::NoInterval;
use pgdyno_test_support::records::{RUN, analysed_run, filled, plan, session_record, trial};

#[test]
fn a_trial_that_failed_and_was_repeated_counts_once() {
    let plan = plan(2);
    let (_folder, mut store) = filled(plan.clone(), Some(2));
    let before = analyse(&store, RUN).unwrap();
    assert_eq!(before.run.state, RunState::Failed);
    assert_eq!((before.treatments[2].trials, before.treatments[2].attempts_failed), (1, 1));
    assert!(before.treatments[2].tps.as_ref().unwrap().ci95.is_none());
    assert_eq!(before.treatments[2].reason, Some(NoInterval::OneRepeat));

    let session = store.begin_session(RUN, &session_record()).unwrap();
    let again = trial(&plan, plan.trials[2]);
    store.add_trial(RUN, session, &again).unwrap();
    let mut twice = again.clone();
    twice.measurement.as_mut().unwrap().transactions = 1;
    store.add_trial(RUN, session, &twice).unwrap();
    store.end_session(session, SessionEnd::Completed).unwrap();
    let after = analyse(&store, RUN).unwrap();
    assert_eq!(after.run.state, RunState::Completed);
    assert_eq!((after.treatments[2].trials, after.run.trials_completed), (2, 8));
    let states: Vec<TrialState> =
        after.trials.iter().filter(|t| t.ordinal == 2).map(|t| t.state).collect();
    assert_eq!(states, [TrialState::Failed, TrialState::Completed, TrialState::Superfluous]);
    let undisturbed = analysed_run(plan, |_| {});
    assert_eq!(
        after.treatments[2].tps.as_ref().unwrap().ci95,
        undisturbed.treatments[2].tps.as_ref().unwrap().ci95
    );
}

#[test]
fn a_verdict_that_only_holds_alone_is_none() {
    // Treatment 2 against 0: logarithms of 1.060, 1.079, 1.038; t = 5.1 on 2 degrees of freedom,
    // p = 0.037, and four times that when three pairs beside it differ by less than their spread.
    let tps = [[1000, 1001, 1002], [1000, 1030, 1010], [1060, 1080, 1040], [1010, 1000, 1030]];
    let view = analysed_run(plan(3), |t| {
        let tps = tps[t.treatment][t.block as usize - 1];
        t.measurement.as_mut().unwrap().transactions = 5 * tps;
    });
    let alone: Vec<_> = view
        .comparisons
        .iter()
        .filter(|c| c.ratio.p.unwrap() <= 0.05 && c.ratio.significant == Some(false))
        .collect();
    assert!(!alone.is_empty(), "{:#?}", view.comparisons);
    for c in alone {
        assert!(c.ratio.p_together.unwrap() > 0.05);
    }
}
