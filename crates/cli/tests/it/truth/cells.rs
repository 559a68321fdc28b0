//! The promises, each with a simulation of hosts and runs that is true or not.

use std::fmt;
use std::process::Command;

use pgdyno_model::record::SessionEnd;
use pgdyno_model::units::Epoch;
use pgdyno_model::{Find, Plan, PlannedTrial, Search};
use pgdyno_store::Store;
use serde_json::Value;

use crate::support::elements;
use pgdyno_lab::search;
use pgdyno_test_support::{records::Random, synthetic};

/// A share of stores (percent).
pub(crate) enum Promise {
    AtMost(f64),
    AtLeast(f64),
    /// About the first, within the second.
    About(f64, f64),
    /// The share is stated.
    None,
}

impl fmt::Display for Promise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtMost(percent) => write!(f, "≤ {percent}%"),
            Self::AtLeast(percent) => write!(f, "≥ {percent}%"),
            Self::None => f.write_str("–"),
            Self::About(percent, by) => write!(f, "{percent}% ± {by}"),
        }
    }
}

/// One promise.
pub(crate) struct Cell {
    pub(crate) name: &'static str,
    pub(crate) promise: Promise,
    /// Makes one store and asks the binary; whether what the name says came true.
    pub(crate) is_true: fn(&mut Random) -> bool,
}

pub(super) const fn cell(
    name: &'static str,
    promise: Promise,
    is_true: fn(&mut Random) -> bool,
) -> Cell {
    Cell { name, promise, is_true }
}

