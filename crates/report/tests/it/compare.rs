//! Two runs beside each other: what must be equal, what is said, what is let through.

use pgdyno_analysis::comparison::imported::side_by_side;
use pgdyno_analysis::comparison::runs::{
    CompareError, CompareOptions, GateState, Outcome, compare,
};
use pgdyno_analysis::gate::Form;
use pgdyno_audit::{Audit, ImportedRun};
use pgdyno_model::load_rate::LoadRate;
use pgdyno_model::record::{SessionEnd, SessionRecord};
use pgdyno_model::units::{Bytes, Span};
use pgdyno_model::{Latencies, LevelValue, Plan, TrialRecord};
use pgdyno_report::{self as report, CompareReport};
use pgdyno_store::Store;
use pgdyno_test_support::assert_contains;
use pgdyno_test_support::records::{
    add_run, by, failed_trial, fill_on, fill_with, first_treatments, gates, generators, refused,
    run_called, session_record, speed_up, store,
};

/// A run of two treatments, each trial after `change`.
fn add(store: &mut Store, id: &str, repeats: u32, change: impl Fn(&mut TrialRecord)) {
    fill_with(store, &run_called(id, first_treatments(2, repeats)), change);
}

#[test]
fn two_runs_are_told_in_a_terminal_as_markdown_and_as_json() {
    let (_folder, mut store) = store();
    add(&mut store, "before", 4, |_| {});
    // Block by block a little different, so that the runs are not each other's shadow.
    add(&mut store, "after", 4, |t| speed_up(t, 1.08 + 0.01 * f64::from(t.block % 2)));
    let asked = gates("tps < -3%, p99 > +10%, tps < +5%", Form::FailIf);
    let report = CompareReport::read(&store, "before", "after", &asked).unwrap();
    assert!(!report.view.same_run && report.view.unequal.is_empty());
    let text = report::compare(&report, 100, report::Detail::Full);
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    insta::assert_snapshot!("terminal", text);
    insta::assert_snapshot!("markdown", report::compare_markdown(&report));
    let one = CompareReport::read(&store, "before:1", "after:1", &asked).unwrap();
    insta::assert_snapshot!("json", serde_json::to_string_pretty(&one).unwrap());
    for line in report::compare(&report, 60, report::Detail::Full).lines() {
        assert!(line.chars().count() <= 60, "{line}");
    }
}

#[test]
fn a_factor_that_only_one_run_has_is_compared_when_it_is_named() {
    let (_folder, mut store) = store();
    let with_storage = |level: &str| {
        let mut plan = first_treatments(2, 3);
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
    fill_on(&mut store, &run_called("ext4", first_treatments(2, 3)), &on("ext4"), |_| {});
    fill_on(&mut store, &run_called("xfs", with_storage("xfs")), &on("xfs"), |t| speed_up(t, 1.3));
    let apart = refused(compare(&store, "ext4", "xfs", &CompareOptions::default()));
    assert_contains(&apart, &["no treatment of one matches", "storage=xfs"]);
    let view = compare(&store, "ext4", "xfs", &by(&["storage"])).unwrap();
    assert_eq!(view.pairs.len(), 2);
    assert_eq!(view.pairs[0].label, "synchronous_commit=on clients=1 storage=–→xfs");
    let unequal: Vec<(&str, bool)> =
        view.unequal.iter().map(|u| (u.what.as_str(), u.on_purpose)).collect();
    assert_eq!(unequal, [("filesystem", true)]);
    let text = report::compare(&CompareReport::new(view), 100, report::Detail::Full);
    assert!(text.contains("Differs on purpose"));
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
        planned("rate", |p| each(p, |t| t.options.rate = Some(LoadRate::Constant(500.0)))),
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
        fill_with(&mut store, &run_called("a", first_treatments(1, 1)), |_| {});
        let (mut session, mut plan) = (session_record(), first_treatments(1, 1));
        differ(&mut session, &mut plan);
        let id = format!("b{i:02}");
        fill_on(&mut store, &run_called(&id, plan), &session, change);
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
        let forced = CompareReport::new(forced);
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
    let failed = run_called("failed", first_treatments(2, 3));
    let trials = failed.plan.trials.iter().map(|planned| failed_trial(*planned));
    add_run(&mut store, &failed, &session_record(), SessionEnd::Failed, trials);

    let asked = gates("tps < -1%, tps > +1%", Form::FailIf);
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
        let asked = CompareOptions { force: true, ..asked.clone() };
        let report = CompareReport::read(&store, a, b, &asked).unwrap();
        let json = serde_json::to_value(&report).unwrap();
        let view = &report.view;
        assert!(
            !view.exceeded && view.outcome == Some(Outcome::Undecided),
            "{a} {b}: {:?}",
            view.gates
        );
        for (n, pair) in view.pairs.iter().enumerate() {
            assert_eq!(
                (pair.ratio.ci95, pair.ratio.significant, pair.ratio.p),
                (None, None, None),
                "{a} {b}"
            );
            let said = json["pairs"][n]["words"].as_str().unwrap();
            assert!(said.contains(words), "{a} {b}: {said}");
        }
        for (g, words) in view.gates.iter().zip(&report.gates) {
            assert_eq!((g.state, g.ci95), (state, None), "{a} {b}: {words}");
        }
        let text = report::compare(&report, 100, report::Detail::Full);
        let shown = text + &report::compare_markdown(&report);
        let json = serde_json::to_string(&report).unwrap();
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
        let mut plan = first_treatments(2, 2);
        for t in &mut plan.treatments {
            t.levels.0[0].1 = LevelValue::Text(EVIL.into());
        }
        fill_with(&mut store, &run_called(id, plan), |t| {
            t.server.as_mut().unwrap().version = version.into();
        });
    }
    let forced = CompareOptions { force: true, ..CompareOptions::default() };
    let report = CompareReport::read(&store, "a", "b", &forced).unwrap();
    let (terminal, markdown) =
        (report::compare(&report, 100, report::Detail::Full), report::compare_markdown(&report));
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
    let view = fill_with(&mut store, &run_called("mine", first_treatments(2, 3)), |_| {});
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
    assert_contains(&text, &["not measured by pgdyno", "no ratio between the two sides"]);
    assert!(report::side_by_side(&both, true).contains("| ext2"), "Markdown");

    let none = Audit::from_bytes("a.txt", b"fsync = off\n").unwrap();
    let none = ImportedRun::new("a.txt", b"", none.recognised, std::time::SystemTime::UNIX_EPOCH);
    let both = side_by_side(&none, &view);
    assert!(both.theirs.is_empty());
    let json = serde_json::to_value(report::SideBySideReport(&both)).unwrap();
    let notes: Vec<&str> =
        json["notes"].as_array().unwrap().iter().map(|note| note.as_str().unwrap()).collect();
    insta::assert_snapshot!("nothing_recognised", notes.join("\n"));
}
