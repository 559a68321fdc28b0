//! Reports show what the analysis says, and nothing that a run's texts could smuggle in.

use crate::page_support::document;
use pgdyno_analysis::Badge;
use pgdyno_model::crash::{Failing, FaultOutcome, RoundPower};
use pgdyno_model::record::SessionEnd;
use pgdyno_model::{Fault, RunRecord, Verdict};
use pgdyno_report::{self as report, NoteKind, RunReport};
use pgdyno_test_support::assert_contains;
use pgdyno_test_support::records::probes::disk_probe;
use pgdyno_test_support::records::{
    RUN, analysed_run, crash_record, fill_on, filled, fsync_probe, generators, plan, run_record,
    session_record, store, trial,
};

fn synthetic() -> RunReport {
    RunReport::read(&filled(plan(3), Some(5)).1, RUN).unwrap()
}

#[test]
fn a_brief_report_has_the_notes_that_could_change_a_verdict() {
    let report = synthetic();
    let notes = |page: &str| -> Vec<String> {
        let after = page.split_once("\nNotes\n").unwrap().1;
        after.lines().filter_map(|line| line.strip_prefix("- ")).map(str::to_owned).collect()
    };
    // Wide enough that each note is one line.
    let full = notes(&report::terminal(&report, 2000, report::Detail::Full));
    let brief = notes(&report::terminal(&report, 2000, report::Detail::Brief));
    // Failed trials have a section of their own, with the whole reason of each; what factors do
    // stands among the differences.
    let own = [NoteKind::TrialFailed, NoteKind::Interaction];
    let elsewhere = report.notes.iter().filter(|note| own.contains(&note.kind)).count();
    assert!(elsewhere > 1);
    assert_eq!(full.len(), report.notes.len() - elsewhere);
    let narrow = report::terminal(&report, 80, report::Detail::Brief);
    let (_, reasons) = narrow.split_once("\nFailed trials\n").unwrap();
    assert!(reasons.contains("No space left on device."), "{reasons}");
    assert_eq!(brief[..5], full[..5]);
    assert_eq!(
        brief[5..],
        [format!("{} more, and all of them whole, with `--verbose`.", full.len() - 5)]
    );
    let at = |words: &str| full.iter().position(|note| note.contains(words)).unwrap();
    for doubt in ["Trials failed", "checkpoint_timeout"] {
        for context in ["19 of 20 such", "Filler in the rows", "Watching cost"] {
            assert!(at(doubt) < at(context), "{doubt}, {context}: {full:#?}");
        }
    }
}

#[test]
fn a_brief_report_has_one_line_a_note_and_a_narrow_one_keeps_words_whole() {
    let report = synthetic();
    let brief = report::terminal(&report, 60, report::Detail::Brief);
    let (first, notes) = brief.split_once("\nNotes\n").unwrap();
    assert!(notes.lines().all(|line| line.starts_with("- ")), "{notes}");
    assert!(notes.lines().any(|line| line.ends_with('…')), "{notes}");
    assert!(brief.lines().all(|line| line.chars().count() <= 60), "{brief}");
    // The table comes before every list, and says what it leaves out.
    let (table, _) = first.split_once("\nDifferences\n").unwrap();
    assert!(table.contains(" tps ") && table.contains(" mount "), "{table}");
    assert!(!table.contains(" p95 "), "{table}");
    assert!(table.contains("Not shown at this width: stddev, mean, p95"), "{table}");
    let usual = report::terminal(&report, 100, report::Detail::Brief);
    assert!(usual.contains(" p99 ") && usual.contains(" mount "), "{usual}");
    let wide = report::terminal(&report, 200, report::Detail::Brief);
    assert!(wide.contains(" p95 ") && !wide.contains("Not shown at this width"), "{wide}");
}

#[test]
fn the_terminal_report() {
    let text = report::terminal(&synthetic(), 100, report::Detail::Full);
    assert!(text.lines().all(|line| line.chars().count() <= 100));
    assert!(!text.contains('\u{1b}'));
    insta::assert_snapshot!(text);
}

