//! The coordinator beside simulated workers: clocks, networks and failures are made up, and no time
//! passes.

use std::time::Duration;

use crate::common::load;
use crate::simulated::{SECOND, Simulation, Trouble, Worker};
use pgdyno_generators::protocol::{Hello, Order};
use pgdyno_generators::{Fault, GeneratorsError, LoadTime};

const MS: u64 = SECOND / 1000;

fn workers(count: u32) -> Vec<Worker> {
    (0..count)
        .map(|n| Worker {
            // Hours apart, and drifting.
            offset: i64::from(n) * 3_600_000_000_000,
            drift_ppm: i64::from(n % 3) * 100 - 100,
            delay: (MS / 2, MS / 3 + u64::from(n) * MS / 10),
            ..Worker::default()
        })
        .collect()
}

fn fault(result: Result<pgdyno_model::Measurement, GeneratorsError>) -> (String, LoadTime, Fault) {
    match result.unwrap_err() {
        GeneratorsError::Generator { name, when, fault } => (name, when, fault),
        other => panic!("{other}"),
    }
}

#[test]
fn workers_whose_clocks_differ_by_hours_begin_at_one_instant() {
    let spec = load(12, 6, Duration::from_secs(1), 3);
    let mut simulation = Simulation::new(&spec, workers(6), Duration::from_millis(10));
    let m = simulation.run().unwrap();
    let starts: Vec<u64> = simulation.starts.iter().map(|start| start.unwrap()).collect();
    let (first, last) = (starts.iter().min().unwrap(), starts.iter().max().unwrap());
    assert!(last - first < 2 * MS, "{starts:?}");
    assert_eq!(m.generators.len(), 6);
    assert!(m.generators.iter().all(|g| g.clients == 2 && g.transactions > 0));
    for (generator, start) in m.generators.iter().zip(&starts) {
        let agreed = simulation.agreed.unwrap();
        let skew = (*start as f64 - agreed as f64) / 1e3;
        assert!((generator.start_skew_us - skew).abs() <= generator.clock_uncertainty_us);
    }
    assert_eq!(m.transactions, m.generators.iter().map(|g| g.transactions).sum::<u64>());
    assert_eq!(m.series.len(), 3);
    assert_eq!(simulation.opened, simulation.agreed.map(|at| at + SECOND));
}

#[test]
fn a_worker_that_begins_late_makes_the_load_invalid() {
    let mut all = workers(3);
    all[1].trouble = Trouble::Late(12 * MS);
    let spec = load(3, 3, Duration::ZERO, 3);
    let mut simulation = Simulation::new(&spec, all, Duration::from_millis(10));
    let (name, when, fault) = fault(simulation.run());
    assert_eq!((name.as_str(), when), ("gen1", LoadTime::Second(0)));
    assert!(matches!(fault, Fault::StartSkew { skew_ns, .. } if skew_ns > 11 * MS.cast_signed()));
    assert!(simulation.stopped.iter().enumerate().all(|(n, stopped)| n == 1 || *stopped));
}

#[test]
fn a_clock_behind_a_slow_network_is_not_known_well_enough() {
    let mut all = workers(2);
    all[1].delay = (40 * MS, 2 * MS);
    let spec = load(2, 2, Duration::ZERO, 3);
    let (name, when, found) =
        fault(Simulation::new(&spec, all.clone(), Duration::from_millis(10)).run());
    assert_eq!((name.as_str(), when), ("gen1", LoadTime::Before));
    assert!(matches!(found, Fault::Uncertain { uncertainty_ns, .. } if uncertainty_ns > 20 * MS));
    // Whoever allows more gets a measurement.
    assert!(Simulation::new(&spec, all, Duration::from_millis(60)).run().is_ok());
}

#[test]
fn a_clock_that_steps_is_noticed_during_the_load() {
    let mut all = workers(2);
    all[0].trouble = Trouble::Steps { at: 4 * SECOND, by: 50 * MS.cast_signed() };
    let spec = load(2, 2, Duration::ZERO, 9);
    let (name, when, fault) = fault(Simulation::new(&spec, all, Duration::from_millis(10)).run());
    assert_eq!(name, "gen0");
    assert!(matches!(when, LoadTime::Second(1..=3)), "{when}");
    assert!(matches!(fault, Fault::Clock(_)), "{fault}");
}

#[test]
fn a_saturated_worker_is_named_with_the_second_and_makes_the_load_invalid() {
    let run = |since, warm_up| {
        let mut all = workers(3);
        all[1].trouble = Trouble::Saturated(since);
        let spec = load(3, 3, warm_up, 5);
        let simulation = &mut Simulation::new(&spec, all, Duration::from_millis(10));
        let (name, when, fault) = fault(simulation.run());
        assert_eq!(name, "gen1");
        assert!(matches!(fault, Fault::Saturated { share, .. } if share > 0.9), "{fault}");
        when
    };
    // Seconds of the load have the warm-up in them.
    assert_eq!(run(Some(2), Duration::from_millis(1500)), LoadTime::Second(3));
    assert_eq!(run(Some(0), Duration::ZERO), LoadTime::Second(0));
    // Busy in the window as a whole, and in no second of it: noticed at the end.
    assert_eq!(run(None, Duration::ZERO), LoadTime::Second(5));
}

