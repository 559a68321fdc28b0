//! An experiment as parsed: every value here is already valid on its own.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use strum::{EnumString, IntoStaticStr, VariantNames};

use crate::crash::{CrashOptions, Fault};
use crate::level::{Key, Level, LevelValue};
use crate::load_rate::{LoadRate, RateStage};
use crate::names::names;
use crate::storage::Storage;
use crate::units::{Bytes, Span, UnitError};

/// An experiment: question, factors, load, server, storages and telemetry.
#[derive(Clone, Debug, PartialEq)]
pub struct Experiment {
    /// Name of the recipe or file.
    pub name: String,
    /// Question of the report's head.
    pub question: Option<String>,
    /// Trials of every treatment (count); an upper bound where `stopping` may end the run earlier.
    pub repeats: NonZeroU32,
    /// Form of the answer; none: as the experiment suggests.
    pub answer: Option<crate::Answer>,
    /// Rule that ends the run early; none where the number of repeats is fixed.
    pub stopping: Option<crate::Stopping>,
    /// Order in which trials run.
    pub order: Order,
    /// Seed of order and load: the same seed gives the same plan. None: drawn for each run.
    pub seed: Option<u64>,
    /// Largest difference of tps that does not matter (a share: 0.03 for 3%); none: equivalence is
    /// not judged.
    pub margin: Option<f64>,
    /// Whether the noise of earlier runs on the host counts beside the run's own.
    pub host_noise: bool,
    /// Factors, in the file's order.
    pub factors: Vec<Factor>,
    /// Combinations to leave out. A treatment is left out if it agrees with all pairs of one
    /// element.
    pub exclude: Vec<Vec<(String, LevelValue)>>,
    /// Workload that the clients run.
    pub workload: WorkloadChoice,
    /// How the load is offered.
    pub load: Load,
    /// Keys of the workload's groups of clients that are set, each a [`Key::Group`].
    pub groups: Vec<(Key, LevelValue)>,
    /// Processes that offer the load.
    pub generators: crate::GeneratorChoice,
    /// Server under test.
    pub postgres: Postgres,
    /// Storages that data can lie on, by name.
    pub storage: BTreeMap<String, Storage>,
    /// Telemetry that is collected while load runs.
    pub telemetry: Telemetry,
    /// Steps before every trial.
    pub between: Between,
    /// Probes of the storages before and after all trials.
    pub probe: ProbeStages,
    /// Crash tests of every treatment after all trials, if any.
    pub crash: Option<CrashOptions>,
    /// Treatments that are meant to fail certain faults.
    pub planted: Vec<PlantedFailure>,
}

/// Faults that every treatment with certain levels is meant to fail: such a failure breaks no
/// promise.
#[derive(Clone, Debug, PartialEq)]
pub struct PlantedFailure {
    /// Faults that these treatments are meant to fail.
    pub faults: Vec<Fault>,
    /// Pairs of factor and level that a treatment must all have; empty: every treatment.
    pub levels: Vec<(String, LevelValue)>,
}

/// A factor: a name and the levels that it takes.
#[derive(Clone, Debug, PartialEq)]
pub struct Factor {
    /// One of [`Key::NAMES`], a PostgreSQL setting, or a name for a set of bundles.
    pub name: String,
    /// Levels, at least one.
    pub levels: Vec<Level>,
}

/// Order in which trials run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Order {
    /// Block by block, every second block backwards. This cancels a steady drift.
    Interleaved,
    /// Block by block, each block in an order drawn by the seed.
    #[default]
    Randomized,
    /// All repeats of a treatment, then the next treatment.
    Sequential,
}

/// `[workload]`.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkloadChoice {
    /// Name of a built-in workload, or a folder.
    pub name: String,
    /// Size of the data set in the workload's unit.
    pub scale: NonZeroU32,
    /// Script files of the user that replace the workload's own scripts, with weights.
    pub scripts: Vec<(PathBuf, u32)>,
    /// Seed of the rows' values.
    pub seed: u64,
    /// How the rows are generated and loaded.
    pub loading: Loading,
    /// Whether loaded clusters are kept for later runs.
    pub keep_template: bool,
}

/// How a data set's rows are generated and loaded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Loading {
    /// Blanks in every filler (percent, 0 to 100); the rest is drawn from 64 characters. pgbench's
    /// fillers are all blanks, which shrink on filesystems that compress.
    pub filler_compress_percentage: u8,
    /// Partitions of each table that its workload lets be partitioned (count); 0: none.
    pub partitions: u32,
    /// Connections that load side by side (count); none: one for each core.
    pub jobs: Option<NonZeroU32>,
    /// Settings of a managed server while rows are loaded, over those of `[postgres]`.
    pub settings: BTreeMap<String, String>,
}

impl Default for Loading {
    fn default() -> Self {
        Self {
            filler_compress_percentage: 100,
            partitions: 0,
            jobs: None,
            settings: BTreeMap::new(),
        }
    }
}

