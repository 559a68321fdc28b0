//! The promises about many treatments of one run, judged together.
//!
//! The program's JSON has the planned pairs only, its pages have all. So these are judged by the
//! call that both make.

use pgdyno_analysis::{PairRow, analyse};
use pgdyno_model::Plan;

use super::cells::{Cell, Promise, TPS, World, cell};
use pgdyno_test_support::records::Random;
use pgdyno_test_support::synthetic;

pub(crate) const CELLS: &[Cell] = &[
    cell("16 builds, 3 repeats, one 10% faster: found beside all", Promise::AtLeast(95.0), |r| {
        let found = Found::judge(r, &[&[(1.1, 0.01)][..], &[(1.0, 0.01); 15]].concat(), 3);
        (1..16).all(|other| found.is_apart(0, other))
    }),
    cell("the same, 4% faster", Promise::AtLeast(30.0), |r| {
        let found = Found::judge(r, &[&[(1.04, 0.01)][..], &[(1.0, 0.01); 15]].concat(), 3);
        (1..16).all(|other| found.is_apart(0, other))
    }),
    cell("4 builds, 3 repeats, spread 5%, one 40% faster: found", Promise::AtLeast(95.0), |r| {
        let found = Found::judge(r, &[(1.4, 0.05), (1.0, 0.05), (1.0, 0.05), (1.0, 0.05)], 3);
        (1..4).all(|other| found.is_apart(0, other))
    }),
    cell(
        "two alike 5% apart beside one ten times as wild, 4 repeats: found",
        Promise::AtLeast(80.0),
        |r| Found::judge(r, &[(1.05, 0.01), (1.0, 0.01), (1.0, 0.1)], 4).is_apart(0, 1),
    ),
    cell("the same, 3 repeats", Promise::AtLeast(35.0), |r| {
        Found::judge(r, &[(1.05, 0.01), (1.0, 0.01), (1.0, 0.1)], 3).is_apart(0, 1)
    }),
    cell("equal builds, 16, 3 repeats, spread 20%: any difference", Promise::AtMost(5.0), |r| {
        Found::judge(r, &[(1.0, 0.2); 16], 3).any()
    }),
    cell("equal builds, 3, 3 repeats: any difference", Promise::AtMost(5.0), |r| {
        Found::judge(r, &[(1.0, 0.01); 3], 3).any()
    }),
    cell(
        "equal builds, three ten times as wild as three, 4 repeats: any difference",
        Promise::AtMost(6.0),
        |r| Found::judge(r, &[[(1.0, 0.01); 3], [(1.0, 0.1); 3]].concat(), 4).any(),
    ),
    cell(
        "equal builds, one ten times as wild as five, 4 repeats: any difference",
        Promise::AtMost(6.0),
        |r| Found::judge(r, &[&[(1.0, 0.01); 5][..], &[(1.0, 0.1)]].concat(), 4).any(),
    ),
    cell(
        "four builds 0, 1, 2, 3% apart, 3 repeats: all intervals hold",
        Promise::AtLeast(94.0),
        |r| {
            Found::judge(r, &[(1.0, 0.02), (1.01, 0.02), (1.02, 0.02), (1.03, 0.02)], 3).holds_all()
        },
    ),
    cell("16 equal builds, 3 repeats: the first may be the best", Promise::AtLeast(95.0), |r| {
        Found::judge(r, &[(1.0, 0.01); 16], 3).best.contains(&0)
    }),
    cell(
        "four builds 0, 1, 2, 3% apart, 3 repeats: the fastest may be the best",
        Promise::AtLeast(95.0),
        |r| {
            let speeds = [(1.03, 0.02), (1.02, 0.02), (1.01, 0.02), (1.0, 0.02)];
            Found::judge(r, &speeds, 3).best.contains(&0)
        },
    ),
    cell(
        "16 builds, 3 repeats, one 4% faster: nobody else may be the best",
        Promise::AtLeast(60.0),
        |r| {
            let found = Found::judge(r, &[&[(1.04, 0.01)][..], &[(1.0, 0.01); 15]].concat(), 3);
            found.best == [0]
        },
    ),
    cell(
        "report 001, sequential, ext2, both xfs and jfs set equal: any two of them differ",
        Promise::AtMost(10.0),
        |r| {
            let found = Found::of_report(r, [1.0; 4]);
            pairs(4).any(|(a, b)| found.is_apart(a, b))
        },
    ),
    cell(
        "the same: ext3 is told from ext2, the wildest of the four",
        Promise::AtLeast(99.0),
        |r| Found::of_report(r, [1.0; 4]).is_apart(0, 4),
    ),
    cell("the same: ext3, ext4 and reiserfs are told from all four", Promise::AtLeast(95.0), |r| {
        let found = Found::of_report(r, [1.0; 4]);
        (0..4).all(|alike| (4..7).all(|other| found.is_apart(alike, other)))
    }),
    cell("the same with the report's own means: any two of the four differ", Promise::None, |r| {
        let found = Found::of_report(r, [1.0, 0.873, 0.913, 0.920]);
        pairs(4).any(|(a, b)| found.is_apart(a, b))
    }),
];

