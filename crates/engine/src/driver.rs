//! A load from its specification to its measurement.
//!
//! [`run_load`] links the scripts, starts a thread for each event loop, waits until all clients are
//! connected, and gives the threads their schedule. It then adds up their seconds until the last
//! thread has ended.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

use pgdyno_model::Measurement;
use pgdyno_model::experiment::Length;
use pgdyno_model::target::Servers;

use crate::aggregate::Aggregate;
use crate::cpu_time::process_cpu_seconds;
use crate::error::LoadError;
use crate::ledger::LedgerBindings;
use crate::observer::LoadObserver;
use crate::open_files::allow_open_files;
use crate::program::{ClientPolicy, Program};
use crate::recorder::RecorderOptions;
use crate::schedule::{Clock, Moment, Schedule};
use crate::seeds::{Seeds, SeedsOfThread};
use crate::share::{Share, ShareOutcome};
use crate::spec::LoadSpec;
use crate::thread_rate::ThreadRate;
use crate::worker::{Worker, WorkerReport};

/// Files that cancelling a statement takes (count).
const CANCELLING: usize = 2;
/// Interval at which the calling thread looks at the stop flag.
const WATCH: Duration = Duration::from_millis(25);

/// Runs the load that `spec` describes, and measures it.
///
/// Event loops run in threads of their own. The calling thread adds up what they count and calls
/// `observer`. When `observer.stop` becomes true, the load ends early: the measurement then has the
/// window's real length. When every client has given up, the load ends at once.
///
/// ```no_run
/// use std::sync::Arc;
/// use std::sync::atomic::AtomicBool;
///
/// use pgdyno_engine::script::{Script, WeightedScript};
/// use pgdyno_engine::{LoadObserver, LoadSpec, run_load};
/// use pgdyno_model::target::{Address, Target};
///
/// let address = Address::Tcp { host: "localhost".into(), port: 5432 };
/// let script = Script::parse("one.sql", "SELECT 1;")?;
/// let scripts = vec![WeightedScript::new(Arc::new(script), 1)];
/// let spec = LoadSpec::new(Target::new(address, "postgres", "postgres"), scripts);
/// let observer = LoadObserver {
///     stop: &AtomicBool::new(false),
///     on_open: &|_| {},
///     on_second: &|second| println!("{:.0} tps", second.tps),
/// };
/// let measurement = run_load(&spec, &observer)?;
/// println!("{:?} tps, p99 {:?} µs", measurement.tps(), measurement.latency.quantile_us(0.99));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// Nothing was measured: a client could not connect, the scripts cannot be run, all clients gave up
/// before the window opened, or the load was interrupted before that.
pub fn run_load(spec: &LoadSpec, observer: &LoadObserver<'_>) -> Result<Measurement, LoadError> {
    run(spec, observer, None).map(|outcome| outcome.measurement)
}

/// Runs `share` of the load that `spec` describes whole.
///
/// # Errors
/// As [`run_load`].
pub fn run_share(
    spec: &LoadSpec,
    observer: &LoadObserver<'_>,
    share: &Share<'_>,
) -> Result<ShareOutcome, LoadError> {
    run(spec, observer, Some(share))
}

fn run(
    spec: &LoadSpec,
    observer: &LoadObserver<'_>,
    share: Option<&Share<'_>>,
) -> Result<ShareOutcome, LoadError> {
    let seeds = Seeds::draw(spec);
    // Set however this function is left, so that its threads end.
    let stop = StopOnDrop(Arc::new(AtomicBool::new(false)));
    let program = Arc::new(link(spec, &seeds, &stop.0)?);
    let clock = Clock::new(Instant::now());
    let (reports, inbox) = channel();
    let threads = start_threads(spec, seeds, &program, clock, &stop.0, (&reports, share))?;
    // Only the threads can report now: an empty inbox without senders means that they are gone.
    drop(reports);

    let connected = wait_until_ready(&inbox, threads.len(), clock, observer.stop)?;
    let start = match share {
        Some(share) => clock.moment((share.start)().ok_or(LoadError::Interrupted)?),
        None => clock.now(),
    };
    let schedule = spec.schedule(start);
    for thread in &threads {
        // A thread that is gone has reported why.
        let _ = thread.go.send(schedule);
    }
    let mut aggregate = Aggregate::new(schedule, connected, threads.len());
    let supervisor =
        LoadSupervisor { spec, observer, share, clock, schedule, stop: &stop.0, inbox: &inbox };
    let measurement = supervisor.supervise(&mut aggregate);
    stop.0.store(true, Ordering::Relaxed);
    for thread in threads {
        drop(thread.go);
        // A panic was reported.
        let _ = thread.handle.join();
    }
    let (ended, pinned_since) = (aggregate.last_end(), aggregate.busiest_pinned_since());
    let (measurement, tally) = (measurement?, aggregate.into_tally());
    Ok(ShareOutcome { measurement, tally, schedule, ended, pinned_since })
}

