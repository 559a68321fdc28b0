//! Telemetry of a host that `ssh` reaches: `pgdyno worker --observe` samples it there.
//!
//! An [`Order::Watch`] begins it, and [`Ready`] comes back. [`Order::Finish`] names the window, and
//! the tables of samples come back. In between the order to [`Order::Stay`] comes each second:
//! without it, the worker ends. Messages are frames of JSON, between copies of one program.

use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::error::LabError;
use pgdyno_exec::process::Identity;
use pgdyno_exec::program::start_piped;
use pgdyno_generators::protocol::frame;
use pgdyno_generators::{ABANDONED, launch_on};
use pgdyno_model::telemetry::Table;
use pgdyno_observe::telemetry::{Sampler, host_probes};
use rustix::process::Signal;
use serde::{Deserialize, Serialize};

use pgdyno_provision::BenchError;

/// Interval between two orders to stay.
const BEAT: Duration = Duration::from_secs(1);
/// Interval at which the stop flag is looked at.
const LOOK: Duration = Duration::from_millis(25);
/// Time that tables have to come back.
const ANSWER: Duration = Duration::from_secs(10);
/// Time that a worker which did not answer has to end and to say why.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// An order to a worker.
#[derive(Serialize, Deserialize)]
enum Order {
    /// Begin to sample.
    Watch {
        /// `PGDATA`, where the server shows it.
        data: Option<PathBuf>,
        interval: Duration,
    },
    /// Keep sampling: the run still needs the samples.
    Stay,
    /// Return the samples of a window. The ends are times since the window opened and closed,
    /// because clocks of hosts differ.
    Finish { opened: Duration, closed: Duration },
}

/// The reply that sampling has begun.
#[derive(Serialize, Deserialize)]
struct Ready;

/// Samples this host for a pgdyno on another host, until that pgdyno asks for the samples or is
/// gone.
///
/// # Errors
/// The other end is gone, or is no pgdyno.
pub fn serve(
    mut orders: impl Read + Send + 'static,
    mut answers: impl Write,
) -> Result<(), io::Error> {
    let (tell, inbox) = channel();
    std::thread::spawn(move || {
        while let Ok(Some(order)) = frame::read::<Order>(&mut orders) {
            if tell.send(order).is_err() {
                break;
            }
        }
    });
    let gone = || io::Error::other("the pgdyno that asked for telemetry is gone");
    let Ok(Order::Watch { data, interval }) = inbox.recv_timeout(ABANDONED) else {
        return Err(gone());
    };
    let sampler = Sampler::start(host_probes(data.as_deref()), interval);
    frame::write(&mut answers, &Ready)?;
    loop {
        match inbox.recv_timeout(ABANDONED) {
            Ok(Order::Stay) => {}
            Ok(Order::Finish { opened, closed }) => {
                let now = Instant::now();
                let at = |ago| now.checked_sub(ago).unwrap_or(now);
                return frame::write(&mut answers, &sampler.finish(at(opened), at(closed)));
            }
            Ok(Order::Watch { .. }) | Err(_) => return Err(gone()),
        }
    }
}

/// A host whose telemetry is being sampled. Dropping it ends the worker.
pub(crate) struct ObservedHost {
    name: String,
    windows: Sender<(Instant, Instant)>,
    tables: Receiver<Result<Vec<Table>, String>>,
    worker: Arc<Mutex<Option<Identity>>>,
}

