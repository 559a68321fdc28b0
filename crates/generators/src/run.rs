//! A load on several generators, from its description to its measurement.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use pgdyno_engine::{LoadObserver, LoadSpec};
use pgdyno_model::Measurement;
use pgdyno_model::target::Address;

use crate::coordinator::{Coordinator, CoordinatorAction};
use crate::error::GeneratorsError;
use crate::fleet::{Fleet, News, OurClock};
use crate::generators::{Generator, Generators, Place};
use crate::join::gather;
use crate::launch::{Hands, starter};

/// Interval at which the stop flag is looked at.
const WATCH: Duration = Duration::from_millis(25);

/// Runs the load that `spec` describes on `generators`, and measures it as one.
///
/// `hands` starts programs and tells people. `observer` and `spec.client_log` are called as by
/// [`pgdyno_engine::run_load`].
///
/// # Errors
/// The load is invalid, or nothing was measured. All workers have then been ended.
pub fn run_load(
    spec: &LoadSpec,
    observer: &LoadObserver<'_>,
    generators: &Generators,
    hands: &Hands<'_>,
) -> Result<Measurement, GeneratorsError> {
    check(spec, generators)?;
    let (threads, shares) =
        generators.deal(spec.clients.get(), spec.threads.get()).map_err(GeneratorsError::Deal)?;
    let threads = threads.try_into().unwrap_or(spec.threads);
    let spec = &LoadSpec { threads, ..spec.clone() };
    let asked = (generators.list.len(), shares.iter().map(|share| share.end - share.start).max());
    let asked = (asked.0, asked.1.unwrap_or(1));
    let starter = generators.list.first().and_then(|generator| starter(&generator.place));
    let gather = |join| gather(join, asked, starter, observer.stop, hands);
    let mut gathered = generators.join.as_ref().map(gather).transpose()?;
    let clock = OurClock(Instant::now());
    let (names, mut fleet): (Vec<String>, _) = match &mut gathered {
        None => (
            generators.list.iter().map(|generator| generator.name.clone()).collect(),
            Fleet::start(&generators.list, clock, hands.start),
        ),
        Some(gathered) => {
            let (names, streams) = std::mem::take(&mut gathered.workers).into_iter().unzip();
            (names, Fleet::joined(streams, clock))
        }
    };
    let shares = names.into_iter().zip(shares).collect();
    let mut coordinator = Coordinator::new(spec, shares, generators.limits, clock.now());
    if let Some(admission) = &hands.admission {
        coordinator = coordinator.admitting(admission.server);
    }
    while !coordinator.is_over() {
        match fleet.next(WATCH) {
            Some((worker, at, News::Report(report))) => coordinator.receive(worker, *report, at),
            Some((worker, at, News::Ended(Some(fault)))) => {
                coordinator.disconnected(worker, fault, at);
            }
            Some((_, _, News::Launched(_) | News::Ended(None))) | None => {}
        }
        let now = clock.now();
        if observer.stop.load(Ordering::Relaxed) {
            coordinator.stop(now);
        }
        coordinator.tick(now);
        act(&mut coordinator, &fleet, (spec, observer, hands), clock);
    }
    drop(fleet);
    let measurement = coordinator.finish(spec)?;
    // Those of one machine share what it allows.
    let is_local = |generator: &Generator| generator.place == Place::Local;
    let all_here = generators.join.is_none() && generators.list.iter().all(is_local);
    Ok(if all_here { measurement.with_cpus_allowed(hands.cpus_allowed) } else { measurement })
}

/// Does what the coordinator asks for.
fn act(
    coordinator: &mut Coordinator,
    fleet: &Fleet,
    (spec, observer, hands): (&LoadSpec, &LoadObserver<'_>, &Hands<'_>),
    clock: OurClock,
) {
    while let Some(action) = coordinator.next_action() {
        match action {
            CoordinatorAction::Send(worker, order) => fleet.send(worker, order),
            CoordinatorAction::Admit(addresses) => {
                let admit = hands.admission.map(|admission| (admission.admit)(&addresses));
                coordinator.admitted(admit.unwrap_or(Ok(())), clock.now());
            }
            CoordinatorAction::Opened(at) => (observer.on_open)(clock.instant(at)),
            CoordinatorAction::Second(second) => (observer.on_second)(&second),
            CoordinatorAction::Log(kind, text) => {
                if let Some(log) = &spec.client_log {
                    log(kind.0, &text);
                }
            }
        }
    }
}

/// Checks that `spec` is a load that other processes can offer.
fn check(spec: &LoadSpec, generators: &Generators) -> Result<(), GeneratorsError> {
    if spec.log.is_some() {
        return Err(GeneratorsError::Unsupported("a log of transactions"));
    }
    if spec.ledger.is_some() {
        return Err(GeneratorsError::Unsupported("a ledger"));
    }
    let is_elsewhere = generators.list.iter().any(|generator| generator.place != Place::Local);
    let mut addresses = spec.servers.targets.iter().map(|target| &target.address);
    match addresses.find(|address| matches!(address, Address::Unix { .. })) {
        Some(socket) if is_elsewhere => Err(GeneratorsError::Socket(socket.to_string())),
        _ => Ok(()),
    }
}
