//! The noise of a host: where it lives, what it tells of two runs, and what a plan will find.

use pgdyno_analysis::Withheld;
use pgdyno_analysis::comparison::runs::CompareOptions;
use pgdyno_analysis::host_noise::{HostNoiseView, NoForecast, forecast, learn, noise};
use pgdyno_model::facts::HostFacts;
use pgdyno_model::load_rate::LoadRate;
use pgdyno_model::record::SessionEnd;
use pgdyno_model::{NoisePrior, Plan, PlannedTrial};
use pgdyno_report::{self as report, CompareReport, NoteKind, RunReport};
use pgdyno_stats::{NoHostNoise, PriorUse};
use pgdyno_store::Store;
use pgdyno_test_support::records::{Random, add_run, run_record, session_record, store};
use pgdyno_test_support::{assert_contains, synthetic};

/// Runs a day apart have such numbers, since runs begin 1,000 s after each other.
const A_DAY: u64 = 87;

/// A store under test, and chance.
struct World {
    _folder: tempfile::TempDir,
    store: Store,
    random: Random,
    number: u64,
}

impl World {
    fn new() -> Self {
        let (folder, store) = store();
        Self { _folder: folder, store, random: Random(7), number: 0 }
    }

    /// A plan of two builds, for an experiment that its number of clients tells from others.
    fn plan(&mut self, clients: u32) -> Plan {
        let mut plan = synthetic::plan(&["base", "head"], 5, &mut self.random);
        plan.name = format!("of {clients} clients");
        plan.treatments.iter_mut().for_each(|t| t.clients = clients);
        plan
    }

    /// Adds a completed run whose trials spread by 1%, and itself by `spread`.
    fn run(&mut self, id: &str, clients: u32, spread: f64) {
        let plan = self.plan(clients);
        self.number += 1;
        let level = 1000.0 * (spread * self.random.normal()).exp();
        let Self { store, random, number, .. } = self;
        synthetic::add(store, (id, *number), &plan, |_| level * (0.01 * random.normal()).exp());
    }

    /// Adds an experiment, run so many times.
    fn experiment(&mut self, clients: u32, runs: u32, spread: f64) {
        for n in 0..runs {
            self.run(&format!("of-{clients}-{n}"), clients, spread);
        }
    }

    fn only_host(&self) -> HostNoiseView {
        let view = noise(&self.store).unwrap();
        assert_eq!(view.hosts.len(), 1, "{view:?}");
        view.hosts[0].clone()
    }

    fn compare(&self, asked: &CompareOptions) -> CompareReport {
        CompareReport::read(&self.store, "before:1", "after:1", asked).unwrap()
    }
}

fn percent(of: Option<pgdyno_analysis::host_noise::SpreadView>) -> f64 {
    of.unwrap().spread * 100.0
}

#[test]
fn each_level_of_noise_is_found_where_it_lives() {
    let mut world = World::new();
    world.experiment(1, 8, 0.05);
    world.experiment(2, 8, 0.05);
    let found = world.only_host();
    assert_eq!((found.runs, found.experiments.len()), (16, 2));
    // 16 runs × (2 − 1) × (5 − 1), and 2 experiments × (8 − 1) runs.
    assert_eq!(found.trials.unwrap().known_by, 64.0);
    assert_eq!(found.between_runs.unwrap().known_by, 14.0);
    assert!((0.8..1.3).contains(&percent(found.trials)), "{found:?}");
    assert!((3.0..8.0).contains(&percent(found.between_runs)), "{found:?}");
    assert!(found.seconds.is_none() && found.days.is_none() && found.unknown.is_none());
    let [three, five, ..] = found.finds[..] else { panic!("{found:?}") };
    assert_eq!((three.repeats, five.repeats), (3, 5));
    assert!(three.difference > five.difference && (0.02..0.06).contains(&five.difference));
    assert!((0.1..0.5).contains(&found.two_runs_find.unwrap()), "{found:?}");
    let text = report::noise(&noise(&world.store).unwrap(), 100);
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    insta::assert_snapshot!("noise", text);
}