impl ObservedHost {
    /// Starts to sample the host of this name; `data` is `PGDATA` there.
    ///
    /// # Errors
    /// The host cannot be reached or observed, or a signal came.
    pub(crate) fn start(
        name: &str,
        data: Option<PathBuf>,
        interval: Duration,
        stop: &AtomicBool,
    ) -> Result<Self, BenchError> {
        let (windows, asked) = channel();
        let (tell, tables) = channel();
        let (is_ready, ready) = channel();
        let worker: Arc<Mutex<Option<Identity>>> = Arc::default();
        let (host, started) = (name.to_owned(), Arc::clone(&worker));
        // Not joined: a connection that hangs must not outlast a signal.
        std::thread::spawn(move || {
            let watch = Order::Watch { data, interval };
            let said = converse(&host, &watch, &started, &is_ready, &asked);
            let _ = tell.send(said);
        });
        let observed = Self { name: name.to_owned(), windows, tables, worker };
        loop {
            match ready.recv_timeout(LOOK) {
                Ok(()) => return Ok(observed),
                Err(_) if stop.load(Ordering::Relaxed) => return Err(BenchError::Interrupted),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    let why = observed.tables.recv_timeout(ANSWER);
                    let why = why.ok().and_then(Result::err).unwrap_or_default();
                    return Err(LabError::NotObserved { host: name.to_owned(), why }.into());
                }
            }
        }
    }

    /// Returns the tables of samples, as [`Sampler::finish`] does. If the host sent none, a single
    /// table says why.
    pub(crate) fn finish(self, opened: Instant, closed: Instant, stop: &AtomicBool) -> Vec<Table> {
        let _ = self.windows.send((opened, closed));
        let limit = Instant::now() + ANSWER;
        let why = loop {
            match self.tables.recv_timeout(LOOK) {
                Ok(Ok(tables)) => return tables,
                Ok(Err(why)) => break why,
                Err(RecvTimeoutError::Disconnected) => break "its worker is gone".to_owned(),
                Err(RecvTimeoutError::Timeout) if stop.load(Ordering::Relaxed) => {
                    break "the run was interrupted".to_owned();
                }
                Err(RecvTimeoutError::Timeout) if Instant::now() >= limit => {
                    break format!("it sent nothing for {} s", ANSWER.as_secs());
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        };
        let unavailable = Some(format!("{} was not observed: {why}", self.name));
        vec![Table { probe: "host".into(), columns: Vec::new(), samples: Vec::new(), unavailable }]
    }
}

impl Drop for ObservedHost {
    fn drop(&mut self) {
        if let Ok(Some(worker)) = self.worker.lock().map(|mut worker| worker.take()) {
            worker.signal(Signal::KILL);
        }
    }
}

/// Has a worker on `host` sample until a window is asked for, and returns the worker's tables. The
/// error says why the worker did not answer.
fn converse(
    host: &str,
    watch: &Order,
    started: &Mutex<Option<Identity>>,
    is_ready: &Sender<()>,
    asked: &Receiver<(Instant, Instant)>,
) -> Result<Vec<Table>, String> {
    let launched = launch_on(host, "worker --observe", start_piped);
    let mut worker = launched.map_err(|fault| fault.to_string())?;
    if let Ok(mut started) = started.lock() {
        *started = i32::try_from(worker.child.id()).ok().and_then(Identity::from_pid);
    }
    let streams = (worker.child.stdin.take(), worker.child.stdout.take());
    let (Some(mut to), Some(mut from)) = streams else { return Err("no streams".to_owned()) };
    let said = (|| -> Option<Vec<Table>> {
        frame::write(&mut to, watch).ok()?;
        frame::read::<Ready>(&mut from).ok()??;
        is_ready.send(()).ok()?;
        let (opened, closed) = loop {
            match asked.recv_timeout(BEAT) {
                Ok(window) => break window,
                Err(RecvTimeoutError::Timeout) => frame::write(&mut to, &Order::Stay).ok()?,
                Err(RecvTimeoutError::Disconnected) => return None,
            }
        };
        let order = Order::Finish { opened: opened.elapsed(), closed: closed.elapsed() };
        frame::write(&mut to, &order).ok()?;
        frame::read(&mut from).ok()?
    })();
    drop(to);
    let status = worker.end(Instant::now() + LAST_WORDS);
    said.ok_or_else(|| worker.how(status))
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn a_host_is_sampled_until_its_window_is_asked_for() {
        let (mut here, there) = UnixStream::pair().unwrap();
        let orders = there.try_clone().unwrap();
        let serving = std::thread::spawn(move || serve(orders, there));
        let interval = Duration::from_millis(10);
        frame::write(&mut here, &Order::Watch { data: None, interval }).unwrap();
        frame::read::<Ready>(&mut here).unwrap().unwrap();
        frame::write(&mut here, &Order::Stay).unwrap();
        std::thread::sleep(Duration::from_millis(100));
        let window = Order::Finish { opened: Duration::from_millis(60), closed: Duration::ZERO };
        frame::write(&mut here, &window).unwrap();
        let tables: Vec<Table> = frame::read(&mut here).unwrap().unwrap();
        serving.join().unwrap().unwrap();
        let of = |name| tables.iter().find(|table| table.probe == name).unwrap();
        assert!(of("cpu").samples.len() >= 2 && of("cpu").unavailable.is_none());
        assert!(of("diskstats").unavailable.is_some());
        assert!(tables.iter().all(|table| table.probe != "pg_stat_wal"));
    }

    #[test]
    fn a_worker_whose_orders_end_takes_no_more_samples() {
        let (mut here, there) = UnixStream::pair().unwrap();
        let orders = there.try_clone().unwrap();
        let serving = std::thread::spawn(move || serve(orders, there));
        let watch = Order::Watch { data: None, interval: Duration::from_millis(10) };
        frame::write(&mut here, &watch).unwrap();
        frame::read::<Ready>(&mut here).unwrap().unwrap();
        drop(here);
        assert!(serving.join().unwrap().is_err());
    }
}