#[test]
fn a_silent_worker_is_named_with_the_second_and_all_others_are_stopped() {
    let mut all = workers(4);
    all[2].trouble = Trouble::Silent(7 * SECOND);
    let spec = load(4, 4, Duration::ZERO, 60);
    let mut simulation = Simulation::new(&spec, all, Duration::from_millis(10));
    let (name, when, fault) = fault(simulation.run());
    assert_eq!(name, "gen2");
    assert!(matches!(when, LoadTime::Second(7..=9)), "{when}");
    assert!(matches!(fault, Fault::Silent(limit) if limit.as_secs() == 3));
    assert_eq!(simulation.stopped, [true; 4]);
    assert!(simulation.now < 12 * SECOND);
}

#[test]
fn another_version_is_refused_before_it_gets_a_password() {
    let mut all = workers(2);
    all[1].hello = Hello { pgdyno: "0.0.1".into(), ..Hello::ours() };
    let spec = load(2, 2, Duration::ZERO, 3);
    let mut simulation = Simulation::new(&spec, all, Duration::from_millis(10));
    let (name, when, fault) = fault(simulation.run());
    assert_eq!((name.as_str(), when), ("gen1", LoadTime::Before));
    assert!(matches!(&fault, Fault::Version { theirs, .. } if theirs.contains("0.0.1")));
    let prepared = |order: &(usize, Order)| order.0 == 1 && matches!(order.1, Order::Prepare(_));
    assert!(!simulation.orders.iter().any(prepared));
}

#[test]
fn workers_connect_once_the_server_was_told_of_all_their_addresses() {
    let spec = load(4, 4, Duration::ZERO, 3);
    let simulation = || Simulation::new(&spec, workers(4), Duration::from_millis(10)).admitting();
    let mut admitted = simulation();
    assert_eq!(admitted.run().unwrap().generators.len(), 4);
    let [(orders, addresses)] = &admitted.admitted[..] else { panic!("{:?}", admitted.admitted) };
    let expected: [std::net::IpAddr; 2] = [[10, 0, 0, 0].into(), [10, 0, 0, 1].into()];
    assert!(addresses.iter().eq(&expected), "{addresses:?}");
    let first = admitted.orders.iter().position(|(_, o)| matches!(o, Order::Prepare(_)));
    assert!(first.unwrap() >= *orders);

    let mut refused = simulation();
    refused.admission = Err("the disk is full".to_owned());
    let error = refused.run().unwrap_err();
    assert!(matches!(&error, GeneratorsError::Admission(why) if why == "the disk is full"));
    assert!(!refused.orders.iter().any(|(_, order)| matches!(order, Order::Prepare(_))));
    assert_eq!(refused.stopped, [true; 4]);
}

#[test]
fn a_report_that_is_lost_or_totals_that_differ_are_noticed() {
    let spec = load(2, 2, Duration::ZERO, 3);
    let run = |trouble| {
        let mut all = workers(2);
        all[0].trouble = trouble;
        fault(Simulation::new(&spec, all, Duration::from_millis(10)).run())
    };
    let (name, _, lost) = run(Trouble::LosesSecond(1));
    assert_eq!(name, "gen0");
    assert!(matches!(lost, Fault::LostSecond { expected: 1, found: 2 }), "{lost}");
    let (_, _, sum) = run(Trouble::OtherTotals);
    assert!(matches!(sum, Fault::Sum { .. }), "{sum}");
    let (_, when, ended) = run(Trouble::Ends(4 * SECOND + SECOND / 2));
    assert!(matches!(ended, Fault::Ended(_)), "{ended}");
    assert!(matches!(when, LoadTime::Second(2)), "{when}");
}

#[test]
fn a_stop_before_the_window_is_an_interruption_and_later_shortens_it() {
    let spec = load(2, 2, Duration::from_secs(2), 60);
    let mut early = Simulation::new(&spec, workers(2), Duration::from_millis(10));
    early.stop_at = Some(3 * SECOND);
    assert!(matches!(early.run(), Err(GeneratorsError::Interrupted)));
    let mut late = Simulation::new(&spec, workers(2), Duration::from_millis(10));
    late.stop_at = Some(10 * SECOND);
    let m = late.run().unwrap();
    assert!(m.measured_s > 5.0 && m.measured_s < 6.5, "{}", m.measured_s);
}