pub(crate) const CELLS: &[Cell] = &[
    cell(
        "one run, two equal builds, quiet host: `tps < 0%` is exceeded",
        Promise::AtMost(2.5),
        |r| one_run(r, 0.0, 1.0, ANY_LESS) == Gate::Exceeded,
    ),
    cell("the same, neighbouring trials alike (autocorrelation 0.9)", Promise::AtMost(2.5), |r| {
        one_run(r, 0.9, 1.0, ANY_LESS) == Gate::Exceeded
    }),
    cell("the same, autocorrelation 0.95", Promise::AtMost(2.5), |r| {
        one_run(r, 0.95, 1.0, ANY_LESS) == Gate::Exceeded
    }),
    cell("one run, a build 10% slower: `tps < -3%` is exceeded", Promise::AtLeast(80.0), |r| {
        one_run(r, 0.0, 0.9, LESS) == Gate::Exceeded
    }),
    cell(
        "one run, a build slower by what the gate says it catches: exceeded",
        Promise::About(80.0, 10.0),
        caught,
    ),
    cell(
        "one run, four equal builds: any difference, in either table",
        Promise::AtMost(5.0),
        |r| any_difference(r, &[1.0; 4], 5),
    ),
    cell("one run, eight equal builds, three repeats: any difference", Promise::AtMost(5.0), |r| {
        any_difference(r, &[1.0; 8], 3)
    }),
    cell(
        "four equal builds: the interval of a ratio to the best holds the truth",
        Promise::AtLeast(95.0),
        |r| best_is_covered(r, [1.0; 4]),
    ),
    cell("builds 0, 1, 2, 3% apart: the same", Promise::AtLeast(95.0), |r| {
        best_is_covered(r, [1.0, 0.99, 0.98, 0.97])
    }),
    cell("a run that is not finished: any verdict", Promise::AtMost(0.0), unfinished),
    cell(
        "16 steady builds, 10 repeats: any is said to rise or fall",
        Promise::AtMost(5.0),
        any_trend,
    ),
    cell(
        "two runs of equal builds, spread of runs 2%, no earlier run: `tps < 0%` is exceeded",
        Promise::AtMost(0.0),
        |r| two_runs(r, 0, 0.02, 5, 1.0) == Gate::Exceeded,
    ),
    cell("the same, 3 earlier runs", Promise::AtMost(2.5), |r| {
        two_runs(r, 3, 0.02, 5, 1.0) == Gate::Exceeded
    }),
    cell("the same, 3 earlier runs, 10 repeats", Promise::AtMost(2.5), |r| {
        two_runs(r, 3, 0.02, 10, 1.0) == Gate::Exceeded
    }),
    cell("the same, 10 earlier runs, spread 1%", Promise::AtMost(2.5), |r| {
        two_runs(r, 10, 0.01, 5, 1.0) == Gate::Exceeded
    }),
    cell(
        "two runs, the second build 10% slower, spread 1%, 3 earlier runs: exceeded",
        Promise::AtLeast(40.0),
        |r| two_runs(r, 3, 0.01, 5, 0.9) == Gate::Exceeded,
    ),
    cell("the same, 10 earlier runs", Promise::AtLeast(90.0), |r| {
        two_runs(r, 10, 0.01, 5, 0.9) == Gate::Exceeded
    }),
    cell(
        "two equal sharp capacities, searched on a quiet host, 5 repeats: different",
        Promise::AtMost(5.0),
        |r| capacities(r, 1.0),
    ),
    cell("two capacities 5% apart: different", Promise::AtLeast(90.0), |r| capacities(r, 0.95)),
    cell(
        "equal builds, 5 repeats, and 5 more where nothing is significant: any difference",
        Promise::AtMost(7.5),
        extended,
    ),
    cell(
        "120 steady seconds, autocorrelation 0: a warm-up or a change is found",
        Promise::AtMost(5.0),
        |r| seconds(r, 0.0).is_unsteady,
    ),
    cell("the same, autocorrelation 0.8", Promise::AtMost(5.0), |r| seconds(r, 0.8).is_unsteady),
    cell("the same, autocorrelation 0.95", Promise::AtMost(5.0), |r| seconds(r, 0.95).is_unsteady),
    cell(
        "autocorrelation 0: the trial's interval holds its mean, or none is given",
        Promise::AtLeast(95.0),
        |r| seconds(r, 0.0).is_covered,
    ),
    cell("the same, autocorrelation 0.8", Promise::AtLeast(95.0), |r| seconds(r, 0.8).is_covered),
    cell("the same, autocorrelation 0.95", Promise::AtLeast(95.0), |r| seconds(r, 0.95).is_covered),
    cell(
        "noise floor of about 9%, a build 5% slower: `tps < -3%` is exceeded",
        Promise::AtMost(0.0),
        |r| beside_floor(r, 0.95) == Gate::Exceeded,
    ),
    cell("the same, the build 30% slower", Promise::AtLeast(95.0), |r| {
        beside_floor(r, 0.7) == Gate::Exceeded
    }),
];

/// How a comparison with a gate ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gate {
    Passed,
    Exceeded,
    Undecided,
}

/// A gate that lets 3% less through, and one that lets nothing through that is shown to be less.
pub(super) const LESS: &str = "tps < -3%";
pub(super) const ANY_LESS: &str = "tps < 0%";

/// A trial's noise (logarithms).
const SPREAD: f64 = 0.01;
pub(super) const TPS: f64 = 10_000.0;

pub(super) struct World {
    folder: tempfile::TempDir,
    pub(super) store: Store,
}

impl World {
    pub(super) fn new() -> Self {
        let folder = synthetic::folder();
        let store = Store::open(folder.path().join("store.sqlite3")).unwrap();
        Self { folder, store }
    }

    fn ask(&self, args: &[&str]) -> (Option<i32>, String) {
        let path = self.folder.path().join("store.sqlite3");
        let output = Command::new(env!("CARGO_BIN_EXE_pgdyno"))
            .args(args)
            .args(["--store", path.to_str().unwrap()])
            .env("XDG_STATE_HOME", self.folder.path())
            .env_remove("PGDYNO_STORE")
            .output()
            .unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(!matches!(output.status.code(), None | Some(1 | 101)), "{args:?}: {errors}");
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    }

