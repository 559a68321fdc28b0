//! Simulated experiments with a known truth: the tests count how often verdicts keep their
//! promises. Seeds are fixed, so that every count is the same everywhere. The figures in
//! docs/statistics.md are the output of these tests with `--nocapture`.

mod factors;
mod pairs;
mod repeats;
mod uneven;
mod within;

use pgdyno_model::experiment::Order;

use super::random::Normal;
use super::*;

/// Returns the number of experiments in each scenario: 500, so that a share of 5% is known to ±2
/// points (two standard errors), or the number in `PGDYNO_SIMULATIONS`.
fn times() -> u32 {
    std::env::var("PGDYNO_SIMULATIONS")
        .map_or(500, |times| times.parse().expect("PGDYNO_SIMULATIONS is a number"))
}

/// Number of experiments in cheap scenarios: a share of 5% is known to ±1 point.
const MANY: u32 = 2000;

/// Noise of a host: one number a trial, on the log scale, in the order of time.
#[derive(Clone, Copy, Debug)]
enum Host {
    /// Independent and normal.
    Quiet,
    /// Each block has a level of its own, ten times as uneven as trials are.
    Blocks,
    /// Every trial is slower than the one before it, by half of a trial's spread.
    Drift,
    /// Neighbours in time resemble each other (0.6).
    Autocorrelated,
    /// Some trials are much slower: exponential stalls.
    Skewed,
}

/// Hosts and orders for which the verdicts make promises. Where neighbours resemble each other, an
/// alternating order puts trials of a treatment side by side, and its blocks are then not
/// independent; a drawn order makes them so.
const PROMISED: [(Host, Order); 8] = [
    (Host::Quiet, Order::Interleaved),
    (Host::Blocks, Order::Interleaved),
    (Host::Drift, Order::Interleaved),
    (Host::Skewed, Order::Interleaved),
    (Host::Blocks, Order::Randomized),
    (Host::Drift, Order::Randomized),
    (Host::Autocorrelated, Order::Randomized),
    (Host::Skewed, Order::Randomized),
];
/// The spread of trials on the log scale: 3%.
const SPREAD: f64 = 0.03;

/// Simulates a run of `blocks` over treatments with these true speeds, in the order of plans.
/// Returns each treatment's (block, tps).
fn run(
    random: &mut Normal,
    (host, order): (Host, Order),
    speeds: &[f64],
    blocks: u32,
) -> Vec<Vec<(u32, f64)>> {
    let mut out = vec![Vec::new(); speeds.len()];
    let mut last = random.draw();
    let mut time = 0.0;
    for block in 1..=blocks {
        let level = random.draw();
        let mut round: Vec<usize> = (0..speeds.len()).collect();
        if order == Order::Randomized {
            for i in (1..round.len()).rev() {
                round.swap(i, (random.uniform() * (i + 1) as f64) as usize);
            }
        } else if block % 2 == 0 {
            round.reverse();
        }
        for treatment in round {
            last = 0.6 * last + 0.8 * random.draw();
            time += 1.0;
            let noise = match host {
                Host::Quiet => random.draw(),
                Host::Blocks => random.draw() + 10.0 * level,
                Host::Drift => random.draw() - 0.5 * time,
                Host::Autocorrelated => last,
                Host::Skewed => random.uniform().ln(),
            };
            out[treatment].push((block, speeds[treatment] * (SPREAD * noise).exp()));
        }
    }
    out
}

/// Returns the share of [`times()`] experiments for which `holds` (percent).
fn share(seed: u64, holds: impl FnMut(&mut Normal) -> bool) -> f64 {
    share_of(times(), seed, holds)
}

/// Returns the share of `times` experiments for which `holds` (percent).
fn share_of(times: u32, seed: u64, mut holds: impl FnMut(&mut Normal) -> bool) -> f64 {
    let mut random = Normal(seed);
    let held = (0..times).filter(|_| holds(&mut random)).count();
    100.0 * f64::from(u32::try_from(held).unwrap()) / f64::from(times)
}

