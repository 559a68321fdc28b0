//! A simulated load.

use std::num::NonZeroU32;
use std::rc::Rc;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pgdyno_model::Measurement;
use pgdyno_model::experiment::{Length, Protocol};
use pgdyno_model::load_rate::LoadRate;
use pgdyno_model::target::{Address, Target};
use pgdyno_model::units::Span;

use super::SECOND;
use super::fake_server::{Answer, FakeServer};
use crate::aggregate::Aggregate;
use crate::client::Client;
use crate::pace::Pacer;
use crate::program::{ClientPolicy, Program};
use crate::random::Random;
use crate::reactor::sim::{Network, Sim};
use crate::recorder::{Interval, Recorder, RecorderOptions};
use crate::schedule::{Clock, Moment, Schedule};
use crate::script::{Script, WeightedScript};
use crate::spec::LoadSpec;
use crate::thread_rate::ThreadRate;

/// A simulated load: tests change what they are about.
pub(super) struct Load {
    pub(super) script: &'static str,
    pub(super) clients: u32,
    pub(super) protocol: Protocol,
    pub(super) warm_up: Duration,
    pub(super) length: Length,
    pub(super) grace: Duration,
    pub(super) network: Network,
    /// Changes the rest of the load.
    pub(super) change: fn(&mut LoadSpec),
}

pub(super) struct Seen {
    pub(super) measurement: Measurement,
    /// SQL that each server received, in order.
    pub(super) asked: Vec<Vec<String>>,
    pub(super) parsed: u32,
}

impl Load {
    pub(super) fn new(script: &'static str) -> Self {
        Self {
            script,
            clients: 1,
            protocol: Protocol::Simple,
            warm_up: Duration::ZERO,
            length: Length::Duration(Span(5 * SECOND)),
            grace: 30 * SECOND,
            network: Network::default(),
            change: |_| {},
        }
    }

    /// A load of so many transactions a client.
    pub(super) fn with_count(transactions: u64, script: &'static str) -> Self {
        Self { length: Length::Transactions(transactions), ..Self::new(script) }
    }

    fn spec(&self) -> LoadSpec {
        let address = Address::Tcp { host: "nowhere".into(), port: 0 };
        let target = Target::new(address, "", "");
        let script = Arc::new(Script::parse("sim", self.script).unwrap());
        let mut spec = LoadSpec {
            clients: NonZeroU32::new(self.clients).unwrap(),
            protocol: self.protocol,
            warm_up: self.warm_up,
            length: self.length,
            seed: 1,
            ..LoadSpec::new(target, vec![WeightedScript::new(script, 1)])
        };
        (self.change)(&mut spec);
        spec
    }

    pub(super) fn run(&self, answer: impl Fn(usize) -> Answer) -> Seen {
        let spec = self.spec();
        let stop = Arc::new(AtomicBool::new(false));
        let program = linked(&spec, &stop);
        let schedule = Schedule { grace: self.grace, ..spec.schedule(Moment(0)) };
        let transactions = schedule.transactions;
        let asked: Vec<Arc<Mutex<Vec<String>>>> =
            (0..spec.clients.get()).map(|_| Arc::default()).collect();
        let peers = asked
            .iter()
            .enumerate()
            .map(|(n, asked)| FakeServer::new(answer(n), Arc::clone(asked)));
        let mut sim = Sim::new(peers.collect(), self.network);
        let intervals: Arc<Mutex<Vec<Interval>>> = Arc::default();
        let ended = Arc::clone(&intervals);
        let log =
            spec.log.as_ref().map(|log| (log.open(0).unwrap(), std::time::SystemTime::UNIX_EPOCH));
        let service = spec.has_rate();
        let options = RecorderOptions { log, service, ..RecorderOptions::from_load(&spec.options) };
        let ended = Box::new(move |i| ended.lock().unwrap().push(i));
        let recorder = Recorder::with_options(&program, schedule, ended, options);
        let dealt = spec.deal().remove(0);
        let pacer = |(rate, group): (Option<(&LoadRate, f64)>, u64)| {
            let mut pacer = Pacer::default();
            if let Some((rate, threads)) = rate {
                let rate = ThreadRate::new(rate, threads);
                pacer.throttle(rate, &schedule, Random::new(3 + group));
            }
            pacer
        };
        let pacers = spec.rates(&dealt).into_iter().zip(0..).map(pacer).collect();
        let client = |(group, id): (usize, u32)| {
            let random = Random::new(id.into());
            let client = Client::new(id, Rc::clone(&program), random.clone(), random, transactions)
                .in_group(group);
            match &spec.ledger {
                Some(ledger) => {
                    let clock = Clock::new(std::time::Instant::now());
                    client.with_ledger(ledger.open(id, &clock).unwrap()).unwrap()
                }
                None => client,
            }
        };
        let of_group = |(group, ids): (usize, &std::ops::Range<u32>)| {
            ids.clone().map(move |id| (group, id)).collect::<Vec<_>>()
        };
        let clients = dealt.iter().enumerate().flat_map(of_group).map(client).collect();
        let outcome =
            crate::event_loop::run(&mut sim, clients, recorder, pacers, &stop, |_| {}).unwrap();
        let mut aggregate = Aggregate::new(schedule, schedule.start, 1);
        for interval in intervals.lock().unwrap().drain(..) {
            aggregate.add(0, interval);
        }
        aggregate.thread_ended(0, &outcome);
        let measurement = aggregate.measurement(&spec, None, 0.0);
        let series = &measurement.series;
        assert_eq!(series.iter().map(|s| s.transactions).sum::<u64>(), measurement.transactions);
        assert_eq!(series.iter().map(|s| s.failed).sum::<u64>(), measurement.failed);
        let parsed = sim.into_peers().map(|p| p.parsed).sum();
        let asked = asked.iter().map(|a| a.lock().unwrap().clone()).collect();
        Seen { measurement, asked, parsed }
    }
}

/// Asserts how many transactions of a load succeeded and failed, and how many clients were aborted.
#[track_caller]
pub(super) fn assert_counts(m: &Measurement, expected: (u64, u64, u32)) {
    let counts = (m.transactions, m.failed, m.counters.aborted_clients);
    assert_eq!(counts, expected, "{:?}", m.counters.abort_reasons);
}

/// Asserts why the first client of a load was aborted.
#[track_caller]
pub(super) fn assert_aborted(m: &Measurement, words: &str) {
    let reasons = &m.counters.abort_reasons;
    assert!(reasons[0].contains(words), "no `{words}` in {reasons:?}");
}

fn linked(spec: &LoadSpec, stop: &Arc<AtomicBool>) -> Rc<Program> {
    let mut program =
        Program::link(&spec.scripts, spec.protocol, spec.seed, &spec.variables, &spec.tables)
            .unwrap();
    program.divide(&spec.scripts, &spec.groups).unwrap();
    program.policy = ClientPolicy {
        client_log: spec.client_log.clone(),
        logs_failures: spec.log_failures,
        logs_steps: spec.log_steps,
        stop: Arc::clone(stop),
        ..ClientPolicy::from_load(&spec.options)
    };
    Rc::new(program)
}