#[test]
fn days_are_told_from_runs_and_seconds_from_trials() {
    let mut world = World::new();
    for day in 0..6 {
        world.number = day * A_DAY;
        let of_day = if day % 2 == 0 { 1.0 } else { 1.2 };
        for n in 0..3 {
            let plan = world.plan(1);
            world.number += 1;
            let id = format!("day-{day}-{n}");
            let session = synthetic::begin(&mut world.store, &id, "daily", world.number, &plan);
            let level = 1000.0 * of_day * (0.01 * world.random.normal()).exp();
            for planned in &plan.trials {
                let mut trial = synthetic::trial(&plan, planned, level, 20);
                let mut second = || level * (1.0 + 0.05 * world.random.normal());
                synthetic::with_seconds(&mut trial, &(0..60).map(|_| second()).collect::<Vec<_>>());
                world.store.add_trial(&id, session, &trial).unwrap();
            }
            world.store.end_session(session, SessionEnd::Completed).unwrap();
        }
    }
    let found = world.only_host();
    // The mean of 60 seconds that spread by 5%: 0.65%, which is all that the trials spread by.
    assert!((0.5..0.8).contains(&percent(found.seconds)), "{found:?}");
    assert!((0.5..0.8).contains(&percent(found.trials)), "{found:?}");
    assert!((0.5..2.0).contains(&percent(found.runs_of_a_day)), "{found:?}");
    assert!((6.0..16.0).contains(&percent(found.days)), "{found:?}");
    let text = report::noise(&noise(&world.store).unwrap(), 100);
    assert!(text.contains("longer trials help as more of them do"), "{text}");
}

#[test]
fn repeated_runs_of_other_experiments_let_two_runs_be_compared() {
    let mut world = World::new();
    world.experiment(1, 5, 0.01);
    world.experiment(2, 5, 0.01);
    world.run("before", 3, 0.0);
    world.run("after", 3, 0.0);
    let own = CompareOptions { own_runs_only: true, ..CompareOptions::default() };
    let alone = world.compare(&own);
    assert_eq!(alone.view.pairs[0].ratio.withheld, Some(Withheld::TooFewRuns { found: 0 }));
    let found = world.compare(&CompareOptions::default());
    let ratio = &found.view.pairs[0].ratio;
    assert_eq!((ratio.withheld, ratio.significant), (None, Some(false)), "{ratio:?}");
    assert_eq!(ratio.method, Some(pgdyno_stats::Method::Runs));
    let note = &found.notes[0];
    assert!(note.contains("2 other experiments here (8 degrees of freedom)"), "{note}");
    // The interval is that of runs, not of these two runs' own trials.
    let [low, high] = ratio.ci95.unwrap();
    let [inner_low, inner_high] = ratio.within_runs.unwrap();
    assert!(low < inner_low && inner_high < high, "{ratio:?}");
}

#[test]
fn experiments_that_differ_too_much_tell_nothing_of_another() {
    let mut world = World::new();
    world.experiment(1, 6, 0.002);
    world.experiment(2, 6, 0.3);
    world.run("before", 3, 0.0);
    world.run("after", 3, 0.0);
    let found = world.compare(&CompareOptions::default());
    assert_eq!(found.view.pairs[0].ratio.withheld, Some(Withheld::TooFewRuns { found: 0 }));
    assert!(found.notes[0].contains("differ too much"), "{:?}", found.notes);
    assert_eq!(world.only_host().unknown, Some(NoHostNoise::Unlike));
    // An experiment's own runs tell of it all the same.
    for n in 0..3 {
        world.run(&format!("again-{n}"), 3, 0.0);
    }
    world.run("later", 3, 0.0);
    let asked = CompareOptions::default();
    let found = CompareReport::read(&world.store, "before:1", "later:1", &asked).unwrap();
    assert_eq!(found.view.pairs[0].ratio.withheld, None, "{:?}", found.notes);
}

