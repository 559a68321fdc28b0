//! The event loop and its clients on a simulated network.

mod errors;
mod fake_server;
mod groups;
mod ledger;
mod load;
mod more;
mod pauses;
mod rows;
mod stages;
mod timing;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use fake_server::{Answer, after, done, error, message, ready, steady};
use load::{Load, assert_aborted, assert_counts};
use pgdyno_model::experiment::{Length, Protocol, ReconnectLost};
use pgdyno_model::load_rate::LoadRate;
use pgdyno_model::units::Span;

use crate::reactor::sim::{Network, PeerAction};
use crate::schedule::{Clock, Moment};
use crate::spec::LoadSpec;

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

#[test]
fn a_steady_server_gives_the_throughput_that_its_delay_allows() {
    let seen = Load { clients: 3, warm_up: SECOND, ..Load::new("SELECT 1;") }.run(steady(MS));
    let m = &seen.measurement;
    // One transaction a millisecond; the one that ends as the window closes lies outside it.
    assert_eq!(m.counters.warm_up_transactions, 3 * 999);
    assert_eq!((m.transactions, m.counters.drained_transactions), (3 * 5000, 3));
    assert!(m.series.iter().all(|s| s.transactions == 3000), "{:?}", m.series);
    assert_eq!(m.measured_s, 5.0);
    let p50 = m.latency.quantile_us(0.5).unwrap();
    assert!((p50 - 1000.0).abs() < 2.0, "{p50}");
    assert!(seen.asked.iter().all(|a| a.last().unwrap() == "goodbye"));
}

#[test]
fn a_one_second_stall_is_one_long_latency_and_a_second_without_transactions() {
    let stalls = |_| -> Answer {
        Box::new(|_, now| {
            let stalled = (2 * SECOND..3 * SECOND).contains(&now.since(Moment(0)));
            let delay = if stalled { Moment(0).after(3 * SECOND).since(now) } else { MS };
            after(delay, done(b'I'))
        })
    };
    let m = Load::new("SELECT 1;").run(stalls).measurement;
    let counts: Vec<_> = m.series.iter().map(|s| s.transactions).collect();
    assert_eq!(counts, [999, 1000, 1, 1000, 1000]);
    let max = m.latency.max_us().unwrap();
    assert!((max - 1e6).abs() < 1e3, "{max}");
    assert!(m.latency.quantile_us(0.99).unwrap() < 1100.0);
    let silent = Load::new("SELECT 1;").run(steady(10 * SECOND)).measurement;
    assert_eq!(
        (silent.transactions, silent.counters.drained_transactions, silent.series.len()),
        (0, 1, 5)
    );
}

#[test]
fn bytes_may_travel_in_pieces_of_any_size() {
    for protocol in [Protocol::Simple, Protocol::Extended, Protocol::Prepared] {
        for piece in 1..40 {
            let network = Network {
                read: piece,
                write: 41 - piece,
                pace: Duration::from_nanos(10),
                away: None,
            };
            let script = "\\set x 40 + 2\nSELECT :x;\nSELECT 'a';";
            let load = Load { network, protocol, ..Load::with_count(7, script) };
            let m = load.run(steady(MS));
            assert_counts(&m.measurement, (7, 0, 0));
            let asked = &m.asked[0];
            // And a goodbye, unless it was still on its way.
            assert!((14..=15).contains(&asked.len()), "{asked:?}");
            match protocol {
                Protocol::Simple => assert_eq!(asked[..2], ["SELECT 42", "SELECT 'a'"]),
                Protocol::Extended => {
                    assert_eq!((m.parsed, asked[0].starts_with("|SELECT $1")), (14, true));
                }
                Protocol::Prepared => {
                    assert_eq!(m.parsed, 2);
                    assert!(asked[0].starts_with("pgdyno_0_0|SELECT $1|"), "{}", asked[0]);
                    assert!(
                        asked[2].starts_with("|pgdyno_0_0|") && asked[2].contains("42"),
                        "{}",
                        asked[2]
                    );
                }
            }
        }
    }
}

#[test]
fn a_count_of_transactions_begins_after_the_warm_up() {
    let load = Load { clients: 2, warm_up: SECOND + MS / 2, ..Load::with_count(100, "SELECT 1;") };
    let m = load.run(steady(MS)).measurement;
    // Those under way at the opening ended within the window, and are left over from the warm-up.
    assert_eq!(m.counters.warm_up_transactions, 2 * 1001);
    assert_eq!((m.transactions, m.counters.drained_transactions), (2 * 100, 0));
    assert!((m.measured_s - 0.1005).abs() < 1e-6, "{}", m.measured_s);
    assert_eq!(m.series.len(), 1);
}

#[test]
fn sleeping_clients_wake_in_time_and_scripts_without_sql_take_turns() {
    let m =
        Load { clients: 2, ..Load::new("SELECT 1;\n\\sleep 9 ms\n") }.run(steady(MS)).measurement;
    assert_eq!(m.transactions, 2 * 499);
    let p50 = m.latency.quantile_us(0.5).unwrap();
    assert!((p50 - 10_000.0).abs() < 20.0, "{p50}");
    let length = Length::Duration(Span(SECOND / 10));
    let m = Load { clients: 2, length, ..Load::new("\\set x 1\n") }.run(steady(MS)).measurement;
    assert!(m.transactions > 1000 && m.transactions.is_multiple_of(2), "{}", m.transactions);
}

#[test]
fn thousands_of_clients_share_one_thread_evenly() {
    let load =
        Load { clients: 3000, length: Length::Duration(Span(SECOND)), ..Load::new("SELECT 1;") };
    let seen = load.run(steady(10 * MS));
    assert_eq!(seen.measurement.transactions, 3000 * 99);
    assert!(seen.asked.iter().all(|a| a.len() == 101));
}
