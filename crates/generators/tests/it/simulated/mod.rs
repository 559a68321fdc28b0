//! Simulated workers and the network to them.

// Helpers of tests fail as tests do.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ops::Range;
use std::time::Duration;

use pgdyno_engine::LoadSpec;
use pgdyno_engine::schedule::Moment;
use pgdyno_engine::share::clients_of;
use pgdyno_generators::coordinator::{Coordinator, CoordinatorAction};
use pgdyno_generators::protocol::{Hello, Order, Report};
use pgdyno_generators::{Fault, Generators, GeneratorsError, Limits};
use pgdyno_model::Measurement;
use pgdyno_model::experiment::Length;

use super::common::{Recorded, reports};

pub const SECOND: u64 = 1_000_000_000;
/// A server that has to be told of its clients.
pub const SERVER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 5432);
/// Between two calls of `tick`.
const TICK: u64 = SECOND / 20;

/// Trouble of a worker. Times are the coordinator's (nanoseconds).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Trouble {
    #[default]
    None,
    /// Begins this much later than told.
    Late(u64),
    /// The clock jumps.
    Steps { at: u64, by: i64 },
    /// Sends nothing any more from this time on.
    Silent(u64),
    /// The process ends at this time.
    Ends(u64),
    /// The report of this number is lost.
    LosesSecond(u64),
    /// The totals count a transaction that no second has.
    OtherTotals,
    /// A thread is busy nearly all the time, from this second of the window on if it is known.
    Saturated(Option<u32>),
}

#[derive(Clone, Debug)]
pub struct Worker {
    /// Worker's clock minus the coordinator's at time 0 (nanoseconds).
    pub offset: i64,
    /// Drift of the worker's clock (parts in a million).
    pub drift_ppm: i64,
    /// Time that messages take to the worker and from it (nanoseconds).
    pub delay: (u64, u64),
    pub hello: Hello,
    pub trouble: Trouble,
}

impl Default for Worker {
    fn default() -> Self {
        Self {
            offset: 0,
            drift_ppm: 0,
            delay: (1000, 1000),
            hello: Hello::ours(),
            trouble: Trouble::None,
        }
    }
}

impl Worker {
    /// Returns the worker's clock at `now`; `EPOCH` keeps it above zero.
    fn clock(&self, now: u64) -> u64 {
        const EPOCH: i64 = 1_000_000 * SECOND.cast_signed();
        let stepped = match self.trouble {
            Trouble::Steps { at, by } if now >= at => by,
            _ => 0,
        };
        let now = now.cast_signed();
        (EPOCH + now + now / 1_000_000 * self.drift_ppm + self.offset + stepped) as u64
    }

    /// Returns the first time after `after` at which the worker's clock shows `at`.
    fn when(&self, at: u64, after: u64) -> u64 {
        let (mut low, mut high) = (after, after + 1_000 * SECOND);
        while low + 1 < high {
            let middle = u64::midpoint(low, high);
            if self.clock(middle) < at { low = middle } else { high = middle }
        }
        high
    }
}

enum Event {
    Order(Box<Order>),
    Report(Box<Report>),
    /// The reports of its load end here.
    Ended,
    Tick,
}

pub struct Simulation<'a> {
    spec: &'a LoadSpec,
    shares: Vec<Range<u32>>,
    workers: Vec<Worker>,
    coordinator: Option<Coordinator>,
    /// By time, then by the order in which they were caused.
    events: BTreeMap<(u64, u64), (usize, Event)>,
    caused: u64,
    pub now: u64,
    /// When each worker really began.
    pub starts: Vec<Option<u64>>,
    /// Whether each worker was told to stop.
    pub stopped: Vec<bool>,
    /// All orders.
    pub orders: Vec<(usize, Order)>,
    /// When the load was to begin, and when the window opened.
    pub agreed: Option<u64>,
    pub opened: Option<u64>,
    pub stop_at: Option<u64>,
    /// Answer of the server to a request to let workers in.
    pub admission: Result<(), String>,
    /// Addresses that the server was told of, each set with the orders sent before (count).
    pub admitted: Vec<(usize, BTreeSet<IpAddr>)>,
}

