//! Courses over ordered factors and interactions of two, from the store to sentences.

use pgdyno_model::{Answer, AnswerKind, LevelValue, Plan};
use pgdyno_report::{NoteKind, RunReport};
use pgdyno_test_support::synthetic::{self, old_and_new, texts};

/// Measures `plan` with these tps, each with a noise of 1%.
fn measured(plan: &Plan, tps: &[f64]) -> RunReport {
    RunReport::new(synthetic::measured(plan, tps))
}

fn notes(report: &RunReport, kind: NoteKind) -> Vec<&str> {
    report.notes.iter().filter(|note| note.kind == kind).map(|note| note.text.as_str()).collect()
}

#[test]
fn sizes_are_ordered_by_what_they_are_and_an_effect_that_depends_on_them_is_told() {
    // In an order that is not the sizes' own: 2 GB is the largest.
    let plan = old_and_new("shared_buffers", &texts(&["512MB", "2GB", "128MB"]), 4);
    // The old build rises with the size; the new one has its peak at 512 MB.
    let report = measured(&plan, &[1500.0, 2000.0, 1000.0, 2600.0, 2000.0, 1100.0]);
    let view = &report.view;
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
        .flat_map(|kind| notes(&report, *kind))
        .collect();
    insta::assert_snapshot!("depends", said.join("\n"));
    assert!(
        report.answer.contains(&"This depends on shared_buffers.".to_owned()),
        "{:?}",
        report.answer
    );
}

#[test]
fn an_effect_is_told_on_average_and_one_by_one() {
    let effect = |levels: &[&str], tps: &[f64]| {
        let mut plan = old_and_new("storage", &texts(levels), 4);
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
    let found = slower.view.effect.clone().unwrap();
    assert_eq!((found.factor.as_str(), found.combinations), ("build", 2));
    assert!((found.ratio / 0.8485 - 1.0).abs() < 0.01 && found.significant, "{found:?}");
    let figure = &slower.headline.figures[1];
    assert_eq!(figure.value, format!("{}×", pgdyno_text::format::times(found.ratio)));
    // 1% is less than each pair shows.
    let names = ["ext4", "xfs", "btrfs", "zfs"];
    let four = effect(&names, &[1e3, 1e3, 1e3, 1e3, 1010.0, 1010.0, 1010.0, 1010.0]);
    let none = effect(&names, &[1e3; 8]);
    assert!(
        none.view.effect.as_ref().is_some_and(|found| !found.significant && found.ci95[1] > 1.0)
    );
    assert!(
        effect(&["ext4"], &[1e3, 900.0]).view.effect.is_none(),
        "one combination is no average"
    );
    let answers = [&slower, &four, &none].map(|report| report.answer[..3].join("\n"));
    insta::assert_snapshot!("effects", answers.join("\n\n"));
}

#[test]
fn an_equal_effect_and_a_flat_course_are_not_said_to_be_anything_else() {
    let numbers = [1, 10, 100].map(LevelValue::Int);
    let plan = old_and_new("commit_delay", &numbers, 4);
    let report = measured(&plan, &[1e3, 1e3, 1e3, 1.5e3, 1.5e3, 1.5e3]);
    let view = &report.view;
    assert!(view.courses.iter().all(|course| !course.rises && !course.falls));
    assert!(view.courses.iter().all(|course| course.peak == Some([0, 2])));
    assert!(view.interactions.iter().all(|found| !found.depends && found.ci95[0] < 1.0));
    let said: Vec<&str> = [NoteKind::Interaction, NoteKind::Course]
        .iter()
        .flat_map(|kind| notes(&report, *kind))
        .collect();
    insta::assert_snapshot!("flat", said.join("\n"));
}

#[test]
fn a_course_that_falls_and_rises_again_has_no_peak() {
    let report = measured(
        &old_and_new("commit_delay", &[1, 2, 3, 4].map(LevelValue::Int), 4),
        &[1e3, 500.0, 1e3, 500.0, 1e3, 1e3, 1e3, 1e3],
    );
    let course = &report.view.courses[0];
    assert_eq!((course.peak, course.curve.len()), (None, 0));
    let said = notes(&report, NoteKind::Course);
    assert!(said[0].contains("falls and rises again"), "{said:?}");
}
