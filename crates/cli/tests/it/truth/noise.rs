//! The promises about a host's noise: what other experiments tell of two runs, and forecasts.

use pgdyno_analysis::host_noise::{forecast, learn};
use pgdyno_analysis::{PairRow, analyse};
use pgdyno_model::Plan;

use super::cells::{ANY_LESS, Cell, Gate, LESS, Promise, TPS, World, cell};
use super::pairs::Found;
use pgdyno_test_support::records::{Random, session_record};
use pgdyno_test_support::synthetic;

pub(crate) const CELLS: &[Cell] = &[
    cell(
        "two runs of equal builds, spread of runs 2%, none earlier, three other experiments run 4 \
         times: exceeded",
        Promise::AtMost(2.5),
        |r| Host { others: &[4, 4, 4], differ: 0.0 }.gate(r, 1.0, ANY_LESS) == Gate::Exceeded,
    ),
    cell("the same, the experiments' spreads differ (30%)", Promise::AtMost(4.0), |r| {
        Host { others: &[4, 4, 4], differ: 0.3 }.gate(r, 1.0, ANY_LESS) == Gate::Exceeded
    }),
    cell("the same, one other experiment run 10 times", Promise::AtMost(4.0), |r| {
        Host { others: &[10], differ: 0.3 }.gate(r, 1.0, ANY_LESS) == Gate::Exceeded
    }),
    cell(
        "three other experiments run 4 times, the second build 10% slower: exceeded",
        Promise::AtLeast(80.0),
        |r| Host { others: &[4, 4, 4], differ: 0.0 }.gate(r, 0.9, ANY_LESS) == Gate::Exceeded,
    ),
    cell(
        "the same beside three other experiments: `tps < -3%` is exceeded",
        Promise::AtLeast(50.0),
        |r| Host { others: &[4, 4, 4], differ: 0.0 }.gate(r, 0.9, LESS) == Gate::Exceeded,
    ),
    cell(
        "2 equal builds, 3 repeats, after one other experiment; spreads of 3% differ (40%): any \
         difference",
        Promise::AtMost(6.0),
        |r| Before { experiments: 1, differ: 0.4 }.found(r, &[1.0; 2]).any(),
    ),
    cell("the same, after three other experiments", Promise::AtMost(6.0), |r| {
        Before { experiments: 3, differ: 0.4 }.found(r, &[1.0; 2]).any()
    }),
    cell("the same, 4 builds", Promise::AtMost(5.0), |r| {
        Before { experiments: 3, differ: 0.4 }.found(r, &[1.0; 4]).any()
    }),
    cell(
        "2 builds, 3 repeats, one 12% faster, after nothing else: found",
        Promise::AtLeast(55.0),
        |r| Before { experiments: 0, differ: 0.4 }.found(r, &[1.12, 1.0]).is_apart(0, 1),
    ),
    cell("the same, after three other experiments", Promise::AtLeast(80.0), |r| {
        Before { experiments: 3, differ: 0.4 }.found(r, &[1.12, 1.0]).is_apart(0, 1)
    }),
    cell(
        "a run of 4 builds, 5 repeats, one faster by what its plan was said to find: found",
        Promise::About(80.0, 5.0),
        found_as_forecast,
    ),
];

/// A host with other experiments of four builds and three repeats, each run once. Spreads are 3%.
struct Before {
    experiments: u32,
    /// How far the logarithms of all spreads differ.
    differ: f64,
}

impl Before {
    /// Judges a run of builds with these `speeds` and three repeats.
    fn found(&self, random: &mut Random, speeds: &[f64]) -> Found {
        let mut world = World::new();
        for experiment in 1..=self.experiments {
            let mut plan = synthetic::builds(4, 3, random);
            plan.name = format!("experiment {experiment}");
            let spread = self.spread(random);
            let id = format!("run of {experiment}");
            synthetic::add(&mut world.store, (&id, experiment.into()), &plan, |_| {
                TPS * (spread * random.normal()).exp()
            });
        }
        let spread = self.spread(random);
        let mut plan = synthetic::builds(speeds.len(), 3, random);
        learn(&world.store, &mut plan, &session_record().host).unwrap();
        assert_eq!(plan.noise_prior.is_some(), self.experiments > 0);
        let treatments: Vec<(f64, f64)> = speeds.iter().map(|speed| (*speed, spread)).collect();
        Found::in_world(&mut world, random, &plan, &treatments)
    }

    fn spread(&self, random: &mut Random) -> f64 {
        0.03 * (self.differ * random.normal()).exp()
    }
}

/// A host with other experiments, run so many times each.
struct Host {
    others: &'static [u64],
    /// How far the logarithms of their spreads differ.
    differ: f64,
}

impl Host {
    /// Judges two runs of an experiment that was not run before, the second's build with that
    /// `speed`.
    fn gate(&self, random: &mut Random, speed: f64, condition: &str) -> Gate {
        let mut world = World::new();
        let mut number = 0;
        let mut run =
            |world: &mut World, random: &mut Random, name: &str, of: (u32, f64), speed| {
                let (clients, spread) = of;
                number += 1;
                let plan = plan(clients, random);
                let level: f64 = speed * (spread * random.normal()).exp();
                world.run(random, (name, number), &plan, 0.0, &[level]);
            };
        for (experiment, runs) in (1..).zip(self.others) {
            let spread = self.spread(random);
            for n in 0..*runs {
                let name = format!("other-{experiment}-{n}");
                run(&mut world, random, &name, (experiment, spread), 1.0);
            }
        }
        let spread = self.spread(random);
        run(&mut world, random, "before", (100, spread), 1.0);
        run(&mut world, random, "after", (100, spread), speed);
        world.gate("before", "after", condition)
    }

    fn spread(&self, random: &mut Random) -> f64 {
        0.02 * (self.differ * random.normal()).exp()
    }
}

/// A plan of one build, for an experiment that its number of clients tells from others.
fn plan(clients: u32, random: &mut Random) -> Plan {
    let mut plan = synthetic::plan(&["build"], 5, random);
    plan.name = format!("of {clients} clients");
    plan.treatments.iter_mut().for_each(|t| t.clients = clients);
    plan
}

/// Asks what a plan will find after one run on the host, and runs it with just that difference.
fn found_as_forecast(random: &mut Random) -> bool {
    let mut world = World::new();
    let before = synthetic::builds(16, 10, random);
    world.run(random, ("before", 1), &before, 0.0, &[1.0; 16]);
    let (mut plan, host) = (synthetic::builds(4, 5, random), session_record().host);
    learn(&world.store, &mut plan, &host).unwrap();
    let told = forecast(Some(&world.store), &plan, &host, true).unwrap().unwrap();
    let faster = 1.0 + told.finds[0].difference;
    world.run(random, ("run", 2), &plan, 0.0, &[faster, 1.0, 1.0, 1.0]);
    let view = analyse(&world.store, "run").unwrap();
    let is_pair = |row: &&PairRow| (row.0, row.1) == (0, 1);
    view.pairs.rows.iter().find(is_pair).is_some_and(|row| row.6 == Some(true))
}