impl<'a> Simulation<'a> {
    /// Has the server at [`SERVER`] know its clients by their addresses. Workers 0 and 1 share the
    /// first one, 2 and 3 the next.
    pub fn admitting(mut self) -> Self {
        self.coordinator = self.coordinator.map(|coordinator| coordinator.admitting(SERVER));
        self
    }

    pub fn new(spec: &'a LoadSpec, workers: Vec<Worker>, max_start_skew: Duration) -> Self {
        let generators: Generators = format!("local:{}", workers.len()).parse().unwrap();
        let (_, shares) = generators.deal(spec.clients.get(), spec.threads.get()).unwrap();
        let named = shares.iter().enumerate().map(|(n, share)| (format!("gen{n}"), share.clone()));
        let coordinator = Coordinator::new(
            spec,
            named.collect(),
            Limits { max_start_skew, ..Limits::default() },
            0,
        );
        let count = workers.len();
        let mut all = Self {
            spec,
            shares,
            workers,
            coordinator: Some(coordinator),
            events: BTreeMap::new(),
            caused: 0,
            now: 0,
            starts: vec![None; count],
            stopped: vec![false; count],
            orders: Vec::new(),
            agreed: None,
            opened: None,
            stop_at: None,
            admission: Ok(()),
            admitted: Vec::new(),
        };
        for worker in 0..count {
            let hello = all.workers[worker].hello.clone();
            all.report(worker, 0, Report::Hello(hello));
            if let Trouble::Ends(at) = all.workers[worker].trouble {
                all.push(at, worker, Event::Ended);
            }
        }
        all.push(TICK, 0, Event::Tick);
        all
    }

    fn push(&mut self, at: u64, worker: usize, event: Event) {
        self.caused += 1;
        self.events.insert((at, self.caused), (worker, event));
    }

    /// Sends a report at `at`.
    fn report(&mut self, worker: usize, at: u64, report: Report) {
        let delay = self.workers[worker].delay.1;
        self.push(at + delay, worker, Event::Report(Box::new(report)));
    }

    pub fn run(&mut self) -> Result<Measurement, GeneratorsError> {
        let mut coordinator = self.coordinator.take().unwrap();
        while !coordinator.is_over() {
            let ((at, _), (worker, event)) = self.events.pop_first().unwrap();
            self.now = at;
            match event {
                Event::Tick => self.push(at + TICK, 0, Event::Tick),
                Event::Order(order) => self.obey(worker, &order),
                Event::Report(report) if !self.is_mute(worker, &report) => {
                    coordinator.receive(worker, *report, at);
                }
                Event::Report(_) => {}
                Event::Ended => {
                    coordinator.disconnected(worker, Fault::Ended("killed".into()), at);
                }
            }
            if self.stop_at.is_some_and(|stop| at >= stop) {
                coordinator.stop(at);
            }
            coordinator.tick(at);
            self.act(&mut coordinator);
        }
        coordinator.finish(self.spec)
    }

    fn is_mute(&self, worker: usize, report: &Report) -> bool {
        match (self.workers[worker].trouble, report) {
            (Trouble::Silent(at) | Trouble::Ends(at), _) => self.now >= at,
            (Trouble::LosesSecond(lost), Report::Second { number, .. }) => *number == lost,
            _ => false,
        }
    }

    fn act(&mut self, coordinator: &mut Coordinator) {
        while let Some(action) = coordinator.next_action() {
            match action {
                CoordinatorAction::Send(worker, order) => {
                    self.stopped[worker] |= matches!(order, Order::Stop);
                    if matches!(order, Order::Go { .. }) {
                        self.agreed = Some(self.now + 2 * SECOND);
                    }
                    self.orders.push((worker, order.clone()));
                    let at = self.now + self.workers[worker].delay.0;
                    self.push(at, worker, Event::Order(Box::new(order)));
                }
                CoordinatorAction::Admit(addresses) => {
                    self.admitted.push((self.orders.len(), addresses));
                    coordinator.admitted(self.admission.clone(), self.now);
                }
                CoordinatorAction::Opened(at) => self.opened = Some(at),
                CoordinatorAction::Second(_) | CoordinatorAction::Log(..) => {}
            }
        }
    }

