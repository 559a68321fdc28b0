//! Results of probing a storage without PostgreSQL: its flushes, or its raw curves.

use serde::{Deserialize, Serialize};

use crate::Latencies;
use crate::facts::{HostFacts, StorageFacts};
use crate::json::Document;
use crate::units::{Bytes, Epoch};

/// One execution of a probe; serialises as the document that `--json` prints.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProbeRecord {
    /// Id in the store: kind, start and four letters drawn at random.
    pub id: String,
    /// Run that the probe belongs to; none for a probe by itself.
    pub run: Option<String>,
    /// Storage's name in a run, else the directory or device as the user gave it.
    pub name: String,
    /// Time of the probe's begin.
    #[serde(serialize_with = "pgdyno_text::format::as_text")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub started_at: Epoch,
    /// pgdyno's version.
    pub pgdyno_version: String,
    /// The machine.
    pub host: HostFacts,
    /// Filesystem and devices under the directory; for a device, the device itself.
    pub storage: StorageFacts,
    /// Figures.
    pub result: ProbeResult,
}

impl Document for ProbeRecord {
    const SCHEMA: &'static str = "pgdyno.probe/1";
}

/// Figures of a probe, by its kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase", tag = "kind")]
pub enum ProbeResult {
    /// How fast written data become durable.
    Fsync(FsyncProbe),
    /// How fast the disk reads and writes.
    Disk(DiskProbe),
}

impl ProbeResult {
    /// Returns the kind's name, which is also the command that runs such a probe.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Fsync(_) => "fsync",
            Self::Disk(_) => "disk",
        }
    }

    /// Whether the probe ran to its end; false after a signal.
    pub fn is_complete(&self) -> bool {
        match self {
            Self::Fsync(probe) => probe.complete,
            Self::Disk(probe) => probe.complete,
        }
    }

    /// Returns the findings that make figures doubtful.
    pub fn warnings(&self) -> &[String] {
        match self {
            Self::Fsync(probe) => &probe.warnings,
            Self::Disk(probe) => &probe.warnings,
        }
    }
}

/// Summary of a distribution of latencies (microseconds).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LatencySummary {
    /// The mean.
    pub us_mean: f64,
    /// The median.
    pub us_p50: f64,
    /// 90th percentile.
    pub us_p90: f64,
    /// 95th percentile.
    pub us_p95: f64,
    /// 99th percentile.
    pub us_p99: f64,
    /// 99.9th percentile.
    pub us_p999: f64,
    /// The longest.
    pub us_max: f64,
}

impl LatencySummary {
    /// Summarises `latencies`; all zero when empty.
    pub fn from_latencies(latencies: &Latencies) -> Self {
        let quantile = |q| latencies.quantile_us(q).unwrap_or_default();
        Self {
            us_mean: latencies.mean_us().unwrap_or_default(),
            us_p50: quantile(0.5),
            us_p90: quantile(0.9),
            us_p95: quantile(0.95),
            us_p99: quantile(0.99),
            us_p999: quantile(0.999),
            us_max: latencies.max_us().unwrap_or_default(),
        }
    }
}

/// `pg_test_fsync`'s job, with percentiles and concurrent writers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FsyncProbe {
    /// Bytes of a block.
    pub block_bytes: u32,
    /// Planned duration of each test (seconds).
    pub seconds_per_test: f64,
    /// Every test, in order.
    pub tests: Vec<FsyncTest>,
    /// Whether all tests were done.
    pub complete: bool,
    /// Findings that make figures doubtful.
    pub warnings: Vec<String>,
    /// Signs that flushes are acknowledged before data is durable; empty in the stores of earlier
    /// versions.
    #[serde(default)]
    pub suspicions: Vec<Suspicion>,
}

/// A sign that flushes are acknowledged before data is durable. The probe's warnings have the
/// figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Suspicion {
    /// More flushes a second than a rotating disk has turns.
    QuickerThanRotation,
    /// A flush takes less time than the commands that it is made of.
    QuickerThanCommands,
    /// A flush of a virtual disk takes less time than flash takes to be programmed.
    QuickerThanFlash,
    /// A write with a flush takes no longer than one without.
    NoSlowerThanWrites,
    /// The storage is memory.
    Memory,
    /// The filesystem is mounted so that it sends the disk no flushes.
    NoBarriers,
}

impl FsyncProbe {
    /// Returns the figures of the test `name` of `group`; none if it was not done or is not
    /// available.
    pub fn flushes(&self, group: FsyncGroup, name: &str) -> Option<&Flushes> {
        self.tests
            .iter()
            .find(|t| t.group == group && t.name == name)
            .and_then(|t| t.outcome.flushes())
    }

    /// Returns the most commits a second that `clients` clients can make durable.
    ///
    /// Each flush of the WAL carries at most one commit of every client, and PostgreSQL does one
    /// flush at a time. The rate is that of one block with fdatasync, the default `wal_sync_method`
    /// of Linux. Source: PostgreSQL's documentation, "WAL Configuration", on `commit_delay` and
    /// group commit.
    pub fn ceiling_for_commits(&self, clients: u32) -> Option<f64> {
        Some(self.flushes(FsyncGroup::OneBlock, "fdatasync")?.per_second() * f64::from(clients))
    }
}

