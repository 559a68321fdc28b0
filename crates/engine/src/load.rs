//! A load from its specification to its measurement.

use std::io;
use std::num::NonZeroU32;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use pgdyno_model::Measurement;
use pgdyno_model::experiment::{Length, Protocol};
use pgdyno_model::target::Target;
use thiserror::Error;

use crate::aggregate::Aggregate;
use crate::client::Client;
use crate::connect::{self, CONNECT_TIMEOUT, ConnectError, Connection};
use crate::event_loop::{self, Outcome};
use crate::program::{Program, ProgramError};
use crate::random::Random;
use crate::reactor::epoll::Epoll;
use crate::recorder::{Interval, Recorder};
use crate::schedule::{Clock, Moment, Schedule};
use crate::script;

pub use crate::schedule::Phase;

/// How long after the window's closing a transaction under way may take.
const GRACE: Duration = Duration::from_secs(30);
/// How often the calling thread looks at the stop flag.
const WATCH: Duration = Duration::from_millis(25);
/// How long all cancel requests of a thread may take together.
const CANCEL: Duration = Duration::from_millis(100);

/// A script and how often it is chosen.
#[derive(Clone, Debug)]
pub struct WeightedScript {
    /// The script.
    pub script: Arc<script::Script>,
    /// Its share among the weights of all; 0 means never.
    pub weight: u32,
}

/// What load to offer, and where.
#[derive(Clone, Debug)]
pub struct LoadSpec {
    /// The server.
    pub target: Target,
    /// What clients execute.
    pub scripts: Vec<WeightedScript>,
    /// Connections.
    pub clients: NonZeroU32,
    /// Event loops; more than clients are not used.
    pub threads: NonZeroU32,
    /// How statements are sent.
    pub protocol: Protocol,
    /// Load offered before the window opens.
    pub warm_up: Duration,
    /// The measured window.
    pub length: Length,
    /// Where all randomness comes from.
    pub seed: u64,
    /// Variables that scripts find set, such as `scale`.
    pub variables: Vec<(String, script::Value)>,
}

/// What the caller sees, and may say, while the load runs.
pub struct Watch<'a> {
    /// Becomes true when the load is to end.
    pub stop: &'a AtomicBool,
    /// Called once, from the calling thread, when the window opens; with when it did.
    pub on_open: &'a (dyn Fn(Instant) + Sync),
    /// Called about once a second, from the calling thread, in every phase.
    pub on_second: &'a (dyn Fn(&Live) + Sync),
}

/// The load in its last whole second, or the part of it that a phase ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Live {
    /// The phase it lay in.
    pub phase: Phase,
    /// From the phase's beginning to the second's end.
    pub elapsed: Duration,
    /// Transactions per second in it.
    pub tps: f64,
    /// Median latency in it (microseconds); none when nothing ended.
    pub latency_us_p50: Option<f64>,
    /// 99th percentile of latency in it (microseconds).
    pub latency_us_p99: Option<f64>,
    /// Transactions that failed in it (count).
    pub failed: u64,
}

/// Why nothing was measured.
#[derive(Debug, Error)]
pub enum LoadError {
    /// A client could not connect.
    #[error("client {client}: {cause}")]
    Connect {
        /// The client's number, from 0.
        client: u32,
        /// Why not.
        cause: ConnectError,
    },
    /// The scripts cannot be run.
    #[error("cannot run the workload: {0}")]
    Program(ProgramError),
    /// Every client gave up before the window opened.
    #[error("all {clients} clients gave up before the measured window opened: {}", reasons.join("; "))]
    AllAborted {
        /// How many there were.
        clients: u32,
        /// What the first of them met.
        reasons: Vec<String>,
    },
    /// The stop flag was set before the window opened.
    #[error("the load was interrupted before the measured window opened")]
    Interrupted,
    /// The system refused a thread or an event loop.
    #[error("cannot run an event loop: {0}")]
    System(io::Error),
    /// A thread ended by a panic: a mistake in pgdyno.
    #[error("an event loop panicked: {0}")]
    Panicked(String),
}

impl LoadError {
    /// What can be done about it.
    #[must_use]
    pub fn help(&self) -> Option<String> {
        match self {
            Self::Connect { cause, .. } => cause.help(),
            Self::Program(ProgramError::NothingToRun) => {
                Some("give a script, with a weight above 0".to_owned())
            }
            Self::System(e) if e.raw_os_error() == Some(24) => {
                Some("raise the limit of open files (ulimit -n), or use fewer clients".to_owned())
            }
            Self::Panicked(_) => Some("this is a bug: please report it".to_owned()),
            Self::Program(_) | Self::AllAborted { .. } | Self::Interrupted | Self::System(_) => None,
        }
    }
}

/// What threads tell the calling thread.
enum Report {
    Connected,
    Interval(usize, Interval),
    Ended(usize, Box<Outcome>),
    Broken(LoadError),
}

