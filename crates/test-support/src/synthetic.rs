//! Stores of runs that never happened: plans whose trials have the tps that a test gives them.

use std::collections::BTreeMap;
use std::path::Path;

use pgdyno_analysis::{RunView, analyse};
use pgdyno_model::experiment::Length;
use pgdyno_model::facts::{HostFacts, ServerFacts, Setting, StorageFacts};
use pgdyno_model::measurement::{Measurement, Second};
use pgdyno_model::record::{SessionEnd, SessionRecord};
use pgdyno_model::units::{Epoch, Span};
use pgdyno_model::{
    Latencies, LevelValue, Levels, Plan, PlannedTrial, RunRecord, Treatment, TrialRecord,
};
use pgdyno_store::{SessionId, Store};

use crate::records::{
    self, Random, START, build_source, empty_trial, run_called, session_record, storage_facts,
};

/// The window of every trial (seconds).
pub const WINDOW_S: f64 = 60.0;

/// A plan as [`plan`]'s, of so many builds.
pub fn builds(count: usize, repeats: u32, random: &mut Random) -> Plan {
    let names: Vec<String> = (0..count).map(|i| format!("b{i}")).collect();
    plan(&names.iter().map(String::as_str).collect::<Vec<_>>(), repeats, random)
}

/// A plan of one factor `build` with these levels, each block in an order of its own.
pub fn plan(levels: &[&str], repeats: u32, random: &mut Random) -> Plan {
    let like = records::plan(0);
    let treatment = |level: &&str| Treatment {
        levels: Levels(vec![("build".into(), LevelValue::Text((*level).into()))]),
        clients: 8,
        settings: BTreeMap::from([("application_name".into(), (*level).into())]),
        ..like.treatments[0].clone()
    };
    let mut trials = Vec::new();
    for block in 1..=repeats {
        let mut order: Vec<usize> = (0..levels.len()).collect();
        for i in (1..order.len()).rev() {
            order.swap(i, (random.uniform() * (i + 1) as f64) as usize);
        }
        for treatment in order {
            let ordinal = u32::try_from(trials.len()).unwrap();
            trials.push(PlannedTrial { ordinal, block, treatment, repeat: block });
        }
    }
    Plan {
        name: "synthetic".into(),
        question: None,
        factors: vec!["build".into()],
        treatments: levels.iter().map(treatment).collect(),
        trials,
        length: Length::Duration(Span::from_secs(60)),
        seed: 1,
        data_seed: None,
        ..like
    }
}

/// A plan of builds with each of the levels of another factor: all levels of the first build first.
pub fn crossed(
    builds: &[&str],
    factor: &str,
    levels: &[LevelValue],
    repeats: u32,
    random: &mut Random,
) -> Plan {
    let names: Vec<String> = (0..builds.len() * levels.len()).map(|t| t.to_string()).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut plan = plan(&names, repeats, random);
    plan.factors = vec!["build".into(), factor.into()];
    for (index, treatment) in plan.treatments.iter_mut().enumerate() {
        let build = LevelValue::Text(builds[index / levels.len()].into());
        let level = levels[index % levels.len()].clone();
        if let ("clients", LevelValue::Int(clients)) = (factor, &level) {
            treatment.clients = u32::try_from(*clients).unwrap();
        }
        treatment.levels = Levels(vec![("build".into(), build), (factor.into(), level)]);
    }
    plan
}

/// A plan of the builds `old` and `new` with each of `levels` of `factor`.
pub fn old_and_new(factor: &str, levels: &[LevelValue], repeats: u32) -> Plan {
    crossed(&["old", "new"], factor, levels, repeats, &mut Random(5))
}

/// Levels that are texts.
pub fn texts(levels: &[&str]) -> Vec<LevelValue> {
    levels.iter().map(|level| LevelValue::Text((*level).into())).collect()
}

/// Analyses a run of `plan` whose treatments have these tps, each trial with a noise of 1%.
pub fn measured(plan: &Plan, tps: &[f64]) -> RunView {
    let folder = folder();
    let mut store = Store::open(folder.path().join("store.sqlite3")).unwrap();
    let mut random = Random(9);
    let mut noisy = |t: usize| tps[t] * (1.0 + 0.02 * (random.uniform() - 0.5));
    add(&mut store, ("run", 1), plan, |planned| noisy(planned.treatment));
    analyse(&store, "run").unwrap()
}

/// The machine and the storage of all runs.
pub fn session(storages: &[String]) -> SessionRecord {
    let storage = |name: &String| StorageFacts {
        name: name.clone(),
        directory: "/data".into(),
        source: "/dev/sda1".into(),
        ..storage_facts()
    };
    SessionRecord { storage: storages.iter().map(storage).collect(), ..session_record() }
}