#[test]
fn intervals_hold_the_truth_in_93_to_97_of_100_experiments() {
    for host in PROMISED {
        for blocks in [3, 5, 10] {
            let share = share_of(MANY, 1, |random| {
                let trials = run(random, host, &[1300.0, 1000.0], blocks);
                let [lo, hi] = ratio(&trials[0], &trials[1]).ci95.unwrap();
                (lo..=hi).contains(&1.3)
            });
            eprintln!("coverage, {host:?}, {blocks} blocks: {share:.1}%");
            assert!((93.0..=97.0).contains(&share), "{host:?}, {blocks} blocks: {share}%");
        }
    }
}

#[test]
fn treatments_at_the_margin_are_called_equivalent_in_at_most_5_of_100_runs_and_equal_ones_often() {
    for host in PROMISED {
        let equivalent = |truth: f64| {
            share(3, |random| {
                let trials = run(random, host, &[1000.0 * truth, 1000.0], 8);
                ratio(&trials[0], &trials[1]).equivalence_p(0.06).unwrap() <= 0.05
            })
        };
        let (at_margin, equal) = (equivalent(1.06), equivalent(1.0));
        eprintln!(
            "called equivalent, {host:?}: {at_margin:.1}% at the margin, {equal:.1}% when equal"
        );
        assert!(at_margin <= 6.5, "{host:?}: {at_margin}%");
        assert!(equal >= 50.0, "{host:?}: {equal}%");
    }
}

#[test]
fn differences_are_found_as_often_as_predicted() {
    for host in [(Host::Quiet, Order::Interleaved), (Host::Blocks, Order::Randomized)] {
        for blocks in [3, 5, 10] {
            for difference in [0.03, 0.06, 0.12] {
                // Both treatments' spreads, and as many pairs as blocks.
                let error = SPREAD * 2f64.sqrt() / f64::from(blocks).sqrt();
                let lambda = f64::ln_1p(difference) / error;
                let predicted = 100.0 * t_power(lambda, f64::from(blocks) - 1.0, 0.05).unwrap();
                let found = share_of(MANY, 4, |random| {
                    let trials = run(random, host, &[1000.0 * (1.0 + difference), 1000.0], blocks);
                    ratio(&trials[0], &trials[1]).p.unwrap() <= 0.05
                });
                eprintln!(
                    "power, {host:?}, {blocks} blocks, {:.0}%: {found:.1}%, \
                     predicted {predicted:.1}%",
                    100.0 * difference
                );
                assert!(
                    (found - predicted).abs() <= 3.0,
                    "{host:?}, {blocks}: {found}% {predicted}%"
                );
            }
        }
    }
}

#[test]
fn the_difference_that_would_have_been_seen_is_seen() {
    // Each run states what it would have seen; over runs, a difference of the median statement is
    // found about that often.
    let mut random = Normal(5);
    let mut stated: Vec<f64> = (0..times())
        .map(|_| {
            let trials = run(&mut random, (Host::Blocks, Order::Interleaved), &[1000.0, 1000.0], 6);
            ratio(&trials[0], &trials[1]).minimum_detectable(1).unwrap()
        })
        .collect();
    stated.sort_by(f64::total_cmp);
    let median = stated[stated.len() / 2];
    let found = share(6, |random| {
        let trials =
            run(random, (Host::Blocks, Order::Interleaved), &[1000.0 * (1.0 + median), 1000.0], 6);
        ratio(&trials[0], &trials[1]).p.unwrap() <= 0.05
    });
    eprintln!(
        "a difference of {:.1}%, the median of what was stated: found in {found:.1}%",
        100.0 * median
    );
    assert!((70.0..=85.0).contains(&found), "{found}%");
}

/// Returns the looks of the default floor and ceiling.
fn default_looks() -> InterimAnalyses {
    InterimAnalyses::between(4, 30)
}

