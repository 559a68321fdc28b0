//! The probe: a source of samples, its errors, and helpers that all probes share.

use std::path::{Path, PathBuf};
use std::time::Duration;

use pgdyno_connect::control::{ControlError, error_text};
use pgdyno_model::telemetry::{Column, Kind};

/// A source of samples.
pub trait Probe: Send {
    /// Returns the probe's name, which is the name of its source.
    fn name(&self) -> &'static str;

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

/// A probe has no sample.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum ProbeError {
    /// A file of the kernel cannot be read.
    #[error("cannot read {}: {cause}", path.display())]
    Read { path: PathBuf, cause: String },
    /// There is no session with the server.
    #[error("{0}")]
    Connect(String),
    /// The session with the server ended, or there is no new one yet: the probe is read again.
    #[error("{0}")]
    Lost(String),
    /// The server refused a query, or answered with other columns.
    #[error("{0}")]
    Query(String),
    /// The source does not exist here, or is not visible.
    #[error("{0}")]
    Unavailable(String),
}

impl From<tokio_postgres::Error> for ProbeError {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Query(error_text(&error))
    }
}

impl From<ControlError> for ProbeError {
    fn from(error: ControlError) -> Self {
        Self::Connect(error.to_string())
    }
}

impl From<String> for ProbeError {
    fn from(why: String) -> Self {
        Self::Unavailable(why)
    }
}

impl From<&str> for ProbeError {
    fn from(why: &str) -> Self {
        Self::Unavailable(why.to_owned())
    }
}

/// A probe with columns that are known from the start, and a function that reads all values.
struct FixedColumns<F> {
    name: &'static str,
    interval: Duration,
    columns: Vec<Column>,
    read: F,
}

/// Creates the probe `name` with `columns`, read at most every `interval`. `read` returns the
/// values of a sample.
pub(super) fn fixed_columns<F>(
    name: &'static str,
    interval: Duration,
    columns: Vec<Column>,
    read: F,
) -> Option<Box<dyn Probe>>
where
    F: FnMut() -> Result<Vec<Option<f64>>, ProbeError> + Send + 'static,
{
    Some(Box::new(FixedColumns { name, interval, columns, read }))
}

impl<F: FnMut() -> Result<Vec<Option<f64>>, ProbeError> + Send> Probe for FixedColumns<F> {
    fn name(&self) -> &'static str {
        self.name
    }

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

/// Why a probe of where the data lie has no samples.
pub(super) const UNKNOWN_DATA: &str =
    "the data lie on another machine, or the server does not show where";

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
#[allow(clippy::cast_precision_loss)]
pub(super) fn float(count: u64) -> f64 {
    count as f64
}

/// Reads a file of the kernel.
pub(super) fn read(path: impl AsRef<Path>) -> Result<String, ProbeError> {
    let path = path.as_ref();
    std::fs::read_to_string(path)
        .map_err(|e| ProbeError::Read { path: path.to_owned(), cause: e.to_string() })
}