/// A completed trial with that tps and its closed loop's latency.
pub fn trial(plan: &Plan, planned: &PlannedTrial, tps: f64, latencies: u32) -> TrialRecord {
    let treatment = &plan.treatments[planned.treatment];
    let mut latency = Latencies::new();
    for i in 0..latencies {
        let share = f64::from(i + 1) / f64::from(latencies + 1);
        latency.record(
            (1e9 * f64::from(treatment.clients) / tps * (0.6 - 0.4 * (1.0 - share).ln())) as u64,
        );
    }
    let setting = |(name, value): (&String, &String)| Setting {
        name: name.clone(),
        value: value.clone(),
        unit: None,
        source: "configuration file".into(),
    };
    let mut settings: BTreeMap<String, String> =
        ["fsync", "synchronous_commit", "full_page_writes"]
            .map(|name| (name.to_owned(), "on".to_owned()))
            .into();
    settings.extend(treatment.settings.clone());
    settings.remove("application_name");
    TrialRecord {
        measurement: Some(Measurement {
            transactions: (tps * WINDOW_S).round() as u64,
            measured_s: WINDOW_S,
            warm_up_s: 2.0,
            generator_cpu_s: 1.0,
            latency,
            ..Measurement::default()
        }),
        server: Some(ServerFacts {
            version: "PostgreSQL 15.14".into(),
            version_num: 150_014,
            build: build_source(),
            settings: settings.iter().map(setting).collect(),
        }),
        ..empty_trial(*planned)
    }
}

/// Gives a trial one element of a series for each second, whose sum it then has.
pub fn with_seconds(trial: &mut TrialRecord, tps: &[f64]) {
    let m = trial.measurement.as_mut().unwrap();
    let second = |(t_s, tps): (u32, &f64)| Second {
        t_s,
        length_s: 1.0,
        transactions: tps.max(0.0).round() as u64,
        ..Second::default()
    };
    m.series = (0..).zip(tps).map(second).collect();
    m.transactions = m.series.iter().map(|s| s.transactions).sum();
    m.measured_s = f64::from(u32::try_from(tps.len()).unwrap());
}

/// Begins run `id`, the `number`th in time.
pub fn begin(store: &mut Store, id: &str, recipe: &str, number: u64, plan: &Plan) -> SessionId {
    begin_on(store, named(None), (id, recipe, number), plan)
}

/// The facts of the machine of all runs, under another name.
fn named(name: Option<&str>) -> HostFacts {
    let id = name.map(|name| format!("id of {name}"));
    HostFacts { name: name.map(str::to_owned), id, ..session(&[]).host }
}

/// As [`begin`], on that machine.
fn begin_on(
    store: &mut Store,
    host: HostFacts,
    (id, recipe, number): (&str, &str, u64),
    plan: &Plan,
) -> SessionId {
    let record = RunRecord {
        recipe: recipe.into(),
        started_at: Epoch(START + 1_000_000_000_000 * number),
        overrides: Vec::new(),
        ..run_called(id, plan.clone())
    };
    let mut storages: Vec<String> = plan.treatments.iter().map(|t| t.storage.clone()).collect();
    storages.sort();
    storages.dedup();
    store.begin_run(&record).unwrap();
    store.begin_session(id, &SessionRecord { host, ..session(&storages) }).unwrap()
}

/// A completed run whose trials have the tps that `tps` gives.
pub fn add(
    store: &mut Store,
    run: (&str, u64),
    plan: &Plan,
    tps: impl FnMut(&PlannedTrial) -> f64,
) {
    add_on(store, None, run, plan, tps);
}

/// As [`add`], on a machine of that name.
pub fn add_on(
    store: &mut Store,
    host: Option<&str>,
    run: (&str, u64),
    plan: &Plan,
    tps: impl FnMut(&PlannedTrial) -> f64,
) {
    add_at(store, named(host), run, plan, tps);
}

/// As [`add`], on a machine with those facts.
pub fn add_at(
    store: &mut Store,
    host: HostFacts,
    (id, number): (&str, u64),
    plan: &Plan,
    mut tps: impl FnMut(&PlannedTrial) -> f64,
) {
    let session = begin_on(store, host, (id, "synthetic", number), plan);
    for planned in &plan.trials {
        store.add_trial(id, session, &trial(plan, planned, tps(planned), 20)).unwrap();
    }
    store.end_session(session, SessionEnd::Completed).unwrap();
}

/// A store in memory where there is a file system for that, else in a temporary folder: simulations
/// make thousands.
pub fn folder() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    let mut builder = tempfile::Builder::new();
    builder.prefix("pgdyno-test-");
    builder.tempdir_in(memory).or_else(|_| builder.tempdir()).unwrap()
}