/// How statements are sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(EnumString, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "lowercase")]
pub enum Protocol {
    /// One Query message for each statement; values are put into its text.
    #[default]
    Simple,
    /// Parse, Bind and Execute for each statement.
    Extended,
    /// Parse once for each connection, then Bind and Execute.
    Prepared,
}

impl Protocol {
    /// The names that files and options accept.
    pub const NAMES: &[&str] = <Self as VariantNames>::VARIANTS;
}

names!(Protocol, parse);

/// End of a trial's load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Length {
    /// Ends when this much time has passed since the warm-up.
    Duration(Span),
    /// Ends when every client has run this many transactions.
    Transactions(u64),
}

impl Default for Length {
    fn default() -> Self {
        Self::Duration(Span::default())
    }
}

/// Fate of a client whose transaction met an error that is not retried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(EnumString, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "kebab-case")]
pub enum OnError {
    /// The client ends, and the trial is failed.
    #[default]
    AbortClient,
    /// The whole load ends.
    AbortAll,
    /// The error is counted, and the client goes on.
    Continue,
}

impl OnError {
    /// The names that files accept.
    pub const NAMES: &[&str] = <Self as VariantNames>::VARIANTS;
}

names!(OnError, parse);

/// Reaction of a client whose connection is lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReconnectLost {
    /// It ends, as pgbench's clients do.
    #[default]
    Never,
    /// The transaction fails and the client connects again. The client ends after this many failed
    /// attempts in a row.
    UpTo(u32),
    /// As `UpTo`, without a limit.
    Always,
}

impl ReconnectLost {
    /// Whether another connection is to be made after `attempts` in a row.
    pub fn allows(self, attempts: u32) -> bool {
        match self {
            Self::Never => false,
            Self::UpTo(most) => attempts < most,
            Self::Always => true,
        }
    }
}

impl fmt::Display for ReconnectLost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Never => f.write_str("never"),
            Self::UpTo(most) => most.fmt(f),
            Self::Always => f.write_str("always"),
        }
    }
}

impl FromStr for ReconnectLost {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        match (text, text.parse()) {
            ("never", _) | (_, Ok(0)) => Ok(Self::Never),
            ("always", _) => Ok(Self::Always),
            (_, Ok(most)) => Ok(Self::UpTo(most)),
            _ => Err(UnitError::Reconnections(text.to_owned())),
        }
    }
}

impl Serialize for ReconnectLost {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ReconnectLost {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        LevelValue::deserialize(from)?.to_string().parse().map_err(serde::de::Error::custom)
    }
}

/// Options of a load beyond its scripts, after pgbench's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct LoadOptions {
    /// Rate at which transactions are due over all clients together, at random (Poisson) times;
    /// latency counts from the due time. None: a client's next transaction is due when the previous
    /// one is done.
    pub rate: Option<LoadRate>,
    /// Number that multiplies the pauses of the workload's scripts; none where they have none. 0:
    /// clients do not pause.
    pub pauses: Option<f64>,
    /// Latency beyond which a transaction is counted as late. With a rate, a transaction is skipped
    /// if it would begin later than this.
    pub latency_limit: Option<Span>,
    /// Most tries of a transaction that meets serialization failures or deadlocks (count). 0: no
    /// limit; then `latency_limit` or the load's end must provide one.
    pub max_tries: u32,
    /// Fate of a client after an error that is not retried.
    pub on_error: OnError,
    /// Whether every transaction has a connection of its own.
    pub reconnect: bool,
    /// Reaction to a lost connection.
    pub reconnect_lost: ReconnectLost,
    /// Variables that are set for scripts, as text.
    pub define: BTreeMap<String, String>,
}

impl Default for LoadOptions {
    fn default() -> Self {
        Self {
            rate: None,
            pauses: None,
            latency_limit: None,
            max_tries: 1,
            on_error: OnError::default(),
            reconnect: false,
            reconnect_lost: ReconnectLost::default(),
            define: BTreeMap::new(),
        }
    }
}

impl LoadOptions {
    /// Stages of the rate; none without a rate, and where it is the same all the time.
    pub fn rate_stages(&self) -> Option<&[RateStage]> {
        self.rate.as_ref()?.stages()
    }

    /// Whether clients pause between transactions.
    pub fn has_pauses(&self) -> bool {
        self.pauses.is_some_and(|factor| factor > 0.0)
    }

    /// Whether a transaction may be retried for ever in a load that ends at a count of
    /// transactions.
    pub fn tries_without_end(&self) -> bool {
        self.max_tries == 0 && self.latency_limit.is_none()
    }
}

/// `[load]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Load {
    /// Connections (count); none: one, or those that the workload's groups have.
    pub clients: Option<NonZeroU32>,
    /// Event loops (count).
    pub threads: NonZeroU32,
    /// How statements are sent.
    pub protocol: Protocol,
    /// End of the load.
    pub length: Length,
    /// Duration of the load before the measured window opens.
    pub warm_up: Span,
    /// Options beyond the scripts.
    pub options: LoadOptions,
    /// Objective that the rate must keep, where the highest such rate is sought.
    pub find: Option<crate::Slo>,
}

