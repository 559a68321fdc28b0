//! Verdicts on simulated trials that are steady, whatever their seconds look like.
//!
//! The table of docs/statistics.md, section "Within a trial", is what [`the_truth_within_a_trial`]
//! prints: `just seconds`.

use super::super::{WarmUp, changes, relative_error_of_mean, warm_up};
use crate::random::{Normal, autoregression};

/// Course of the seconds of a steady trial. All have mean 1 and a spread of 5%.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Seconds {
    /// A first-order autoregression.
    Alike,
    /// A first-order autoregression under as much independent noise.
    Hidden,
    /// Every 30 seconds a checkpoint takes a fifth, which comes back over ten seconds.
    Checkpoints,
}

impl Seconds {
    fn draw(self, random: &mut Normal, n: usize, r: f64) -> Vec<f64> {
        let dip = |second: usize| 0.2 * (1.0 - second as f64 / 10.0).max(0.0);
        let mean_dip = (0..30).map(dip).sum::<f64>() / 30.0;
        let first = (30.0 * random.uniform()) as usize;
        let alike = autoregression(random, n, r);
        let second = |(i, noise): (usize, f64)| match self {
            Self::Alike => 1.0 + 0.05 * noise,
            Self::Hidden => 1.0 + 0.05 * (noise + random.draw()) / 2f64.sqrt(),
            Self::Checkpoints => 1.0 + 0.05 * noise + mean_dip - dip((first + i) % 30),
        };
        alike.into_iter().enumerate().map(second).collect()
    }
}

/// Verdicts on steady series (shares in percent).
#[derive(Debug)]
struct Said {
    /// Series with an interval of their mean.
    spoken: f64,
    /// Those of them whose interval holds the true mean.
    covered: f64,
    warm_ups: f64,
    /// Series without a verdict on a warm-up.
    not_judged: f64,
    changes: f64,
}

fn said(seconds: Seconds, n: usize, r: f64, times: u32) -> Said {
    let mut random = Normal(15);
    let (mut spoken, mut covered, mut warm_ups, mut not_judged, mut changed) = (0, 0, 0, 0, 0);
    for _ in 0..times {
        let series = seconds.draw(&mut random, n, r);
        if let Some(error) = relative_error_of_mean(&series) {
            let mean = series.iter().sum::<f64>() / series.len() as f64;
            spoken += 1;
            covered += u32::from((mean - 1.0).abs() <= error * mean);
        }
        match warm_up(&series).unwrap() {
            WarmUp::None => {}
            WarmUp::Until { .. } | WarmUp::NotSteady => warm_ups += 1,
            WarmUp::NotJudged { .. } => not_judged += 1,
        }
        // A checkpoint's dip is a change, and to be found.
        if seconds != Seconds::Checkpoints {
            changed += u32::from(!changes(&series).unwrap().is_empty());
        }
    }
    let share = |count: u32, of: u32| 100.0 * f64::from(count) / f64::from(of.max(1));
    Said {
        spoken: share(spoken, times),
        covered: share(covered, spoken),
        warm_ups: share(warm_ups, times),
        not_judged: share(not_judged, times),
        changes: share(changed, times),
    }
}

/// Series of two minutes that are not steady: those whose warm-up is found, those not judged, and
/// those of another kind whose fall is found (shares in percent). The one begins 30% lower for half
/// a minute, the other loses a quarter after 40 s.
fn found(r: f64, times: u32) -> (f64, f64, f64) {
    let mut random = Normal(16);
    let (mut warm_ups, mut not_judged, mut falls) = (0, 0, 0);
    for _ in 0..times {
        let steady = Seconds::Alike.draw(&mut random, 120, r);
        let warming: Vec<f64> =
            (0..).zip(&steady).map(|(i, v)| v * (0.7 + 0.01 * f64::from(i)).min(1.0)).collect();
        match warm_up(&warming).unwrap() {
            WarmUp::Until { .. } | WarmUp::NotSteady => warm_ups += 1,
            WarmUp::NotJudged { .. } => not_judged += 1,
            WarmUp::None => {}
        }
        let falling: Vec<f64> =
            steady.iter().enumerate().map(|(i, v)| if i < 40 { *v } else { v - 0.25 }).collect();
        falls += u32::from(changes(&falling).unwrap().iter().any(|at| (39..=41).contains(at)));
    }
    let share = |count: u32| 100.0 * f64::from(count) / f64::from(times);
    (share(warm_ups), share(not_judged), share(falls))
}