/// What a thread works with.
struct Worker {
    index: usize,
    target: Target,
    program: Arc<Program>,
    clock: Clock,
    stop: Arc<AtomicBool>,
    /// Its clients: number, and the seeds of its two streams of randomness.
    clients: Vec<(u32, u64, u64)>,
    go: Receiver<Schedule>,
    reports: Sender<Report>,
}

/// Drives the load to its end, and measures it.
///
/// Event loops run in threads of their own; this one adds up what they count, and calls `watch`. When `watch.stop`
/// becomes true, what was measured is returned with the window's real length. When every client has given up, the load
/// ends at once.
///
/// # Errors
/// Nothing was measured: a client could not connect, the scripts cannot be run, all clients gave up before the window
/// opened, or the load was interrupted before that.
pub fn drive(spec: &LoadSpec, watch: &Watch<'_>) -> Result<Measurement, LoadError> {
    let program = Program::link(&spec.scripts, spec.protocol, spec.seed, &spec.variables);
    let program = Arc::new(program.map_err(LoadError::Program)?);
    let clock = Clock::new(Instant::now());
    // Whatever way this function is left, its threads are told.
    let stop = StopOnDrop(Arc::new(AtomicBool::new(false)));
    let (reports, inbox) = channel();
    let mut threads = Vec::new();
    for (index, clients) in deal(spec).into_iter().enumerate() {
        let (go, wait) = channel();
        let worker = Worker {
            index,
            target: spec.target.clone(),
            program: Arc::clone(&program),
            clock,
            stop: Arc::clone(&stop.0),
            clients,
            go: wait,
            reports: reports.clone(),
        };
        let thread = std::thread::Builder::new().name(format!("load-{index}")).spawn(move || worker.work());
        threads.push((go, thread.map_err(LoadError::System)?));
    }
    drop(reports);

    for _ in 0..threads.len() {
        loop {
            if watch.stop.load(Ordering::Relaxed) {
                return Err(LoadError::Interrupted);
            }
            match receive(&inbox, WATCH)? {
                Some(Report::Connected) => break,
                Some(Report::Broken(error)) => return Err(error),
                Some(Report::Interval(..) | Report::Ended(..)) | None => {}
            }
        }
    }
    let start = clock.now();
    let opening = start.after(spec.warm_up);
    let (closing, transactions) = match spec.length {
        Length::Duration(span) => (opening.after(span.0), None),
        Length::Transactions(count) => (Moment::NEVER, Some(count)),
    };
    let schedule = Schedule { start, opening, closing, transactions, grace: GRACE };
    for (go, _) in &threads {
        // A thread that is gone has reported why.
        let _ = go.send(schedule);
    }
    let mut aggregate = Aggregate::new(schedule, threads.len());
    let run = Run { spec, watch, clock, schedule, stop: &stop.0, inbox: &inbox };
    let measurement = run.watch_to_the_end(&mut aggregate);
    stop.0.store(true, Ordering::Relaxed);
    for (go, thread) in threads {
        drop(go);
        // Its panic, if any, was reported.
        let _ = thread.join();
    }
    measurement
}

struct StopOnDrop(Arc<AtomicBool>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Clients for each thread, dealt round-robin.
fn deal(spec: &LoadSpec) -> Vec<Vec<(u32, u64, u64)>> {
    let clients = spec.clients.get();
    let threads = spec.threads.get().min(clients);
    let mut seeds = Random::new(spec.seed);
    // All first streams before all second ones, so that a script's draws do not depend on the number of clients.
    let first: Vec<u64> = (0..clients).map(|_| seeds.next_u64()).collect();
    let mut dealt: Vec<Vec<_>> = (0..threads).map(|_| Vec::new()).collect();
    for (client, random) in (0..clients).zip(first) {
        if let Some(hand) = dealt.get_mut((client % threads) as usize) {
            hand.push((client, random, seeds.next_u64()));
        }
    }
    dealt
}

fn receive(inbox: &Receiver<Report>, wait: Duration) -> Result<Option<Report>, LoadError> {
    match inbox.recv_timeout(wait) {
        Ok(report) => Ok(Some(report)),
        Err(RecvTimeoutError::Timeout) => Ok(None),
        Err(RecvTimeoutError::Disconnected) => {
            Err(LoadError::Panicked("it ended without a report".to_owned()))
        }
    }
}

/// The calling thread's part while the load runs.
struct Run<'a> {
    spec: &'a LoadSpec,
    watch: &'a Watch<'a>,
    clock: Clock,
    schedule: Schedule,
    stop: &'a AtomicBool,
    inbox: &'a Receiver<Report>,
}

