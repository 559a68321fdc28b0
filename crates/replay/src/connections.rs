//! Connections that threads of their own open and cancel, so that the event loop never waits.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use pgdyno_connect::{CONNECT_TIMEOUT, ConnectError, Stream, cancel, connect_any};
use pgdyno_engine::reactor::Connector;
use pgdyno_model::target::{Address, Servers, Target};

/// Threads: connections are opened this many at a time.
const THREADS: usize = 4;
/// Time that a request to cancel may take.
const CANCEL: Duration = Duration::from_millis(500);
/// SQLSTATE of a server that takes no more sessions.
const FULL: &str = "53300";
/// Attempts at such a server beside the first.
const FULL_RETRIES: u32 = 20;
/// Time between two such attempts.
const FULL_PAUSE: Duration = Duration::from_millis(50);

/// Opens and cancels connections. Link n of a reactor is connection n.
pub(crate) trait Connections {
    /// Begins to connect `link` to a database.
    fn connect(&mut self, link: usize, database: usize);

    /// Returns a link whose connection is open or failed, if there is one. An open connection is
    /// taken over by the reactor's `reconnect`.
    fn finished(&mut self) -> Option<(usize, Result<(), ConnectError>)>;

    /// Begins to cancel the statement of `link`.
    fn cancel(&mut self, link: usize);

    /// Waits until all requests to cancel are made, at most for their time limit.
    fn finish_cancelling(&mut self);
}

/// Work of a thread.
enum Job {
    Connect { link: usize, database: usize },
    Cancel(CancelTarget),
}

/// Result of a job.
enum Outcome {
    Connected { link: usize, result: Result<Option<CancelTarget>, ConnectError> },
    Cancelled,
}

/// Where and how to cancel a connection's statement.
type CancelTarget = Box<(Target, (u32, Vec<u8>))>;

/// Connections that wait for the reactor, by link.
type Streams = Arc<Mutex<Vec<Option<Stream>>>>;

/// Threads that connect and cancel. They end with the value.
pub(crate) struct ConnectionPool {
    jobs: Option<Sender<Job>>,
    outcomes: Receiver<Outcome>,
    streams: Streams,
    cancel_targets: Vec<Option<CancelTarget>>,
    /// Requests to cancel that are under way (count).
    cancelling: usize,
    threads: Vec<JoinHandle<()>>,
    /// Ends attempts to connect.
    stop: Arc<AtomicBool>,
}

impl ConnectionPool {
    /// Creates the threads for `links` connections. `servers` are those of each database.
    ///
    /// # Errors
    /// No thread can be created.
    pub(crate) fn new(links: usize, servers: Vec<Servers>) -> std::io::Result<Self> {
        let (jobs, taken) = mpsc::channel();
        let (results, outcomes) = mpsc::channel();
        let streams = Streams::default();
        lock(&streams).resize_with(links, || None);
        let (taken, servers) = (Arc::new(Mutex::new(taken)), Arc::new(servers));
        let stop = Arc::new(AtomicBool::new(false));
        let mut threads = Vec::new();
        for _ in 0..THREADS.min(links) {
            let worker = Worker {
                jobs: Arc::clone(&taken),
                outcomes: results.clone(),
                streams: Arc::clone(&streams),
                servers: Arc::clone(&servers),
                stop: Arc::clone(&stop),
            };
            let thread = std::thread::Builder::new().name("connect".into());
            threads.push(thread.spawn(move || worker.work())?);
        }
        let mut cancel_targets = Vec::new();
        cancel_targets.resize_with(links, || None);
        let jobs = Some(jobs);
        Ok(Self { jobs, outcomes, streams, cancel_targets, cancelling: 0, threads, stop })
    }

    /// Returns the function by which a reactor takes over open connections.
    pub(crate) fn connector(&self) -> Connector {
        let streams = Arc::clone(&self.streams);
        Box::new(move |link| {
            let stream = lock(&streams).get_mut(link).and_then(Option::take);
            let address = || Address::Tcp { host: "the server".into(), port: 0 };
            stream.ok_or_else(|| ConnectError::Interrupted { address: address() })
        })
    }

    fn add(&self, job: Job) {
        // Threads end only after the sender.
        let _ = self.jobs.as_ref().map(|jobs| jobs.send(job));
    }

    fn take(&mut self, outcome: Outcome) -> Option<(usize, Result<(), ConnectError>)> {
        match outcome {
            Outcome::Cancelled => {
                self.cancelling -= 1;
                None
            }
            Outcome::Connected { link, result } => {
                let result = result.map(|target| self.cancel_targets[link] = target);
                Some((link, result))
            }
        }
    }
}

impl Connections for ConnectionPool {
    fn connect(&mut self, link: usize, database: usize) {
        self.cancel_targets[link] = None;
        self.add(Job::Connect { link, database });
    }

    fn finished(&mut self) -> Option<(usize, Result<(), ConnectError>)> {
        while let Ok(outcome) = self.outcomes.try_recv() {
            let finished = self.take(outcome);
            if finished.is_some() {
                return finished;
            }
        }
        None
    }

    fn cancel(&mut self, link: usize) {
        if let Some(target) = self.cancel_targets[link].clone() {
            self.cancelling += 1;
            self.add(Job::Cancel(target));
        }
    }

    fn finish_cancelling(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let end = std::time::Instant::now() + 2 * CANCEL;
        while self.cancelling > 0 {
            let left = end.saturating_duration_since(std::time::Instant::now());
            let Ok(outcome) = self.outcomes.recv_timeout(left) else { return };
            // Sessions that are connected only now are not needed any more.
            self.take(outcome);
        }
    }
}

impl Drop for ConnectionPool {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.jobs = None;
        for thread in self.threads.drain(..) {
            // A panic was printed.
            let _ = thread.join();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A thread's parts.
struct Worker {
    jobs: Arc<Mutex<Receiver<Job>>>,
    outcomes: Sender<Outcome>,
    streams: Streams,
    servers: Arc<Vec<Servers>>,
    stop: Arc<AtomicBool>,
}

impl Worker {
    fn work(&self) {
        loop {
            let Ok(job) = lock(&self.jobs).recv() else { return };
            let outcome = match job {
                Job::Connect { link, database } => {
                    Outcome::Connected { link, result: self.connect(link, database) }
                }
                Job::Cancel(target) => {
                    // A server that takes no request any more has its connections closed.
                    let (target, key) = &*target;
                    let _ = cancel(target, key, CANCEL);
                    Outcome::Cancelled
                }
            };
            if self.outcomes.send(outcome).is_err() {
                return;
            }
        }
    }

    fn connect(&self, link: usize, database: usize) -> Result<Option<CancelTarget>, ConnectError> {
        let servers = &self.servers[database];
        let mut retries = 0..FULL_RETRIES;
        let (session, target) = loop {
            let random = |n| fastrand::usize(..n);
            match connect_any(servers, CONNECT_TIMEOUT, &self.stop, random) {
                // Sessions that ended a moment ago still count.
                Err(error) if error.sqlstate() == Some(FULL) && retries.next().is_some() => {
                    std::thread::sleep(FULL_PAUSE);
                }
                connected => break connected?,
            }
        };
        lock(&self.streams)[link] = Some(session.stream);
        Ok(session.key.map(|key| Box::new((target, key))))
    }
}
