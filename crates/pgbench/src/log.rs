//! `-l`: logs of all transactions, or of intervals; one file for each thread.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use pgdyno_engine::{
    FailureKind, LoggedOutcome, LoggedTransaction, TransactionLog, TransactionSink,
};

use crate::request::{Log, Run};
use crate::server_messages::system_words;

/// Opens the log files of a run.
pub(crate) struct Logs {
    run: Arc<Run>,
    log: Log,
    /// The first file that could not be opened, with the reason.
    pub(crate) refused: Mutex<Option<String>>,
    /// The first file that did not take all its lines, with the reason.
    lost: Arc<Mutex<Option<String>>>,
}

/// A log file. On a full disk lines are lost, and the run goes on; the first error is kept.
struct LogFile {
    name: PathBuf,
    file: File,
    lost: Arc<Mutex<Option<String>>>,
}

impl LogFile {
    fn keep(&self, error: io::Error) -> io::Error {
        if error.kind() != io::ErrorKind::Interrupted
            && let Ok(mut lost) = self.lost.lock()
        {
            let why = system_words(&error);
            lost.get_or_insert_with(|| {
                format!("could not write to logfile \"{}\": {why}", self.name.display())
            });
        }
        error
    }
}

impl Write for LogFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes).map_err(|e| self.keep(e))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush().map_err(|e| self.keep(e))
    }
}

impl Logs {
    pub(crate) fn new(log: &Log, run: &Run) -> Self {
        Self {
            run: Arc::new(run.clone()),
            log: log.clone(),
            refused: Mutex::new(None),
            lost: Arc::default(),
        }
    }

    /// Returns why lines are missing, once the load is over.
    pub(crate) fn lost(&self) -> Option<String> {
        self.lost.lock().ok().and_then(|lost| lost.clone())
    }
}

impl TransactionLog for Logs {
    fn open(&self, thread: usize) -> io::Result<Box<dyn TransactionSink>> {
        let pid = std::process::id();
        let mut name = self.log.prefix.clone().unwrap_or_else(|| "pgbench_log".into());
        name.push(format!(".{pid}"));
        if thread > 0 {
            name.push(format!(".{thread}"));
        }
        let name = PathBuf::from(name);
        let file = File::create(&name).inspect_err(|e| {
            if let Ok(mut refused) = self.refused.lock() {
                let why = system_words(e);
                let shown = name.display();
                refused.get_or_insert_with(|| format!("could not open logfile \"{shown}\": {why}"));
            }
        })?;
        let file = LogFile { name, file, lost: Arc::clone(&self.lost) };
        let file = BufWriter::with_capacity(1 << 16, file);
        Ok(match self.log.aggregate {
            None => Box::new(EachTransaction {
                run: Arc::clone(&self.run),
                sampling: self.log.sampling,
                file,
                random: fastrand::Rng::new(),
            }),
            Some(seconds) => Box::new(Intervals {
                run: Arc::clone(&self.run),
                file,
                seconds: u64::from(seconds),
                start: epoch(SystemTime::now()).as_secs(),
                interval: Interval::default(),
            }),
        })
    }
}

