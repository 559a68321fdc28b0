//! One thread of a load.
//!
//! A [`Worker`] connects its clients, chooses a reactor, waits for the schedule, and runs the event
//! loop. It reports each step to the calling thread.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use pgdyno_connect::{CONNECT_TIMEOUT, Connection};
use pgdyno_model::experiment::ReconnectLost;
use pgdyno_model::target::{Servers, Target};

use crate::client::Client;
use crate::cpu_time::thread_cpu_seconds;
use crate::error::LoadError;
use crate::event_loop;
use crate::flushes::DiskFlushes;
use crate::ledger::Ledger;
use crate::outcome::ThreadOutcome;
use crate::pace::Pacer;
use crate::program::Program;
use crate::random::Random;
use crate::reactor::choice::{ReactorChoice, ReactorKind, choose};
use crate::reactor::epoll::Epoll;
use crate::reactor::uring::Uring;
use crate::reactor::{Connector, Reactor};
use crate::recorder::{Interval, Recorder, RecorderOptions};
use crate::schedule::{Clock, Schedule};
use crate::seeds::{ClientSeeds, ThreadSeeds};
use crate::thread_rate::ThreadRate;

/// Time that all cancel requests of a thread may take together.
const CANCEL: Duration = Duration::from_millis(500);

/// Reports of a thread to the calling thread.
pub(crate) enum WorkerReport {
    /// The thread's clients are connected.
    Connected,
    /// The thread has all that it needs and waits for the schedule.
    Ready,
    /// Thread, one second's counts, and the CPU time that the thread used in it (seconds).
    Interval(usize, Box<Interval>, f64),
    Ended(usize, Box<ThreadOutcome>),
    Broken(LoadError),
}

/// A thread's share of a load.
pub(crate) struct Worker {
    pub(crate) index: usize,
    pub(crate) program: Arc<Program>,
    pub(crate) clock: Clock,
    pub(crate) stop: Arc<AtomicBool>,
    /// Clients of the thread.
    pub(crate) clients: Vec<ClientSeeds>,
    pub(crate) thread: ThreadSeeds,
    /// Transactions that each client starts in the window; none where time ends it.
    pub(crate) transactions: Option<u64>,
    /// Servers of each group; those of the load where it has no groups.
    pub(crate) servers: Arc<Vec<Servers>>,
    /// Rate of each group in the thread, where it has one.
    pub(crate) rates: Vec<Option<ThreadRate>>,
    pub(crate) options: RecorderOptions,
    pub(crate) ledger: Option<Arc<dyn Ledger>>,
    pub(crate) flushes: Option<DiskFlushes>,
    pub(crate) reactor: ReactorChoice,
    pub(crate) go: Receiver<Schedule>,
    pub(crate) reports: Sender<WorkerReport>,
}

/// How to cancel the statement of each client's connection, by the client's index. None for a
/// client without one, and where the server gave no key. It is locked when a connection is made,
/// never for a statement.
type CancelTargets = Arc<Mutex<Vec<Option<CancelTarget>>>>;

/// Where and how to cancel a client's statement.
struct CancelTarget {
    /// Server that the client is connected to.
    target: Target,
    key: (u32, Vec<u8>),
}

