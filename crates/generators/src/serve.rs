//! A worker's process: orders on one stream, reports on another.
//!
//! One thread reads orders and answers exchanges of time stamps at once; the calling thread offers
//! the load. The process ends when its orders end, so that nothing outlives the coordinator.

use std::cell::Cell;
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use pgdyno_engine::share::{Share, ShareOutcome};
use pgdyno_engine::{ClientLogKind, LoadError, LoadObserver, LoadSpec, run_share};
use pgdyno_model::Advice;
use pgdyno_model::experiment::OnError;

use crate::clock::Nanos;
use crate::error::WorkerError;
use crate::protocol::{
    Done, Hello, IntervalCounts, LoadDescription, LogKind, Order, Report, TallyCounts, frame,
};
use crate::worker::{WorkerAction, WorkerState};

/// Time in which a load that was stopped ends in order.
const ENDING: Duration = Duration::from_secs(1);
/// Time that the coordinator has to end the orders once the load is over.
const LAST_ORDERS: Duration = Duration::from_secs(5);
/// Time without a word, after which the coordinator counts as gone. It says one each second.
pub const ABANDONED: Duration = Duration::from_secs(10);
/// Interval at which the stop flag is looked at.
const WATCH: Duration = Duration::from_millis(25);
/// Before the start, the last part is spent looking at the clock: sleeping is not that exact.
const SPIN: Duration = Duration::from_millis(1);

/// State shared by the thread that reads orders and the one that offers the load.
struct Shared<W> {
    cpus_allowed: Option<f64>,
    reports: Mutex<W>,
    stop: AtomicBool,
    /// Whether the orders have ended.
    is_over: AtomicBool,
    /// Origin of this worker's clock.
    origin: Instant,
    /// When the last order came.
    heard: Mutex<Instant>,
}

