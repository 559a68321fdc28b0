//! Two runs beside each other: what matches, what must be equal, what is said, what is let through.
#![allow(missing_docs, clippy::unwrap_used)]

use pgdyno_analysis::comparison::imported::comparison::imported;
use pgdyno_analysis::comparison::runs::{
    CompareError, CompareOptions, CompareView, GateState, Outcome, compare,
};
use pgdyno_analysis::gate;
use pgdyno_audit::{Audit, ImportedRun};
use pgdyno_model::record::{SessionEnd, SessionRecord};
use pgdyno_model::units::{Bytes, Span};
use pgdyno_model::{Latencies, LevelValue, Levels, Plan, RunRecord, TrialRecord};
use pgdyno_report as report;
use pgdyno_store::Store;
use pgdyno_test_support::records::{
    failed_trial, fill_on, fill_with, generators, plan, run_record, session_record, store,
};

/// The shared plan's first two treatments: synchronous_commit=on with 1 and 8 clients.
fn two(repeats: u32) -> Plan {
    let mut plan = plan(repeats);
    plan.treatments.truncate(2);
    plan.trials.retain(|t| t.treatment < 2);
    (0..).zip(&mut plan.trials).for_each(|(i, t)| t.ordinal = i);
    plan
}

/// The first of them.
fn one(repeats: u32) -> Plan {
    let mut plan = two(repeats);
    plan.treatments.truncate(1);
    plan.trials.retain(|t| t.treatment == 0);
    (0..).zip(&mut plan.trials).for_each(|(i, t)| t.ordinal = i);
    plan
}

fn record(id: &str, plan: Plan) -> RunRecord {
    RunRecord { id: id.into(), ..run_record(plan) }
}

/// `id` as [`two`] plans it, each trial after `change`.
fn add(store: &mut Store, id: &str, repeats: u32, change: impl Fn(&mut TrialRecord)) {
    fill_with(store, &record(id, two(repeats)), change);
}

/// Gives a trial `factor` times the transactions.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
fn times(t: &mut TrialRecord, factor: f64) {
    let m = t.measurement.as_mut().unwrap();
    m.transactions = (m.transactions as f64 * factor) as u64;
}

fn gates(text: &str) -> CompareOptions {
    CompareOptions {
        gates: gate::parse(text, gate::Form::FailIf).unwrap(),
        ..CompareOptions::default()
    }
}

fn by(names: &[&str]) -> CompareOptions {
    CompareOptions {
        by: names.iter().map(|n| (*n).to_owned()).collect(),
        ..CompareOptions::default()
    }
}

fn refused(result: Result<CompareView, CompareError>) -> String {
    let error = result.unwrap_err();
    format!("{error}\nhelp: {}", error.help().unwrap_or_default())
}

#[test]
fn two_runs_are_told_in_a_terminal_as_markdown_and_as_json() {
    let (_folder, mut store) = store();
    add(&mut store, "before", 4, |_| {});
    // Block by block a little different, so that the runs are not each other's shadow.
    add(&mut store, "after", 4, |t| times(t, 1.08 + 0.01 * f64::from(t.block % 2)));
    let asked = gates("tps < -3%, p99 > +10%, tps < +5%");
    let view = compare(&store, "before", "after", &asked).unwrap();
    assert!(!view.same_run && view.unequal.is_empty());
    let text = report::compare(&view, 100, report::Detail::Full);
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    insta::assert_snapshot!("terminal", text);
    insta::assert_snapshot!("markdown", report::compare_markdown(&view));
    let one = compare(&store, "before:1", "after:1", &asked).unwrap();
    insta::assert_snapshot!("json", serde_json::to_string_pretty(&one).unwrap());
    for line in report::compare(&view, 60, report::Detail::Full).lines() {
        assert!(line.chars().count() <= 60, "{line}");
    }
}

