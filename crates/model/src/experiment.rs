//! An experiment as parsed: every value here is already valid on its own.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::level::{Key, Level, LevelValue};
use crate::units::Span;

/// What is asked, varied, offered and watched.
#[derive(Clone, Debug, PartialEq)]
pub struct Experiment {
    /// Its name: the recipe's, or the file's.
    pub name: String,
    /// The question it answers, for the report's head.
    pub question: Option<String>,
    /// Trials of every treatment.
    pub repeats: NonZeroU32,
    /// In which order trials run.
    pub order: Order,
    /// Seeds the order and the load; the same seed gives the same plan.
    pub seed: u64,
    /// What varies, in the file's order.
    pub factors: Vec<Factor>,
    /// Combinations to leave out: a treatment that agrees with all pairs of one element is left out.
    pub exclude: Vec<Vec<(String, LevelValue)>>,
    /// What the load is made of.
    pub workload: WorkloadChoice,
    /// How it is offered.
    pub load: Load,
    /// The server.
    pub postgres: Postgres,
    /// Where data can lie, by name.
    pub storage: BTreeMap<String, Storage>,
    /// What is watched.
    pub telemetry: Telemetry,
    /// What happens before every trial.
    pub between: Between,
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
pub enum Order {
    /// Block by block over all treatments, every second block backwards.
    #[default]
    Interleaved,
    /// Block by block, each block in an order drawn by the seed.
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
}

/// How statements are sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// One Query message a statement; values are put into the text.
    #[default]
    Simple,
    /// Parse, Bind, Execute every time.
    Extended,
    /// Parse once a connection, then Bind and Execute.
    Prepared,
}

impl Protocol {
    /// The names that files and options accept.
    pub const NAMES: &[&str] = &["simple", "extended", "prepared"];

    /// This protocol's name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Simple => "simple",
            Self::Extended => "extended",
            Self::Prepared => "prepared",
        }
    }

    /// The protocol of that name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        [Self::Simple, Self::Extended, Self::Prepared].into_iter().find(|p| p.name() == name)
    }
}

/// How long a trial offers load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Length {
    /// Until that much time has passed since the warm-up.
    Duration(Span),
    /// Until every client has run that many transactions.
    Transactions(u64),
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
}

/// How a managed server is reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
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
    /// Options for initdb.
    pub initdb: Vec<String>,
    /// Settings for every trial.
    pub settings: BTreeMap<String, LevelValue>,
    /// How a managed server is reached.
    pub connect: Connect,
    /// The schema that holds the workload's tables on a server that pgdyno does not own.
    pub schema: Option<String>,
}

/// `[storage.<name>]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Storage {
    /// An existing directory to put clusters in; none means pgdyno's own.
    pub directory: Option<PathBuf>,
}

/// `[telemetry]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Telemetry {
    /// Time between samples.
    pub interval: Span,
    /// How long the fsync probe runs on each storage before the first trial; zero leaves it out.
    pub fsync: Span,
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
    /// A rest for the device.
    pub pause: Span,
    /// A command of the user's: program and arguments, no shell.
    pub command: Vec<String>,
}

impl Factor {
    /// Whether any level assigns `key`.
    #[must_use]
    pub fn sets(&self, key: &Key) -> bool {
        self.levels.iter().any(|l| l.sets.iter().any(|(k, _)| k == key))
    }
}
