//! The first screen of every recipe's output: the answer to its question, from trials that never
//! happened.

use crate::support::World;
use pgdyno_experiment::file::Override;
use pgdyno_experiment::{ResolvedExperiment, recipes};
use pgdyno_model::crash::Failing;
use pgdyno_model::probe::{ProbeResult, Suspicion};
use pgdyno_model::record::SessionEnd;
use pgdyno_model::{CrashRecord, Fault, Plan, PlannedTrial, ProbeRecord, Verdict};
use pgdyno_provision::ThisHost;
use pgdyno_store::{SessionId, Store};
use pgdyno_test_support::records::{self, Random};
use pgdyno_test_support::{assert_contains, synthetic};

/// Returns the tps of a trial: treatments `step` apart, waits for commits that matter, a percent of
/// noise.
fn tps(plan: &Plan, planned: &PlannedTrial, step: f64) -> f64 {
    let t = &plan.treatments[planned.treatment];
    let clients = f64::from(t.clients);
    let noise = 1.0
        + 0.01 * Random(0x9E37_79B9_7F4A_7C15 ^ (u64::from(planned.ordinal) + 1) << 20).normal();
    let waits = t.settings.get("synchronous_commit").is_none_or(|v| v == "on")
        && t.settings.get("fsync").is_none_or(|v| v == "on");
    let each = if waits { 300.0 } else { 900.0 };
    let index = f64::from(u32::try_from(planned.treatment).unwrap());
    each * clients / (1.0 + 0.02 * (clients - 1.0)) * (1.0 + step * index) * noise
}

/// Work of [`show`] between the trials and the end of the session.
type After = fn(&mut Store, SessionId, &Plan);

/// Returns the first 25 lines of `pgdyno show latest` for a completed run of recipe `name`.
fn show(name: &str, step: f64, after: After) -> String {
    let world = World::new();
    let path = world.path("data/pgdyno/store.sqlite3");
    let mut store = Store::open(&path).unwrap();
    let source = recipes::all().into_iter().find(|recipe| recipe.name == name).unwrap();
    // The order is drawn; here it is the same each time.
    let seed = Override::parse("experiment.seed=1").unwrap();
    let prepared = ResolvedExperiment::new(source, vec![seed], &ThisHost).unwrap();
    let plan = &prepared.plan;
    let session = synthetic::begin(&mut store, "run-1", name, 1, plan);
    for planned in &plan.trials {
        let mut trial = synthetic::trial(plan, planned, tps(plan, planned, step), 2000);
        assert!(plan.find.is_none(), "no recipe looks for a rate");
        trial.started_at.0 += 1;
        store.add_trial("run-1", session, &trial).unwrap();
    }
    after(&mut store, session, plan);
    store.end_session(session, SessionEnd::Completed).unwrap();
    drop(store);
    let shown = world.command(&["show", "latest"]).env("COLUMNS", "100").output().unwrap();
    assert!(shown.status.success(), "{}", String::from_utf8_lossy(&shown.stderr));
    let text = String::from_utf8(shown.stdout).unwrap();
    text.lines().take(25).map(|line| format!("{line}\n")).collect()
}

fn nothing(_: &mut Store, _: SessionId, _: &Plan) {}

/// A crash test for each group of treatments that are crashed alike.
fn crashed(store: &mut Store, session: SessionId, plan: &Plan) {
    for (index, t) in plan.treatments.iter().enumerate() {
        let is_off = |name: &str| t.settings.get(name).is_some_and(|value| value == "off");
        let verdict = match (is_off("fsync"), is_off("synchronous_commit")) {
            (true, _) => Verdict::Fail(Failing::Lost),
            (_, true) => Verdict::BoundedLoss,
            _ => Verdict::Pass,
        };
        let mut crash = records::crash_record(index, verdict);
        crash.outcome.verdict = verdict;
        if verdict.is_failure() {
            // As the recipe has it.
            crash.outcome.options.planted = vec![Fault::Power];
            crash.outcome.conclude();
        }
        let crash =
            CrashRecord { id: format!("crash-{index}"), run: Some("run-1".into()), ..crash };
        store.add_crash(Some(session), &crash).unwrap();
    }
}

/// A probe whose flushes are quicker than the medium, and a crash test that passes.
fn probed(store: &mut Store, session: SessionId, _: &Plan) {
    let mut probe = records::fsync_probe();
    if let ProbeResult::Fsync(fsync) = &mut probe.result {
        fsync.suspicions = vec![Suspicion::QuickerThanCommands];
    }
    let probe = ProbeRecord { name: "disk".into(), run: Some("run-1".into()), ..probe };
    store.add_probe(Some(session), &probe).unwrap();
    let crash = records::crash_record(0, Verdict::Pass);
    store.add_crash(Some(session), &CrashRecord { run: Some("run-1".into()), ..crash }).unwrap();
}

#[test]
fn the_first_screen_of_every_recipe_answers_its_question() {
    let cases: [(&str, f64, After); 11] = [
        ("big-table", 0.0, nothing),
        ("commit-loss", 0.03, crashed),
        ("crash-matrix", 0.03, crashed),
        ("filesystem-options", 0.03, crashed),
        ("filesystems", 0.09, nothing),
        ("flush-latency", -0.1, nothing),
        ("group-commit", 0.001, nothing),
        ("noise-floor", 0.0, nothing),
        ("quickstart", 0.0, nothing),
        ("ssd-acceptance", 0.05, probed),
        ("zfs-xfs", -0.2, nothing),
    ];
    let mut names: Vec<String> = recipes::all().into_iter().map(|recipe| recipe.name).collect();
    names.sort();
    assert_eq!(names, cases.map(|(name, ..)| name));
    for (name, step, after) in cases {
        insta::assert_snapshot!(name, show(name, step, after));
    }
}

#[test]
fn an_answer_that_is_not_conclusive_names_the_next_command() {
    let screen = show("zfs-xfs", 0.0, nothing);
    let screen = screen.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_contains(
        &screen,
        &[
            "no significant difference",
            "pgdyno run --resume run-1 --set experiment.repeats=16",
            "--set experiment.precision=",
        ],
    );
}
