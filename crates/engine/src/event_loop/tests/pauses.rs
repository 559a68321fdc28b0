//! Pauses of clients by script.

use pgdyno_model::Pauses;
use pgdyno_model::units::Span;

use super::*;
use crate::script::WeightedScript;

fn keying(ms: u32) -> Pauses {
    Pauses { keying_time: Span(ms * MS), ..Pauses::default() }
}

fn thinking(ms: u32) -> Pauses {
    Pauses { think_time: Span(ms * MS), ..Pauses::default() }
}

/// Gives `spec` a script as likely as any other for each of `pauses`.
fn pause(spec: &mut LoadSpec, pauses: [Pauses; 2]) {
    let script = spec.scripts.remove(0);
    spec.scripts.extend(pauses.map(|pauses| WeightedScript { pauses, ..script.clone() }));
}

/// Three clients whose transactions take 10 ms.
fn run(load: &Load) -> pgdyno_model::Measurement {
    load.run(steady(10 * MS)).measurement
}

#[test]
fn keying_passes_before_each_transaction_and_thought_after_it() {
    let twice = |change| Load { change, ..Load::with_count(2, "SELECT;") };
    let keyed = run(&twice(|spec| pause(spec, [keying(400); 2])));
    assert!((keyed.measured_s - 0.820).abs() < 0.002, "{}", keyed.measured_s);
    // One thought only, between the two, and never more than ten times the mean.
    let thought = run(&twice(|spec| pause(spec, [thinking(400); 2])));
    assert!((0.021..4.021).contains(&thought.measured_s), "{}", thought.measured_s);
    let once = run(&Load {
        change: |spec| pause(spec, [thinking(400); 2]),
        ..Load::with_count(1, "SELECT;")
    });
    assert!((once.measured_s - 0.010).abs() < 0.002, "{}", once.measured_s);
}

#[test]
fn each_script_has_its_own_pauses_which_are_no_latency() {
    let keyed: fn(&mut LoadSpec) = |spec| pause(spec, [keying(100), keying(0)]);
    let thought: fn(&mut LoadSpec) = |spec| pause(spec, [thinking(100), thinking(0)]);
    for change in [keyed, thought] {
        let m = run(&Load { change, clients: 8, ..Load::new("SELECT;") });
        // 10 ms of service and 100 ms of pause at every second one: 60 ms on average.
        let found: Vec<u64> = m.scripts.iter().map(|script| script.transactions).collect();
        for of_script in &found {
            stages::assert_about(*of_script, 8.0 * 5000.0 / 60.0 / 2.0);
        }
        assert!((m.latency.max_us().unwrap() - 10_000.0).abs() < 20.0, "{:?}", m.latency.max_us());
        assert_eq!(m.sums.lag_max_ns, 0);
    }
}
