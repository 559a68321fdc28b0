//! Courses over ordered factors and interactions of two, from the store to figures.

use pgdyno_analysis::{PairRow, analyse};
use pgdyno_model::load_rate::LoadRate;
use pgdyno_model::record::{RunState, SessionEnd};
use pgdyno_model::{Answer, AnswerKind, LevelValue, Plan, Stopping};
use pgdyno_store::Store;
use pgdyno_test_support::records::Random;
use pgdyno_test_support::synthetic::{begin, folder, measured, old_and_new, texts, trial};

#[test]
fn pairs_that_the_question_asks_for_have_narrower_intervals() {
    let mut plan = old_and_new("storage", &texts(&["ext4", "xfs", "btrfs"]), 4);
    let tps = [1000.0, 1010.0, 1020.0, 1030.0, 1040.0, 1050.0];
    // Widths of new beside old on each storage, and of the other pairs.
    let widths = |plan: &Plan| -> (Vec<f64>, Vec<f64>) {
        let rows = measured(plan, &tps).pairs.rows;
        let (asked, others): (Vec<&PairRow>, Vec<&PairRow>) =
            rows.iter().partition(|row| row.0 + 3 == row.1);
        let width = |row: &&PairRow| (row.4.unwrap() / row.3.unwrap()).ln();
        (asked.iter().map(width).collect(), others.iter().map(width).collect())
    };
    let (before, others_before) = widths(&plan);
    plan.answer = Some(Answer {
        kind: AnswerKind::Effect,
        level: Some("new".into()),
        against: Some("old".into()),
        words: None,
    });
    let (now, others_now) = widths(&plan);
    assert_eq!((now.len(), others_now.len()), (3, 12));
    let narrower = |now: &[f64], before: &[f64]| now.iter().zip(before).all(|(a, b)| a < b);
    assert!(narrower(&now, &before) && narrower(&others_before, &others_now));
    // Of 15 pairs 3 are of builds and 4 of storages: what a run that ends by itself decides are too
    // many to gain.
    plan.answer = None;
    plan.stopping = Some(Stopping { floor: 4, ceiling: 4, precision: Some(0.01), budget: None });
    assert_eq!(widths(&plan), (before, others_before));
}

#[test]
fn factors_without_order_have_no_course_and_half_a_table_no_interaction() {
    let names = texts(&["ext4", "xfs", "btrfs"]);
    let view = measured(&old_and_new("storage", &names, 3), &[1e3; 6]);
    assert!(view.courses.is_empty() && view.interactions.len() == 1);
    // Sizes beside times have no order.
    let mixed = texts(&["1GB", "10s", "20s"]);
    assert!(measured(&old_and_new("mixed", &mixed, 3), &[1e3; 6]).courses.is_empty());
    let mut plan = old_and_new("storage", &names, 3);
    plan.treatments.pop();
    plan.trials.retain(|planned| planned.treatment < 5);
    assert!(measured(&plan, &[1e3; 5]).interactions.is_empty());
    // A rate sets tps.
    let mut plan = old_and_new("commit_delay", &[1, 2, 3].map(LevelValue::Int), 3);
    plan.treatments.iter_mut().for_each(|t| t.options.rate = Some(LoadRate::Constant(100.0)));
    let view = measured(&plan, &[1e3; 6]);
    assert!(view.courses.is_empty() && view.interactions.is_empty());
}

#[test]
fn a_run_that_may_still_change_says_nothing_of_its_factors() {
    let plan = old_and_new("commit_delay", &[1, 2, 3].map(LevelValue::Int), 4);
    let folder = folder();
    let mut store = Store::open(folder.path().join("store.sqlite3")).unwrap();
    let session = begin(&mut store, "run", "synthetic", 1, &plan);
    let mut random = Random(9);
    for planned in &plan.trials[..plan.trials.len() - 1] {
        let level = f64::from(u32::try_from(planned.treatment).unwrap());
        let tps = 1000.0 + 300.0 * level + 10.0 * random.uniform();
        store.add_trial("run", session, &trial(&plan, planned, tps, 20)).unwrap();
    }
    store.end_session(session, SessionEnd::Interrupted).unwrap();
    let view = analyse(&store, "run").unwrap();
    assert_eq!(view.run.state, RunState::Interrupted);
    assert!(view.courses.is_empty() && view.interactions.is_empty());
}
