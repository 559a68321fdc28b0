//! The control channel of the process that serves a disk: a line of JSON each way, over a Unix
//! socket in the disk's own directory.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use pgdyno_model::storage::DiskLatency;
use pgdyno_model::{Advice, FailureKind};
use serde::{Deserialize, Serialize};

use super::disk_log::log_file;
use super::rule::{Cut, Rule};
use super::states::State;
use super::status::{CutFacts, DiskStatus};

/// The longest wait for an answer. Writing out a full cache takes longest.
const PATIENCE: Duration = Duration::from_secs(60);

/// A request to a disk.
#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Request {
    Status,
    Arm(Rule),
    Disarm(u64),
    Lie(bool),
    Seed(u64),
    BeginBaseline,
    Cut(Cut),
    PowerOn,
    Latency(DiskLatency),
    SyncLog,
    Record,
    PublishFlushes(bool),
    Show { state: State, of: PathBuf },
}

/// An answer to a [`Request`].
#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Response {
    Status(Box<DiskStatus>),
    Armed(u64),
    Done,
    Refused(String),
}

/// A request to an emulated disk that failed.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum ControlError {
    /// The process that serves the disk does not answer.
    #[error("cannot reach the emulated disk in {}", directory.display())]
    Unreachable { directory: PathBuf, source: io::Error },
    /// The disk refuses the request.
    #[error("the emulated disk in {} refuses: {why}", directory.display())]
    Refused { directory: PathBuf, why: String },
}

impl Advice for ControlError {
    fn kind(&self) -> FailureKind {
        FailureKind::Storage
    }
}

/// A connection to the process that serves a disk.
#[derive(Debug)]
pub struct Control {
    directory: PathBuf,
    stream: BufReader<UnixStream>,
}

impl Control {
    /// Connects to the disk in `directory`.
    ///
    /// # Errors
    /// [`ControlError::Unreachable`]: nobody serves it.
    pub fn connect(directory: &Path) -> Result<Self, ControlError> {
        let connected = || {
            let stream = at_socket(directory, |path| UnixStream::connect(path))?;
            stream.set_read_timeout(Some(PATIENCE))?;
            Ok(stream)
        };
        let directory = directory.to_owned();
        match connected() {
            Ok(stream) => Ok(Self { directory, stream: BufReader::new(stream) }),
            Err(source) => Err(ControlError::Unreachable { directory, source }),
        }
    }

    /// Reads the disk's status.
    pub fn status(&mut self) -> Result<DiskStatus, ControlError> {
        match self.ask(&Request::Status)? {
            Response::Status(status) => Ok(*status),
            other => Err(self.unexpected(&other)),
        }
    }

    /// Arms a further fault, and returns its number. If several rules hit a request, the oldest one
    /// takes effect.
    pub fn arm(&mut self, rule: &Rule) -> Result<u64, ControlError> {
        match self.ask(&Request::Arm(rule.clone()))? {
            Response::Armed(id) => Ok(id),
            other => Err(self.unexpected(&other)),
        }
    }

    /// Disarms a fault.
    pub fn disarm(&mut self, id: u64) -> Result<(), ControlError> {
        self.done(&Request::Disarm(id))
    }

    /// Sets whether flushes are acknowledged without being done.
    pub fn lie(&mut self, on: bool) -> Result<(), ControlError> {
        self.done(&Request::Lie(on))
    }

    /// Seeds the disk's random numbers. Equal requests after equal seeds have equal effects.
    pub fn seed(&mut self, seed: u64) -> Result<(), ControlError> {
        self.done(&Request::Seed(seed))
    }

    /// Begins a baseline: makes all that was written so far durable, lying or not, and counts anew.
    ///
    /// Counted from here are [`DiskStatus::since_baseline`] and [`super::FlushFacts::longest_ns`].
    /// Call it before faults are armed.
    pub fn begin_baseline(&mut self) -> Result<(), ControlError> {
        self.done(&Request::BeginBaseline)
    }

    /// Cuts its power: from this instant nothing reaches the medium, and every request fails with
    /// EIO. One that has no power already stays as it is.
    pub fn cut(&mut self, cut: &Cut) -> Result<CutFacts, ControlError> {
        self.done(&Request::Cut(*cut))?;
        let status = self.status()?;
        status.cut.ok_or_else(|| self.unexpected(&Response::Status(Box::new(status.clone()))))
    }

    /// Serves the durable bytes again. Armed faults are gone.
    ///
    /// The stack's `power_cycle` calls it at the right time. It is refused while a process has the
    /// disk open, which would go on as if nothing had happened.
    ///
    /// # Errors
    /// [`ControlError::Refused`]: its file is still open.
    pub fn power_on(&mut self) -> Result<(), ControlError> {
        self.done(&Request::PowerOn)
    }