/// Outcome of a run that went on until every pair was decided.
struct Ended {
    /// Blocks of the treatment that ran longest (count).
    blocks: u32,
    /// Whether each pair, in the order of [`pairs_of`], differs significantly.
    apart: Vec<bool>,
    ratios: Vec<Ratio>,
}

fn is_apart(pair: &Pair) -> bool {
    pair.p.is_some_and(|p| p <= 0.05)
}

fn pairs_of(treatments: usize) -> Vec<(usize, usize)> {
    (0..treatments).flat_map(|i| (i + 1..treatments).map(move |j| (i, j))).collect()
}

/// A run over these true speeds that stops measuring a treatment once all its pairs are told apart
/// or known to `precision`.
fn sequential_run(
    random: &mut Normal,
    host: (Host, Order),
    speeds: &[f64],
    looks: &InterimAnalyses,
    precision: f64,
) -> Ended {
    let all = run(random, host, speeds, *looks.at().last().unwrap());
    let pairs = pairs_of(speeds.len());
    // Up to which block each treatment is measured.
    let mut measured = vec![0; speeds.len()];
    let mut open = vec![true; pairs.len()];
    let mut judged = (Vec::new(), Vec::new());
    for look in looks.at() {
        for ((i, j), _) in pairs.iter().zip(&open).filter(|(_, open)| **open) {
            (measured[*i], measured[*j]) = (*look, *look);
        }
        let until = |t: usize| -> Vec<(u32, f64)> {
            all[t].iter().filter(|(block, _)| *block <= measured[t]).copied().collect()
        };
        let so_far: Vec<Vec<(u32, f64)>> = (0..speeds.len()).map(until).collect();
        let so_far: Vec<&[(u32, f64)]> = so_far.iter().map(Vec::as_slice).collect();
        let found = all_pairs(
            &so_far,
            &[].into(),
            RunDesign { looks: Some(looks), ..RunDesign::new(true) },
        );
        let ratios: Vec<Ratio> = pairs.iter().map(|pair| found[pair].ratio.clone()).collect();
        let apart: Vec<bool> = pairs.iter().map(|pair| is_apart(&found[pair])).collect();
        for (k, open) in open.iter_mut().enumerate() {
            let [lo, hi] = ratios[k].ci95.unwrap();
            *open &= !apart[k] && (hi / lo).sqrt() - 1.0 > precision;
        }
        judged = (apart, ratios);
        if !open.contains(&true) {
            break;
        }
    }
    let (apart, ratios) = judged;
    Ended { blocks: measured.into_iter().max().unwrap(), apart, ratios }
}

#[test]
fn a_run_that_stops_by_itself_finds_a_false_difference_in_at_most_5_of_100() {
    assert_rarely_false(&[(Host::Blocks, Order::Interleaved)]);
}

#[test]
#[ignore = "long: nine kinds of hosts"]
fn a_run_that_stops_by_itself_finds_a_false_difference_in_at_most_5_of_100_on_any_host() {
    assert_rarely_false(&[&PROMISED[..], &[(Host::Autocorrelated, Order::Interleaved)]].concat());
}

/// On each of the `hosts`, runs of equal treatments that stop by themselves rarely find a
/// difference.
fn assert_rarely_false(hosts: &[(Host, Order)]) {
    let looks = default_looks();
    for &host in hosts {
        for treatments in [2, 4] {
            let found = share_of(times() / 2, 9, |random| {
                let ended = sequential_run(random, host, &vec![1000.0; treatments], &looks, 0.02);
                ended.apart.contains(&true)
            });
            eprintln!(
                "falsely different, stopping by itself, {host:?}, {treatments} \
                 treatments: {found:.1}%"
            );
            // Where neighbours resemble each other, an alternating order promises less.
            let is_promised = !matches!(host, (Host::Autocorrelated, Order::Interleaved));
            let most = if is_promised { 6.5 } else { 10.0 };
            assert!(found <= most, "{host:?}, {treatments} treatments: {found}%");
        }
    }
}