#[test]
fn a_machine_that_was_changed_is_another_host() {
    let mut world = World::new();
    // More than are read of a host: the newer runs of another one leave it all of them.
    world.experiment(1, 25, 0.01);
    let old = session_record();
    let mut changed = old.host.clone();
    changed.kernel = "Linux 9.0".into();
    let plan = world.plan(2);
    for (n, id) in (100..).zip(["before", "after"]) {
        let mut record = run_record(plan.clone());
        (record.id, record.started_at.0) = (id.into(), record.started_at.0 * 2 + n);
        let mut session = synthetic::session(&["here".to_owned()]);
        session.host = changed.clone();
        let World { store, random, .. } = &mut world;
        let trials = plan.trials.iter().map(|planned| {
            let tps = 1000.0 * (0.01 * random.normal()).exp();
            synthetic::trial(&plan, planned, tps, 20)
        });
        add_run(store, &record, &session, SessionEnd::Completed, trials);
    }
    let view = noise(&world.store).unwrap();
    let hosts: Vec<(usize, &[&str])> =
        view.hosts.iter().map(|h| (h.runs, h.differs.as_slice())).collect();
    assert_eq!(hosts, [(2, &[][..]), (24, &["kernel"])]);
    let said = report::noise(&view, 100);
    assert_contains(
        &said,
        &["since kernel changed", "Of 27 completed runs 26 count: the newest of each host."],
    );
    let found = world.compare(&CompareOptions::default());
    assert!(found.view.pairs[0].ratio.withheld.is_some(), "{:?}", found.notes);
    let told = forecast(Some(&world.store), &plan, &changed, true).unwrap().unwrap();
    assert_eq!(told.runs, 2);
}

#[test]
fn a_forecast_rests_on_the_experiments_own_runs_or_on_those_of_the_host() {
    let mut world = World::new();
    let (plan, host) = (world.plan(1), session_record().host);
    for store in [Some(&world.store), None] {
        let unknown = forecast(store, &plan, &host, true).unwrap();
        let Err(NoForecast::NoRun { on_a_busy_host }) = unknown else { panic!("{unknown:?}") };
        assert!((0.1..0.3).contains(&on_a_busy_host.unwrap()), "{on_a_busy_host:?}");
        let text = report::forecast(&unknown, 400);
        assert!(text.contains("no completed run") && text.contains("differ by 10%"), "{text}");
    }
    world.run("other", 2, 0.0);
    let told = forecast(Some(&world.store), &plan, &host, true).unwrap().unwrap();
    assert_eq!((told.is_own, told.runs), (false, 1));
    assert_eq!(told.finds.iter().map(|f| f.repeats).collect::<Vec<_>>(), [5, 10]);
    assert!(told.finds[0].difference > told.finds[1].difference, "{told:?}");
    world.run("own-1", 1, 0.0);
    world.run("own-2", 1, 0.0);
    let told = forecast(Some(&world.store), &plan, &host, true).unwrap().unwrap();
    assert_eq!((told.is_own, told.runs), (true, 2));
    let text = report::forecast(&Ok(told), 100);
    assert_contains(&text, &["with 5 repeats", "2 runs of this experiment"]);
    let once = synthetic::plan(&["base", "head"], 1, &mut world.random);
    let nothing = forecast(Some(&world.store), &once, &host, true).unwrap();
    assert_eq!(nothing, Err(NoForecast::NothingToCompare));
}

/// Returns the noise that `plan` learns from earlier runs.
fn told(world: &World, plan: &Plan, host: &HostFacts) -> Option<NoisePrior> {
    let mut plan = plan.clone();
    learn(&world.store, &mut plan, host).unwrap();
    plan.noise_prior
}

