//! The probe: a source of samples, its errors, and helpers that all probes share.

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use pgdyno_connect::control::{ControlError, error_text};
use pgdyno_exec::directory::DirectoryError;
use pgdyno_model::telemetry::{Column, Kind};
use procfs::ProcError;

/// A source of samples.
pub trait Probe: Send {
    /// Returns name, unit and kind of each value of a sample. Sampling may append columns; their
    /// values were 0 until then.
    fn columns(&self) -> &[Column];

    /// Reads the values now, one for each column. Counters are raw, not differences. A value is
    /// none where the source has none.
    ///
    /// # Errors
    /// [`ProbeError`]: there is no sample. The sampler calls this probe again only after
    /// [`ProbeError::Lost`].
    fn sample(&mut self) -> Result<Vec<Option<f64>>, ProbeError>;

    /// Returns the least time between two samples, for sources that are costly to read.
    fn interval(&self) -> Duration {
        Duration::ZERO
    }

    /// Returns which data the samples lack, and why. None if they are complete.
    fn missing_data(&self) -> Option<String> {
        None
    }
}

/// A probe and its name.
pub type NamedProbe = (&'static str, Box<dyn Probe>);

/// A probe as it is made: none where this kernel or server version has no such source.
pub(super) type ProbeResult = Result<Option<Box<dyn Probe>>, ProbeError>;

/// A probe has no sample. The message is stored with the trial, and includes the cause.
#[derive(Clone, Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum ProbeError {
    /// A file or link cannot be read.
    #[error("cannot read {}: {cause}", path.display())]
    Read { path: PathBuf, cause: Arc<io::Error> },
    /// A file of the kernel cannot be read or parsed by procfs.
    #[error("cannot read {path}: {cause}")]
    Procfs { path: &'static str, cause: Arc<ProcError> },
    /// A file of the kernel lacks a value.
    #[error("{} holds no {wanted}", path.display())]
    Malformed { path: PathBuf, wanted: &'static str },
    /// There is no session with the server.
    #[error(transparent)]
    Connect(Arc<ControlError>),
    /// The session with the server ended, or there is no new one yet: the probe is read again.
    #[error(transparent)]
    Lost(Box<Self>),
    /// The server refused a query, or answered with other columns.
    #[error("{}", error_text(.0))]
    Query(Arc<tokio_postgres::Error>),
    /// A view of the server is empty.
    #[error("{0} has no row")]
    NoRow(&'static str),
    /// The server has no such database.
    #[error("there is no database {0}")]
    NoDatabase(String),
    /// The database lacks an extension.
    #[error("database {database} has no extension {name}; CREATE EXTENSION {name} makes it")]
    NoExtension { name: &'static str, database: String },
    /// The data are not on this host, as far as is known.
    #[error("the data lie on another machine, or the server does not show where")]
    UnknownData,
    /// The directory of the data cannot be looked at.
    #[error(transparent)]
    Directory(Arc<DirectoryError>),
    /// No block device is known under the data, for these reasons.
    #[error("{}", .0.join("; "))]
    NoDevice(Vec<String>),
    /// The kernel or container shows no such source in `place`.
    #[error("no {what} is visible ({place})")]
    NotVisible { what: &'static str, place: &'static str },
    /// The kernel was built or booted without pressure stall information.
    #[error("the kernel gives no pressure stall information (CONFIG_PSI, `psi=1`): {0}")]
    NoPressure(Box<Self>),
    /// Another process has a backend's pid.
    #[error("process {pid} is no backend of this server: it works in {}", directory.display())]
    OtherProcess { pid: i32, directory: PathBuf },
    /// A program or thread cannot be started.
    #[error("cannot start {what}: {cause}")]
    Start { what: String, cause: Arc<io::Error> },
    /// A program that should run beside the load ended.
    #[error("`{program}` ended with {status}")]
    ProgramEnded { program: &'static str, status: ExitStatus },
    /// No part of the sample could be read; each part's name and error.
    #[error("{}", parts_text(.0))]
    Parts(Vec<(&'static str, Self)>),
}

impl ProbeError {
    /// Returns the conversion of an error that occurred on `path`.
    pub(super) fn read(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        |cause| Self::Read { path: path.into(), cause: Arc::new(cause) }
    }

    /// Returns the conversion of an error of procfs on `path`.
    pub(super) fn procfs(path: &'static str) -> impl FnOnce(ProcError) -> Self {
        move |cause| Self::Procfs { path, cause: Arc::new(cause) }
    }

    /// Returns the conversion of an error that occurred when `what` was started.
    pub(super) fn start(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        |cause| Self::Start { what: what.into(), cause: Arc::new(cause) }
    }
}

/// Returns which parts of a sample could not be read, and why.
pub(super) fn parts_text(parts: &[(&str, ProbeError)]) -> String {
    let part = |(name, why): &(&str, ProbeError)| format!("{name} could not be read: {why}");
    parts.iter().map(part).collect::<Vec<_>>().join("; ")
}

impl From<tokio_postgres::Error> for ProbeError {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Query(Arc::new(error))
    }
}

impl From<ControlError> for ProbeError {
    fn from(error: ControlError) -> Self {
        Self::Connect(Arc::new(error))
    }
}

/// A probe with columns that are known from the start, and a function that reads all values.
struct FixedColumns<F> {
    interval: Duration,
    columns: Vec<Column>,
    read: F,
}

/// Creates a probe with `columns`, read at most every `interval`. `read` returns the
/// values of a sample.
pub(super) fn fixed_columns<F>(
    interval: Duration,
    columns: Vec<Column>,
    read: F,
) -> Option<Box<dyn Probe>>
where
    F: FnMut() -> Result<Vec<Option<f64>>, ProbeError> + Send + 'static,
{
    Some(Box::new(FixedColumns { interval, columns, read }))
}

impl<F: FnMut() -> Result<Vec<Option<f64>>, ProbeError> + Send> Probe for FixedColumns<F> {
    fn columns(&self) -> &[Column] {
        &self.columns
    }

    fn sample(&mut self) -> Result<Vec<Option<f64>>, ProbeError> {
        (self.read)()
    }

    fn interval(&self) -> Duration {
        self.interval
    }
}

/// The interval of probes that are cheap.
pub(super) const EACH_SAMPLE: Duration = Duration::ZERO;

/// The interval of probes that are costly or change slowly: sizes, statements, buffer cache,
/// archiver.
pub(super) const SLOW: Duration = Duration::from_secs(10);

/// Creates a column.
pub(super) fn column(name: impl Into<String>, unit: &str, kind: Kind) -> Column {
    Column { name: name.into(), unit: unit.to_owned(), kind }
}

/// Converts a count. Counters beyond 2^53 lose their last digits, which differences over a second
/// do not need.
pub(super) fn float(count: u64) -> f64 {
    count as f64
}

/// Reads a file of the kernel.
pub(super) fn read(path: impl AsRef<Path>) -> Result<String, ProbeError> {
    let path = path.as_ref();
    std::fs::read_to_string(path).map_err(ProbeError::read(path))
}