    pub(super) fn gate(&self, a: &str, b: &str, condition: &str) -> Gate {
        let (code, _) = self.ask(&["compare", a, b, "--fail-if", condition]);
        match code {
            Some(0) => Gate::Passed,
            Some(3) => Gate::Exceeded,
            Some(5) => Gate::Undecided,
            other => panic!("{other:?}"),
        }
    }

    pub(super) fn show(&self, run: &str) -> Value {
        serde_json::from_str(&self.ask(&["show", run, "--json"]).1).unwrap()
    }

    fn compare(&self, a: &str, b: &str) -> Value {
        let args = ["compare", a, b, "--fail-if", LESS, "--json"];
        serde_json::from_str(&self.ask(&args).1).unwrap()
    }

    /// A run of `plan` whose trials have noise of which neighbours share `alike`, and the true
    /// `speeds`.
    pub(super) fn run(
        &mut self,
        random: &mut Random,
        id: (&str, u64),
        plan: &Plan,
        alike: f64,
        speeds: &[f64],
    ) {
        let mut last = random.normal();
        synthetic::add(&mut self.store, id, plan, |planned: &PlannedTrial| {
            last = alike * last + (1.0 - alike * alike).sqrt() * random.normal();
            TPS * speeds[planned.treatment] * (SPREAD * last).exp()
        });
    }
}

fn one_run(random: &mut Random, alike: f64, slower: f64, condition: &str) -> Gate {
    let mut world = World::new();
    let plan = synthetic::plan(&["base", "head"], 5, random);
    world.run(random, ("run", 1), &plan, alike, &[1.0, slower]);
    world.gate("run:1", "run:2", condition)
}

/// A first run states what the gate catches; a second build is slower by just that.
fn caught(random: &mut Random) -> bool {
    let mut world = World::new();
    let plan = synthetic::plan(&["base", "head"], 10, random);
    // What is stated varies with the spread that a run happens to have: of five such runs the
    // middle one.
    let mut stated: Vec<f64> = (0..5)
        .map(|number| {
            let id = format!("first-{number}");
            world.run(random, (&id, number), &plan, 0.0, &[1.0, 1.0]);
            world.compare(&format!("{id}:1"), &format!("{id}:2"))["gates"][0]["catches"]
                .as_f64()
                .unwrap()
        })
        .collect();
    stated.sort_by(f64::total_cmp);
    world.run(random, ("second", 20), &plan, 0.0, &[1.0, 1.0 + stated[2]]);
    world.gate("second:1", "second:2", LESS) == Gate::Exceeded
}

fn any_difference(random: &mut Random, speeds: &[f64], repeats: u32) -> bool {
    let mut world = World::new();
    let plan = synthetic::builds(speeds.len(), repeats, random);
    world.run(random, ("run", 1), &plan, 0.0, speeds);
    let view = world.show("run");
    let apart = |ratio: &Value| ratio["told_apart"] == true;
    elements(&view["comparisons"]).any(|c| apart(&c["ratio"]))
        || elements(&view["treatments"]).any(|t| apart(&t["ratio_to_best"]))
}

/// Whether the interval of a treatment's ratio to the best, drawn among those that are not the
/// best, holds the truth.
fn best_is_covered(random: &mut Random, speeds: [f64; 4]) -> bool {
    let mut world = World::new();
    let plan = synthetic::plan(&["a", "b", "c", "d"], 5, random);
    world.run(random, ("run", 1), &plan, 0.0, &speeds);
    let view = world.show("run");
    let best = usize::try_from(view["best"].as_u64().unwrap()).unwrap();
    let others: Vec<usize> = (0..4).filter(|i| *i != best).collect();
    let drawn = others[(random.uniform() * 3.0) as usize];
    let interval = &view["treatments"][drawn]["ratio_to_best"]["ci95"];
    let (lo, hi) = (interval[0].as_f64().unwrap(), interval[1].as_f64().unwrap());
    let truth = speeds[drawn] / speeds[best];
    lo <= truth && truth <= hi
}

