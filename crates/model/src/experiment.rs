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
use crate::names::names;
use crate::storage::Storage;
use crate::units::{Bytes, Span, UnitError};

/// What is asked, varied, offered and watched.
#[derive(Clone, Debug, PartialEq)]
pub struct Experiment {
    /// Its name: the recipe's, or the file's.
    pub name: String,
    /// The question it answers, for the report's head.
    pub question: Option<String>,
    /// Trials of every treatment; the most where `stopping` may end the run before.
    pub repeats: NonZeroU32,
    /// How the question is answered; none: as the experiment's form suggests.
    pub answer: Option<crate::Answer>,
    /// When the run ends before that; none where the number of repeats is fixed.
    pub stopping: Option<crate::Stopping>,
    /// In which order trials run.
    pub order: Order,
    /// Seeds the order and the load; the same seed gives the same plan. None: one is drawn for each
    /// run.
    pub seed: Option<u64>,
    /// The largest difference of tps that does not matter (a share: 0.03 for 3%); none: equivalence
    /// is not judged.
    pub margin: Option<f64>,
    /// Whether the noise of earlier runs on the host counts beside the run's own.
    pub host_noise: bool,
    /// What varies, in the file's order.
    pub factors: Vec<Factor>,
    /// Combinations to leave out: a treatment that agrees with all pairs of one element is left
    /// out.
    pub exclude: Vec<Vec<(String, LevelValue)>>,
    /// What the load is made of.
    pub workload: WorkloadChoice,
    /// How it is offered.
    pub load: Load,
    /// Who offers it.
    pub generators: crate::GeneratorChoice,
    /// The server.
    pub postgres: Postgres,
    /// Where data can lie, by name.
    pub storage: BTreeMap<String, Storage>,
    /// What is watched.
    pub telemetry: Telemetry,
    /// What happens before every trial.
    pub between: Between,
    /// What the storages are probed for, before and after all trials.
    pub probe: ProbeStages,
    /// What every treatment is crashed with after all trials, if it is.
    pub crash: Option<CrashOptions>,
    /// Which treatments are meant to fail which faults.
    pub planted: Vec<PlantedFailure>,
}

/// Faults that every treatment with certain levels is meant to fail: its failure breaks no promise.
#[derive(Clone, Debug, PartialEq)]
pub struct PlantedFailure {
    /// The faults.
    pub faults: Vec<Fault>,
    /// Pairs of factor and level, all of which a treatment has to have; none means every treatment.
    pub levels: Vec<(String, LevelValue)>,
}

/// A factor and its levels.
#[derive(Clone, Debug, PartialEq)]
pub struct Factor {
    /// Its name: one of [`Key::NAMES`], a PostgreSQL setting, or a name for a set of bundles.
    pub name: String,
    /// Its levels, at least one.
    pub levels: Vec<Level>,
}

/// In which order trials run.
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
    /// A built-in workload's name, or a folder.
    pub name: String,
    /// The data set's size in the workload's unit.
    pub scale: NonZeroU32,
    /// Script files of the user's that replace the workload's own scripts, with weights.
    pub scripts: Vec<(PathBuf, u32)>,
    /// Seeds the values of its rows.
    pub seed: u64,
    /// How its rows are made and loaded.
    pub loading: Loading,
    /// Whether loaded clusters are kept for later runs.
    pub keep_template: bool,
}

/// How a data set's rows are made and loaded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Loading {
    /// How much of every filler is blanks (percent, 0 to 100); the rest is drawn from 64
    /// characters. pgbench's is all blanks, which shrinks on filesystems that compress.
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
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    Hash,
    Serialize,
    Deserialize,
    EnumString,
    IntoStaticStr,
    VariantNames,
)]
#[strum(serialize_all = "lowercase")]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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

/// How long a trial offers load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Length {
    /// Until that much time has passed since the warm-up.
    Duration(Span),
    /// Until every client has run that many transactions.
    Transactions(u64),
}

/// What becomes of a client whose transaction met an error that is not tried again.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    Serialize,
    Deserialize,
    EnumString,
    IntoStaticStr,
    VariantNames,
)]
#[strum(serialize_all = "kebab-case")]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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

/// What a client does whose connection is lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReconnectLost {
    /// It ends, as pgbench's clients do.
    #[default]
    Never,
    /// Its transaction has failed, and it makes another connection; it ends when so many in a row
    /// came to nothing.
    UpTo(u32),
    /// The same without end.
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