impl<W: Write> Shared<W> {
    fn now(&self) -> Nanos {
        u64::try_from(self.origin.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Sends the report that `report` makes; ends the load if the coordinator is gone.
    fn send(&self, report: impl FnOnce() -> Report) {
        let sent = match self.reports.lock() {
            Ok(mut to) => frame::write(&mut *to, &report()).is_ok(),
            Err(_) => false,
        };
        if !sent {
            self.stop.store(true, Ordering::Relaxed);
        }
    }
}

/// Order that the calling thread waits for.
enum Step {
    Prepare(Box<LoadDescription>),
    Start(Nanos),
}

/// Serves one load: takes orders from `orders` and sends reports to `reports`. The process may use
/// `cpus_allowed` CPUs' worth of time (count; none where that is not known).
///
/// Once the orders end, or nothing came for ten seconds, the process ends within a second, even if
/// the load does not.
///
/// # Errors
/// The system refuses a thread, the orders end, or the load comes to nothing.
pub fn serve(
    orders: impl Read + Send + 'static,
    reports: impl Write + Send + 'static,
    cpus_allowed: Option<f64>,
) -> Result<(), WorkerError> {
    let shared = Arc::new(Shared {
        cpus_allowed,
        reports: Mutex::new(reports),
        stop: AtomicBool::new(false),
        is_over: AtomicBool::new(false),
        origin: Instant::now(),
        heard: Mutex::new(Instant::now()),
    });
    shared.send(|| Report::Hello(Hello::ours()));
    let (steps, inbox) = channel();
    let reader = Arc::clone(&shared);
    let reading = std::thread::Builder::new().name("orders".into()).spawn(move || {
        take_orders(orders, &reader, &steps);
        reader.stop.store(true, Ordering::Relaxed);
        reader.is_over.store(true, Ordering::Relaxed);
        drop(steps);
        std::thread::sleep(ENDING);
        std::process::exit(1);
    });
    reading.map_err(WorkerError::Threads)?;
    let watched = Arc::clone(&shared);
    let watchdog =
        std::thread::Builder::new().name("watchdog".into()).spawn(move || watch(&watched));
    watchdog.map_err(WorkerError::Threads)?;
    let offered = match inbox.recv() {
        Ok(Step::Prepare(description)) => offer(&description, &shared, &inbox),
        Ok(Step::Start(_)) | Err(_) => return Err(WorkerError::Abandoned),
    };
    // A socket that is closed before its last orders are read loses its last reports.
    let limit = Instant::now() + LAST_ORDERS;
    while !shared.is_over.load(Ordering::Relaxed) && Instant::now() < limit {
        std::thread::sleep(WATCH);
    }
    offered
}

/// Ends the process when the coordinator is silent: its host may be cut off.
fn watch<W>(shared: &Shared<W>) {
    loop {
        std::thread::sleep(ENDING);
        if shared.heard.lock().is_ok_and(|heard| heard.elapsed() > ABANDONED) {
            shared.stop.store(true, Ordering::Relaxed);
            std::thread::sleep(ENDING);
            std::process::exit(1);
        }
    }
}

/// Takes orders until they end.
fn take_orders<W: Write>(mut orders: impl Read, shared: &Shared<W>, steps: &Sender<Step>) {
    let mut state = WorkerState::default();
    loop {
        let order: Order = match frame::read(&mut orders) {
            Ok(Some(order)) => order,
            Ok(None) => return,
            Err(error) => return fail(shared, error.to_string()),
        };
        let received = shared.now();
        if let Ok(mut heard) = shared.heard.lock() {
            *heard = Instant::now();
        }
        let step = match state.take(order) {
            Ok(WorkerAction::ReplyTime(sent)) => {
                shared.send(|| Report::Time { sent, received, replied: shared.now() });
                continue;
            }
            Ok(WorkerAction::ReplyRoute(to)) => {
                match source_address(to) {
                    Ok(from) => shared.send(|| Report::Route(from)),
                    Err(error) => fail(shared, format!("cannot find a way to {to}: {error}")),
                }
                continue;
            }
            Ok(WorkerAction::Stop) => {
                shared.stop.store(true, Ordering::Relaxed);
                continue;
            }
            Ok(WorkerAction::Prepare(description)) => Step::Prepare(description),
            Ok(WorkerAction::Start(at)) => Step::Start(at),
            Err(wrong) => return fail(shared, wrong.to_string()),
        };
        if steps.send(step).is_err() {
            return;
        }
    }
}

/// Returns the address from which this host's connections to `to` come. Nothing is sent.
fn source_address(to: SocketAddr) -> std::io::Result<IpAddr> {
    let any: IpAddr = match to {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((any, 0))?;
    socket.connect(to)?;
    Ok(socket.local_addr()?.ip())
}

fn fail<W: Write>(shared: &Shared<W>, reason: String) {
    shared.send(|| Report::Failed { reason, help: None, is_interrupted: false });
}

/// Runs a share of the load and reports it.
fn offer<W: Write + Send + 'static>(
    description: &LoadDescription,
    shared: &Arc<Shared<W>>,
    inbox: &Receiver<Step>,
) -> Result<(), WorkerError> {
    let mut spec = match description.read() {
        Ok(spec) => spec,
        Err(error) => {
            fail(shared, error.to_string());
            return Err(WorkerError::Load(error.to_string()));
        }
    };
    if description.logs_clients {
        let shared = Arc::clone(shared);
        spec.client_log = Some(Arc::new(move |kind: ClientLogKind, text: &str| {
            shared.send(|| Report::Log(LogKind(kind), text.to_owned()));
        }));
    }
    let number = Cell::new(0);
    let announcement = Cell::new(None);
    // What follows the start is reported after it.
    let await_announcement = || announcement.take().map(JoinHandle::join);
    let share = Share {
        threads: description.share.clone(),
        start: &|| {
            let began = start(shared, inbox)?;
            announcement.set(Some(announce(shared)));
            Some(began)
        },
        on_interval: &|schedule, interval| {
            await_announcement();
            let counts = Box::new(IntervalCounts::new(schedule, interval));
            shared.send(|| Report::Second { number: number.get(), counts });
            number.set(number.get() + 1);
        },
    };
    let observer = LoadObserver { stop: &shared.stop, on_open: &|_| {}, on_second: &|_| {} };
    let driven = run_share(&spec, &observer, &share);
    await_announcement();
    // The coordinator ends the orders once it has all totals, and not before.
    if shared.is_over.load(Ordering::Relaxed) {
        return Err(WorkerError::Abandoned);
    }
    match driven {
        Ok(mut outcome) => {
            outcome.measurement = outcome.measurement.with_cpus_allowed(shared.cpus_allowed);
            let done = Box::new(done(&spec, &outcome, number.get()));
            shared.send(|| Report::Done(done));
            Ok(())
        }
        Err(error) => {
            let is_interrupted = matches!(error, LoadError::Interrupted);
            let (reason, help) = (error.to_string(), error.help());
            shared.send(|| Report::Failed { reason: reason.clone(), help, is_interrupted });
            Err(WorkerError::Load(reason))
        }
    }
}

/// Reports that all clients are connected, and waits until the load is to begin; none: it was
/// stopped before.
fn start<W: Write>(shared: &Shared<W>, inbox: &Receiver<Step>) -> Option<Instant> {
    shared.send(|| Report::Ready);
    let at = loop {
        if shared.stop.load(Ordering::Relaxed) {
            return None;
        }
        match inbox.recv_timeout(WATCH) {
            Ok(Step::Start(at)) => break shared.origin + Duration::from_nanos(at),
            Ok(Step::Prepare(_)) | Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return None,
        }
    };
    loop {
        let left = at.saturating_duration_since(Instant::now());
        if shared.stop.load(Ordering::Relaxed) {
            return None;
        }
        if left.is_zero() {
            break;
        }
        match left > SPIN {
            true => std::thread::sleep((left - SPIN).min(WATCH)),
            false => std::hint::spin_loop(),
        }
    }
    Some(Instant::now())
}

/// Reports that the load begins now, in a thread of its own: a full pipe must not delay the load.
fn announce<W: Write + Send + 'static>(shared: &Arc<Shared<W>>) -> JoinHandle<()> {
    let at = shared.now();
    let shared = Arc::clone(shared);
    std::thread::spawn(move || shared.send(|| Report::Started { at }))
}

fn done(spec: &LoadSpec, outcome: &ShareOutcome, seconds: u64) -> Done {
    let ShareOutcome { measurement, tally, schedule, ended, pinned_since } = outcome;
    let is_fatal = spec.options.on_error == OnError::AbortAll;
    Done {
        seconds,
        totals: TallyCounts::new(tally, schedule.start),
        ended: ended.nanoseconds_since(schedule.start),
        cpu_s: measurement.generator_cpu_s,
        busiest_thread: measurement.busiest_thread,
        allowed_cpu_used: measurement.allowed_cpu_used,
        pinned_since: *pinned_since,
        reactor: measurement.reactor.clone(),
        reactor_reason: measurement.reactor_reason.clone(),
        aborted_thread: measurement.aborted_thread,
        ends_all: is_fatal && tally.counters.aborted_clients > 0,
    }
}