#[test]
fn the_ratio_is_b_over_a_and_trials_of_different_runs_are_not_paired() {
    let (_folder, mut store) = store();
    add(&mut store, "a", 4, |_| {});
    add(&mut store, "b", 4, |t| times(t, 1.2));
    let there = compare(&store, "a", "b", &CompareOptions::default()).unwrap();
    let back = compare(&store, "b", "a", &CompareOptions::default()).unwrap();
    for (there, back) in there.pairs.iter().zip(&back.pairs) {
        let (x, y) = (there.ratio.value.unwrap(), back.ratio.value.unwrap());
        assert!((x - 1.2).abs() < 1e-3 && (x * y - 1.0).abs() < 1e-9, "{x} {y}");
        // Paired, these would differ by the same factor each time and so without spread.
        assert!(there.ratio.within_runs.unwrap()[0] < 1.19);
    }
    assert!(there.notes[0].contains("3 earlier runs of this experiment"), "{:?}", there.notes);
}

#[test]
fn treatments_of_one_run_share_its_noise_and_are_compared_once() {
    let (_folder, mut store) = store();
    fill_with(&mut store, &record("run", plan(4)), |_| {});
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
    assert!(
        itself.contains("with itself") && itself.contains("--by synchronous_commit"),
        "{itself}"
    );
}

