//! What a probe of a storage found: its flushes, or its raw curves, without PostgreSQL.

use serde::{Deserialize, Serialize};

use crate::Latencies;
use crate::facts::{HostFacts, StorageFacts};
use crate::json::Document;
use crate::units::{Bytes, Epoch};

/// One execution of a probe; serialises as the document that `--json` prints.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProbeRecord {
    /// Its name in the store: kind, start and four letters drawn at random.
    pub id: String,
    /// The run that it belongs to; none for a probe by itself.
    pub run: Option<String>,
    /// What was probed: the storage's name in a run, else the directory or device as given.
    pub name: String,
    /// When it began.
    #[serde(serialize_with = "crate::format::as_text")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub started_at: Epoch,
    /// pgdyno's version.
    pub pgdyno_version: String,
    /// The machine.
    pub host: HostFacts,
    /// What lies under the directory; for a device the device itself.
    pub storage: StorageFacts,
    /// What was measured.
    pub result: ProbeResult,
}

impl Document for ProbeRecord {
    const SCHEMA: &'static str = "pgdyno.probe/1";
}

/// What a probe measured.
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
    /// Its kind: the command that makes one.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Fsync(_) => "fsync",
            Self::Disk(_) => "disk",
        }
    }

    /// Whether everything was measured that was to be; not so after a signal.
    pub fn is_complete(&self) -> bool {
        match self {
            Self::Fsync(probe) => probe.complete,
            Self::Disk(probe) => probe.complete,
        }
    }

    /// What is not to be believed without a further look.
    pub fn warnings(&self) -> &[String] {
        match self {
            Self::Fsync(probe) => &probe.warnings,
            Self::Disk(probe) => &probe.warnings,
        }
    }
}

/// A distribution of latencies in short (microseconds).
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
    /// That of `latencies`; all zero when empty.
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
    /// How long each test was to take (seconds).
    pub seconds_per_test: f64,
    /// Every test, in order.
    pub tests: Vec<FsyncTest>,
    /// Whether all of them were done.
    pub complete: bool,
    /// What is not to be believed without a further look.
    pub warnings: Vec<String>,
    /// Why flushes are suspected to be acknowledged before anything is durable; empty in the stores
    /// of earlier versions.
    #[serde(default)]
    pub suspicions: Vec<Suspicion>,
}

/// A sign that flushes are acknowledged before anything is durable. The probe's warnings have the
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

impl Suspicion {
    /// The reason in few words.
    pub fn words(self) -> &'static str {
        match self {
            Self::QuickerThanRotation => "more flushes a second than a rotating disk has turns",
            Self::QuickerThanCommands => {
                "a flush takes less time than the commands that it is made of"
            }
            Self::QuickerThanFlash => "a flush takes less time than flash takes to be programmed",
            Self::NoSlowerThanWrites => "a write with a flush takes no longer than one without",
            Self::Memory => "it is memory",
            Self::NoBarriers => "it is mounted so that the disk is sent no flushes",
        }
    }
}

impl FsyncProbe {
    /// What the test `name` of `group` found; none if it was not done or is not available.
    pub fn flushes(&self, group: FsyncGroup, name: &str) -> Option<&Flushes> {
        self.tests
            .iter()
            .find(|t| t.group == group && t.name == name)
            .and_then(|t| t.outcome.flushes())
    }

    /// The most commits a second that `clients` clients can make durable: each flush of the WAL
    /// carries at most one commit of every client, and PostgreSQL does one flush at a time. The
    /// rate is that of one block with fdatasync, the default `wal_sync_method` of Linux. Source:
    /// PostgreSQL's documentation, "WAL Configuration", on `commit_delay` and group commit.
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
    /// The comparison that it belongs to.
    pub group: FsyncGroup,
    /// Its name there, as `pg_test_fsync` prints it.
    pub name: String,
    /// Files written at the same time, a thread each (count).
    pub files: u32,
    /// What was found.
    pub outcome: FsyncOutcome,
}

/// What a test of the fsync probe found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum FsyncOutcome {
    /// It was done.
    Measured(Flushes),
    /// It cannot be done here, and why.
    NotAvailable(String),
}

impl FsyncOutcome {
    /// What was measured, if anything was.
    pub fn flushes(&self) -> Option<&Flushes> {
        match self {
            Self::Measured(flushes) => Some(flushes),
            Self::NotAvailable(_) => None,
        }
    }
}

/// Operations of one test: the writes and what makes them durable.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Flushes {
    /// How many, of all writers together (count).
    pub operations: u64,
    /// Time they took (seconds).
    pub seconds: f64,
    /// Latency of one.
    pub latency: LatencySummary,
}

impl Flushes {
    /// Operations per second, of all writers together; 0 when there were none.
    #[allow(clippy::cast_precision_loss)]
    pub fn per_second(&self) -> f64 {
        if self.seconds > 0.0 { self.operations as f64 / self.seconds } else { 0.0 }
    }
}

/// The raw curves of a disk.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DiskProbe {
    /// What offered the load: `fio` with its version, or pgdyno's own simple one.
    pub driver: String,
    /// Whether the page cache was bypassed (`O_DIRECT`).
    pub direct: bool,
    /// How much of the disk was measured over: the file's size, or the device's.
    pub span: Bytes,
    /// How long each point but those of the sequential write was to take (seconds).
    pub seconds_per_point: f64,
    /// Every point, in order.
    pub points: Vec<DiskPoint>,
    /// What was not measured, and why.
    pub not_measured: Vec<String>,
    /// Whether all points were done.
    pub complete: bool,
    /// What is not to be believed without a further look.
    pub warnings: Vec<String>,
    /// Whether the filesystem's free blocks were discarded right before (`fstrim`).
    #[serde(default)]
    pub trimmed: bool,
}

/// What is done to the disk; the names are fio's.
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
    /// What was done.
    pub pattern: Pattern,
    /// Bytes of each request.
    pub block_bytes: u32,
    /// Requests under way at a time (count).
    pub queue_depth: u32,
    /// Where the part of the span begins that was read or written.
    pub offset: Bytes,
    /// How long that part is.
    pub length: Bytes,
    /// How long it took (seconds).
    pub seconds: f64,
    /// What was read.
    pub read: Option<Transfers>,
    /// What was written.
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
    /// From submission to completion of one.
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