#[test]
fn looking_after_every_block_without_paying_for_it_finds_many_false_differences() {
    let found = share(10, |random| {
        let trials = run(random, (Host::Quiet, Order::Interleaved), &[1000.0, 1000.0], 30);
        (4..=30).any(|n| ratio(&trials[0][..n], &trials[1][..n]).p.unwrap() <= 0.05)
    });
    eprintln!("falsely different, looked at 27 times at 5%: {found:.1}%");
    assert!(found > 15.0, "{found}%");
}

#[test]
fn intervals_after_a_run_that_stops_by_itself_hold_the_truth() {
    let looks = default_looks();
    for host in PROMISED {
        for truth in [1.0, 1.03, 1.3] {
            let holds = share_of(times() / 4, 11, |random| {
                let ended = sequential_run(random, host, &[1000.0 * truth, 1000.0], &looks, 0.02);
                let [lo, hi] = ended.ratios[0].ci95.unwrap();
                (lo..=hi).contains(&truth)
            });
            eprintln!("coverage after stopping, {host:?}, true ratio {truth}: {holds:.1}%");
            assert!(holds >= 93.0, "{host:?}, {truth}: {holds}%");
        }
    }
}

#[test]
fn what_stopping_by_itself_costs_and_saves_in_repeats() {
    let looks = default_looks();
    for difference in [0.03, 0.06, 0.12] {
        // The fewest repeats that find the difference in 80% of runs, had anybody known it.
        let error = |n: u32| SPREAD * 2f64.sqrt() / f64::from(n).sqrt();
        let power =
            |n: u32| t_power(f64::ln_1p(difference) / error(n), f64::from(n) - 1.0, 0.05).unwrap();
        let fixed = (2..).find(|n| power(*n) >= 0.8).unwrap();
        let (mut blocks, mut runs) = (0.0, 0.0);
        let found = share_of(times() / 2, 12, |random| {
            let speeds = [1000.0 * (1.0 + difference), 1000.0];
            let ended =
                sequential_run(random, (Host::Blocks, Order::Randomized), &speeds, &looks, 0.0);
            blocks += f64::from(ended.blocks);
            runs += 1.0;
            ended.apart[0]
        });
        eprintln!(
            "a difference of {:.0}%: found in {found:.1}% of runs after {:.1} repeats on average; \
             {fixed} would do in 80%",
            100.0 * difference,
            blocks / runs
        );
        assert!(found >= 80.0, "{difference}: {found}%");
    }
}

/// Values such as trials have, and such as none should have.
fn hostile(random: &mut Normal) -> f64 {
    let ordinary = 1000.0 * (0.1 * random.draw()).exp();
    match random.uniform() {
        u if u < 0.6 => ordinary,
        u if u < 0.75 => 1000.0,
        u if u < 0.8 => 0.0,
        u if u < 0.84 => f64::NAN,
        u if u < 0.87 => f64::INFINITY,
        u if u < 0.9 => -ordinary,
        u if u < 0.93 => f64::MIN_POSITIVE / 2.0,
        u if u < 0.96 => f64::MAX,
        _ => ordinary * 1e-12,
    }
}

