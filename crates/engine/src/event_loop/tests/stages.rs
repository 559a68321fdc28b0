//! Rates by stages.

use super::*;

/// Transactions of each second of a load at `rate`, after a warm-up of a second.
fn seconds(change: fn(&mut LoadSpec)) -> Vec<u64> {
    let load = Load { clients: 8, warm_up: SECOND, change, ..Load::new("SELECT 1;") };
    let m = load.run(steady(MS)).measurement;
    m.series.iter().map(|second| second.transactions).collect()
}

/// Asserts that a Poisson count of mean `expected` may be `found`: within five standard deviations.
pub(super) fn assert_about(found: u64, expected: f64) {
    let off = (found as f64 - expected).abs();
    assert!(off <= 5.0 * expected.sqrt() + 1.0, "{found} for {expected}");
}

#[test]
fn each_stage_offers_its_rate_from_the_opening_on() {
    let found = seconds(|spec| {
        spec.options.rate =
            Some("1000 for 1s, 0 for 1s, 200 for 1s, 200 to 2000 for 2s".parse().unwrap());
    });
    let expected = [1000.0, 0.0, 200.0, 650.0, 1550.0];
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.into_iter().zip(expected) {
        assert_about(found, expected);
    }
}

#[test]
fn stages_begin_anew_to_the_end_of_the_window() {
    let found = seconds(|spec| {
        spec.options.rate = Some("900 for 1s, 100 for 1s".parse().unwrap());
    });
    for (found, expected) in found.into_iter().zip([900.0, 100.0].into_iter().cycle()) {
        assert_about(found, expected);
    }
}

#[test]
fn a_spike_that_the_server_cannot_keep_up_with_is_waited_for_in_the_next_stage() {
    // Eight clients of 10 ms each: 800 a second at most. The spike leaves 400 that are due.
    let rate: fn(&mut LoadSpec) = |spec| {
        spec.options.rate = Some("200 for 1s, 1200 for 1s, 200 for 3s".parse().unwrap());
    };
    let load = Load { clients: 8, change: rate, ..Load::new("SELECT 1;") };
    let m = load.run(steady(10 * MS)).measurement;
    let p50: Vec<f64> = m.series.iter().map(|second| second.latency_us_p50.unwrap()).collect();
    assert!(p50[0] < 15_000.0, "{p50:?}");
    assert!(p50[2] > 100_000.0, "{p50:?}");
    assert!(p50[4] < 15_000.0, "{p50:?}");
    assert_about(m.series[1].transactions, 800.0);
    assert!(m.sums.lag_max_ns > 200_000_000, "{}", m.sums.lag_max_ns);
}
