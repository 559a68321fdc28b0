//! A load from its specification to its measurement.

use std::io;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant, SystemTime};

use pgdyno_model::experiment::{Length, LoadOptions, Protocol};
use pgdyno_model::measurement::Sums;
use pgdyno_model::target::Servers;
use pgdyno_model::{Latencies, Measurement};
use thiserror::Error;

use crate::aggregate::Aggregate;
use crate::connect::ConnectError;
use crate::ledger::{Ledger, Places};
use crate::log::TransactionLog;
use crate::program::{Program, ProgramError, Rules};
use crate::reactor::choice::ReactorChoice;
use crate::recorder::Extras;
use crate::schedule::{Clock, Moment, Schedule};
use crate::script;
use crate::seeds::{Seeds, threads_of};
use crate::worker::{Report, Worker};

pub use crate::schedule::Phase;

/// How long after the window's closing a transaction under way may take.
const GRACE: Duration = Duration::from_secs(30);
/// How often the calling thread looks at the stop flag.
const WATCH: Duration = Duration::from_millis(25);

/// A script and how often it is chosen.
#[derive(Clone, Debug)]
pub struct WeightedScript {
    /// The script.
    pub script: Arc<script::Script>,
    /// Its share among the weights of all; 0 means never.
    pub weight: u32,
}

/// Says that all randomness is to be pgbench's for `--random-seed`: the same values for one client,
/// and for every client of many; which script a client chooses, and when with a rate, is pgbench's
/// where each thread has one client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PgbenchSeeds {
    /// The seed.
    pub seed: u64,
}

/// What a client's words are about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// What ends the client.
    Error,
    /// An error that does not, or what the client does next.
    News,
    /// A value that the scripts' function `debug` is applied to.
    Value,
    /// A notice or a warning of the server's, in libpq's words.
    Notice,
}

/// Takes a client's words as things happen.
pub type Say = Arc<dyn Fn(Told, &str) + Send + Sync>;

/// What load to offer, and where.
#[derive(Clone)]
pub struct LoadSpec {
    /// Where to: each client's connection is to one of them.
    pub servers: Servers,
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
    pub variables: Vec<(String, script::Content)>,
    /// What is done beyond the scripts; its variables win over `variables`.
    pub options: LoadOptions,
    /// Where every transaction is logged.
    pub log: Option<Arc<dyn TransactionLog>>,
    /// Where every transaction is written down before it is sent (see [`crate::ledger`]).
    pub ledger: Option<Arc<dyn Ledger>>,
    /// Is told of clients' errors as they happen, in pgbench's manner.
    pub say: Option<Say>,
    /// Whether `say` is told also of errors that fail a transaction or have it tried again.
    pub say_failures: bool,
    /// Whether `say` is told also of every step that clients take, and of every reply.
    pub say_steps: bool,
    /// pgbench's randomness instead of `seed`'s.
    pub pgbench_seeds: Option<PgbenchSeeds>,
    /// How bytes are carried.
    pub reactor: ReactorChoice,
}

impl LoadSpec {
    /// One client that executes `scripts` for ten seconds, simple protocol, no warm-up, nothing
    /// else.
    #[must_use]
    pub fn new(servers: impl Into<Servers>, scripts: Vec<WeightedScript>) -> Self {
        Self {
            servers: servers.into(),
            scripts,
            clients: NonZeroU32::MIN,
            threads: NonZeroU32::MIN,
            protocol: Protocol::Simple,
            warm_up: Duration::ZERO,
            length: Length::Duration(pgdyno_model::units::Span(Duration::from_secs(10))),
            seed: 0,
            variables: Vec::new(),
            options: LoadOptions::default(),
            log: None,
            ledger: None,
            say: None,
            say_failures: false,
            say_steps: false,
            pgbench_seeds: None,
            reactor: ReactorChoice::default(),
        }
    }
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
    /// Transactions that ended well in it (count).
    pub transactions: u64,
    /// Latency in it; none when nothing ended.
    pub latency: Option<Latencies>,
    /// What is added up of it.
    pub sums: Sums,
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
    /// Clients gave up, and with them the load ended, before the window opened.
    #[error(
        "{aborted} of {clients} clients gave up before the measured window opened, which ended the load: {}",
        reasons.join("; ")
    )]
    Aborted {
        /// Clients that gave up (count).
        aborted: u32,
        /// All clients (count).
        clients: u32,
        /// What the first of them met.
        reasons: Vec<String>,
    },
    /// The stop flag was set before the window opened.
    #[error("the load was interrupted before the measured window opened")]
    Interrupted,
    /// A log cannot be opened.
    #[error("cannot open the transactions' log: {0}")]
    Log(io::Error),
    /// The scripts do not set what a ledger keeps.
    #[error("cannot keep a ledger of the load: its scripts have no variable `{0}`")]
    NoLedger(&'static str),
    /// A client's ledger.
    #[error("cannot keep a ledger of the load: {0}")]
    Ledger(io::Error),
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
            Self::Program(_)
            | Self::Aborted { .. }
            | Self::Interrupted
            | Self::Log(_)
            | Self::NoLedger(_)
            | Self::Ledger(_)
            | Self::System(_) => None,
        }
    }
}

