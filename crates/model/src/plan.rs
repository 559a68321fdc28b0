//! A plan: all names resolved, all trials in order. Plain data; the store keeps it whole.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::experiment::{Length, LoadOptions, Loading, Protocol};
use crate::storage::DeviceSettings;
use crate::units::Span;
use crate::{Answer, Find, LevelValue, Levels, Stopping};

/// Every treatment, and every trial in the order in which they run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Plan {
    /// The experiment's name.
    pub name: String,
    /// Its question.
    pub question: Option<String>,
    /// The names of the factors, in the file's order.
    pub factors: Vec<String>,
    /// All treatments; trials refer to them by index.
    pub treatments: Vec<Treatment>,
    /// All trials in order.
    pub trials: Vec<PlannedTrial>,
    /// Load offered before each measured window.
    pub warm_up: Span,
    /// The measured window.
    pub length: Length,
    /// The seed of the order and the load.
    #[cfg_attr(feature = "schema", schemars(with = "crate::page_schema::Seed"))]
    pub seed: u64,
    /// The seed of the data sets' rows; none in plans of earlier versions, where `seed` was that
    /// too.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(with = "Option<crate::page_schema::Seed>"))]
    pub data_seed: Option<u64>,
    /// The largest difference of tps that does not matter (a share: 0.03 for 3%), for judging
    /// equivalence; none if the experiment names none.
    #[serde(default)]
    pub margin: Option<f64>,
    /// How the data sets' rows are made and loaded.
    #[serde(default)]
    pub loading: Loading,
    /// What rate every trial looks for; none where trials offer the load as it is.
    #[serde(default)]
    pub find: Option<Find>,
    /// When the run ends before all trials are run; none where the number of repeats is fixed.
    #[serde(default)]
    pub stopping: Option<Stopping>,
    /// Numbers of repeats after which the run was complete and was then given more, ascending: its
    /// verdicts were looked at there.
    #[serde(default)]
    pub extended_after: Vec<u32>,
    /// How the question is answered; none in the stores of earlier versions, and where the
    /// experiment leaves it to its form.
    #[serde(default)]
    pub answer: Option<Answer>,
    /// Treatments, by index, that are crashed once the trials are over; none in the stores of
    /// earlier versions.
    #[serde(default)]
    pub crashed: Vec<usize>,
    /// What earlier runs told of the noise when the run began; none where they told nothing or were not
    /// to count, and in the stores of earlier versions.
    #[serde(default)]
    pub noise_prior: Option<NoisePrior>,
    /// Why a trial that is not measured opened the run; none where none did.
    #[serde(default)]
    pub conditioning: Option<Conditioning>,
}

/// Noise between trials that earlier runs on a host tell of a run to come.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NoisePrior {
    /// Variance of the logarithms of trials' tps.
    pub variance: f64,
    /// Degrees of freedom that it counts for beside the run's own.
    pub freedom: f64,
    /// Runs that tell it (count).
    pub runs: usize,
}

/// What earlier runs on a host tell of the first trial of a run to come.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Conditioning {
    /// By how much the tps of their first trials differ from what was to be expected (a share: −0.1 for 10%
    /// less).
    pub difference: f64,
    /// Runs that tell it (count).
    pub runs: usize,
}

/// One combination of levels, and what it comes to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Treatment {
    /// The combination.
    pub levels: Levels,
    /// The name of the storage that holds PGDATA.
    pub storage: String,
    /// What factors set on the storage's devices, over its own settings.
    #[serde(default)]
    pub device: DeviceSettings,
    /// The workload's name or folder.
    pub workload: String,
    /// The data set's size in the workload's unit.
    pub scale: u32,
    /// Connections.
    pub clients: u32,
    /// Event loops.
    pub threads: u32,
    /// How statements are sent.
    pub protocol: Protocol,
    /// What the load does beyond its scripts.
    #[serde(default)]
    pub options: LoadOptions,
    /// The major version wanted; none means: what is found.
    pub postgres_version: Option<u32>,
    /// The folder of the server's programs, where factors name one; none: the experiment's.
    #[serde(default)]
    pub postgres_bindir: Option<PathBuf>,
    /// The server that pgdyno does not own, by name, where factors name one. Its DSN is not stored
    /// with it.
    #[serde(default)]
    pub server: Option<String>,
    /// Who offers the load, where factors name them (`local:2`); `none`: one process. Not given: the
    /// experiment's generators.
    #[serde(default)]
    pub generators: Option<String>,
    /// Settings asked for, beyond pgdyno's own for a managed server.
    pub settings: BTreeMap<String, String>,
}

impl Plan {
    /// Returns whether a rate that is given sets the tps of a treatment.
    pub fn has_rate(&self) -> bool {
        self.treatments.iter().any(|t| t.options.rate.is_some())
    }

    /// Trials of every treatment, at most (count).
    pub fn repeats(&self) -> u32 {
        self.trials.iter().map(|trial| trial.repeat).max().unwrap_or(0)
    }

    /// Whether all repeats of a treatment run before the next treatment: with more than one of each,
    /// the trials of a block are no neighbours in time.
    pub fn is_sequential(&self) -> bool {
        let blocks: Vec<u32> = self.trials.iter().map(|t| t.block).collect();
        let runs = 1 + blocks.windows(2).filter(|pair| pair[0] != pair[1]).count();
        let distinct = blocks.iter().collect::<BTreeSet<_>>().len();
        let one_by_one = self.trials.windows(2).all(|pair| pair[0].treatment <= pair[1].treatment);
        self.treatments.len() > 1 && distinct > 1 && runs > distinct && one_by_one
    }

    /// The levels of `factor`, in the order in which treatments have them.
    pub fn levels(&self, factor: &str) -> Vec<&LevelValue> {
        let mut levels: Vec<&LevelValue> = Vec::new();
        for level in self.treatments.iter().filter_map(|t| t.levels.get(factor)) {
            if !levels.contains(&level) {
                levels.push(level);
            }
        }
        levels
    }

    /// The seed of the data sets' rows.
    pub fn seed_of_data(&self) -> u64 {
        self.data_seed.unwrap_or(self.seed)
    }
}

impl Treatment {
    /// Whether a crash test of the one says the same as of the other: they differ in the load at
    /// most.
    pub fn is_crashed_alike(&self, other: &Self) -> bool {
        self.storage == other.storage
            && self.device == other.device
            && self.postgres_version == other.postgres_version
            && self.postgres_bindir == other.postgres_bindir
            && self.settings == other.settings
    }

    /// Returns the first of `all` that is crashed alike as the one `at` a place.
    pub fn first_crashed_alike(all: &[Self], at: usize) -> usize {
        all[..at].iter().position(|other| other.is_crashed_alike(&all[at])).unwrap_or(at)
    }

    /// Returns those of `all`, by index, that have crash tests of their own: of those that are
    /// crashed alike the first.
    pub fn crashed_apart(all: &[Self]) -> Vec<usize> {
        (0..all.len()).filter(|at| Self::first_crashed_alike(all, *at) == *at).collect()
    }
}

/// One trial to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PlannedTrial {
    /// Its place in the run, from 0.
    pub ordinal: u32,
    /// The round over all treatments it belongs to, from 1.
    pub block: u32,
    /// Its treatment's index.
    pub treatment: usize,
    /// Which of its treatment's trials it is, from 1.
    pub repeat: u32,
}