#[test]
fn what_earlier_runs_tell_of_the_noise_counts_beside_a_runs_own() {
    let mut world = World::new();
    let (plan, host) =
        (synthetic::plan(&["base", "head"], 3, &mut Random(5)), session_record().host);
    assert_eq!(told(&world, &plan, &host), None);
    for clients in 2..5 {
        world.experiment(clients, 2, 0.05);
    }
    // A rate makes all trials alike, and tells nothing of the noise.
    let mut rated = world.plan(9);
    rated.treatments.iter_mut().for_each(|t| t.options.rate = Some(LoadRate::Constant(100.0)));
    synthetic::add(&mut world.store, ("rated", 90), &rated, |_| 100.0);
    assert_eq!(told(&world, &rated, &host), None);
    let prior = told(&world, &plan, &host).unwrap();
    // Three experiments of two runs: (2 − 1) × (5 − 1) degrees of freedom each run.
    assert_eq!(prior.runs, 6);
    assert!((2.0..3.93).contains(&prior.freedom), "{prior:?}");
    assert!((0.007..0.013).contains(&prior.variance.sqrt()), "{prior:?}");
    let mut elsewhere = host;
    elsewhere.kernel = "another".into();
    assert_eq!(told(&world, &plan, &elsewhere), None);

    let mut judged = |id: &str, noise: [f64; 3], noise_prior| {
        let plan = Plan { noise_prior, ..plan.clone() };
        let tps = |planned: &PlannedTrial| {
            let sign = if planned.treatment == 0 { 1.0 } else { -1.0 };
            1000.0 * (sign * (0.03 + noise[planned.block as usize - 1])).exp()
        };
        world.number += 1;
        synthetic::add(&mut world.store, (id, 100 + world.number), &plan, tps);
        RunReport::read(&world.store, id).unwrap()
    };
    let alike = [-0.01, 0.01, 0.0];
    let (alone, with) = (judged("alone", alike, None), judged("with", alike, Some(prior)));
    let width = |report: &RunReport| {
        let [low, high] = report.view.comparisons[0].ratio.ci95.unwrap();
        high / low
    };
    assert!(width(&with) < width(&alone), "{} {}", width(&with), width(&alone));
    assert!(alone.view.noise_prior.is_none());
    let told = with.view.noise_prior.as_ref().unwrap();
    assert_eq!((told.used, told.own_freedom), (PriorUse::Counts, 2.0));
    let wild = judged("wild", [-0.2, 0.2, 0.0], Some(prior));
    assert_eq!(wild.view.noise_prior.as_ref().unwrap().used, PriorUse::Apart);
    let notes: Vec<String> = [&with, &wild]
        .into_iter()
        .flat_map(|report| &report.notes)
        .filter(|note| note.kind == NoteKind::NoisePrior)
        .map(|note| note.text.clone())
        .collect();
    insta::assert_snapshot!("noise_prior", notes.join("\n"));
}

#[test]
fn a_trial_that_is_not_measured_comes_first_where_first_trials_differ() {
    let (mut world, host) = (World::new(), session_record().host);
    let told = |world: &World, plan: &Plan| {
        let mut plan = plan.clone();
        learn(&world.store, &mut plan, &host).unwrap();
        plan.conditioning
    };
    let add = |world: &mut World, plan: &Plan, number: u64, first: f64| {
        let World { store, random, .. } = world;
        synthetic::add(store, (&format!("run-{number}"), number), plan, |planned| {
            let first = if planned.ordinal == 0 { first } else { 1.0 };
            1000.0 * first * (0.02 * random.normal()).exp()
        });
    };
    let plan = world.plan(1);
    for number in 0..4 {
        add(&mut world, &plan, number, 1.0);
    }
    assert_eq!(told(&world, &plan), None);
    for number in 4..10 {
        add(&mut world, &plan, number, 0.85);
    }
    let found = told(&world, &plan).unwrap();
    assert_eq!(found.runs, 10);
    assert!((-0.14..-0.04).contains(&found.difference), "{found:?}");
    let mut rated = plan.clone();
    rated.treatments[0].options.rate = Some(LoadRate::Constant(10.0));
    assert_eq!(told(&world, &rated), None);
    // Its first trial is none any more, and tells nothing: what was found goes on to hold.
    let conditioned = Plan { conditioning: Some(found), ..plan.clone() };
    for number in 10..34 {
        add(&mut world, &conditioned, number, 1.0);
    }
    assert_eq!(told(&world, &plan), Some(found));
    let told = forecast(Some(&world.store), &plan, &host, true).unwrap();
    let text = report::forecast(&told, 400);
    assert!(text.contains("A trial that is not measured comes first"), "{text}");
    let report = RunReport::read(&world.store, "run-33").unwrap();
    assert!(report.notes.iter().any(|note| note.kind == NoteKind::Conditioning));
}

#[test]
fn a_store_without_a_completed_run_says_so() {
    let (_folder, store) = store();
    let view = noise(&store).unwrap();
    assert!(view.hosts.is_empty() && view.completed == 0);
    assert!(report::noise(&view, 100).starts_with("No completed run tells"));
}