/// How a managed server is reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Connect {
    /// A Unix socket in a private directory.
    #[default]
    Socket,
    /// TCP on 127.0.0.1 with SCRAM-SHA-256.
    Tcp,
}

/// `[postgres]`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Postgres {
    /// Folder of the server's programs; none: pgdyno looks for one.
    pub bindir: Option<PathBuf>,
    /// Major version that is wanted; none: any.
    pub version: Option<u32>,
    /// DSN of a server that pgdyno does not own. It may hold a password and is never stored.
    pub dsn: Option<crate::target::Secret>,
    /// Servers that pgdyno does not own and that factors choose among: DSNs by name, never stored.
    pub servers: BTreeMap<String, crate::target::Secret>,
    /// Whether settings of a server that pgdyno does not own may be changed for the whole server,
    /// with `ALTER SYSTEM` and a reload, and put back.
    pub alter_system: bool,
    /// Options for initdb.
    pub initdb: Vec<String>,
    /// Settings for every trial.
    pub settings: BTreeMap<String, LevelValue>,
    /// How a managed server is reached.
    pub connect: Connect,
    /// Address of this machine on which a managed server listens for generators on other hosts.
    /// None: it listens on this machine alone.
    pub listen: Option<IpAddr>,
    /// Host of a server that pgdyno does not own, as `ssh` knows it, where telemetry is read.
    pub observe: Option<String>,
    /// The schema that holds the workload's tables on a server that pgdyno does not own.
    pub schema: Option<String>,
}

impl Postgres {
    /// Whether the server is external: pgdyno does not own it.
    pub fn is_external(&self) -> bool {
        self.dsn.is_some() || !self.servers.is_empty()
    }

    /// Returns the DSN of the server that factors call `name`; without a name, the experiment's
    /// own.
    pub fn dsn_of(&self, name: Option<&str>) -> Option<&crate::target::Secret> {
        name.map_or(self.dsn.as_ref(), |name| self.servers.get(name))
    }
}

/// `[telemetry]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Telemetry {
    /// Time between samples.
    pub interval: Span,
    /// Duration of the fsync probe on each storage before the first trial; zero leaves it out.
    pub fsync: Span,
    /// Time between samples of wait events; zero: no samples.
    pub wait_events: Span,
    /// Whether `pg_stat_statements` is read.
    pub statements: bool,
    /// Whether `pg_buffercache` is read.
    pub buffercache: bool,
    /// Whether disks' serial numbers and world-wide names are stored as they are, not as hashes.
    pub keep_serials: bool,
}

/// A probe of a storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(EnumString, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "lowercase")]
pub enum ProbeKind {
    /// How often data can be made durable: `pg_test_fsync`'s job.
    Fsync,
    /// The disk's raw curves: throughput by position, latency by queue depth.
    Disk,
}

names!(ProbeKind);

/// `[probe]`: every storage is probed before the first trial of a session and after its last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeStages {
    /// Probes before the first trial, in this order.
    pub before: Vec<ProbeKind>,
    /// Probes after the last trial.
    pub after: Vec<ProbeKind>,
    /// Whether free blocks are discarded after the last trial and the disk probe is then repeated.
    pub after_trim: bool,
    /// Duration of each test, or of each point of a curve.
    pub duration: Span,
    /// The size of the file that the disk probe makes.
    pub size: Bytes,
    /// Block sizes that the fsync probe makes durable, one probe for each (bytes).
    pub block_bytes: Vec<u32>,
}

impl Default for ProbeStages {
    fn default() -> Self {
        let (before, after) = (Vec::new(), Vec::new());
        Self {
            before,
            after,
            after_trim: false,
            duration: Span::from_secs(2),
            size: Bytes(4 << 30),
            block_bytes: vec![8192],
        }
    }
}

/// `[between]`: what happens before every trial.
#[derive(Clone, Debug, PartialEq)]
pub struct Between {
    /// Runs the workload's own tidying: VACUUM, and emptying of tables that grow.
    pub vacuum: bool,
    /// Runs `CHECKPOINT`.
    pub checkpoint: bool,
    /// Drops the kernel's page cache (needs root); the server is stopped meanwhile.
    pub drop_caches: bool,
    /// Reads the workload's tables and indexes into shared buffers (`pg_prewarm`).
    pub prewarm: bool,
    /// Rest for the device.
    pub pause: Span,
    /// Command of the user: program and arguments, no shell.
    pub command: Vec<String>,
}

impl Factor {
    /// Whether any level assigns `key`.
    pub fn sets(&self, key: &Key) -> bool {
        self.levels.iter().any(|l| l.sets.iter().any(|(k, _)| k == key))
    }
}