/// What a load does beyond its scripts: pgbench's options for it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct LoadOptions {
    /// Transactions per second over all clients together, due at random (Poisson) times: latency
    /// counts from then. None: a client's next transaction is due when its last one is done.
    pub rate: Option<f64>,
    /// Transactions that take longer are counted as late; with a rate, those that are that late
    /// before they begin are skipped.
    pub latency_limit: Option<Span>,
    /// How often a transaction is tried that meets serialization failures or deadlocks; 0 is
    /// without end, which `latency_limit` or the load's end must then provide.
    pub max_tries: u32,
    /// What ends a client.
    pub on_error: OnError,
    /// Whether every transaction has a connection of its own.
    pub reconnect: bool,
    /// What a client does whose connection is lost.
    pub reconnect_lost: ReconnectLost,
    /// Variables that scripts find set, with their text.
    pub define: BTreeMap<String, String>,
}

impl Default for LoadOptions {
    fn default() -> Self {
        Self {
            rate: None,
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
    /// Whether a transaction may be tried for ever, if the load lasts until a count of transactions
    /// is reached.
    pub fn tries_without_end(&self) -> bool {
        self.max_tries == 0 && self.latency_limit.is_none()
    }
}

/// `[load]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Load {
    /// Connections.
    pub clients: NonZeroU32,
    /// Event loops; none means one.
    pub threads: NonZeroU32,
    /// How statements are sent.
    pub protocol: Protocol,
    /// For how long.
    pub length: Length,
    /// Load offered before the measured window opens.
    pub warm_up: Span,
    /// What is done beyond the scripts.
    pub options: LoadOptions,
    /// What the rate must keep, where the highest is looked for.
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
    /// The folder of the server's programs; none means: find one.
    pub bindir: Option<PathBuf>,
    /// The major version wanted; none means: what is found.
    pub version: Option<u32>,
    /// A server that pgdyno does not own (may hold a password: never stored).
    pub dsn: Option<crate::target::Secret>,
    /// Servers that pgdyno does not own and that factors choose among, by name (DSNs: never
    /// stored).
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
    /// The address of this machine on which a managed server listens for generators on other hosts.
    /// None: it listens on this machine alone.
    pub listen: Option<IpAddr>,
    /// The host of a server that pgdyno does not own, as `ssh` knows it, where its telemetry is read.
    pub observe: Option<String>,
    /// The schema that holds the workload's tables on a server that pgdyno does not own.
    pub schema: Option<String>,
}

impl Postgres {
    /// Whether the servers are not pgdyno's own.
    pub fn is_external(&self) -> bool {
        self.dsn.is_some() || !self.servers.is_empty()
    }

    /// The DSN of the server that factors call `name`; without a name the experiment's own.
    pub fn dsn_of(&self, name: Option<&str>) -> Option<&crate::target::Secret> {
        name.map_or(self.dsn.as_ref(), |name| self.servers.get(name))
    }
}

/// `[telemetry]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Telemetry {
    /// Time between samples.
    pub interval: Span,
    /// How long the fsync probe runs on each storage before the first trial; zero leaves it out.
    pub fsync: Span,
    /// Time between looks at what the server's processes wait for; zero leaves them out.
    pub wait_events: Span,
    /// Whether `pg_stat_statements` is read.
    pub statements: bool,
    /// Whether `pg_buffercache` is read.
    pub buffercache: bool,
    /// Whether disks' serial numbers and world-wide names are stored as they are, not as hashes.
    pub keep_serials: bool,
}

/// A probe of a storage.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    Serialize,
    Deserialize,
    EnumString,
    IntoStaticStr,
    VariantNames,
)]
#[strum(serialize_all = "lowercase")]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum ProbeKind {
    /// How often data can be made durable: `pg_test_fsync`'s job.
    Fsync,
    /// The disk's raw curves: throughput by position, latency by queue depth.
    Disk,
}

impl ProbeKind {
    /// Its name: the command that makes one by itself.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// `[probe]`: every storage is probed before the first trial of a session and after its last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeStages {
    /// Before the first trial, in this order.
    pub before: Vec<ProbeKind>,
    /// After the last.
    pub after: Vec<ProbeKind>,
    /// Whether the free blocks of each storage are then discarded, and its disk is probed once
    /// more.
    pub after_trim: bool,
    /// How long each test, or point of a curve, takes.
    pub duration: Span,
    /// The size of the file that the disk probe makes.
    pub size: Bytes,
    /// The sizes of the blocks that the fsync probe makes durable, one probe for each (bytes).
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
    /// The workload's own tidying: VACUUM and the emptying of what grows.
    pub vacuum: bool,
    /// `CHECKPOINT`.
    pub checkpoint: bool,
    /// The kernel's page cache is dropped (needs root); the server is stopped meanwhile.
    pub drop_caches: bool,
    /// The workload's tables and indexes are read into shared buffers (`pg_prewarm`).
    pub prewarm: bool,
    /// A rest for the device.
    pub pause: Span,
    /// A command of the user's: program and arguments, no shell.
    pub command: Vec<String>,
}

impl Factor {
    /// Whether any level assigns `key`.
    pub fn sets(&self, key: &Key) -> bool {
        self.levels.iter().any(|l| l.sets.iter().any(|(k, _)| k == key))
    }
}