/// Transactions that each client starts in the window; none where time ends it.
fn transactions_of(spec: &LoadSpec) -> Option<u64> {
    match spec.length {
        Length::Duration(_) => None,
        Length::Transactions(count) => Some(count),
    }
}

/// Links the scripts, and checks that they set what a ledger keeps.
fn link(spec: &LoadSpec, seeds: &Seeds, stop: &Arc<AtomicBool>) -> Result<Program, LoadError> {
    let mut variables = spec.variables.clone();
    variables.extend(
        spec.options.define.iter().map(|(name, text)| (name.clone(), text.as_str().into())),
    );
    variables.extend(seeds.default_seed.map(|seed| ("default_seed".to_owned(), seed.into())));
    let mut program =
        Program::link(&spec.scripts, spec.protocol, spec.seed, &variables, &spec.tables)
            .map_err(LoadError::Program)?;
    program.divide(&spec.scripts, &spec.groups).map_err(LoadError::Program)?;
    program.policy = ClientPolicy {
        client_log: spec.client_log.clone(),
        logs_failures: spec.log_failures,
        logs_steps: spec.log_steps,
        stop: Arc::clone(stop),
        ..ClientPolicy::from_load(&spec.options)
    };
    if spec.ledger.is_some() {
        LedgerBindings::from_program(&program).map_err(LoadError::NoLedger)?;
    }
    Ok(program)
}

/// A thread with an event loop.
struct LoadThread {
    /// Sends the schedule that the thread waits for.
    go: Sender<Schedule>,
    handle: JoinHandle<()>,
}

/// Starts a thread for each share of the clients; they connect and wait for the schedule.
fn start_threads(
    spec: &LoadSpec,
    seeds: Seeds,
    program: &Arc<Program>,
    clock: Clock,
    stop: &Arc<AtomicBool>,
    (reports, share): (&Sender<WorkerReport>, Option<&Share<'_>>),
) -> Result<Vec<LoadThread>, LoadError> {
    let base = SystemTime::now();
    let servers = Arc::new(servers(spec));
    let mut threads = Vec::new();
    let dealt = share.map_or(0..spec.event_loops(), |share| share.threads.clone());
    let here = seeds.threads.into_iter().skip(dealt.start as usize).take(dealt.len());
    let here: Vec<_> = here.collect();
    let clients = here.iter().map(|seeds| seeds.clients.len()).sum();
    allow_open_files(clients, here.len(), CANCELLING)?;
    for (index, SeedsOfThread { dealt, clients, thread }) in here.into_iter().enumerate() {
        let (go, wait) = channel();
        let log = match &spec.log {
            Some(log) => Some((log.open(index).map_err(LoadError::Log)?, base)),
            None => None,
        };
        let worker = Worker {
            index,
            servers: Arc::clone(&servers),
            program: Arc::clone(program),
            clock,
            stop: Arc::clone(stop),
            clients,
            thread,
            transactions: transactions_of(spec),
            rates: spec
                .rates(&dealt)
                .into_iter()
                .map(|rate| rate.map(|(rate, threads)| ThreadRate::new(rate, threads)))
                .collect(),
            options: RecorderOptions {
                log,
                tallies_seconds: share.is_some(),
                accounts_flushes: spec.flushes.is_some(),
                service: spec.has_rate(),
                ..RecorderOptions::from_load(&spec.options)
            },
            ledger: spec.ledger.clone(),
            flushes: spec.flushes.clone(),
            reactor: spec.reactor,
            go: wait,
            reports: reports.clone(),
        };
        let name = format!("load-{index}");
        let handle = std::thread::Builder::new().name(name).spawn(move || worker.work());
        threads.push(LoadThread { go, handle: handle.map_err(LoadError::System)? });
    }
    Ok(threads)
}

/// Returns the servers of each group; of the load where it has no groups.
fn servers(spec: &LoadSpec) -> Vec<Servers> {
    let all = || spec.servers.clone();
    match &spec.groups[..] {
        [] => vec![all()],
        groups => groups.iter().map(|g| g.servers.clone().unwrap_or_else(all)).collect(),
    }
}

/// Waits until all `threads` are ready; returns the time of the last connection.
fn wait_until_ready(
    inbox: &Receiver<WorkerReport>,
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
            Some(WorkerReport::Connected) => connected = clock.now(),
            Some(WorkerReport::Ready) => ready += 1,
            Some(WorkerReport::Broken(error)) => return Err(error),
            Some(WorkerReport::Interval(..) | WorkerReport::Ended(..)) | None => {}
        }
    }
    Ok(connected)
}