fn lock(targets: &CancelTargets) -> MutexGuard<'_, Vec<Option<CancelTarget>>> {
    targets.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Worker {
    /// Does the thread's work. It ends with a report, unless it was stopped before the load began.
    pub(crate) fn work(self) {
        let reports = self.reports.clone();
        let index = self.index;
        let report = match catch_unwind(AssertUnwindSafe(|| self.load())) {
            Ok(Ok(Some(outcome))) => WorkerReport::Ended(index, Box::new(outcome)),
            // Nobody waits for one that was told to stop before it began.
            Ok(Ok(None)) => return,
            Ok(Err(error)) => WorkerReport::Broken(error),
            Err(panic) => {
                let text = panic.downcast_ref::<&str>().map(|s| (*s).to_owned());
                let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
                WorkerReport::Broken(LoadError::Panicked(
                    text.unwrap_or_else(|| "without a message".to_owned()),
                ))
            }
        };
        // The calling thread may have left already.
        let _ = reports.send(report);
    }

    fn load(self) -> Result<Option<ThreadOutcome>, LoadError> {
        let mut streams = Vec::with_capacity(self.clients.len());
        let targets: CancelTargets = Arc::default();
        lock(&targets).resize_with(self.clients.len(), || None);
        let servers = Arc::clone(&self.servers);
        let mut balance = Random::new(self.thread.balance);
        let stop = Arc::clone(&self.stop);
        let groups: Vec<usize> = self.clients.iter().map(|client| client.group).collect();
        let connect = move |index: usize, random: &mut Random| {
            let servers = &servers[groups[index]];
            pgdyno_connect::connect_any(servers, CONNECT_TIMEOUT, &stop, |n| random.index(n))
        };
        let policy = &self.program.policy;
        let reconnects = policy.reconnect_each;
        let renewed = reconnects || policy.reconnect_lost != ReconnectLost::Never;
        // With a connection for each transaction, the first transaction makes its own, too.
        let first = if reconnects { &[] } else { &self.clients[..] };
        for (index, client) in first.iter().enumerate() {
            if self.stop.load(Ordering::Relaxed) {
                return Ok(None);
            }
            let (Connection { stream, key }, target) = connect(index, &mut balance)
                .map_err(|cause| LoadError::Connect { client: client.id, cause })?;
            streams.push(stream);
            lock(&targets)[index] = key.map(|key| CancelTarget { key, target });
        }
        let renewed_targets = Arc::clone(&targets);
        let connector = renewed.then(|| -> Connector {
            Box::new(move |index| {
                let (Connection { stream, key }, target) = connect(index, &mut balance)?;
                lock(&renewed_targets)[index] = key.map(|key| CancelTarget { key, target });
                Ok(stream)
            })
        });
        let chosen = choose(self.reactor, &streams, reconnects);
        let clock = self.clock;
        let outcome = match &chosen {
            ReactorKind::Uring => self.offer(Uring::new(clock, streams, connector), &targets),
            ReactorKind::Epoll { .. } if reconnects => {
                let count = self.clients.len();
                self.offer(Epoll::without_connections(clock, count, connector), &targets)
            }
            ReactorKind::Epoll { .. } => {
                self.offer(Epoll::new(clock, streams, connector), &targets)
            }
        };
        Ok(outcome?.map(|outcome| ThreadOutcome { reactor: Some(chosen), ..outcome }))
    }

    /// Runs the load on `reactor`; `targets` are those of its connections.
    fn offer<R: Reactor>(
        mut self,
        reactor: io::Result<R>,
        targets: &CancelTargets,
    ) -> Result<Option<ThreadOutcome>, LoadError> {
        let mut reactor = reactor.map_err(LoadError::System)?;
        let reconnects = self.program.policy.reconnect_each;
        if self.reports.send(WorkerReport::Connected).is_err() {
            return Ok(None);
        }
        // Everything that takes time is done before the load begins.
        let program = Rc::new((*self.program).clone());
        let client = |seeds: &ClientSeeds| {
            let (random, script_random) =
                (Random::new(seeds.random), Random::new(seeds.script_random));
            let client = Client::new(
                seeds.id,
                Rc::clone(&program),
                random,
                script_random,
                self.transactions,
            )
            .in_group(seeds.group);
            let client = if reconnects { client.without_connection() } else { client };
            let client = match &self.flushes {
                Some(flushes) => client.with_flushes(flushes.clone()),
                None => client,
            };
            let Some(ledger) = &self.ledger else { return Ok(client) };
            let ledger = ledger.open(seeds.id, &self.clock).map_err(LoadError::Ledger)?;
            client.with_ledger(ledger).map_err(LoadError::NoLedger)
        };
        let clients = self.clients.iter().map(client).collect::<Result<_, LoadError>>()?;
        let reports = self.reports.clone();
        let index = self.index;
        let mut before = thread_cpu_seconds();
        let ended = Box::new(move |interval| {
            let now = thread_cpu_seconds();
            let _ = reports.send(WorkerReport::Interval(index, Box::new(interval), now - before));
            before = now;
        });
        let options = std::mem::take(&mut self.options);
        let mut recorder =
            Recorder::with_options(&self.program, Schedule::default(), ended, options);
        if self.reports.send(WorkerReport::Ready).is_err() {
            return Ok(None);
        }
        let Ok(schedule) = self.go.recv() else { return Ok(None) };
        recorder.start(schedule);
        let ThreadSeeds { script_random, throttle, .. } = self.thread;
        let pacer = |(rate, group)| {
            let mut pacer = Pacer::default();
            pacer.script_random = script_random.map(Random::new);
            if let Some(rate) = rate {
                pacer.throttle(rate, &schedule, Random::new(throttle.wrapping_add(group)));
            }
            pacer
        };
        let pacers = self.rates.into_iter().zip(0..).map(pacer).collect();
        let cancel = |interrupted: &[usize]| Self::cancel(interrupted, &lock(targets));
        let outcome = event_loop::run(&mut reactor, clients, recorder, pacers, &self.stop, cancel)
            .map_err(LoadError::System)?;
        Ok(Some(outcome))
    }

    /// Asks the server to cancel statements of stopped clients: best effort, within a time limit.
    fn cancel(interrupted: &[usize], targets: &[Option<CancelTarget>]) {
        let end = Instant::now() + CANCEL;
        for CancelTarget { target, key } in
            interrupted.iter().filter_map(|index| targets.get(*index)?.as_ref())
        {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() || pgdyno_connect::cancel(target, key, left).is_err() {
                return;
            }
        }
    }
}
