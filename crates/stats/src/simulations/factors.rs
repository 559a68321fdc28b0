//! Ordered factors and interactions: what is falsely said, what is found, what curves hold.

use super::pairs::{judged, trials};
use super::{is_apart, share, times};
use crate::{Cells, RunDesign, RunTrials, average_ratio, courses, interactions};

const FLAT: [f64; 6] = [1000.0; 6];
const PEAK: [f64; 6] = [700.0, 900.0, 1000.0, 1030.0, 1010.0, 950.0];

#[test]
fn at_most_5_of_100_flat_sweeps_rise_or_fall_and_curves_hold_the_truth() {
    for (name, truth, spreads, repeats) in [
        ("flat", FLAT, [0.03; 6], 3),
        ("flat, one wild", FLAT, [0.01, 0.01, 0.01, 0.01, 0.01, 0.1], 4),
        ("one peak", PEAK, [0.03; 6], 3),
        ("one peak, more noise", PEAK, [0.1; 6], 5),
    ] {
        let treatments: Vec<(f64, f64)> = truth.into_iter().zip(spreads).collect();
        let mean = truth.iter().map(|tps| tps.ln()).sum::<f64>() / 6.0;
        let best = (0..6).max_by(|a, b| truth[*a].total_cmp(&truth[*b])).unwrap();
        let (mut peak_held, mut widths, mut curves, mut runs) = (0.0, 0.0, 0.0, 0.0);
        let wrong = share(31, |random| {
            let trials = trials(random, &treatments, repeats);
            let trials: Vec<&[(u32, f64)]> = trials.iter().map(Vec::as_slice).collect();
            let course =
                courses(&RunTrials::new(&trials, RunDesign::new(true)), &[(0..6).collect()])
                    .remove(0)
                    .unwrap();
            let holds = |(fit, tps): (&crate::Fit, &f64)| {
                let truth = (tps.ln() - mean).exp();
                (fit.band[0]..=fit.band[1]).contains(&truth)
            };
            runs += 1.0;
            curves += f64::from(u32::from(!course.curve.is_empty()));
            if let Some([first, last]) = course.peak {
                let is_held = truth == FLAT || (first..=last).contains(&best);
                peak_held += f64::from(u32::from(is_held));
                widths += f64::from(u32::try_from(last - first + 1).unwrap());
            }
            let is_flat = truth == FLAT;
            (is_flat && (course.rises || course.falls))
                || course.peak.is_none()
                || !course.curve.iter().zip(&truth).all(holds)
        });
        eprintln!(
            "{name}, {repeats} repeats: wrong in {wrong:.1}%; peak held in {:.1}%, {:.1} of 6 \
             levels; curves in {:.1}%",
            100.0 * peak_held / runs,
            widths / runs,
            100.0 * curves / runs
        );
        // 5%, and two standard errors; as much as pairs where one is wild.
        assert!(wrong <= 7.1, "{name}: {wrong}%");
        assert!(peak_held / runs >= 0.93, "{name}");
    }
}

#[test]
fn neighbours_tell_a_rise_more_often_than_pairs() {
    for (name, logs) in [
        ("a steady rise of 2% a level", [0.0, 0.02, 0.04, 0.06, 0.08, 0.1]),
        ("a step of 6%", [0.0, 0.0, 0.0, 0.06, 0.06, 0.06]),
        ("one level 10% above five", [0.0, 0.0, 0.0, 0.0, 0.0, 0.1]),
    ] {
        let treatments: Vec<(f64, f64)> =
            logs.iter().map(|log: &f64| (1000.0 * log.exp(), 0.05)).collect();
        let mut by_pairs = 0.0;
        let found = share(32, |random| {
            let trials = trials(random, &treatments, 5);
            by_pairs += f64::from(u32::from(judged(&trials, true).values().any(is_apart)));
            let trials: Vec<&[(u32, f64)]> = trials.iter().map(Vec::as_slice).collect();
            courses(&RunTrials::new(&trials, RunDesign::new(true)), &[(0..6).collect()])[0]
                .as_ref()
                .unwrap()
                .rises
        });
        let by_pairs = 100.0 * by_pairs / f64::from(times());
        eprintln!("{name}, spread 5%, 5 repeats: found in {found:.1}%, by pairs in {by_pairs:.1}%");
        let least = if logs[2] == 0.0 && logs[3] == 0.0 { -5.0 } else { 5.0 };
        assert!(found >= by_pairs + least, "{name}: {found}%, by pairs {by_pairs}%");
    }
}