/// Ends the threads of a load when it is dropped.
struct StopOnDrop(Arc<AtomicBool>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn receive(
    inbox: &Receiver<WorkerReport>,
    wait: Duration,
) -> Result<Option<WorkerReport>, LoadError> {
    match inbox.recv_timeout(wait) {
        Ok(report) => Ok(Some(report)),
        Err(RecvTimeoutError::Timeout) => Ok(None),
        Err(RecvTimeoutError::Disconnected) => {
            Err(LoadError::Panicked("it ended without a report".to_owned()))
        }
    }
}

/// State of the calling thread while the load runs.
struct LoadSupervisor<'a> {
    spec: &'a LoadSpec,
    observer: &'a LoadObserver<'a>,
    share: Option<&'a Share<'a>>,
    clock: Clock,
    schedule: Schedule,
    stop: &'a AtomicBool,
    inbox: &'a Receiver<WorkerReport>,
}

impl LoadSupervisor<'_> {
    /// Shows the seconds that all threads have ended.
    fn show_seconds(&self, aggregate: &mut Aggregate) {
        while let Some(interval) = aggregate.next_interval() {
            (self.observer.on_second)(&aggregate.live(&interval));
            if let Some(share) = self.share {
                (share.on_interval)(&self.schedule, &interval);
            }
        }
    }

    /// Adds up the threads' seconds and calls the observer until the last thread has ended.
    fn supervise(&self, aggregate: &mut Aggregate) -> Result<Measurement, LoadError> {
        let mut cpu_at_opening = None;
        let mut cpu_at_closing = None;
        let mut stopped_at = None;
        while aggregate.running() > 0 {
            let now = self.clock.now();
            if stopped_at.is_none() && self.observer.stop.load(Ordering::Relaxed) {
                self.stop.store(true, Ordering::Relaxed);
                stopped_at = Some(now);
                if now < self.schedule.opening {
                    return Err(LoadError::Interrupted);
                }
                cpu_at_closing.get_or_insert_with(process_cpu_seconds);
            }
            if cpu_at_opening.is_none() && now >= self.schedule.opening {
                cpu_at_opening = Some(process_cpu_seconds());
                (self.observer.on_open)(self.clock.instant(self.schedule.opening));
            }
            if cpu_at_closing.is_none() && now >= self.schedule.closing {
                cpu_at_closing = Some(process_cpu_seconds());
            }
            let edge =
                [self.schedule.opening, self.schedule.closing].into_iter().find(|edge| *edge > now);
            let wait = edge.map_or(WATCH, |edge| edge.since(now).min(WATCH));
            match receive(self.inbox, wait)? {
                Some(WorkerReport::Interval(thread, interval, cpu)) => {
                    aggregate.add_cpu(thread, &interval, cpu);
                    aggregate.add(thread, *interval);
                    self.show_seconds(aggregate);
                }
                Some(WorkerReport::Ended(thread, outcome)) => {
                    aggregate.thread_ended(thread, &outcome);
                    self.show_seconds(aggregate);
                }
                Some(WorkerReport::Broken(error)) => return Err(error),
                Some(WorkerReport::Connected | WorkerReport::Ready) | None => {}
            }
        }
        let cpu_now = process_cpu_seconds();
        if stopped_at.is_none() && self.stop.load(Ordering::Relaxed) {
            // A client ended the whole load.
            stopped_at = Some(aggregate.last_end());
        }
        if aggregate.last_end() < self.schedule.opening {
            let tally = aggregate.tally();
            if tally.counters.aborted_clients == 0 {
                return Err(LoadError::Interrupted);
            }
            return Err(LoadError::Aborted {
                aborted: tally.counters.aborted_clients,
                clients: self.spec.clients.get(),
                reasons: tally.counters.abort_reasons.clone(),
            });
        }
        if cpu_at_opening.is_none() {
            (self.observer.on_open)(self.clock.instant(self.schedule.opening));
        }
        let cpu = cpu_at_closing.unwrap_or(cpu_now) - cpu_at_opening.unwrap_or(cpu_now);
        Ok(aggregate.measurement(self.spec, stopped_at, cpu.max(0.0)))
    }
}
