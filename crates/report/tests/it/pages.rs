//! Pages hold what the analysis says, and nothing that a result's texts could smuggle in.

use crate::page_support::{detail, document, element};
use pgdyno_analysis::Badge;
use pgdyno_analysis::comparison::imported::side_by_side;
use pgdyno_analysis::comparison::runs::CompareOptions;
use pgdyno_model::crash::Failing;
use pgdyno_model::record::SessionEnd;
use pgdyno_model::{Advice, Failure, FailureKind, LevelValue, RunRecord, Verdict};
use pgdyno_report::{CompareReport, CrashView, Page, RunReport, SideBySideReport, Tier, is_report};
use pgdyno_test_support::records::probes::disk_probe;
use pgdyno_test_support::records::{
    self, RUN, add_run, analysed_run, crash_record, filled, fsync_probe, plan, run_record,
    session_record, store, trial,
};
use pgdyno_text::format;
use serde_json::{Value, json};

fn synthetic() -> RunReport {
    RunReport::read(&filled(plan(3), Some(5)).1, RUN).unwrap()
}

const KEYS: &str = "cautions differences environment headline kind pairs pgdyno_version \
                    schema steadiness title view";

fn import() -> pgdyno_audit::ImportedRun {
    let text = "number of clients: 8\ntps = 812.3 (without initial connection time)\n";
    let audit = pgdyno_audit::Audit::from_bytes("theirs.txt", text.as_bytes()).unwrap();
    let at = std::time::SystemTime::UNIX_EPOCH;
    pgdyno_audit::ImportedRun::new("theirs.txt", text.as_bytes(), audit.recognised, at)
}

#[test]
fn every_kind_of_page_has_the_keys_of_its_schema() {
    let (_folder, store) = filled(plan(3), None);
    let run = RunReport::read(&store, RUN).unwrap();
    let view = &run.view;
    let asked = CompareOptions::default();
    let [a, b] = [1, 2].map(|treatment| format!("{RUN}:{treatment}"));
    let comparison = CompareReport::read(&store, &a, &b, &asked).unwrap();
    let record = crash_record(0, Verdict::Fail(Failing::Lost));
    let import = import();
    let beside = side_by_side(&import, view);
    for (kind, page, shown) in [
        ("run", Page::run(&run), Value::Null),
        ("crash", Page::crash(&record), Value::Null),
        ("probe", Page::probe(&fsync_probe()), json!(fsync_probe())),
        ("probe", Page::probe(&disk_probe()), json!(disk_probe())),
        ("compare", Page::compare(&comparison, view, view), json!(comparison)),
        ("beside", Page::side_by_side(&beside), json!(SideBySideReport(&beside))),
        ("import", Page::import(&import), json!(import)),
    ] {
        let document = document(&page.unwrap());
        let keys: Vec<&str> = document.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(keys.join(" "), KEYS, "{kind}");
        assert_eq!(
            (&document["schema"], &document["kind"]),
            (&json!("pgdyno.page/1"), &json!(kind))
        );
        assert!(document["headline"]["figures"].as_array().unwrap().len() <= 3, "{kind}");
        assert!(shown.is_null() || document["view"] == shown, "{kind}: {}", document["view"]);
    }
}

#[test]
fn a_runs_page_holds_its_view_without_what_the_details_hold() {
    let report = synthetic();
    let html = Page::run(&report).unwrap().to_html();
    let document: Value = serde_json::from_str(element(&html, "pgdyno-data").unwrap()).unwrap();
    let mut expected = serde_json::to_value(&report).unwrap();
    for (i, trial) in expected["trials"].as_array_mut().unwrap().iter_mut().enumerate() {
        let trial = trial.as_object_mut().unwrap();
        let (series, telemetry) =
            (trial.remove("series").unwrap(), trial.remove("telemetry").unwrap());
        let Some(detail) = detail(&html, i) else {
            assert_eq!((series, telemetry), (json!([]), json!([])), "a failed trial");
            continue;
        };
        assert_eq!(detail["reduced"], false);
        let transactions: Vec<&Value> =
            series.as_array().unwrap().iter().map(|s| &s["transactions"]).collect();
        assert_eq!(detail["series"]["transactions"], json!(transactions));
        let groups: Vec<&Value> =
            telemetry.as_array().unwrap().iter().map(|t| &t["group"]).collect();
        let charts = detail["telemetry"].as_array().unwrap();
        assert_eq!(charts.iter().map(|t| &t["group"]).collect::<Vec<_>>(), groups);
        assert!(charts[0]["lines"][0].get("min").is_none(), "one value has no extremes");
    }
    // Seeds are text: a browser keeps 53 bits.
    expected["plan"]["seed"] = json!("42");
    expected["plan"]["data_seed"] = json!("1");
    for fault in expected["crashes"].as_array_mut().unwrap() {
        fault["seed"] = json!("1");
        for round in fault["faults"][0]["each"].as_array_mut().unwrap() {
            round["seed"] = json!("17315545913994921040");
        }
    }
    assert_eq!(document["view"], expected);
    assert_eq!(document["headline"], expected["headline"]);
    assert_eq!(document["environment"][0]["storages"][0]["name"], "here");
}