#[test]
fn several_generators_have_a_table_of_their_own() {
    let view = analysed_run(plan(2), |trial| {
        trial.measurement.as_mut().unwrap().generators = generators(&["near", "far"]);
    });
    assert_eq!(view.treatments[0].generators.len(), 2);
    let text = report::terminal(&RunReport::new(view), 120, report::Detail::Brief);
    let (_, table) = text.split_once("\nGenerators\n").unwrap();
    let row = |name: &str| -> Vec<String> {
        let line = table.lines().find(|line| line.contains(&format!(" {name} "))).unwrap();
        let (_, figures) = line.split_once(&format!(" {name} ")).unwrap();
        figures.split_whitespace().map(str::to_owned).collect()
    };
    // Two windows of 5 s, each with 4,321 transactions and 0.35 s of CPU.
    assert_eq!(row("near"), ["2", "1", "864", "5.00", "4.00", "20.0", "7.0%", "+3.564", "±0.424"]);
    assert_eq!(row("far"), ["4", "2", "864", "10.0", "8.00", "40.0", "7.0%", "+3.564", "±0.424"]);
    assert!(!report::terminal(&synthetic(), 120, report::Detail::Full).contains("\nGenerators\n"));
}

#[test]
fn runs_of_several_hosts_stand_side_by_side() {
    let on = |host: &str| {
        let mut report = synthetic();
        report.view.run.host = Some(host.to_owned());
        report
    };
    let view = on("db1").view;
    let text = report::hosts(&[on("db1"), on("db2")], 100);
    let mut lines = text.lines();
    let names: Vec<_> = lines.next().unwrap().split_whitespace().collect();
    assert_eq!(names, ["treatment", "db1", "db2"]);
    for treatment in &view.treatments {
        let line = text.lines().find(|line| line.contains(&treatment.label)).unwrap();
        let mean = pgdyno_text::format::rate(treatment.tps.as_ref().unwrap().mean);
        assert_eq!(line.matches(&mean).count(), 2, "{text}");
    }
    assert!(text.contains("Hosts are not blocks"), "{text}");
    let of_one_host = report::hosts(&[on("db1"), on("db1")], 200);
    assert_eq!(
        of_one_host.lines().next().unwrap().matches(&*view.run.id).count(),
        2,
        "{of_one_host}"
    );
}

#[test]
fn the_page_of_crash_tests() {
    let text = report::crash(&crash_record(1, Verdict::Fail(Failing::Lost)), &|_| true);
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    insta::assert_snapshot!(text);
}

