//! Two runs beside each other: which treatments match, what must be equal, what their ratio is.

use pgdyno_analysis::comparison::runs::{CompareNote, CompareOptions, compare};
use pgdyno_model::units::Span;
use pgdyno_model::{LevelValue, Levels, TrialRecord};
use pgdyno_store::Store;
use pgdyno_test_support::assert_contains;
use pgdyno_test_support::records::{
    by, fill_with, first_treatments, generators, plan, refused, run_called, speed_up, store,
};

/// A run of two treatments, each trial after `change`.
fn add(store: &mut Store, id: &str, repeats: u32, change: impl Fn(&mut TrialRecord)) {
    fill_with(store, &run_called(id, first_treatments(2, repeats)), change);
}

#[test]
fn the_ratio_is_b_over_a_and_trials_of_different_runs_are_not_paired() {
    let (_folder, mut store) = store();
    add(&mut store, "a", 4, |_| {});
    add(&mut store, "b", 4, |t| speed_up(t, 1.2));
    let there = compare(&store, "a", "b", &CompareOptions::default()).unwrap();
    let back = compare(&store, "b", "a", &CompareOptions::default()).unwrap();
    for (there, back) in there.pairs.iter().zip(&back.pairs) {
        let (x, y) = (there.ratio.value.unwrap(), back.ratio.value.unwrap());
        assert!((x - 1.2).abs() < 1e-3 && (x * y - 1.0).abs() < 1e-9, "{x} {y}");
        // Paired, these would differ by the same factor each time and so without spread.
        assert!(there.ratio.within_runs.unwrap()[0] < 1.19);
    }
    // Neither run has an earlier one, and a verdict takes three.
    let CompareNote::TwoRuns(earlier) = &there.notes[0] else { panic!("{:?}", there.notes) };
    assert_eq!((earlier.least, earlier.most), (0, 0));
}

#[test]
fn treatments_of_one_run_share_its_noise_and_are_compared_once() {
    let (_folder, mut store) = store();
    fill_with(&mut store, &run_called("run", plan(4)), |_| {});
    let view = compare(&store, "latest", "latest", &by(&["synchronous_commit"])).unwrap();
    let labels: Vec<&str> = view.pairs.iter().map(|p| p.label.as_str()).collect();
    assert_eq!(
        labels,
        ["synchronous_commit=on→off clients=1", "synchronous_commit=on→off clients=8",]
    );
    assert!(
        view.same_run
            && view.pairs.iter().all(|p| p.ratio.method == Some(pgdyno_stats::Method::Pooled))
    );
    assert!(
        view.unequal.iter().all(|u| u.on_purpose && u.what == "setting synchronous_commit"),
        "{:?}",
        view.unequal
    );
    // Named one by one, the levels say what is compared.
    let named = compare(
        &store,
        "run:1",
        "run:synchronous_commit=off,clients=1",
        &CompareOptions::default(),
    )
    .unwrap();
    assert_eq!(named.by, ["synchronous_commit"]);
    assert_eq!(named.pairs[0].ratio.ci95, view.pairs[0].ratio.ci95);
    let itself = refused(compare(&store, "run", "run", &CompareOptions::default()));
    assert_contains(&itself, &["with itself", "--by synchronous_commit"]);
}

#[test]
fn generators_as_levels_are_compared_by_their_names() {
    let (_folder, mut store) = store();
    let mut plan = first_treatments(2, 4);
    plan.factors = vec!["generators".into()];
    for (treatment, launch) in plan.treatments.iter_mut().zip(["none", "ssh:near,far"]) {
        treatment.levels = Levels(vec![("generators".into(), LevelValue::Text(launch.into()))]);
        treatment.clients = 8;
        treatment.generators = Some(launch.into());
    }
    fill_with(&mut store, &run_called("run", plan), |t| {
        if t.treatment == 1 {
            t.measurement.as_mut().unwrap().generators = generators(&["near", "far"]);
        }
    });
    let view = compare(&store, "run", "run", &by(&["generators"])).unwrap();
    let [pair] = &view.pairs[..] else { panic!("{:?}", view.pairs) };
    assert_eq!(pair.label, "generators=none→ssh:near,far");
    let [unequal] = &view.unequal[..] else { panic!("{:?}", view.unequal) };
    assert_eq!((&*unequal.what, &*unequal.a, &*unequal.b), ("generators", "none", "ssh:near,far"));
    assert!(unequal.on_purpose);
}