/// Returns a table of `rows` × `columns` treatments.
fn table(rows: usize, columns: usize) -> Cells {
    (0..rows).map(|r| (0..columns).map(|c| vec![r * columns + c]).collect()).collect()
}

#[test]
fn effects_that_do_not_depend_on_each_other_seldom_seem_to() {
    for (rows, columns, wild, repeats) in
        [(2, 2, 1.0, 3), (2, 6, 1.0, 3), (3, 4, 1.0, 3), (2, 3, 10.0, 4), (2, 3, 3.0, 4)]
    {
        let cell = |r: usize, c: usize| {
            let tps = 1000.0 * (1.0 + r as f64) * (1.0 + 0.3 * c as f64);
            (tps, if r + c == 0 { 0.02 * wild } else { 0.02 })
        };
        let treatments: Vec<(f64, f64)> =
            (0..rows).flat_map(|r| (0..columns).map(move |c| cell(r, c))).collect();
        for has_blocks in [true, false] {
            let mut held = 0.0;
            let wrong = share(33, |random| {
                let trials = trials(random, &treatments, repeats);
                let trials: Vec<&[(u32, f64)]> = trials.iter().map(Vec::as_slice).collect();
                let found = interactions(
                    &RunTrials::new(&trials, RunDesign::new(has_blocks)),
                    &[table(rows, columns)],
                );
                let found = found[0].as_ref().unwrap();
                held += f64::from(u32::from(found.ci95[0] <= 1.0));
                found.p <= 0.05
            });
            let held = 100.0 * held / f64::from(times());
            eprintln!(
                "interaction of {rows} × {columns}, one {wild} times as wild, blocks {has_blocks}: \
                 falsely found in {wrong:.1}%, interval holds {held:.1}%"
            );
            assert!(wrong <= 7.1 && held >= 92.9, "{rows} × {columns}: {wrong}%, {held}%");
        }
    }
}

#[test]
fn an_average_effect_that_is_none_is_seldom_told_and_one_that_is_not_mostly() {
    let pairs = [(0, 3), (1, 4), (2, 5)];
    for (wild, repeats) in [(1.0, 3), (3.0, 4), (10.0, 4)] {
        for has_blocks in [true, false] {
            let mut told = 0.0;
            let wrong = share(35, |random| {
                let mut of = |effect: f64| {
                    let spread = |t: usize| if t == 0 { 0.05 * wild } else { 0.05 };
                    let level = |t: usize| {
                        [1000.0, 3000.0, 2000.0][t % 3] * if t < 3 { effect } else { 1.0 }
                    };
                    let treatments: Vec<(f64, f64)> =
                        (0..6).map(|t| (level(t), spread(t))).collect();
                    let trials = trials(random, &treatments, repeats);
                    let trials: Vec<&[(u32, f64)]> = trials.iter().map(Vec::as_slice).collect();
                    let found =
                        average_ratio(&RunTrials::new(&trials, RunDesign::new(has_blocks)), &pairs)
                            .unwrap();
                    found.p.is_some_and(|p| p <= 0.05)
                };
                told += f64::from(u32::from(of(0.8)));
                of(1.0)
            });
            let told = 100.0 * told / f64::from(times());
            eprintln!(
                "average over 3, spread 5%, one {wild} times as wild, {repeats} repeats, blocks \
                 {has_blocks}: falsely told {wrong:.1}%, 20% told {told:.1}%"
            );
            assert!(wrong <= 7.1, "{wild}, {has_blocks}: {wrong}%");
            assert!(wild > 1.0 || told >= 90.0, "{told}%");
        }
    }
}

#[test]
fn an_effect_that_depends_on_another_factor_is_found() {
    // off is 1.2 times as fast as on in one column and 1.5 times in the other.
    let treatments = [(1000.0, 0.05), (1200.0, 0.05), (3000.0, 0.05), (4500.0, 0.05)];
    for (repeats, least) in [(3, 40.0), (5, 80.0), (8, 95.0)] {
        let found = share(34, |random| {
            let trials = trials(random, &treatments, repeats);
            let trials: Vec<&[(u32, f64)]> = trials.iter().map(Vec::as_slice).collect();
            let found =
                interactions(&RunTrials::new(&trials, RunDesign::new(true)), &[table(2, 2)]);
            found[0].as_ref().is_some_and(|found| found.p <= 0.05)
        });
        eprintln!("1.2 beside 1.5 times, spread 5%, {repeats} repeats: found in {found:.1}%");
        assert!(found >= least, "{repeats} repeats: {found}%");
    }
}