#[test]
fn what_is_not_steady_is_found_or_not_judged() {
    for (r, least) in [(0.0, 95.0), (0.5, 80.0), (0.9, 0.0)] {
        let (warm_ups, not_judged, falls) = found(r, 100);
        eprintln!(
            "found, autocorrelation {r}: warm-up {warm_ups}%, not judged \
             {not_judged}%; fall {falls}%"
        );
        assert!(
            warm_ups >= least && warm_ups + not_judged >= 90.0,
            "{r}: {warm_ups}% {not_judged}%"
        );
        assert!(falls >= 95.0, "{r}: {falls}%");
    }
}

#[test]
fn what_is_said_of_steady_seconds_holds_however_alike_neighbours_are() {
    for seconds in [Seconds::Alike, Seconds::Checkpoints] {
        for (n, r) in
            [(60, 0.0), (120, 0.5), (60, 0.8), (120, 0.9), (300, 0.8), (60, 0.95), (120, 0.95)]
        {
            let found = said(seconds, n, r, 200);
            eprintln!("{seconds:?}, {n} seconds, autocorrelation {r}: {found:?}");
            // Where it mostly speaks: two standard errors below 93%. Where it hardly does, it is
            // wrong as rarely.
            let wrong = found.spoken * (100.0 - found.covered) / 100.0;
            assert!(found.spoken < 50.0 || found.covered >= 90.0, "{seconds:?} {n} {r}: {found:?}");
            assert!(wrong <= 8.0, "{seconds:?} {n} {r}: {found:?}");
            assert!(
                found.warm_ups <= 5.0 && found.changes <= 8.0,
                "{seconds:?} {n} {r}: {found:?}"
            );
        }
    }
}

#[test]
fn under_20_effective_seconds_it_is_mostly_silent() {
    // Worth 7, 6 and 8 independent seconds.
    for (n, r) in [(60, 0.8), (120, 0.9), (300, 0.95)] {
        let found = said(Seconds::Alike, n, r, 100);
        assert!(found.spoken <= 10.0 && found.not_judged >= 90.0, "{n} {r}: {found:?}");
    }
    let independent = said(Seconds::Alike, 120, 0.0, 100);
    assert!(independent.spoken >= 99.0 && independent.not_judged <= 2.0, "{independent:?}");
}

#[test]
#[ignore = "long: prints the table of docs/statistics.md"]
fn the_truth_within_a_trial() {
    const TIMES: u32 = 1000;
    eprintln!(
        "Two minutes that are not steady: autocorrelation: warm-up found, not judged; fall found"
    );
    for r in [0.0, 0.5, 0.8, 0.9, 0.95] {
        let (warm_ups, not_judged, falls) = found(r, TIMES);
        eprintln!("{r}: {warm_ups:.0}%, {not_judged:.0}%; {falls:.0}%");
        assert!(falls >= 95.0, "{r}: {falls}%");
    }
    for seconds in [Seconds::Alike, Seconds::Checkpoints, Seconds::Hidden] {
        eprintln!(
            "{seconds:?}: autocorrelation, seconds: interval, holds the mean; warm-up, \
             not judged; changes"
        );
        for r in [0.0, 0.5, 0.8, 0.9, 0.95] {
            for n in [60, 120, 300, 600] {
                let Said { spoken, covered, warm_ups, not_judged, changes } =
                    said(seconds, n, r, TIMES);
                eprintln!(
                    "{r} {n}: {spoken:.0}%, {covered:.1}%; {warm_ups:.1}%, \
                     {not_judged:.0}%; {changes:.1}%"
                );
                if seconds == Seconds::Alike {
                    assert!(
                        spoken < 20.0 || (92.5..=98.0).contains(&covered),
                        "{r} {n}: {covered}%"
                    );
                }
                if seconds != Seconds::Hidden {
                    assert!(spoken * (100.0 - covered) / 100.0 <= 6.0, "{r} {n}: {covered}%");
                    assert!(warm_ups <= 5.0 && changes <= 5.0, "{r} {n}: {warm_ups}% {changes}%");
                }
            }
        }
    }
}
