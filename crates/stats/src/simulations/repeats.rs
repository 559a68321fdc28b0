//! Runs whose treatments are steady, and what is said of their repeats.

use super::super::{Trend, trend, trends};
use super::share;

#[test]
fn of_runs_of_steady_treatments_at_most_5_in_100_are_told_that_one_rises_or_falls() {
    for (treatments, repeats) in [(1, 5), (4, 4), (4, 8), (16, 6), (16, 10)] {
        for (hosts, shared) in [("independent trials", 0.0), ("uneven blocks", 1.0)] {
            let mut one_by_one = 0;
            let told = share(13, |random| {
                let blocks: Vec<f64> = (0..repeats).map(|_| shared * random.draw()).collect();
                let runs: Vec<Vec<f64>> = (0..treatments)
                    .map(|_| blocks.iter().map(|block| block + random.draw()).collect())
                    .collect();
                // What was said before treatments were judged together, and one-sided.
                let alone = |t: Trend| t.chance / 2.0 <= 0.05;
                one_by_one += u32::from(runs.iter().any(|run| trend(run).is_some_and(alone)));
                trends(&runs).into_iter().flatten().any(|t| t.is_significant())
            });
            let alone = 100.0 * f64::from(one_by_one) / f64::from(super::times());
            eprintln!(
                "falsely rising or falling, {treatments} treatments of {repeats} repeats, {hosts}: \
                 {told:.1}%; each one-sided at 5%: {alone:.1}%"
            );
            assert!(told <= 6.5, "{treatments} treatments of {repeats} repeats, {hosts}: {told}%");
        }
    }
}

#[test]
fn a_rise_of_a_spread_with_each_repeat_is_found() {
    for (treatments, repeats, least) in [(1, 8, 95.0), (4, 8, 80.0), (16, 10, 95.0)] {
        let found = share(14, |random| {
            let rising = (0..repeats).map(|i| f64::from(i) + random.draw()).collect();
            let mut runs: Vec<Vec<f64>> = vec![rising];
            runs.resize_with(treatments, || (0..repeats).map(|_| random.draw()).collect());
            trends(&runs)[0].is_some_and(|t| t.is_significant() && t.rising)
        });
        eprintln!("a rise found, one of {treatments} treatments, {repeats} repeats: {found:.1}%");
        assert!(found >= least, "one of {treatments} treatments, {repeats} repeats: {found}%");
    }
}