/// A record of `crash_record` whose rounds put `power` under test, as its page has it, in one line.
fn page_with(power: RoundPower) -> String {
    let mut record = crash_record(1, Verdict::Pass);
    let mut rounds = record.outcome.faults.remove(0).rounds;
    rounds.iter_mut().for_each(|round| round.power = power);
    record.outcome.faults.push(FaultOutcome::new(Fault::Power, rounds));
    record.outcome.conclude();
    report::crash(&record, &|_| true).split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_pass_says_what_was_under_test_and_what_would_have_been_seen() {
    let full = RoundPower {
        checkpoints: Some(3),
        flushes: Some(602),
        last_window: Some(2),
        disk_flushes: true,
        cache_lost: None,
    };
    let page = page_with(full);
    let figures = "checkpoints completed: 6 in 2 rounds; flushes under test: 1,204; commits in the \
                   last flush window: 2";
    assert!(page.contains(figures), "{page}");
    assert_contains(&page, &["skips 1 flush in 10 would have been seen with probability 19%"]);
    assert!(page.ends_with("verdict: pass: power"), "{page}");

    let kernel = page_with(RoundPower { disk_flushes: false, flushes: None, ..full });
    assert_contains(
        &kernel,
        &["flushes under test: not counted", "not the disk's own flushes: `--emulated`"],
    );
    assert!(!kernel.contains("would have been seen with"), "{kernel}");

    let idle = page_with(RoundPower { checkpoints: Some(0), ..full });
    assert_contains(&idle, &["verdict: unknown: power: nothing that a storage could have skipped"]);
    let uncounted = page_with(RoundPower::default());
    assert!(uncounted.contains("checkpoints were not counted in any of 2 rounds"), "{uncounted}");
    assert!(!uncounted.contains("checkpoints completed"), "{uncounted}");
}

#[test]
fn a_runs_report_says_which_rounds_of_a_pass_do_not_count() {
    let (_folder, mut store) = filled(plan(1), None);
    let session = store.sessions(RUN).unwrap()[0].0;
    let mut record = crash_record(3, Verdict::Pass);
    let mut rounds = record.outcome.faults.remove(0).rounds;
    rounds[0].power.checkpoints = Some(0);
    record.outcome.faults.push(FaultOutcome::new(Fault::Power, rounds));
    record.outcome.conclude();
    record.run = Some(RUN.into());
    store.add_crash(Some(session), &record).unwrap();
    let text = report::terminal(&RunReport::read(&store, RUN).unwrap(), 400, report::Detail::Full);
    assert_contains(
        &text,
        &["treatment 3, power: 2 of 2 rounds lost nothing, and 1 of them count"],
    );
    assert!(!text.contains("treatment 0, power: 2 of 2 rounds"), "{text}");
}

#[test]
fn what_one_fault_lost_is_not_diluted_by_the_rounds_of_another() {
    let mut record = crash_record(1, Verdict::Fail(Failing::Lost));
    let mut kept = record.outcome.faults[0].clone();
    kept.rounds.truncate(1);
    record.outcome.faults.push(FaultOutcome::new(Fault::Process, kept.rounds));
    record.outcome.conclude();
    let json = serde_json::to_value(report::CrashView::from(&record)).unwrap();
    assert_eq!(
        (json["acknowledged"].as_u64(), json["lost"].as_u64()),
        (Some(2115), Some(1)),
        "sums stay"
    );
    let gravest = &json["gravest"];
    assert_eq!(
        (gravest["fault"].as_str(), gravest["acknowledged"].as_u64()),
        (Some("power"), Some(1410))
    );
    assert_eq!(
        json["faults"][1]["power"],
        serde_json::Value::Null,
        "a killed process tests no storage"
    );
}

#[test]
fn a_narrow_terminal_has_narrow_lines() {
    let text = report::terminal(&synthetic(), 60, report::Detail::Full);
    let long: Vec<&str> = text.lines().filter(|line| line.chars().count() > 60).collect();
    assert_eq!(long, [""; 0]);
}

#[test]
fn reports_of_runs_with_nothing_in_them() {
    let (folder, mut store) = store();
    let mut record = run_record(plan(1));
    store.begin_run(&record).unwrap();
    record.id = "bare".into();
    record.plan.factors.clear();
    record.plan.treatments.truncate(1);
    record.plan.treatments[0].levels.0.clear();
    record.plan.trials.truncate(1);
    record.plan.question = None;
    record.plan.length = pgdyno_model::experiment::Length::Transactions(500);
    store.begin_run(&record).unwrap();
    for run in [RUN, "bare"] {
        let report = RunReport::read(&store, run).unwrap();
        assert_eq!(report.headline.badge, Badge::Unfinished);
        let page = report::Page::run(&report).unwrap().to_html();
        assert!(page.contains("<p class=\"answer\">No trial is completed yet"));
        assert!(
            report::terminal(&report, 100, report::Detail::Full).contains("No trial is completed")
        );
    }
    let session = store.begin_session("bare", &session_record()).unwrap();
    let mut only = trial(&record.plan, plan(1).trials[0]);
    only.measurement.as_mut().unwrap().series.clear();
    only.telemetry.clear();
    store.add_trial("bare", session, &only).unwrap();
    store.end_session(session, SessionEnd::Completed).unwrap();
    let report = RunReport::read(&store, "bare").unwrap();
    assert!(report.answer[0].starts_with("The only treatment: 8"), "{:?}", report.answer);
    assert_eq!(report.headline.badge, Badge::Answered);
    assert!(report.cautions.iter().any(|caution| caution.kind == "one-repeat"));
    drop(folder);
}

#[test]
fn a_machine_that_was_not_idle_as_the_run_began_is_named() {
    let (_folder, mut store) = store();
    let mut told = |id: &str, load| {
        let record = RunRecord { id: id.into(), ..run_record(plan(1)) };
        let mut session = session_record();
        session.host.load_average = load;
        fill_on(&mut store, &record, &session, |_| {});
        let report = RunReport::read(&store, id).unwrap();
        let notes = report.cautions.iter().filter(|caution| caution.kind == "busy-host");
        notes.map(|note| note.text.clone()).collect::<Vec<_>>()
    };
    assert_eq!(told("unknown", None), [""; 0]);
    assert_eq!(told("idle", Some(0.5)), [""; 0]);
    assert_eq!(
        told("busy", Some(3.42)),
        ["The machine was not idle as the run began: its load average over a minute was 3.4 on \
          2 CPUs."]
    );
}

#[test]
fn a_probes_tables_fit_80_columns() {
    let (fsync, disk) = (report::probe(&fsync_probe()), report::probe(&disk_probe()));
    for line in fsync.lines().chain(disk.lines()) {
        assert!(line.chars().count() <= 80, "{line}");
    }
    insta::assert_snapshot!("probe_fsync", fsync);
    insta::assert_snapshot!("probe_disk", disk);
}

#[test]
fn probes_of_a_run_are_shown_with_what_is_suspect() {
    let (_folder, mut store) = filled(plan(3), None);
    let session = store.sessions(RUN).unwrap()[0].0;
    let after = pgdyno_model::ProbeRecord {
        id: "disk-after".into(),
        run: Some(RUN.into()),
        name: "here".into(),
        started_at: pgdyno_model::units::Epoch(u64::MAX / 2),
        ..disk_probe()
    };
    // The first is in every store of these tests.
    store.add_probe(Some(session), &after).unwrap();
    let report = RunReport::read(&store, RUN).unwrap();
    let view = &report.view;
    let [fsync, disk] = &view.probes[..] else { panic!("{:?}", view.probes) };
    assert_eq!(
        (fsync.kind, fsync.flushes_per_second, fsync.attempts_before),
        ("fsync", Some(1020.4), 0)
    );
    assert_eq!((disk.attempts_before, disk.complete), (view.trials.len(), false));
    assert_eq!((disk.randread_iops, disk.randwrite_iops), (Some(240_000.0), None));
    // Of two zones at 900 and 800 requests of 1 MiB, half of which were written.
    assert_eq!(disk.write_bytes_per_second, Some(425.0 * 1_048_576.0));
    assert!(view.trials.iter().all(|t| t.started_at > fsync.started_at));
    let terminal = report::terminal(&report, 200, report::Detail::Full);
    assert_contains(
        &terminal,
        &[
            "before the first trial",
            "(not complete)",
            "disk-after",
            "Suspect: sda is a disk of this test",
        ],
    );
    let json = serde_json::to_value(&report).unwrap();
    assert!(
        json["probes"][0]["warnings"][0].as_str().unwrap().contains("not to be believed"),
        "{json}"
    );
}

#[test]
fn a_change_within_a_trial_is_shown_with_what_happened_then() {
    let view = analysed_run(plan(1), |t| {
        let m = t.measurement.as_mut().unwrap();
        let like = m.series[0].clone();
        m.series = (0..60)
            .map(|t_s| pgdyno_model::measurement::Second {
                t_s,
                transactions: if (30..45).contains(&t_s) { 500 } else { 1000 }
                    + u64::from(t_s * 7 % 11),
                ..like.clone()
            })
            .collect();
        // Half a minute after the first trial's window opened.
        t.server_log = "2026-11-21 07:00:33.100 UTC [7] LOG:  checkpoint starting: time\n".into();
    });
    let report = RunReport::new(view);
    let steadiness = &document(&report::Page::run(&report).unwrap())["steadiness"];
    let change = |trial: usize| steadiness[trial]["changes"][0].as_str().unwrap();
    assert_eq!(change(0), "30 s: 1,005 → 505 tps (checkpoint begins (timed))");
    assert!(change(1).ends_with("(nothing that was watched)"), "{steadiness}");
    let text = report::terminal(&report, 200, report::Detail::Full);
    assert!(text.contains("tps changed 8 times within 4 trials, at the same time as:"), "{text}");
}

#[test]
fn a_trial_whose_seconds_resemble_each_other_too_much_is_said_not_to_be_judged() {
    let view = analysed_run(plan(1), |t| {
        let m = t.measurement.as_mut().unwrap();
        let like = m.series[0].clone();
        m.series = (0..120)
            .map(|t_s| pgdyno_model::measurement::Second {
                t_s,
                transactions: 1000 + u64::from((t_s % 60).min(60 - t_s % 60) * 5 + t_s * 7 % 11),
                ..like.clone()
            })
            .collect();
    });
    let said = "the seconds resemble each other so much that they are worth";
    let report = RunReport::new(view);
    let steadiness = &document(&report::Page::run(&report).unwrap())["steadiness"];
    assert!(steadiness[0]["warm_up"].as_str().unwrap().contains(said), "{steadiness}");
    let text = report::terminal(&report, 200, report::Detail::Full);
    assert!(text.contains("not judged in trials 1, 2, 3, 4"), "{text}");
    let json = serde_json::to_value(&report).unwrap();
    let steadiness = &json["trials"][0]["steadiness"];
    assert!(steadiness["steady"].is_null() && steadiness["within"].is_null());
    assert!(steadiness["steady_why"].as_str().unwrap().contains(said), "{steadiness}");
    assert!(steadiness["too_alike"].as_f64().unwrap() < 20.0);
}