    /// Acts as `worker` when `order` has reached it.
    fn obey(&mut self, worker: usize, order: &Order) {
        let now = self.now;
        let it = self.workers[worker].clone();
        match *order {
            Order::Time(sent) => {
                let (received, replied) = (it.clock(now), it.clock(now + 2_000));
                self.report(worker, now + 2_000, Report::Time { sent, received, replied });
            }
            Order::Route(server) => {
                assert_eq!(server, SERVER);
                let address = [10, 0, 0, u8::try_from(worker / 2).unwrap()];
                self.report(worker, now + 1_000, Report::Route(address.into()));
            }
            Order::Prepare(_) => self.report(worker, now + SECOND / 50, Report::Ready),
            Order::Go { at } => {
                let late = if let Trouble::Late(late) = it.trouble { late } else { 0 };
                let start = it.when(at, now) + late;
                self.starts[worker] = Some(start);
                self.report(worker, start, Report::Started { at: it.clock(start) });
                self.offer(worker, None);
            }
            Order::Stop => match self.starts[worker] {
                Some(start) if start < now && now - start > self.spec.warm_up.as_nanos() as u64 => {
                    self.offer(worker, Some(now - start));
                }
                _ => {
                    let reason = "stopped".to_owned();
                    let failed = Report::Failed { reason, help: None, is_interrupted: true };
                    self.report(worker, now, failed);
                }
            },
        }
    }

    /// Sends the reports of a load that ends `end` after its start, or by itself.
    fn offer(&mut self, worker: usize, end: Option<u64>) {
        let start = self.starts[worker].unwrap();
        let (now, delay) = (self.now, self.workers[worker].delay.1);
        // What a load that is stopped would have reported does not come to be.
        self.events.retain(|(at, _), (of, event)| {
            let is_count = match event {
                Event::Report(report) => {
                    matches!(&**report, Report::Second { .. } | Report::Done(_))
                }
                _ => false,
            };
            !is_count || *of != worker || *at <= now + delay
        });
        let part = self.part(worker);
        let (seconds, mut done) =
            reports(self.spec, Moment(self.workers[worker].clock(start)), &part, end);
        for (number, counts) in (0..).zip(seconds) {
            let at = start + counts.read().unwrap().end.0;
            if end.is_none() || at > now || end == Some(at - start) {
                self.report(worker, at, Report::Second { number, counts: Box::new(counts) });
            }
        }
        if self.workers[worker].trouble == Trouble::OtherTotals {
            let mut more = part.clone();
            more.push(Recorded { due: 1, ..part[0] });
            done.totals = reports(self.spec, Moment(0), &more, end).1.totals;
        }
        if let Trouble::Saturated(since) = self.workers[worker].trouble {
            (done.busiest_thread, done.pinned_since) = (0.97, since);
        }
        self.report(worker, start + done.ended, Report::Done(Box::new(done)));
    }

    /// Returns the transactions of a worker's clients: one each 10 ms, some of them slow.
    fn part(&self, worker: usize) -> Vec<Recorded> {
        let clients = clients_of(self.spec, &self.shares[worker]);
        let Length::Duration(span) = self.spec.length else { panic!("a load of a duration") };
        let length = self.spec.warm_up + span.0;
        let count = length.as_nanos() as u64 / (SECOND / 100);
        let mut part = Vec::new();
        for client in 0..clients {
            for n in 0..count {
                let took = 500_000 + n * 7919 % 8_000_000;
                let client = client + worker as u32 * 1000;
                part.push(Recorded {
                    client,
                    script: (n % 2) as usize,
                    due: n * (SECOND / 100),
                    lag: 0,
                    took,
                    is_torn: false,
                    is_failed: n % 97 == 0,
                });
            }
        }
        part
    }
}
