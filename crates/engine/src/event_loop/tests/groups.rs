//! Groups of clients.

use std::num::NonZeroU32;

use pgdyno_model::ClientGroup;

use super::*;
use crate::group::LoadGroup;
use crate::script::{Script, WeightedScript};

/// Gives `spec` groups of so many clients, and a script for each weight.
fn divide(spec: &mut LoadSpec, groups: Vec<(ClientGroup, u32, &[u32])>) {
    spec.scripts.clear();
    let mut divided = Vec::new();
    for (group, clients, weights) in groups {
        for (number, weight) in weights.iter().enumerate() {
            let text = format!("SELECT '{} {number}';", group.name);
            let script = Arc::new(Script::parse(&group.name, &text).unwrap());
            spec.scripts.push(WeightedScript::new(script, *weight));
        }
        let clients = NonZeroU32::new(clients).unwrap();
        let scripts = weights.len();
        divided.push(LoadGroup { group: ClientGroup { clients, scripts, ..group }, servers: None });
    }
    *spec = spec.clone().with_groups(divided);
}

fn named(name: &str) -> ClientGroup {
    ClientGroup::new(name, 0)
}

fn run(change: fn(&mut LoadSpec)) -> load::Seen {
    // Replies take a millisecond, and ten for the first three clients.
    let answer = |client| steady(if client < 3 { 10 * MS } else { MS })(client);
    Load { change, ..Load::new("SELECT;") }.run(answer)
}

/// Transactions of each script.
fn counts(seen: &load::Seen) -> Vec<u64> {
    seen.measurement.scripts.iter().map(|script| script.transactions).collect()
}

#[test]
fn each_group_runs_its_own_scripts_and_is_counted_apart() {
    let seen = run(|spec| {
        divide(spec, vec![(named("writers"), 3, &[1]), (named("readers"), 2, &[3, 0, 1])]);
    });
    let m = &seen.measurement;
    let found = counts(&seen);
    // Five seconds; the one that ends as the window closes lies outside it.
    assert_eq!((found[0], found[1..].iter().sum::<u64>()), (3 * 499, 2 * 4999));
    assert_eq!((found[2], m.transactions), (0, 3 * 499 + 2 * 4999));
    assert!((0.7..0.8).contains(&(found[1] as f64 / 9998.0)), "{found:?}");
    let groups: Vec<_> = m.scripts.iter().map(|script| script.group.as_deref().unwrap()).collect();
    assert_eq!(groups, ["writers", "readers", "readers", "readers"]);
    let p50 = |script: usize| m.scripts[script].latency.quantile_us(0.5).unwrap().round();
    assert!(
        (p50(0) - 10_000.0).abs() < 20.0 && (p50(1) - 1000.0).abs() < 2.0,
        "{} {}",
        p50(0),
        p50(1)
    );
    let all_of = |asked: &[String], word| asked[..asked.len() - 1].iter().all(|a| a.contains(word));
    let asked = &seen.asked;
    assert!(asked[..3].iter().all(|asked| all_of(asked, "writers")), "{:?}", asked[0]);
    assert!(asked[3..].iter().all(|asked| all_of(asked, "readers")), "{:?}", asked[3]);
}

#[test]
fn one_group_has_a_rate_while_another_is_a_closed_loop() {
    let seen = run(|spec| {
        let rate = |text: &str| Some(text.parse().unwrap());
        let paced = ClientGroup { rate: rate("100"), ..named("paced") };
        let stepped = ClientGroup { rate: rate("0 for 4s, 400 for 1s"), ..named("stepped") };
        divide(spec, vec![(paced, 3, &[1]), (named("closed"), 1, &[1]), (stepped, 4, &[1])]);
    });
    let found = counts(&seen);
    stages::assert_about(found[0], 500.0);
    assert_eq!(found[1], 4999);
    stages::assert_about(found[2], 400.0);
    let m = &seen.measurement;
    assert!(m.series[..4].iter().all(|s| s.transactions < 1200), "{:?}", m.series);
    // With a rate anywhere, service time is told of all: in a closed loop it is the latency.
    let scripts = &m.scripts;
    assert_eq!(scripts[1].service.as_ref(), Some(&scripts[1].latency));
    assert!(scripts[0].service.as_ref().unwrap() != &scripts[0].latency);
}

#[test]
fn think_time_passes_before_each_transaction_and_is_no_latency() {
    let seen = run(|spec| {
        let think_time = Span(40 * MS);
        let thinking = ClientGroup { think_time, ..named("thinking") };
        divide(spec, vec![(thinking, 3, &[1])]);
    });
    // 10 ms of service and 40 ms of thought: 20 a second for each of three clients.
    let found = counts(&seen);
    stages::assert_about(found[0], 300.0);
    let latency = &seen.measurement.latency;
    let (p50, max) = (latency.quantile_us(0.5).unwrap(), latency.max_us().unwrap());
    assert!((p50 - 10_000.0).abs() < 20.0 && (max - 10_000.0).abs() < 20.0, "{p50} {max}");
    assert_eq!(seen.measurement.sums.lag_max_ns, 0);
    let longer = run(|spec| {
        let think_time = Span(400 * MS);
        divide(spec, vec![(ClientGroup { think_time, ..named("thinking") }, 3, &[1])]);
    });
    stages::assert_about(counts(&longer)[0], 3.0 * 5000.0 / 410.0);
}
