//! The promises about whole factors: courses, interactions, pairs that a question asks for.

use pgdyno_model::{Answer, AnswerKind, LevelValue, Plan};
use pgdyno_test_support::records::Random;
use pgdyno_test_support::synthetic;
use serde_json::Value;

use super::cells::{Cell, Promise, TPS, World, cell};
use crate::support::elements;

/// Speeds over six levels, with the fourth the highest.
const PEAK: [f64; 6] = [0.7, 0.9, 1.0, 1.03, 1.01, 0.95];

pub(crate) const CELLS: &[Cell] = &[
    cell(
        "6 equal numbers of clients, two builds, 3 repeats: tps is said to rise or fall",
        Promise::AtMost(5.0),
        |r| {
            let said = judged(r, sweep, 3, 0.03, &|_, _| 1.0);
            elements(&said["courses"])
                .any(|course| course["rises"] == true || course["falls"] == true)
        },
    ),
    cell(
        "a peak with the fourth of them, spread 3%: it lies where it is said",
        Promise::AtLeast(95.0),
        |r| {
            let said = judged(r, sweep, 3, 0.03, &|_, level| PEAK[level]);
            elements(&said["courses"]).all(|course| {
                let [first, last] = [0, 1].map(|end| course["peak"][end].as_u64().unwrap());
                (first..=last).contains(&3)
            })
        },
    ),
    cell("the same: at most three of the six may be it", Promise::AtLeast(30.0), |r| {
        let said = judged(r, sweep, 3, 0.03, &|_, level| PEAK[level]);
        let [first, last] = [0, 1].map(|end| said["courses"][0]["peak"][end].as_u64().unwrap());
        last - first < 3
    }),
    cell(
        "two builds by three levels, the effect is the same: an interaction is told",
        Promise::AtMost(5.0),
        |r| {
            let speed = |build: usize, level: usize| [1.0, 1.3][build] * [1.0, 2.0, 2.5][level];
            depends(&judged(r, levels, 3, 0.03, &speed))
        },
    ),
    cell(
        "an effect of 1.2 at one level and 1.5 at two others, spread 5%, 5 repeats: told",
        Promise::AtLeast(90.0),
        |r| {
            let speed =
                |build: usize, level: usize| [[1.0, 2.0, 2.5], [1.2, 3.0, 3.75]][build][level];
            depends(&judged(r, levels, 5, 0.05, &speed))
        },
    ),
    cell(
        "two builds with six numbers of clients, spread 5%, 3 repeats: an effect on average that \
         is none",
        Promise::AtMost(5.0),
        |r| judged(r, asked, 3, 0.05, &|_, level| PEAK[level])["effect"]["significant"] == true,
    ),
    cell("the same, each is 7% slower: told", Promise::AtLeast(80.0), |r| {
        let said = judged(r, asked, 3, 0.05, &|build, level| [1.0, 0.93][build] * PEAK[level]);
        said["effect"]["significant"] == true
    }),
    cell(
        "12 equal treatments, an effect of 6 pairs is asked for, 3 repeats: any difference",
        Promise::AtMost(5.0),
        |r| {
            let said = judged(r, asked, 3, 0.03, &|_, _| 1.0);
            let is_apart = |ratio: &Value| ratio["told_apart"] == true;
            let comparisons = elements(&said["comparisons"]);
            let treatments = elements(&said["treatments"]);
            let to_best = treatments.map(|t| &t["ratio_to_best"]);
            comparisons.map(|c| &c["ratio"]).chain(to_best).any(is_apart)
        },
    ),
    cell(
        "the same, each of the 6 is 20% slower, spread 5%: at least one is found",
        Promise::AtLeast(90.0),
        |r| {
            let said = judged(r, asked, 3, 0.05, &|build, _| [1.0, 0.8][build]);
            elements(&said["comparisons"])
                .any(|c| c["factor"] == "build" && c["ratio"]["told_apart"] == true)
        },
    ),
];

fn depends(said: &Value) -> bool {
    said["interactions"][0]["depends"] == true
}

/// Two builds with six numbers of clients.
fn sweep(repeats: u32, random: &mut Random) -> Plan {
    let clients: Vec<LevelValue> = [1, 2, 4, 8, 16, 32].map(LevelValue::Int).into();
    synthetic::crossed(&["old", "new"], "clients", &clients, repeats, random)
}

/// Two builds on three storages.
fn levels(repeats: u32, random: &mut Random) -> Plan {
    let storages = ["ext4", "xfs", "btrfs"].map(|name| LevelValue::Text(name.into()));
    synthetic::crossed(&["old", "new"], "storage", &storages, repeats, random)
}

/// The sweep, with a question about the new build.
fn asked(repeats: u32, random: &mut Random) -> Plan {
    let mut plan = sweep(repeats, random);
    let [level, against] = ["new", "old"].map(|level| Some(level.to_owned()));
    plan.answer = Some(Answer { kind: AnswerKind::Effect, level, against, words: None });
    plan
}

/// Returns the program's document of a run of `plan`, whose trials have this `spread` around the
/// speed of their build and level.
fn judged(
    random: &mut Random,
    plan: fn(u32, &mut Random) -> Plan,
    repeats: u32,
    spread: f64,
    speed: &dyn Fn(usize, usize) -> f64,
) -> Value {
    let mut world = World::new();
    let plan = plan(repeats, random);
    let levels = plan.treatments.len() / 2;
    synthetic::add(&mut world.store, ("run", 1), &plan, |planned| {
        let (build, level) = (planned.treatment / levels, planned.treatment % levels);
        TPS * speed(build, level) * (spread * random.normal()).exp()
    });
    world.show("run")
}