/// Whether a run of which half is done has any verdict, although one build is much slower.
fn unfinished(random: &mut Random) -> bool {
    let mut world = World::new();
    let plan = synthetic::plan(&["base", "head"], 10, random);
    let session = synthetic::begin(&mut world.store, "run", "synthetic", 1, &plan);
    for planned in plan.trials.iter().take(10) {
        let speed = if planned.treatment == 0 { 1.0 } else { 0.5 };
        let trial =
            synthetic::trial(&plan, planned, TPS * speed * (SPREAD * random.normal()).exp(), 20);
        world.store.add_trial("run", session, &trial).unwrap();
    }
    world.store.end_session(session, SessionEnd::Interrupted).unwrap();
    let view = world.show("run");
    let verdict = |ratio: &Value| !ratio["told_apart"].is_null();
    verdict(&view["comparisons"][0]["ratio"])
        || elements(&view["treatments"]).any(|t| verdict(&t["ratio_to_best"]))
        || world.gate("run:1", "run:2", LESS) != Gate::Undecided
}

fn any_trend(random: &mut Random) -> bool {
    let mut world = World::new();
    let plan = synthetic::builds(16, 10, random);
    world.run(random, ("run", 1), &plan, 0.0, &[1.0; 16]);
    let view = world.show("run");
    let notes = view["notes"].as_array().unwrap();
    notes.iter().any(|note| {
        let note = note.as_str().unwrap();
        note.contains("rises") || note.contains("falls")
    })
}

/// Two runs, the second's build with that speed, after `earlier` runs of the first's build; each
/// run has an effect of its own.
fn two_runs(random: &mut Random, earlier: u64, spread: f64, repeats: u32, slower: f64) -> Gate {
    let condition = if slower < 1.0 { LESS } else { ANY_LESS };
    let mut world = World::new();
    let run = |world: &mut World, random: &mut Random, name: &str, number: u64, speed: f64| {
        let plan = synthetic::plan(&["build"], repeats, random);
        let level = speed * (spread * random.normal()).exp();
        world.run(random, (name, number), &plan, 0.0, &[level]);
    };
    for number in 0..earlier {
        run(&mut world, random, &format!("earlier-{number}"), number, 1.0);
    }
    run(&mut world, random, "before", 100, 1.0);
    run(&mut world, random, "after", 101, slower);
    world.gate("before", "after", condition)
}

/// Whether two systems that keep an objective up to a sharp limit are called different; the
/// second's limit is `other` of the first's.
fn capacities(random: &mut Random, other: f64) -> bool {
    const LIMIT: f64 = 8_000.0;
    const RESOLUTION: f64 = 0.03;
    let mut world = World::new();
    let mut plan = synthetic::plan(&["base", "head"], 5, random);
    let seed = (random.uniform() * 1e15) as u64;
    plan.find = Some(Find::new("p99 < 20ms".parse().unwrap(), std::time::Duration::from_secs(60)));
    let session = synthetic::begin(&mut world.store, "run", "synthetic", 1, &plan);
    for planned in &plan.trials {
        let limit = LIMIT * if planned.treatment == 0 { 1.0 } else { other };
        // A closed loop reaches about the same each time on a quiet host.
        let tps = 1.2 * limit * (0.0005 * random.normal()).exp();
        let mut search =
            search::RateSearch::new(tps, RESOLUTION, search::dither(seed, planned.ordinal));
        while let Some(ask) = search.request() {
            search.answer(ask.rate < limit);
        }
        let mut trial = synthetic::trial(&plan, planned, tps, 20);
        trial.measurement.as_mut().unwrap().search = Some(Search {
            max_rate: search.max_rate(),
            least_broken: search.least_broken(),
            steps: Vec::new(),
        });
        world.store.add_trial("run", session, &trial).unwrap();
    }
    world.store.end_session(session, SessionEnd::Completed).unwrap();
    world.show("run")["comparisons"][0]["ratio"]["told_apart"] == true
}