#[test]
fn pairs_are_the_comparisons_in_either_direction() {
    let report = RunReport::read(&filled(plan(5), None).1, RUN).unwrap();
    let pairs = &document(&Page::run(&report).unwrap())["pairs"];
    assert_eq!((&pairs["treatments"], &pairs["complete"]), (&json!(4), &json!(true)));
    let rows = pairs["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 6);
    let comparison = &report.view.comparisons[0];
    let (a, b) = (comparison.to.min(comparison.treatment), comparison.to.max(comparison.treatment));
    let row = rows.iter().find(|row| row[0] == a && row[1] == b).unwrap();
    let expected = comparison.ratio.value.unwrap();
    let ratio = row[2].as_f64().unwrap();
    let ratio = if comparison.treatment == b { ratio } else { 1.0 / ratio };
    assert!((ratio / expected - 1.0).abs() < 1e-12, "{ratio} {expected}");
    assert_eq!(row[6], json!(comparison.ratio.significant));
}

#[test]
fn the_badge_says_how_far_the_question_is_answered() {
    let badge = |repeats: u32, failing: Option<u32>, crash: bool| {
        if crash {
            return RunReport::read(&filled(plan(repeats), failing).1, RUN).unwrap();
        }
        RunReport::new(analysed_run(plan(repeats), |_| {}))
    };
    let decided = badge(5, None, false);
    assert_eq!(decided.headline.badge, Badge::Answered);
    assert!(decided.headline.figures[0].value.ends_with(" tps"), "{:?}", decided.headline);
    let once = badge(1, None, false);
    assert_eq!(once.headline.badge, Badge::Inconclusive);
    // A treatment that lost commits is unsafe, whatever else is known.
    let lossy = badge(3, Some(5), true);
    assert_eq!(lossy.headline.badge, Badge::Unsafe);
    let crash = lossy.crashes.iter().max_by_key(|crash| crash.verdict).unwrap();
    assert_eq!(lossy.headline.command, Some(format!("pgdyno show {}", crash.id)));
    assert_eq!(lossy.headline.proofs[0].text, format!("crash tests: {}", crash.verdict));
    // What may change the conclusion comes first.
    let tiers: Vec<Tier> = lossy.cautions.iter().map(|caution| caution.tier).collect();
    assert!(
        tiers.is_sorted()
            && tiers[0] == Tier::Conclusion
            && lossy.cautions.len() == lossy.notes.len()
    );
}

#[test]
fn a_round_of_crash_tests_has_the_command_that_repeats_it() {
    let mut record = crash_record(0, Verdict::Fail(Failing::Lost));
    record.outcome.settings.insert("application_name".into(), "it's $(here)".into());
    let shown = document(&Page::crash(&record).unwrap());
    let round = &shown["view"]["faults"][0]["each"][1];
    let command = "pgdyno crash --fault power --rounds 2 --seed 1 --clients 4 --setting \
                   'application_name=it'\\''s $(here)' --setting synchronous_commit=on";
    assert_eq!(round["command"], command);
    assert_eq!(
        (&shown["headline"]["badge"], &shown["headline"]["command"]),
        (&json!("unsafe"), &json!(command))
    );
    assert_eq!(round["seed"], "17315545913994921040");
    record.outcome.settings.insert("a".into(), "b\nrm -r".into());
    let shown = document(&Page::crash(&record).unwrap());
    assert_eq!(shown["view"]["faults"][0]["each"][1]["command"], Value::Null);
}

#[test]
fn a_comparison_shows_what_differs_between_environments_and_nothing_else() {
    let (_folder, mut store) = store();
    let first = records::fill_with(&mut store, &run_record(plan(1)), |_| {});
    let second =
        RunRecord { id: "second".into(), pgdyno_version: "0.2.0".into(), ..run_record(plan(1)) };
    let mut session = session_record();
    session.host.kernel = "Linux 6.12.0 x86_64".into();
    session.storage[0].mount_options = "rw,noatime".into();
    let second = records::fill_on(&mut store, &second, &session, |trial| {
        trial.server.as_mut().unwrap().settings[4].value = "65536".into();
    });
    let asked = CompareOptions { force: true, ..CompareOptions::default() };
    let comparison = CompareReport::read(&store, RUN, "second", &asked).unwrap();
    let shown = document(&Page::compare(&comparison, &first, &second).unwrap());
    let rows: Vec<(&str, &str)> = shown["differences"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| (row["group"].as_str().unwrap(), row["name"].as_str().unwrap()))
        .collect();
    assert_eq!(
        rows,
        [
            ("host", "System"),
            ("pgdyno", "version"),
            ("settings", "shared_buffers"),
            ("storage here", "Filesystem")
        ]
    );
    assert_eq!(shown["differences"][2]["a"], "128MB");
}

#[test]
fn answer_and_table_stand_in_the_page_as_text() {
    let report = synthetic();
    let html = Page::run(&report).unwrap().to_html();
    let body = &html[html.find("id=\"pgdyno-static\"").unwrap()..];
    let body = &body[..body.find("</main>").unwrap()];
    assert!(body.contains("</span> unsafe</span>"), "{body}");
    let answer = body.split_once("<p class=\"answer").unwrap().1;
    assert!(answer.contains(&format!("\">{}", &report.answer[0][..20])), "{body}");
    let treatments = &report.view.treatments;
    assert_eq!(body.matches("<tr").count(), 1 + treatments.len());
    for treatment in treatments {
        assert!(body.contains(&format!("<span class=\"name\">{}</span>", treatment.label)));
        let tps = format::rate(treatment.tps.as_ref().unwrap().mean);
        assert!(body.contains(&format!("<span class=\"value\">{tps}</span>")), "{body}");
    }
    assert!(!body.contains("style=") && !body.contains(" onload="), "no inline style or handler");
}

/// Markup, control characters and the marks of the template.
const EVIL: &str =
    "\u{1b}[31m</script><img src=x onerror=alert(1)>\"'&\u{2028}\u{202e}`<b>`<!--pgdyno:data-->";

fn assert_inert(page: &Page) {
    let html = page.to_html();
    let template = include_str!("../../../../web/dist/index.html");
    assert!(!html.contains("<img src=x") && !html.contains("<b>`"), "markup from a text");
    let details =
        (0..).take_while(|i| element(&html, &format!("pgdyno-trial-{i}")).is_some()).count();
    let own = |tag: &str| template.matches(tag).count();
    // The last trials may have no details, since they failed.
    let elements = html.matches("id=\"pgdyno-trial-").count();
    assert!(elements >= details);
    assert_eq!(html.matches("</script>").count(), own("</script>") + 1 + elements);
    assert_eq!(html.matches("<script").count(), own("<script") + 1 + elements);
    assert_eq!(html.matches("<!--pgdyno:").count(), 0);
    let of_page = html.replace(
        &template[template.find("<style").unwrap()..template.rfind("</style>").unwrap()],
        "",
    );
    let obeyed = |c: char| {
        c.is_control() && !matches!(c, '\n' | '\t') || matches!(c, '\u{2028}' | '\u{202e}')
    };
    let own = template.chars().filter(|c| obeyed(*c)).count();
    assert!(of_page.chars().filter(|c| obeyed(*c)).count() <= own);
}

#[test]
fn hostile_texts_stay_texts() {
    let mut record = run_record(plan(2));
    record.recipe = EVIL.into();
    record.experiment = EVIL.into();
    record.overrides = vec![EVIL.into()];
    record.plan.question = Some(EVIL.into());
    for t in &mut record.plan.treatments {
        t.levels.0[0] = (EVIL.into(), LevelValue::Text(format!("{EVIL}{}", t.levels.0[0].1)));
        t.settings.insert(EVIL.into(), EVIL.into());
        t.storage = EVIL.into();
    }
    record.plan.factors[0] = EVIL.into();
    let mut session = session_record();
    session.host.os = EVIL.into();
    session.storage[0].name = EVIL.into();
    session.storage[0].mount_options = EVIL.into();
    let trials = record.plan.trials.iter().map(|planned| {
        let mut t = trial(&record.plan, *planned);
        if planned.ordinal == 0 {
            t.failure = Some(Failure::new(FailureKind::Unknown, EVIL));
        }
        let m = t.measurement.as_mut().unwrap();
        m.counters.failures.insert(EVIL.into(), 3);
        m.counters.abort_reasons.push(EVIL.into());
        m.counters.aborted_clients = 1;
        m.scripts[0].name = EVIL.into();
        m.scripts[0].statements[0].text = EVIL.into();
        let server = t.server.as_mut().unwrap();
        server.version = EVIL.into();
        server.settings[4].name = EVIL.into();
        server.settings[4].value = EVIL.into();
        t.telemetry[0].unavailable = Some(EVIL.into());
        t
    });
    let view = add_run(&mut store().1, &record, &session, SessionEnd::Failed, trials);
    let report = RunReport::new(view);
    let page = Page::run(&report).unwrap();
    assert_inert(&page);
    assert!(page.to_html().contains("&lt;img"), "shown as text");
    assert_eq!(report.headline.command, Some(format!("pgdyno run --resume {RUN}")));

    let mut crash = crash_record(0, Verdict::Fail(Failing::Lost));
    crash.name = EVIL.into();
    crash.storage.mount_options = EVIL.into();
    crash.outcome.notes.push(EVIL.into());
    assert_inert(&Page::crash(&crash).unwrap());
    assert!(CrashView::from(&crash).name == EVIL, "the view keeps what there is");
    let mut probe = fsync_probe();
    probe.name = EVIL.into();
    assert_inert(&Page::probe(&probe).unwrap());
    let mut import = import();
    import.source = EVIL.into();
    assert_inert(&Page::import(&import).unwrap());
    assert_inert(&Page::side_by_side(&side_by_side(&import, &report.view)).unwrap());
}

#[test]
fn a_page_loads_nothing_and_holds_no_place_of_the_machine_that_measured() {
    let html = Page::run(&synthetic()).unwrap().to_html();
    assert!(html.contains("default-src 'none'"), "the policy of the front end");
    let template = include_str!("../../../../web/dist/index.html");
    for loads in ["<script src", "<link", "<iframe", "<object", "@import", "url(http", "url(//"] {
        assert!(!html.contains(loads) && !template.contains(loads), "{loads}");
    }
    // The run's folder and the process that measured are in the store alone.
    for private in ["/home/anna", "5d1c", "boot_id"] {
        assert!(!html.contains(private), "{private}");
    }
}

#[test]
fn a_page_is_written_whole_or_not_at_all() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("report.html");
    let page = Page::run(&synthetic()).unwrap();
    page.write(&path).unwrap();
    page.write(&path).unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), page.to_html());
    assert!(is_report(&path).unwrap());
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing else is left");
    let error = page.write(folder.path().join("none/report.html")).unwrap_err();
    assert!(error.to_string().contains("none/report.html") && error.help().is_some());
    let error = page.write(folder.path()).unwrap_err();
    let cause = std::error::Error::source(&error).unwrap().to_string();
    assert!(cause.contains("directory"), "{error:?}");
}

#[test]
fn a_run_that_another_process_works_on_is_reported_as_unfinished() {
    let (_folder, mut store) = store();
    let record = run_record(plan(2));
    store.begin_run(&record).unwrap();
    let session = store.begin_session(RUN, &session_record()).unwrap();
    for planned in &record.plan.trials[..5] {
        store.add_trial(RUN, session, &trial(&record.plan, *planned)).unwrap();
    }
    let reader = pgdyno_store::Store::open_existing(store.path()).unwrap();
    let report = RunReport::read(&reader, RUN).unwrap();
    assert_eq!((report.headline.badge, &report.headline.command), (Badge::Unfinished, &None));
    assert_eq!(document(&Page::run(&report).unwrap())["view"]["run"]["trials_completed"], 5);
    // The writer goes on.
    store.add_trial(RUN, session, &trial(&record.plan, record.plan.trials[5])).unwrap();
    assert_eq!(RunReport::read(&reader, RUN).unwrap().view.run.trials_completed, 6);
}