/// Drives the load to its end, and measures it.
///
/// Event loops run in threads of their own; this one adds up what they count, and calls `watch`.
/// When `watch.stop` becomes true, what was measured is returned with the window's real length.
/// When every client has given up, the load ends at once.
///
/// # Errors
/// Nothing was measured: a client could not connect, the scripts cannot be run, all clients gave up
/// before the window opened, or the load was interrupted before that.
pub fn drive(spec: &LoadSpec, watch: &Watch<'_>) -> Result<Measurement, LoadError> {
    let seeds = Seeds::draw(spec);
    let seed = spec.pgbench_seeds.map_or(spec.seed, |pgbench| pgbench.seed);
    let mut variables = spec.variables.clone();
    variables.extend(
        spec.options.define.iter().map(|(name, text)| (name.clone(), text.as_str().into())),
    );
    variables.extend(seeds.default_seed.map(|seed| ("default_seed".to_owned(), seed.into())));
    let mut program = Program::link(&spec.scripts, spec.protocol, seed, &variables)
        .map_err(LoadError::Program)?;
    let (clock, base) = (Clock::new(Instant::now()), SystemTime::now());
    // Whatever way this function is left, its threads are told.
    let stop = StopOnDrop(Arc::new(AtomicBool::new(false)));
    program.rules = Rules {
        say: spec.say.clone(),
        say_failures: spec.say_failures,
        say_steps: spec.say_steps,
        stop: Arc::clone(&stop.0),
        ..Rules::of(&spec.options)
    };
    if spec.ledger.is_some() {
        Places::of(&program).map_err(LoadError::NoLedger)?;
    }
    let program = Arc::new(program);
    let (reports, inbox) = channel();
    let transactions = match spec.length {
        Length::Duration(_) => None,
        Length::Transactions(count) => Some(count),
    };
    let servers = Arc::new(spec.servers.clone());
    let mut threads = Vec::new();
    for (index, (clients, thread)) in seeds.threads.into_iter().enumerate() {
        let (go, wait) = channel();
        let log = match &spec.log {
            Some(log) => Some((log.open(index).map_err(LoadError::Log)?, base)),
            None => None,
        };
        let worker = Worker {
            index,
            servers: Arc::clone(&servers),
            program: Arc::clone(&program),
            clock,
            stop: Arc::clone(&stop.0),
            clients,
            thread,
            transactions,
            rate: spec.options.rate.map(|rate| rate / f64::from(threads_of(spec))),
            extras: Extras { log, ..Extras::of(&spec.options) },
            ledger: spec.ledger.clone(),
            reactor: spec.reactor,
            go: wait,
            reports: reports.clone(),
        };
        let thread =
            std::thread::Builder::new().name(format!("load-{index}")).spawn(move || worker.work());
        threads.push((go, thread.map_err(LoadError::System)?));
    }
    drop(reports);

    let connected = wait_until_ready(&inbox, threads.len(), clock, watch.stop)?;
    let start = clock.now();
    let opening = start.after(spec.warm_up);
    let closing = match spec.length {
        Length::Duration(span) => opening.after(span.0),
        Length::Transactions(_) => Moment::NEVER,
    };
    let schedule = Schedule { start, opening, closing, transactions, grace: GRACE };
    for (go, _) in &threads {
        // A thread that is gone has reported why.
        let _ = go.send(schedule);
    }
    let mut aggregate = Aggregate::new(schedule, connected, threads.len());
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

/// Waits until all `threads` have what they need; returns when the last client had its connection.
fn wait_until_ready(
    inbox: &Receiver<Report>,
    threads: usize,
    clock: Clock,
    stop: &AtomicBool,
) -> Result<Moment, LoadError> {
    let mut connected = clock.now();
    let mut ready = 0;
    while ready < threads {
        if stop.load(Ordering::Relaxed) {
            return Err(LoadError::Interrupted);
        }
        match receive(inbox, WATCH)? {
            Some(Report::Connected) => connected = clock.now(),
            Some(Report::Ready) => ready += 1,
            Some(Report::Broken(error)) => return Err(error),
            Some(Report::Interval(..) | Report::Ended(..)) | None => {}
        }
    }
    Ok(connected)
}

struct StopOnDrop(Arc<AtomicBool>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
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
            let edge =
                [self.schedule.opening, self.schedule.closing].into_iter().find(|edge| *edge > now);
            let wait = edge.map_or(WATCH, |edge| edge.since(now).min(WATCH));
            match receive(self.inbox, wait)? {
                Some(Report::Interval(thread, interval, cpu)) => {
                    aggregate.add_cpu(thread, interval.phase, cpu);
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
                Some(Report::Connected | Report::Ready) | None => {}
            }
        }
        let cpu_now = cpu_seconds();
        if stopped_at.is_none() && self.stop.load(Ordering::Relaxed) {
            // A client ended the whole load.
            stopped_at = Some(aggregate.last_end());
        }
        if aggregate.last_end() < self.schedule.opening {
            let tally = aggregate.tally();
            if tally.aborted_clients == 0 {
                return Err(LoadError::Interrupted);
            }
            return Err(LoadError::Aborted {
                aborted: tally.aborted_clients,
                clients: self.spec.clients.get(),
                reasons: tally.abort_reasons.clone(),
            });
        }
        if cpu_at_opening.is_none() {
            (self.watch.on_open)(self.clock.instant(self.schedule.opening));
        }
        let cpu = cpu_at_closing.unwrap_or(cpu_now) - cpu_at_opening.unwrap_or(cpu_now);
        Ok(aggregate.measurement(self.spec, stopped_at, cpu.max(0.0)))
    }
}

/// CPU time of this process, user and system (seconds).
fn cpu_seconds() -> f64 {
    seconds_of(rustix::time::ClockId::ProcessCPUTime)
}

#[allow(clippy::cast_precision_loss)]
pub(crate) fn seconds_of(clock: rustix::time::ClockId) -> f64 {
    let time = rustix::time::clock_gettime(clock);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
