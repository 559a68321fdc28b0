//! Courses over ordered factors and interactions of two, from the store to sentences.

use pgdyno_analysis::PairRow;
use pgdyno_analysis::RunView;
use pgdyno_analysis::analyse;
use pgdyno_model::record::{RunState, SessionEnd};
use pgdyno_model::{Answer, AnswerKind, LevelValue, Plan, Stopping};
use pgdyno_report::NoteKind;
use pgdyno_store::Store;
use pgdyno_test_support::records::Random;
use pgdyno_test_support::synthetic::{self, add, begin, folder, trial};

/// Returns a plan of two builds with each of `levels` of `factor`.
fn crossed(factor: &str, levels: &[LevelValue], repeats: u32) -> Plan {
    synthetic::crossed(&["old", "new"], factor, levels, repeats, &mut Random(5))
}

fn texts(levels: &[&str]) -> Vec<LevelValue> {
    levels.iter().map(|level| LevelValue::Text((*level).into())).collect()
}

/// Measures `plan` with these tps, each with a noise of 1%.
fn measured(plan: &Plan, tps: &[f64]) -> RunView {
    let folder = folder();
    let mut store = Store::open(folder.path().join("store.sqlite3")).unwrap();
    let mut random = Random(9);
    let mut noisy = |t: usize| tps[t] * (1.0 + 0.02 * (random.uniform() - 0.5));
    add(&mut store, ("run", 1), plan, |planned| noisy(planned.treatment));
    analyse(&store, "run").unwrap()
}

fn notes(view: &RunView, kind: NoteKind) -> Vec<&str> {
    view.notes.iter().filter(|note| note.kind == kind).map(|note| note.text.as_str()).collect()
}

#[test]
fn sizes_are_ordered_by_what_they_are_and_an_effect_that_depends_on_them_is_told() {
    // In an order that is not the sizes' own: 2 GB is the largest.
    let plan = crossed("shared_buffers", &texts(&["512MB", "2GB", "128MB"]), 4);
    // The old build rises with the size; the new one has its peak at 512 MB.
    let view = measured(&plan, &[1500.0, 2000.0, 1000.0, 2600.0, 2000.0, 1100.0]);
    let [old, new] = view.courses.as_slice() else { panic!("{:?}", view.courses) };
    assert_eq!((old.given.as_str(), old.treatments.as_slice()), ("build=old", &[2, 0, 1][..]));
    assert_eq!((old.rises, old.falls, old.peak), (true, false, Some([2, 2])));
    assert_eq!((new.given.as_str(), new.treatments.as_slice()), ("build=new", &[5, 3, 4][..]));
    assert_eq!((new.rises, new.falls, new.peak), (true, true, Some([1, 1])));
    for (point, tps) in new.curve.iter().zip([1100.0, 2600.0, 2000.0]) {
        assert!((point.value / tps - 1.0).abs() < 0.03, "{new:?}");
        assert!(point.band[0] < point.value && point.value < point.band[1]);
    }
    let [found] = view.interactions.as_slice() else { panic!("{:?}", view.interactions) };
    assert_eq!((found.factor.as_str(), found.on.as_str()), ("build", "shared_buffers"));
    assert!(found.depends && found.p < 0.001);
    assert_eq!((found.level.as_str(), found.against.as_str()), ("new", "old"));
    assert_eq!((found.higher_with.as_str(), found.lower_with.as_str()), ("512MB", "2GB"));
    // 2600 / 1500 beside 2000 / 2000.
    assert!((found.ratio / 1.733 - 1.0).abs() < 0.03 && found.ci95[0] > 1.6, "{found:?}");
    let said: Vec<&str> = [NoteKind::Interaction, NoteKind::Course]
        .iter()
        .flat_map(|kind| notes(&view, *kind))
        .collect();
    insta::assert_snapshot!("depends", said.join("\n"));
    assert!(
        view.answer.contains(&"This depends on shared_buffers.".to_owned()),
        "{:?}",
        view.answer
    );
}