fn epoch(time: SystemTime) -> Duration {
    time.duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// Returns whether `outcome` is a transaction's in a log of `run`, not a client's end.
///
/// Failures of other kinds than serialization and deadlock end clients unless they go on.
fn counts(run: &Run, outcome: LoggedOutcome) -> bool {
    let ends_client = |kind| !matches!(kind, FailureKind::Serialization | FailureKind::Deadlock);
    run.continue_on_error || !matches!(outcome, LoggedOutcome::Failed(kind) if ends_client(kind))
}

/// A line for each transaction.
struct EachTransaction {
    run: Arc<Run>,
    /// Share of the transactions that are written; none: all.
    sampling: Option<f64>,
    file: BufWriter<LogFile>,
    random: fastrand::Rng,
}

impl TransactionSink for EachTransaction {
    fn transaction(&mut self, t: &LoggedTransaction) {
        if !counts(&self.run, t.outcome)
            || self.sampling.is_some_and(|share| self.random.f64() > share)
        {
            return;
        }
        let done = epoch(t.done);
        let file = &mut self.file;
        // What fails is kept by the file.
        let _ = write!(file, "{} {} ", t.client, t.number + 1);
        let _ = match t.outcome {
            LoggedOutcome::Done => write!(file, "{}", t.latency_ns / 1000),
            LoggedOutcome::Skipped => write!(file, "skipped"),
            LoggedOutcome::Failed(_) if !self.run.failures_detailed => write!(file, "failed"),
            LoggedOutcome::Failed(FailureKind::Serialization) => write!(file, "serialization"),
            LoggedOutcome::Failed(FailureKind::Deadlock) => write!(file, "deadlock"),
            LoggedOutcome::Failed(_) => write!(file, "other"),
        };
        let _ = write!(file, " {} {} {}", t.script, done.as_secs(), done.subsec_micros());
        if self.run.rate.is_some() {
            let _ = write!(file, " {}", t.lag_ns / 1000);
        }
        if self.run.max_tries != 1 {
            let _ = write!(file, " {}", t.retries);
        }
        let _ = file.write_all(b"\n");
    }

    fn finish(&mut self) {
        let _ = self.file.flush();
    }
}

/// Count, sum, sum of squares, least and greatest of microseconds.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    count: u64,
    sum: f64,
    squares: f64,
    least: f64,
    most: f64,
}

impl Sum {
    fn add(&mut self, nanoseconds: u64) {
        let us = (nanoseconds / 1000) as f64;
        self.least = if self.count == 0 { us } else { self.least.min(us) };
        self.most = self.most.max(us);
        self.count += 1;
        self.sum += us;
        self.squares += us * us;
    }

    fn write(&self, to: &mut impl Write) -> io::Result<()> {
        write!(to, " {:.0} {:.0} {:.0} {:.0}", self.sum, self.squares, self.least, self.most)
    }
}

/// Counts of the transactions that ended in one interval.
#[derive(Clone, Copy, Debug, Default)]
struct Interval {
    latency: Sum,
    lag: Sum,
    skipped: u64,
    retried: u64,
    retries: u64,
    serialization: u64,
    deadlock: u64,
    others: u64,
}

/// A line for each interval.
struct Intervals {
    run: Arc<Run>,
    file: BufWriter<LogFile>,
    seconds: u64,
    /// When the interval began (Unix time).
    start: u64,
    interval: Interval,
}

impl Intervals {
    /// Writes the intervals that are over at `now`.
    fn write_until(&mut self, now: Duration) {
        while Duration::from_secs(self.start + self.seconds) <= now {
            let i = std::mem::take(&mut self.interval);
            let _ = write!(self.file, "{} {}", self.start, i.latency.count);
            let _ = i.latency.write(&mut self.file);
            let _ = i.lag.write(&mut self.file);
            let _ = write!(
                self.file,
                " {} {} {} {} {}",
                i.skipped, i.retried, i.retries, i.serialization, i.deadlock
            );
            if self.run.continue_on_error {
                let _ = write!(self.file, " {}", i.others);
            }
            let _ = self.file.write_all(b"\n");
            self.start += self.seconds;
        }
    }
}

impl TransactionSink for Intervals {
    fn transaction(&mut self, t: &LoggedTransaction) {
        if !counts(&self.run, t.outcome) {
            return;
        }
        self.write_until(epoch(t.done));
        let interval = &mut self.interval;
        if t.outcome != LoggedOutcome::Skipped {
            interval.retries += u64::from(t.retries);
            interval.retried += u64::from(t.retries > 0);
        }
        match t.outcome {
            LoggedOutcome::Done => {
                interval.latency.add(t.latency_ns);
                if self.run.rate.is_some() {
                    interval.lag.add(t.lag_ns);
                }
            }
            LoggedOutcome::Skipped => interval.skipped += 1,
            LoggedOutcome::Failed(FailureKind::Serialization) => interval.serialization += 1,
            LoggedOutcome::Failed(FailureKind::Deadlock) => interval.deadlock += 1,
            LoggedOutcome::Failed(_) => interval.others += 1,
        }
    }

    /// An interval that is not over has no line, as in pgbench.
    fn finish(&mut self) {
        self.write_until(epoch(SystemTime::now()));
        let _ = self.file.flush();
    }
}