/// `pg_test_fsync`'s comparisons, and one of pgdyno's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum FsyncGroup {
    /// One block, then a flush, by every `wal_sync_method`.
    OneBlock,
    /// Two blocks, then a flush, by every `wal_sync_method`.
    TwoBlocks,
    /// 16 kB in writes of different sizes, each durable by itself.
    OpenSyncSizes,
    /// Whether a flush covers what was written through another file descriptor.
    OtherDescriptor,
    /// Writes that nothing flushes.
    NotSynced,
    /// Several writers, each with a file of its own, one block and fdatasync each.
    Concurrent,
}

/// One test of the fsync probe.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FsyncTest {
    /// Comparison that the test belongs to.
    pub group: FsyncGroup,
    /// Name of the test within its group, as `pg_test_fsync` prints it.
    pub name: String,
    /// Files written at the same time, a thread each (count).
    pub files: u32,
    /// Figures, or why there are none.
    pub outcome: FsyncOutcome,
}

/// Outcome of a test of the fsync probe.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum FsyncOutcome {
    /// The test was done.
    Measured(Flushes),
    /// The test cannot be done here, for this reason.
    NotAvailable(String),
}

impl FsyncOutcome {
    /// Returns the figures; none if the test is not available.
    pub fn flushes(&self) -> Option<&Flushes> {
        match self {
            Self::Measured(flushes) => Some(flushes),
            Self::NotAvailable(_) => None,
        }
    }
}

/// Figures of one test. An operation is the writes and the flush that makes them durable.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Flushes {
    /// Operations of all writers together (count).
    pub operations: u64,
    /// Duration (seconds).
    pub seconds: f64,
    /// Latency of one operation.
    pub latency: LatencySummary,
}

impl Flushes {
    /// Operations per second, of all writers together; 0 when there were none.
    pub fn per_second(&self) -> f64 {
        if self.seconds > 0.0 { self.operations as f64 / self.seconds } else { 0.0 }
    }
}

/// The raw curves of a disk.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DiskProbe {
    /// Program that offered the load: `fio` with its version, or pgdyno's own simple one.
    pub driver: String,
    /// Whether the page cache was bypassed (`O_DIRECT`).
    pub direct: bool,
    /// Extent of the disk that was measured: the file's size, or the device's.
    pub span: Bytes,
    /// Planned duration of each point, except those of the sequential write (seconds).
    pub seconds_per_point: f64,
    /// Every point, in order.
    pub points: Vec<DiskPoint>,
    /// Points that were not measured, and why.
    pub not_measured: Vec<String>,
    /// Whether all points were done.
    pub complete: bool,
    /// Findings that make figures doubtful.
    pub warnings: Vec<String>,
    /// Whether the filesystem's free blocks were discarded right before (`fstrim`).
    #[serde(default)]
    pub trimmed: bool,
}

/// Pattern of requests to the disk, with fio's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[strum(serialize_all = "lowercase")]
#[serde(rename_all = "lowercase")]
pub enum Pattern {
    /// Sequential writes.
    Write,
    /// Sequential reads.
    Read,
    /// Random reads.
    RandRead,
    /// Random writes.
    RandWrite,
    /// Random reads and writes, 70 to 30.
    RandRw,
}

impl Pattern {
    /// fio's name (`--rw`).
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Whether the disk's contents change.
    pub fn writes(self) -> bool {
        !matches!(self, Self::Read | Self::RandRead)
    }
}

/// One point of a curve.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DiskPoint {
    /// Pattern of the requests.
    pub pattern: Pattern,
    /// Bytes of each request.
    pub block_bytes: u32,
    /// Requests under way at a time (count).
    pub queue_depth: u32,
    /// Offset of the part of the span that was read or written.
    pub offset: Bytes,
    /// Length of that part.
    pub length: Bytes,
    /// Duration (seconds).
    pub seconds: f64,
    /// Reads; none if there were none.
    pub read: Option<Transfers>,
    /// Writes; none if there were none.
    pub write: Option<Transfers>,
}

/// Requests of one direction.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Transfers {
    /// Requests (count).
    pub operations: u64,
    /// Requests per second.
    pub iops: f64,
    /// Bytes per second.
    pub bytes_per_second: f64,
    /// Latency of one request, from submission to completion.
    pub latency: LatencySummary,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ceiling_is_the_default_methods_rate_times_the_clients() {
        let flushes = Flushes { operations: 500, seconds: 2.0, latency: LatencySummary::default() };
        let outcome = FsyncOutcome::Measured(flushes);
        let test =
            FsyncTest { group: FsyncGroup::OneBlock, name: "fdatasync".into(), files: 1, outcome };
        let mut probe = FsyncProbe {
            block_bytes: 8192,
            seconds_per_test: 2.0,
            tests: vec![test],
            complete: true,
            warnings: Vec::new(),
            suspicions: Vec::new(),
        };
        assert_eq!(
            (probe.ceiling_for_commits(1), probe.ceiling_for_commits(16)),
            (Some(250.0), Some(4000.0))
        );
        probe.tests[0].outcome = FsyncOutcome::NotAvailable("not here".into());
        assert_eq!(probe.ceiling_for_commits(1), None);
        let json = serde_json::to_string(&ProbeResult::Fsync(probe.clone())).unwrap();
        assert!(json.starts_with(r#"{"kind":"fsync""#), "{json}");
        assert_eq!(serde_json::from_str::<ProbeResult>(&json).unwrap(), ProbeResult::Fsync(probe));
    }
}