/// Whatever comes in: no panic, no number that is none, no interval that does not hold its value,
/// and a reason for whatever is missing.
#[test]
fn no_input_makes_a_panic_or_a_number_that_is_none() {
    let mut random = Normal(8);
    let sound = |value: f64, ci95: Option<[f64; 2]>| {
        assert!(value.is_finite());
        if let Some([lo, hi]) = ci95 {
            let slack = 1e-9 * value.abs();
            assert!(
                lo.is_finite() && hi.is_finite() && lo <= value + slack && value <= hi + slack,
                "{value} {lo} {hi}"
            );
        }
    };
    for _ in 0..3000 {
        let mut draw = |most: f64| -> Vec<f64> {
            let n = (most * random.uniform()) as usize;
            (0..n).map(|_| hostile(&mut random)).collect()
        };
        let (a, b, series) = (draw(6.0), draw(6.0), draw(80.0));
        for estimate in [mean_ci95(&a), geometric_mean_ci95(1.0, &a)] {
            assert_eq!(estimate.ci95.is_none(), estimate.why.is_some(), "{a:?} {estimate:?}");
            estimate.mean.into_iter().for_each(|mean| sound(mean, estimate.ci95));
        }
        let blocks =
            |values: &[f64]| (1..).zip(values.iter().copied()).collect::<Vec<(u32, f64)>>();
        for r in [
            ratio(&blocks(&a), &blocks(&b)),
            unpaired_ratio(1.0, &blocks(&a), &blocks(&b)),
            ratio_over(&InterimAnalyses::between(2, 5), &blocks(&a), &blocks(&b)),
        ] {
            assert_eq!(r.ci95.is_none(), r.why.is_some(), "{a:?} {b:?} {r:?}");
            assert_eq!(r.ci95.is_some(), r.p.is_some(), "{a:?} {b:?} {r:?}");
            r.value.into_iter().for_each(|value| sound(value, r.ci95));
            let p = [r.p, r.equivalence_p(0.03), r.below_p(0.97), r.above_p(1.03)];
            p.into_iter().flatten().for_each(|p| assert!((0.0..=1.0).contains(&p), "{p}"));
            r.minimum_detectable(3)
                .into_iter()
                .for_each(|share| assert!(share.is_finite() && share >= 0.0));
        }
        let (first, second) = (blocks(&a), blocks(&b));
        let third: Vec<(u32, f64)> = first.iter().map(|(block, x)| (*block, 1.5 * x)).collect();
        for has_blocks in [false, true] {
            for (_, pair) in
                all_pairs(&[&first, &second, &third], &[].into(), RunDesign::new(has_blocks))
            {
                assert_eq!(pair.ratio.ci95.is_some(), pair.p.is_some(), "{a:?} {b:?} {pair:?}");
                pair.ratio.value.into_iter().for_each(|value| sound(value, pair.ratio.ci95));
                assert!(pair.p.is_none_or(|p| (0.0..=1.0).contains(&p)));
            }
        }
        assert!(holm(&series).iter().all(|p| p.is_finite()));
        series_are_finite_or_none(&series);
        for t in trends(&[a.clone(), b, series.clone()]).into_iter().flatten() {
            assert!(
                (0.0..=1.0).contains(&t.chance) && (t.chance..=1.0).contains(&t.chance_together)
            );
        }
        let sweep: Vec<(u32, u32, f64)> =
            (0..).zip(&series).map(|(i, x)| (i / 7, 1 << (i % 7), *x)).collect();
        if let Ok(law) = scaling(&sweep) {
            for fitted in [
                Some(law.lambda),
                Some(law.sigma),
                Some(law.kappa),
                law.peak,
                law.peak_clients,
                law.knee,
            ] {
                fitted.into_iter().for_each(|f| sound(f.value, f.ci95));
            }
        }
    }
}

/// Asserts that what is said of a series of numbers is finite and lies in it.
fn series_are_finite_or_none(series: &[f64]) {
    match warm_up(series) {
        Some(WarmUp::Until { gain, .. }) => assert!(gain.is_finite()),
        Some(WarmUp::NotJudged { effective }) => {
            assert!(effective > 0.0 && effective < LEAST_EFFECTIVE);
        }
        _ => {}
    }
    if let Some(found) = autocorrelation(series) {
        assert!(found.first.is_finite() && found.effective.is_finite() && found.effective >= 1.0);
        let error = relative_error_of_mean(series);
        assert!(error.is_none_or(|e| e.is_finite() && e > 0.0));
    }
    for at in changes(series).unwrap_or_default() {
        assert!(at > 0 && at < series.len());
    }
}