/// Whether somebody who adds repeats where nothing is significant is told a difference of equal
/// builds.
fn extended(random: &mut Random) -> bool {
    let mut world = World::new();
    let mut plan = synthetic::plan(&["base", "head"], 10, random);
    let all = plan.trials.clone();
    plan.trials.truncate(10);
    world.run(random, ("run", 1), &plan, 0.0, &[1.0, 1.0]);
    let is_apart =
        |world: &World| world.show("run")["comparisons"][0]["ratio"]["told_apart"] == true;
    if is_apart(&world) {
        return true;
    }
    plan.trials = all;
    plan.extended_after = vec![5];
    world.store.extend_run("run", Epoch(1), &[], &plan).unwrap();
    let session =
        world.store.begin_session("run", &synthetic::session(&["here".to_owned()])).unwrap();
    for planned in &plan.trials[10..] {
        let trial = synthetic::trial(&plan, planned, TPS * (SPREAD * random.normal()).exp(), 20);
        world.store.add_trial("run", session, &trial).unwrap();
    }
    world.store.end_session(session, SessionEnd::Completed).unwrap();
    is_apart(&world)
}

/// Judgement of a trial whose seconds are steady.
struct Said {
    /// Whether a warm-up or a change was found.
    is_unsteady: bool,
    /// The trial's interval holds the true mean, or there is none.
    is_covered: bool,
}

/// Judges one trial of 120 seconds that vary by 5% around their mean and resemble their neighbours.
fn seconds(random: &mut Random, alike: f64) -> Said {
    let mut world = World::new();
    let plan = synthetic::plan(&["only"], 1, random);
    let session = synthetic::begin(&mut world.store, "run", "synthetic", 1, &plan);
    let mut last = random.normal();
    let series: Vec<f64> = (0..120)
        .map(|_| {
            last = alike * last + (1.0 - alike * alike).sqrt() * random.normal();
            TPS * (1.0 + 0.05 * last)
        })
        .collect();
    let mut trial = synthetic::trial(&plan, &plan.trials[0], TPS, 20);
    synthetic::with_seconds(&mut trial, &series);
    world.store.add_trial("run", session, &trial).unwrap();
    world.store.end_session(session, SessionEnd::Completed).unwrap();
    let view = world.show("run");
    let steadiness = &view["trials"][0]["steadiness"];
    let warm_up =
        steadiness["warm_up_s"].as_u64().is_some_and(|s| s > 0) || steadiness["steady"] == false;
    let changes = steadiness["changes"].as_array().is_some_and(|changes| !changes.is_empty());
    let mean = series.iter().sum::<f64>() / 120.0;
    let covered = |half: f64| (mean - TPS).abs() <= half * mean;
    Said {
        is_unsteady: warm_up || changes,
        is_covered: steadiness["within"].as_f64().is_none_or(covered),
    }
}

/// One run of two builds on a host whose A/A run found a floor of about 9%.
fn beside_floor(random: &mut Random, slower: f64) -> Gate {
    let mut world = World::new();
    let mut same = synthetic::plan(&["A", "A-again"], 6, random);
    same.treatments.iter_mut().for_each(|t| t.settings.clear());
    // The same disturbance in every store: what is asked is what a gate makes of it.
    synthetic::add(&mut world.store, ("floor", 1), &same, |planned| {
        let around = 1.03 + 0.06 * (f64::from(planned.block % 3) - 1.0);
        TPS * if planned.treatment == 0 { 1.0 } else { around }
    });
    let plan = synthetic::plan(&["base", "head"], 6, random);
    world.run(random, ("run", 2), &plan, 0.0, &[1.0, slower]);
    world.gate("run:1", "run:2", LESS)
}