impl Run<'_> {
    fn watch_to_the_end(&self, aggregate: &mut Aggregate) -> Result<Measurement, LoadError> {
        let mut cpu_at_opening = None;
        let mut cpu_at_closing = None;
        let mut stopped_at = None;
        while aggregate.running() > 0 {
            let now = self.clock.now();
            if stopped_at.is_none() && self.watch.stop.load(Ordering::Relaxed) {
                self.stop.store(true, Ordering::Relaxed);
                stopped_at = Some(now);
                if now < self.schedule.opening {
                    return Err(LoadError::Interrupted);
                }
                cpu_at_closing.get_or_insert_with(cpu_seconds);
            }
            if cpu_at_opening.is_none() && now >= self.schedule.opening {
                cpu_at_opening = Some(cpu_seconds());
                (self.watch.on_open)(self.clock.instant(self.schedule.opening));
            }
            if cpu_at_closing.is_none() && now >= self.schedule.closing {
                cpu_at_closing = Some(cpu_seconds());
            }
            let edge = [self.schedule.opening, self.schedule.closing].into_iter().find(|edge| *edge > now);
            let wait = edge.map_or(WATCH, |edge| edge.since(now).min(WATCH));
            match receive(self.inbox, wait)? {
                Some(Report::Interval(thread, interval)) => {
                    aggregate.add(thread, interval);
                    while let Some(live) = aggregate.next_live() {
                        (self.watch.on_second)(&live);
                    }
                }
                Some(Report::Ended(thread, outcome)) => {
                    aggregate.ended(thread, &outcome);
                    while let Some(live) = aggregate.next_live() {
                        (self.watch.on_second)(&live);
                    }
                }
                Some(Report::Broken(error)) => return Err(error),
                Some(Report::Connected) | None => {}
            }
        }
        let cpu_now = cpu_seconds();
        if aggregate.last_end() < self.schedule.opening {
            let tally = aggregate.tally();
            if tally.aborted_clients == self.spec.clients.get() {
                return Err(LoadError::AllAborted {
                    clients: tally.aborted_clients,
                    reasons: tally.abort_reasons.clone(),
                });
            }
            return Err(LoadError::Interrupted);
        }
        if cpu_at_opening.is_none() {
            (self.watch.on_open)(self.clock.instant(self.schedule.opening));
        }
        let cpu = cpu_at_closing.unwrap_or(cpu_now) - cpu_at_opening.unwrap_or(cpu_now);
        Ok(aggregate.measurement(self.spec, stopped_at, cpu.max(0.0)))
    }
}

/// CPU time of this process, user and system (seconds).
#[allow(clippy::cast_precision_loss)]
fn cpu_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

impl Worker {
    /// A thread's life. It always ends with a report.
    fn work(self) {
        let reports = self.reports.clone();
        let index = self.index;
        let report = match catch_unwind(AssertUnwindSafe(|| self.load())) {
            Ok(Ok(Some(outcome))) => Report::Ended(index, Box::new(outcome)),
            // Nobody waits for one that was told to stop before it began.
            Ok(Ok(None)) => return,
            Ok(Err(error)) => Report::Broken(error),
            Err(panic) => {
                let text = panic.downcast_ref::<&str>().map(|s| (*s).to_owned());
                let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
                Report::Broken(LoadError::Panicked(text.unwrap_or_else(|| "without a message".to_owned())))
            }
        };
        // The calling thread may have left already.
        let _ = reports.send(report);
    }

    fn load(self) -> Result<Option<Outcome>, LoadError> {
        let mut streams = Vec::with_capacity(self.clients.len());
        let mut keys = Vec::with_capacity(self.clients.len());
        for (client, ..) in &self.clients {
            if self.stop.load(Ordering::Relaxed) {
                return Ok(None);
            }
            let Connection { stream, key } = connect::connect(&self.target, CONNECT_TIMEOUT)
                .map_err(|cause| LoadError::Connect { client: *client, cause })?;
            streams.push(stream);
            keys.push(key);
        }
        let mut reactor = Epoll::new(self.clock, streams).map_err(LoadError::System)?;
        if self.reports.send(Report::Connected).is_err() {
            return Ok(None);
        }
        let Ok(schedule) = self.go.recv() else { return Ok(None) };
        let reports = self.reports.clone();
        let index = self.index;
        let recorder = Recorder::new(
            &self.program,
            schedule,
            Box::new(move |interval| {
                let _ = reports.send(Report::Interval(index, interval));
            }),
        );
        let client = |&(id, random, choice): &(u32, u64, u64)| {
            let program = Arc::clone(&self.program);
            Client::new(id, program, Random::new(random), Random::new(choice), schedule.transactions)
        };
        let clients = self.clients.iter().map(client).collect();
        let outcome =
            event_loop::run(&mut reactor, clients, recorder, &self.stop).map_err(LoadError::System)?;
        self.cancel(&outcome.cut_off, &keys);
        Ok(Some(outcome))
    }

    /// Asks the server to drop what stopped clients had asked for; best effort, within a time limit.
    fn cancel(&self, cut_off: &[usize], keys: &[Option<(u32, Vec<u8>)>]) {
        let end = Instant::now() + CANCEL;
        for key in cut_off.iter().filter_map(|index| keys.get(*index)?.as_ref()) {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() || connect::cancel(&self.target.address, key, left).is_err() {
                return;
            }
        }
    }
}