#[test]
fn generators_as_levels_are_compared_by_their_names() {
    let (_folder, mut store) = store();
    let mut plan = two(4);
    plan.factors = vec!["generators".into()];
    for (treatment, launch) in plan.treatments.iter_mut().zip(["none", "ssh:near,far"]) {
        treatment.levels = Levels(vec![("generators".into(), LevelValue::Text(launch.into()))]);
        treatment.clients = 8;
        treatment.generators = Some(launch.into());
    }
    fill_with(&mut store, &record("run", plan), |t| {
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
    let mut plan = two(1);
    plan.factors.reverse();
    for t in &mut plan.treatments {
        t.levels.0.reverse();
        t.levels.0[1].1 = LevelValue::Bool(true);
    }
    fill_with(&mut store, &record("b", plan), |_| {});
    let view = compare(&store, "a", "b", &CompareOptions::default()).unwrap();
    let labels: Vec<&str> = view.pairs.iter().map(|p| p.label.as_str()).collect();
    assert_eq!(labels, ["synchronous_commit=on clients=1", "synchronous_commit=on clients=8"]);
}

#[test]
fn a_bundle_is_compared_with_all_that_it_may_set_and_no_more() {
    let (_folder, mut store) = store();
    let with_bundle = |level: &str, clients: u32, warm_up: u64| {
        let mut plan = one(1);
        plan.factors = vec!["tuning".into()];
        plan.warm_up = Span::from_secs(warm_up);
        plan.treatments[0].levels.0 = vec![("tuning".into(), LevelValue::Text(level.into()))];
        plan.treatments[0].clients = clients;
        plan
    };
    let larger = |t: &mut TrialRecord| t.server.as_mut().unwrap().settings[4].value = "99".into();
    fill_with(&mut store, &record("a", with_bundle("none", 1, 2)), |_| {});
    fill_with(&mut store, &record("b", with_bundle("large", 4, 2)), larger);
    fill_with(&mut store, &record("c", with_bundle("large", 4, 9)), larger);
    let view = compare(&store, "a", "b", &by(&["tuning"])).unwrap();
    let unequal: Vec<(&str, bool)> =
        view.unequal.iter().map(|u| (u.what.as_str(), u.on_purpose)).collect();
    assert_eq!(unequal, [("setting shared_buffers", true), ("clients", true)]);
    let error = refused(compare(&store, "a", "c", &by(&["tuning"])));
    assert!(error.contains("\n  warm-up\n") && !error.contains("clients"), "{error}");
}

#[test]
fn a_factor_that_only_one_run_has_is_compared_when_it_is_named() {
    let (_folder, mut store) = store();
    let with_storage = |level: &str| {
        let mut plan = two(3);
        plan.factors.push("storage".into());
        for t in &mut plan.treatments {
            t.levels.0.push(("storage".into(), LevelValue::Text(level.into())));
        }
        plan
    };
    let on = |filesystem: &str| {
        let mut session = session_record();
        session.storage[0].filesystem = filesystem.into();
        session
    };
    fill_on(&mut store, &record("ext4", two(3)), &on("ext4"), |_| {});
    fill_on(&mut store, &record("xfs", with_storage("xfs")), &on("xfs"), |t| times(t, 1.3));
    let apart = refused(compare(&store, "ext4", "xfs", &CompareOptions::default()));
    assert!(
        apart.contains("no treatment of one matches") && apart.contains("storage=xfs"),
        "{apart}"
    );
    let view = compare(&store, "ext4", "xfs", &by(&["storage"])).unwrap();
    assert_eq!(view.pairs.len(), 2);
    assert_eq!(view.pairs[0].label, "synchronous_commit=on clients=1 storage=–→xfs");
    let unequal: Vec<(&str, bool)> =
        view.unequal.iter().map(|u| (u.what.as_str(), u.on_purpose)).collect();
    assert_eq!(unequal, [("filesystem", true)]);
    assert!(report::compare(&view, 100, report::Detail::Full).contains("Differs on purpose"));
}

/// A case of what must be equal: its name, and how run B differs.
type Case = (&'static str, Box<dyn Fn(&mut SessionRecord, &mut Plan)>, fn(&mut TrialRecord));

/// Each thing that must be equal, with what makes it differ.
fn cases() -> Vec<Case> {
    fn same(_: &mut TrialRecord) {}
    fn host(what: &'static str, change: fn(&mut pgdyno_model::facts::HostFacts)) -> Case {
        (what, Box::new(move |session, _| change(&mut session.host)), same)
    }
    fn storage(what: &'static str, change: fn(&mut pgdyno_model::facts::StorageFacts)) -> Case {
        (what, Box::new(move |session, _| change(&mut session.storage[0])), same)
    }
    fn planned(what: &'static str, change: fn(&mut Plan)) -> Case {
        (what, Box::new(move |_, plan| change(plan)), same)
    }
    fn measured(what: &'static str, change: fn(&mut TrialRecord)) -> Case {
        (what, Box::new(|_, _| {}), change)
    }
    fn each(plan: &mut Plan, change: fn(&mut pgdyno_model::Treatment)) {
        plan.treatments.iter_mut().for_each(change);
    }
    vec![
        host("operating system", |h| h.os = "Debian 13".into()),
        host("kernel", |h| h.kernel = "Linux 6.12.0 x86_64".into()),
        host("CPU", |h| h.cpus = 4),
        host("memory", |h| h.memory = Bytes(16_000_000_000)),
        storage("filesystem", |s| s.filesystem = "xfs".into()),
        storage("mount options", |s| s.mount_options = "rw,noatime,nobarrier".into()),
        storage("filesystem", |s| s.no_copy_on_write = Some(true)),
        storage("filesystem", |s| s.attributes = vec!["compression=zstd".into()]),
        storage("device", |s| s.disk = Some("vdb".into())),
        storage("device settings", |s| s.scheduler = Some("none".into())),
        planned("workload", |p| each(p, |t| t.workload = "simple-update".into())),
        planned("scale", |p| each(p, |t| t.scale = 100)),
        planned("clients", |p| each(p, |t| t.clients += 1)),
        planned("threads", |p| each(p, |t| t.threads = 2)),
        planned("protocol", |p| {
            each(p, |t| t.protocol = pgdyno_model::experiment::Protocol::Simple);
        }),
        planned("rate", |p| each(p, |t| t.options.rate = Some(500.0))),
        planned("window", |p| {
            p.length = pgdyno_model::experiment::Length::Duration(Span::from_secs(60));
        }),
        planned("warm-up", |p| p.warm_up = Span::from_secs(9)),
        measured("server build", |t| t.server.as_mut().unwrap().version = "PostgreSQL 18.0".into()),
        measured("setting shared_buffers", |t| {
            t.server.as_mut().unwrap().settings[4].value = "99".into();
        }),
        measured("scripts", |t| {
            t.measurement.as_mut().unwrap().scripts[0].statements[0].text = "SELECT 1;".into();
        }),
        measured("load generator", |t| t.measurement.as_mut().unwrap().busiest_thread = 0.97),
        measured("generators", |t| {
            t.measurement.as_mut().unwrap().generators = generators(&["gen1"]);
        }),
    ]
}

#[test]
fn what_must_be_equal_is_named_side_by_side_and_forced_or_compared_on_purpose() {
    let mut said = Vec::new();
    for (i, (what, differ, change)) in cases().iter().enumerate() {
        // A store of their own: each comparison reads the earlier runs of both.
        let (_folder, mut store) = store();
        fill_with(&mut store, &record("a", one(1)), |_| {});
        let (mut session, mut plan) = (session_record(), one(1));
        differ(&mut session, &mut plan);
        let id = format!("b{i:02}");
        fill_on(&mut store, &record(&id, plan), &session, change);
        if what.starts_with("setting ") {
            // Two configurations of one server are compared on purpose.
            let view = compare(&store, "a", &id, &CompareOptions::default()).unwrap();
            assert_eq!(view.by, [*what]);
            assert!(view.unequal.iter().all(|u| u.on_purpose));
            continue;
        }
        let error = compare(&store, "a", &id, &CompareOptions::default()).unwrap_err();
        let CompareError::Unequal { unequal, .. } = &error else { panic!("{what}: {error}") };
        assert!(unequal.iter().all(|u| u.what == *what && !u.on_purpose), "{what}: {unequal:?}");
        said.push(refused(Err(error)));

        let forced =
            compare(&store, "a", &id, &CompareOptions { force: true, ..CompareOptions::default() })
                .unwrap();
        assert!(forced.unequal.iter().any(|u| u.what == *what && !u.on_purpose));
        for shown in
            [report::compare(&forced, 200, report::Detail::Full), report::compare_markdown(&forced)]
        {
            let shown = shown.replace('\\', "");
            assert!(shown.contains("What must be equal is not") && shown.contains(what), "{shown}");
        }
        let named = compare(&store, "a", &id, &by(&[what]));
        if *what == "load generator" {
            assert!(
                matches!(named, Err(CompareError::NoSuchFactor { .. })),
                "nobody compares by that"
            );
        } else {
            assert!(named.unwrap().unequal.iter().all(|u| u.on_purpose), "{what}");
        }
    }
    insta::assert_snapshot!("refusals", said.join("\n\n"));
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
fn what_cannot_be_concluded_is_said_and_is_undecided() {
    let (_folder, mut store) = store();
    add(&mut store, "good", 3, |_| {});
    add(&mut store, "once", 1, |_| {});
    add(&mut store, "constant", 3, |t| {
        let m = t.measurement.as_mut().unwrap();
        (m.transactions, m.measured_s) = (5000, 5.0);
    });
    add(&mut store, "nothing", 3, |t| {
        let m = t.measurement.as_mut().unwrap();
        m.transactions = 0;
        m.latency = Latencies::new();
    });
    add(&mut store, "no-time", 3, |t| t.measurement.as_mut().unwrap().measured_s = 0.0);
    let failed = record("failed", two(3));
    store.begin_run(&failed).unwrap();
    let session = store.begin_session("failed", &session_record()).unwrap();
    for planned in &failed.plan.trials {
        store.add_trial("failed", session, &failed_trial(*planned)).unwrap();
    }
    store.end_session(session, SessionEnd::Failed).unwrap();

    let asked = gates("tps < -1%, tps > +1%");
    for (a, b, words, state) in [
        ("once:1", "once:2", "one repeat only", GateState::Unknown),
        ("once:1", "good:1", "2 of 3 earlier runs", GateState::Unknown),
        ("constant:1", "constant:2", "all repeats are equal", GateState::Unknown),
        ("nothing", "good", "no transaction", GateState::Unknown),
        ("good", "nothing", "no transaction", GateState::Unknown),
        ("no-time", "good", "no completed trial", GateState::NoTrial),
        ("failed", "good", "no completed trial", GateState::NoTrial),
        ("failed", "nothing", "no completed trial", GateState::NoTrial),
    ] {
        let view = compare(&store, a, b, &CompareOptions { force: true, ..asked.clone() }).unwrap();
        assert!(
            !view.exceeded && view.outcome == Some(Outcome::Undecided),
            "{a} {b}: {:?}",
            view.gates
        );
        for pair in &view.pairs {
            assert_eq!(
                (pair.ratio.ci95, pair.ratio.significant, pair.ratio.p),
                (None, None, None),
                "{a} {b}"
            );
            assert!(pair.words.contains(words), "{a} {b}: {}", pair.words);
        }
        for g in &view.gates {
            assert_eq!((g.state, g.ci95), (state, None), "{a} {b}: {}", g.words);
        }
        let shown =
            [report::compare(&view, 100, report::Detail::Full), report::compare_markdown(&view)]
                .concat();
        let json = serde_json::to_string(&view).unwrap();
        assert!(
            !shown.contains("NaN") && !shown.contains("inf") && !json.contains("NaN"),
            "{shown}"
        );
    }
}

#[test]
fn hostile_texts_stay_texts() {
    const EVIL: &str = "\u{1b}[31m</details><img src=x>|**\n# x";
    let (_folder, mut store) = store();
    for (id, version) in [("a", EVIL), ("b", "another")] {
        let mut plan = two(2);
        for t in &mut plan.treatments {
            t.levels.0[0].1 = LevelValue::Text(EVIL.into());
        }
        fill_with(&mut store, &record(id, plan), |t| {
            t.server.as_mut().unwrap().version = version.into();
        });
    }
    let view =
        compare(&store, "a", "b", &CompareOptions { force: true, ..CompareOptions::default() })
            .unwrap();
    let (terminal, markdown) =
        (report::compare(&view, 100, report::Detail::Full), report::compare_markdown(&view));
    assert!(!terminal.contains('\u{1b}') && !markdown.contains('\u{1b}'));
    assert!(
        !markdown.contains("<img") && !markdown.contains("\n# x") && !markdown.contains("**\n#"),
        "{markdown}"
    );
    assert!(markdown.contains("&lt;img src=x&gt;\\|\\*\\*"), "{markdown}");
}

#[test]
fn published_figures_stand_beside_a_run_with_the_ratios_of_their_own_side() {
    let (_folder, mut store) = store();
    let view = fill_with(&mut store, &record("mine", two(3)), |_| {});
    let report = include_bytes!("../../../../experiments/figures/filesystems.txt");
    let audit = Audit::from_bytes("filesystems.txt", report).unwrap();
    let import = ImportedRun::new(
        "filesystems.txt",
        report,
        audit.recognised,
        std::time::SystemTime::UNIX_EPOCH,
    );
    let both = side_by_side(&import, &view);
    // 001: ext2 632, reiserfs 101; means are computed from the repeats.
    let of = |label: &str| both.theirs.iter().find(|row| row.label == label).unwrap();
    assert_eq!(
        (of("ext2").tps, of("ext2").ratio_to_best, of("ext2").repeats),
        (632.0, 1.0, Some(4))
    );
    assert!((of("reiserfs").ratio_to_best - 101.0 / 632.0).abs() < 1e-9);
    assert!(
        both.theirs.iter().all(|row| row.tps_ci95.is_none()),
        "what others measured gets no interval"
    );
    assert_eq!(both.ours.len(), 2);
    assert!(
        both.ours
            .iter()
            .any(|row| (row.ratio_to_best - 1.0).abs() < 1e-9 && row.tps_ci95.is_some())
    );
    let text = report::side_by_side(&both, false);
    assert!(
        text.contains("not measured by pgdyno") && text.contains("no ratio between the two sides"),
        "{text}"
    );
    assert!(report::side_by_side(&both, true).contains("| ext2"), "Markdown");

    let none = Audit::from_bytes("a.txt", b"fsync = off\n").unwrap();
    let none = ImportedRun::new("a.txt", b"", none.recognised, std::time::SystemTime::UNIX_EPOCH);
    let both = side_by_side(&none, &view);
    assert!(both.theirs.is_empty());
    insta::assert_snapshot!("nothing_recognised", both.notes.join("\n"));
}
