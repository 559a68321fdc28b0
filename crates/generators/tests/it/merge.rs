//! Addition is exact: how a load is dealt to workers does not change its measurement.

use std::time::Duration;

use crate::common::{Recorded, load, reports};
use pgdyno_engine::LoadSpec;
use pgdyno_engine::aggregate::Aggregate;
use pgdyno_engine::schedule::Moment;
use pgdyno_engine::tally::Tally;
use pgdyno_generators::protocol::{CountsError, IntervalCounts, TallyCounts, frame};
use pgdyno_model::Measurement;
use proptest::prelude::*;

const SECOND: u64 = 1_000_000_000;

/// Adds up what `workers` report, who have every n-th client each and clocks of their own.
fn measured(spec: &LoadSpec, stream: &[Recorded], workers: u32) -> Measurement {
    let mut sum = Aggregate::new(spec.schedule(Moment(0)), Moment(0), workers as usize);
    for worker in 0..workers {
        let part: Vec<Recorded> =
            stream.iter().filter(|t| t.client % workers == worker).copied().collect();
        let start = Moment(u64::from(worker) * 7_654_321);
        let (seconds, done) = reports(spec, start, &part, None);
        for counts in seconds {
            // As on the way: written and read.
            let mut bytes = Vec::new();
            frame::write(&mut bytes, &counts).unwrap();
            let read: IntervalCounts = frame::read(&mut &bytes[..]).unwrap().unwrap();
            sum.add(worker as usize, read.read().unwrap());
        }
        sum.ended(worker as usize, Moment(done.ended));
    }
    sum.measurement(spec, None, 0.0)
}

/// All bytes that a store would keep of a measurement.
fn bytes(m: &Measurement) -> Vec<u8> {
    let mut all = serde_json::to_vec(m).unwrap();
    all.extend(m.latency.to_bytes());
    all.extend(m.service.as_ref().unwrap().to_bytes());
    for script in &m.scripts {
        all.extend(script.latency.to_bytes());
        all.extend(script.service.as_ref().unwrap().to_bytes());
        for statement in &script.statements {
            all.extend(statement.latency.to_bytes());
            all.extend(statement.first_byte.to_bytes());
        }
    }
    for second in &m.series {
        all.extend(format!("{:?} {:?}", second.latencies, second.commands).into_bytes());
    }
    all
}

fn transaction() -> impl Strategy<Value = Recorded> {
    let times = (0..3 * SECOND, prop_oneof![Just(0), 0..SECOND], 100..SECOND);
    (0_u32..40, 0_usize..2, times, any::<bool>(), prop::bool::weighted(0.1)).prop_map(
        |(client, script, (due, lag, took), is_torn, is_failed)| Recorded {
            client,
            script,
            due,
            lag,
            took,
            is_torn,
            is_failed,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2))]
    #[test]
    fn one_stream_split_over_any_number_of_workers_gives_the_same_bytes(
        stream in prop::collection::vec(transaction(), 50..200),
    ) {
        let spec = load(40, 16, Duration::from_millis(500), 2);
        let one = measured(&spec, &stream, 1);
        let counted = one.counters.warm_up_transactions + one.transactions
            + one.counters.drained_transactions + one.failed + one.counters.failed_outside;
        prop_assert_eq!(counted, stream.len() as u64);
        for workers in [2, 3, 7, 16] {
            prop_assert_eq!(bytes(&measured(&spec, &stream, workers)), bytes(&one), "{}", workers);
        }
    }
}

#[test]
fn a_latency_beyond_the_histograms_is_an_error() {
    let read = |latency: u64| {
        let mut tally = Tally::default();
        tally.event_loop_lag.record(latency);
        TallyCounts::new(&tally, Moment(0)).read()
    };
    assert!(read(3_500 * SECOND).is_ok());
    assert!(matches!(read(3_600 * SECOND), Err(CountsError::Saturated)));
    assert!(matches!(read(9_000 * SECOND), Err(CountsError::Saturated)));
}