#[test]
fn pairs_that_the_question_asks_for_have_narrower_intervals() {
    let mut plan = crossed("storage", &texts(&["ext4", "xfs", "btrfs"]), 4);
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
fn an_effect_is_told_on_average_and_one_by_one() {
    let effect = |levels: &[&str], tps: &[f64]| {
        let mut plan = crossed("storage", &texts(levels), 4);
        plan.answer = Some(Answer {
            kind: AnswerKind::Effect,
            level: Some("new".into()),
            against: Some("old".into()),
            words: Some("the new build".into()),
        });
        measured(&plan, tps)
    };
    // 0.8 and 0.9 of the old build: 0.8485 on average.
    let slower = effect(&["ext4", "xfs"], &[1000.0, 1000.0, 800.0, 900.0]);
    let found = slower.effect.clone().unwrap();
    assert_eq!((found.factor.as_str(), found.combinations), ("build", 2));
    assert!((found.ratio / 0.8485 - 1.0).abs() < 0.01 && found.significant, "{found:?}");
    let figure = &slower.headline.figures[1];
    assert_eq!(figure.value, format!("{}×", pgdyno_model::format::times(found.ratio)));
    // 1% is less than each pair shows.
    let names = ["ext4", "xfs", "btrfs", "zfs"];
    let four = effect(&names, &[1e3, 1e3, 1e3, 1e3, 1010.0, 1010.0, 1010.0, 1010.0]);
    let none = effect(&names, &[1e3; 8]);
    assert!(none.effect.as_ref().is_some_and(|found| !found.significant && found.ci95[1] > 1.0));
    assert!(effect(&["ext4"], &[1e3, 900.0]).effect.is_none(), "one combination is no average");
    let answers = [&slower, &four, &none].map(|view| view.answer[..3].join("\n"));
    insta::assert_snapshot!("effects", answers.join("\n\n"));
}

#[test]
fn an_equal_effect_and_a_flat_course_are_not_said_to_be_anything_else() {
    let numbers = [1, 10, 100].map(LevelValue::Int);
    let view =
        measured(&crossed("commit_delay", &numbers, 4), &[1e3, 1e3, 1e3, 1.5e3, 1.5e3, 1.5e3]);
    assert!(view.courses.iter().all(|course| !course.rises && !course.falls));
    assert!(view.courses.iter().all(|course| course.peak == Some([0, 2])));
    assert!(view.interactions.iter().all(|found| !found.depends && found.ci95[0] < 1.0));
    let said: Vec<&str> = [NoteKind::Interaction, NoteKind::Course]
        .iter()
        .flat_map(|kind| notes(&view, *kind))
        .collect();
    insta::assert_snapshot!("flat", said.join("\n"));
}

#[test]
fn a_course_that_falls_and_rises_again_has_no_peak() {
    let view = measured(
        &crossed("commit_delay", &[1, 2, 3, 4].map(LevelValue::Int), 4),
        &[1e3, 500.0, 1e3, 500.0, 1e3, 1e3, 1e3, 1e3],
    );
    assert_eq!((view.courses[0].peak, view.courses[0].curve.len()), (None, 0));
    let said = notes(&view, NoteKind::Course);
    assert!(said[0].contains("falls and rises again"), "{said:?}");
}

#[test]
fn factors_without_order_have_no_course_and_half_a_table_no_interaction() {
    let names = texts(&["ext4", "xfs", "btrfs"]);
    let view = measured(&crossed("storage", &names, 3), &[1e3; 6]);
    assert!(view.courses.is_empty() && view.interactions.len() == 1);
    // Sizes beside times have no order.
    let mixed = texts(&["1GB", "10s", "20s"]);
    assert!(measured(&crossed("mixed", &mixed, 3), &[1e3; 6]).courses.is_empty());
    let mut plan = crossed("storage", &names, 3);
    plan.treatments.pop();
    plan.trials.retain(|planned| planned.treatment < 5);
    assert!(measured(&plan, &[1e3; 5]).interactions.is_empty());
    // A rate sets tps.
    let mut plan = crossed("commit_delay", &[1, 2, 3].map(LevelValue::Int), 3);
    plan.treatments.iter_mut().for_each(|t| t.options.rate = Some(100.0));
    let view = measured(&plan, &[1e3; 6]);
    assert!(view.courses.is_empty() && view.interactions.is_empty());
}

#[test]
fn a_run_that_may_still_change_says_nothing_of_its_factors() {
    let plan = crossed("commit_delay", &[1, 2, 3].map(LevelValue::Int), 4);
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