#[test]
fn labels_match_whatever_the_order_and_spelling_of_the_files() {
    let (_folder, mut store) = store();
    add(&mut store, "a", 1, |_| {});
    let mut plan = first_treatments(2, 1);
    plan.factors.reverse();
    for t in &mut plan.treatments {
        t.levels.0.reverse();
        t.levels.0[1].1 = LevelValue::Bool(true);
    }
    fill_with(&mut store, &run_called("b", plan), |_| {});
    let view = compare(&store, "a", "b", &CompareOptions::default()).unwrap();
    let labels: Vec<&str> = view.pairs.iter().map(|p| p.label.as_str()).collect();
    assert_eq!(labels, ["synchronous_commit=on clients=1", "synchronous_commit=on clients=8"]);
}

#[test]
fn a_bundle_is_compared_with_all_that_it_may_set_and_no_more() {
    let (_folder, mut store) = store();
    let with_bundle = |level: &str, clients: u32, warm_up: u64| {
        let mut plan = first_treatments(1, 1);
        plan.factors = vec!["tuning".into()];
        plan.warm_up = Span::from_secs(warm_up);
        plan.treatments[0].levels.0 = vec![("tuning".into(), LevelValue::Text(level.into()))];
        plan.treatments[0].clients = clients;
        plan
    };
    let larger = |t: &mut TrialRecord| t.server.as_mut().unwrap().settings[4].value = "99".into();
    fill_with(&mut store, &run_called("a", with_bundle("none", 1, 2)), |_| {});
    fill_with(&mut store, &run_called("b", with_bundle("large", 4, 2)), larger);
    fill_with(&mut store, &run_called("c", with_bundle("large", 4, 9)), larger);
    let view = compare(&store, "a", "b", &by(&["tuning"])).unwrap();
    let unequal: Vec<(&str, bool)> =
        view.unequal.iter().map(|u| (u.what.as_str(), u.on_purpose)).collect();
    assert_eq!(unequal, [("setting shared_buffers", true), ("clients", true)]);
    let error = refused(compare(&store, "a", "c", &by(&["tuning"])));
    assert!(error.contains("\n  warm-up\n") && !error.contains("clients"), "{error}");
}

#[test]
fn what_names_nothing_is_answered_with_what_there_is() {
    let (_folder, mut store) = store();
    add(&mut store, "a", 2, |_| {});
    add(&mut store, "b", 2, |_| {});
    let with = |a: &str, b: &str, asked: CompareOptions| refused(compare(&store, a, b, &asked));
    insta::assert_snapshot!(
        "names",
        [
            with("a:3", "b", CompareOptions::default()),
            with("a:0", "b", CompareOptions::default()),
            with("a:client=8", "b", CompareOptions::default()),
            with("a:clients=9", "b", CompareOptions::default()),
            with("a:first", "b", CompareOptions::default()),
            with("a", "b", by(&["kernal"])),
            with("a:1", "b:clients=8,synchronous_commit=off", CompareOptions::default()),
        ]
        .join("\n\n")
    );
}

#[test]
fn a_level_with_commas_is_named_as_it_is_printed() {
    let (_folder, mut store) = store();
    let mut plan = plan(2);
    plan.factors = vec!["generators".into(), "clients".into()];
    let launches = ["ssh:a", "ssh:a,b", "ssh:a,b", "ssh:a"];
    for (treatment, (launch, clients)) in plan.treatments.iter_mut().zip(launches.iter().zip(1..)) {
        treatment.levels = Levels(vec![
            ("generators".into(), LevelValue::Text((*launch).into())),
            ("clients".into(), LevelValue::Int(clients)),
        ]);
    }
    fill_with(&mut store, &run_called("run", plan), |_| {});
    let forced = CompareOptions { force: true, ..by(&["generators", "clients"]) };
    let chosen = |which: &str| {
        let view = compare(&store, "run:4", &format!("run:{which}"), &forced).unwrap();
        view.pairs.iter().map(|pair| pair.b.treatment).collect::<Vec<_>>()
    };
    assert_eq!(chosen("generators=ssh:a,b"), [1, 2]);
    assert_eq!(chosen("generators=ssh:a"), [0]);
    assert_eq!(chosen("generators=ssh:a,b,clients=3"), [2]);
    assert_eq!(chosen("clients=2, generators = ssh:a,b"), [1]);
    for (wrong, why) in [
        ("generators=ssh:a,c", "`c` is neither"),
        ("generators=ssh:a,b,client=3", "`client` is none"),
        ("generators=ssh:b,clients=3", "none has these levels"),
    ] {
        let refused = refused(compare(&store, "run:4", &format!("run:{wrong}"), &forced));
        assert!(refused.contains(why), "{refused}");
    }
}