    /// Sets the latency of requests.
    pub fn set_latency(&mut self, latency: &DiskLatency) -> Result<(), ControlError> {
        self.done(&Request::Latency(*latency))
    }

    /// Returns the disk log's file, complete up to now; for [`super::DiskLog::read`].
    ///
    /// # Errors
    /// [`ControlError`]. A disk that keeps no log has no such file.
    pub fn log(&mut self) -> Result<PathBuf, ControlError> {
        self.done(&Request::SyncLog)?;
        Ok(log_file(&self.directory))
    }

    /// Begins a baseline as [`Self::begin_baseline`] does, and records every event from here on.
    /// The image stays as it is now; what is written later goes to a file beside it.
    ///
    /// # Errors
    /// [`ControlError::Refused`]: it keeps a log already, or its files cannot be made.
    pub fn record(&mut self) -> Result<(), ControlError> {
        self.done(&Request::BeginBaseline)?;
        self.done(&Request::Record)
    }

    /// Publishes from here on how far flushes are, in the file [`super::flush_file`], or no longer.
    /// It costs a small write to that file when a flush begins and when it is done.
    ///
    /// # Errors
    /// [`ControlError::Refused`]: the file cannot be made.
    pub fn publish_flushes(&mut self, on: bool) -> Result<(), ControlError> {
        self.done(&Request::PublishFlushes(on))
    }

    /// Puts `state` of what the disk in the directory `of` recorded in place of this disk's
    /// contents. What was written since the last call is gone, and a recording of its own ends. The
    /// disk has no power; [`Self::power_on`] comes next.
    ///
    /// A disk of equal size may show what another one recorded, which has no power either; or which
    /// is gone, if its `image` and `writes` lie in `of`.
    ///
    /// # Errors
    /// [`ControlError::Refused`]: it has power, or nothing was recorded there.
    pub fn show(&mut self, state: &State, of: &Path) -> Result<(), ControlError> {
        self.done(&Request::Show { state: state.clone(), of: of.to_owned() })
    }

    /// Waits until a rule has cut the power, for at most `limit` or until `stop`.
    /// Returns none if no rule did.
    pub fn wait_for_cut(
        &mut self,
        limit: Duration,
        stop: &AtomicBool,
    ) -> Result<Option<CutFacts>, ControlError> {
        let until = Instant::now() + limit;
        loop {
            let status = self.status()?;
            if !status.powered {
                return Ok(status.cut);
            }
            if Instant::now() >= until || stop.load(Ordering::Relaxed) {
                return Ok(None);
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    fn done(&mut self, request: &Request) -> Result<(), ControlError> {
        match self.ask(request)? {
            Response::Done => Ok(()),
            other => Err(self.unexpected(&other)),
        }
    }

    fn ask(&mut self, request: &Request) -> Result<Response, ControlError> {
        let mut exchange = || {
            send(self.stream.get_mut(), request)?;
            receive(&mut self.stream)?.ok_or_else(|| io::Error::from(io::ErrorKind::UnexpectedEof))
        };
        let (answer, directory) = (exchange(), self.directory.clone());
        match answer {
            Ok(Response::Refused(why)) => Err(ControlError::Refused { directory, why }),
            Ok(response) => Ok(response),
            Err(source) => Err(ControlError::Unreachable { directory, source }),
        }
    }

    fn unexpected(&self, response: &Response) -> ControlError {
        let why = format!("it answers something else: {response:?}");
        ControlError::Refused { directory: self.directory.clone(), why }
    }
}

/// Listens in the disk's directory.
pub(super) fn listen(directory: &Path) -> io::Result<UnixListener> {
    at_socket(directory, |path| UnixListener::bind(path))
}

/// Calls `work` with a short path to the socket in `directory`: a socket's own must stay below 108
/// bytes.
fn at_socket<T>(directory: &Path, work: impl FnOnce(&Path) -> io::Result<T>) -> io::Result<T> {
    let open = File::open(directory)?;
    work(&Path::new("/proc/self/fd").join(open.as_raw_fd().to_string()).join("control"))
}

pub(super) fn send<T: Serialize>(stream: &mut UnixStream, message: &T) -> io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    stream.write_all(&line)
}

/// Returns the next message; none when the other side has closed.
pub(super) fn receive<T: for<'a> Deserialize<'a>>(
    stream: &mut BufReader<UnixStream>,
) -> io::Result<Option<T>> {
    let mut line = String::new();
    if stream.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    Ok(Some(serde_json::from_str(&line)?))
}