/// Verdicts of a run whose treatments' true speeds are known.
pub(super) struct Found {
    speeds: Vec<f64>,
    rows: Vec<PairRow>,
    /// Treatments that may be the fastest.
    best: Vec<usize>,
}

impl Found {
    /// Judges a run of treatments with these speeds and spreads (logarithms), in a random order.
    fn judge(random: &mut Random, treatments: &[(f64, f64)], repeats: u32) -> Self {
        Self::run(random, treatments, repeats, false)
    }

    /// Judges a run like field report 001's: four repeats, one treatment after the other. Its four
    /// fastest filesystems (ext2, xfs, xfs tuned, jfs) have those speeds.
    fn of_report(random: &mut Random, fastest: [f64; 4]) -> Self {
        let spreads = [0.115, 0.072, 0.110, 0.090];
        let fastest: Vec<(f64, f64)> = fastest.into_iter().zip(spreads).collect();
        let others = [(293.0 / 585.0, 0.050), (106.0 / 585.0, 0.040), (101.0 / 585.0, 0.005)];
        Self::run(random, &[&fastest[..], &others].concat(), 4, true)
    }

    fn run(
        random: &mut Random,
        treatments: &[(f64, f64)],
        repeats: u32,
        is_sequential: bool,
    ) -> Self {
        let mut plan = synthetic::builds(treatments.len(), repeats, random);
        if is_sequential {
            plan.trials.sort_by_key(|trial| (trial.treatment, trial.block));
            plan.trials.iter_mut().zip(0..).for_each(|(trial, ordinal)| trial.ordinal = ordinal);
        }
        Self::in_world(&mut World::new(), random, &plan, treatments)
    }

    /// Judges a run of `plan` in a store that may hold others.
    pub(super) fn in_world(
        world: &mut World,
        random: &mut Random,
        plan: &Plan,
        treatments: &[(f64, f64)],
    ) -> Self {
        synthetic::add(&mut world.store, ("run", 1_000), plan, |planned| {
            let (speed, spread) = treatments[planned.treatment];
            TPS * speed * (spread * random.normal()).exp()
        });
        let view = analyse(&world.store, "run").unwrap();
        assert!(view.pairs.complete);
        let best = view.treatments.iter().filter(|t| t.may_be_best == Some(true));
        Self {
            speeds: treatments.iter().map(|(speed, _)| *speed).collect(),
            rows: view.pairs.rows,
            best: best.map(|t| t.index).collect(),
        }
    }

    pub(super) fn is_apart(&self, a: usize, b: usize) -> bool {
        let is_it = |row: &&PairRow| (row.0, row.1) == (a.min(b), a.max(b));
        self.rows.iter().find(is_it).unwrap().6 == Some(true)
    }

    pub(super) fn any(&self) -> bool {
        self.rows.iter().any(|row| row.6 == Some(true))
    }

    fn holds_all(&self) -> bool {
        self.rows.iter().all(|PairRow(a, b, _, low, high, ..)| {
            let truth = self.speeds[*b] / self.speeds[*a];
            (low.unwrap()..=high.unwrap()).contains(&truth)
        })
    }
}

fn pairs(treatments: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..treatments).flat_map(move |a| (a + 1..treatments).map(move |b| (a, b)))
}
