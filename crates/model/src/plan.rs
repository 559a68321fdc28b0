//! A plan: all names resolved, all trials in order. Plain data; the store keeps it whole.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::experiment::{Length, LoadOptions, Loading, Protocol};
use crate::load_rate::LoadRate;
use crate::storage::DeviceSettings;
use crate::units::Span;
use crate::{Answer, ClientGroup, Find, LevelValue, Levels, Stopping};

/// Every treatment, and every trial in the order in which they run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Plan {
    /// The experiment's name.
    pub name: String,
    /// Question of the experiment.
    pub question: Option<String>,
    /// The names of the factors, in the file's order.
    pub factors: Vec<String>,
    /// Name of the script whose transactions alone are compared; none: all are. None in the stores
    /// of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub headline: Option<String>,
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
    #[cfg_attr(feature = "schema", schemars(with = "Option<crate::page_schema::Seed>"))]
    pub data_seed: Option<u64>,
    /// The largest difference of tps that does not matter (a share: 0.03 for 3%), for judging
    /// equivalence; none if the experiment names none.
    pub margin: Option<f64>,
    /// How the data sets' rows are made and loaded.
    #[serde(default)]
    pub loading: Loading,
    /// Search for the highest rate in every trial; none where trials offer the load as it is.
    pub find: Option<Find>,
    /// Rule that ends the run before all trials are run; none where the number of repeats is fixed.
    pub stopping: Option<Stopping>,
    /// Numbers of repeats at which a complete run was extended, ascending. Verdicts were looked at
    /// there.
    #[serde(default)]
    pub extended_after: Vec<u32>,
    /// Form of the answer; none in the stores of earlier versions, and where the experiment leaves
    /// it open.
    pub answer: Option<Answer>,
    /// Indexes of the treatments that are crashed once the trials are over; empty in the stores of
    /// earlier versions.
    #[serde(default)]
    pub crashed: Vec<usize>,
    /// Noise of earlier runs, as known when the run began; none where they told nothing or were not
    /// to count, and in the stores of earlier versions.
    pub noise_prior: Option<NoisePrior>,
    /// Reason for opening the run with a trial that is not measured; none where there was no such
    /// trial.
    pub conditioning: Option<Conditioning>,
}

/// Noise between trials that earlier runs on the host predict for a run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NoisePrior {
    /// Variance of the logarithms of trials' tps.
    pub variance: f64,
    /// Degrees of freedom of the variance, beside the run's own.
    pub freedom: f64,
    /// Earlier runs that the variance rests on (count).
    pub runs: usize,
}

/// Difference of first trials in earlier runs on a host, as expected of a run to come.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Conditioning {
    /// Difference between the tps of first trials and that expected of them (a share: −0.1 for 10%
    /// less).
    pub difference: f64,
    /// Earlier runs that the difference rests on (count).
    pub runs: usize,
}

/// One combination of levels, resolved to the storage, load and server that it stands for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Treatment {
    /// Levels of the factors.
    pub levels: Levels,
    /// The name of the storage that holds PGDATA.
    pub storage: String,
    /// Device settings that factors assign, over the storage's own.
    #[serde(default)]
    pub device: DeviceSettings,
    /// The workload's name or folder.
    pub workload: String,
    /// The data set's size in the workload's unit.
    pub scale: u32,
    /// Connections, those of all groups together.
    pub clients: u32,
    /// Groups that the clients are divided into; empty where all clients run all scripts, and in
    /// the stores of earlier versions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<ClientGroup>,
    /// Event loops.
    pub threads: u32,
    /// How statements are sent.
    pub protocol: Protocol,
    /// Options of the load beyond its scripts.
    #[serde(default)]
    pub options: LoadOptions,
    /// Major version that is wanted; none: any.
    pub postgres_version: Option<u32>,
    /// Folder of the server's programs, where factors name one; none: the experiment's.
    pub postgres_bindir: Option<PathBuf>,
    /// Name of the server that pgdyno does not own, where factors name one. Its DSN is not stored.
    pub server: Option<String>,
    /// Processes that offer the load, where factors name them (`local:2`); `none`: this process
    /// alone. Absent: the experiment's generators.
    pub generators: Option<String>,
    /// Settings of the treatment, beyond pgdyno's own for a managed server.
    pub settings: BTreeMap<String, String>,
}

impl Plan {
    /// Whether rates set the tps of a treatment.
    pub fn has_rate(&self) -> bool {
        self.treatments.iter().any(Treatment::has_rate)
    }

    /// Returns the most trials of a treatment (count).
    pub fn repeats(&self) -> u32 {
        self.trials.iter().map(|trial| trial.repeat).max().unwrap_or(0)
    }

    /// Whether all repeats of a treatment run before the next treatment. With more than one repeat,
    /// the trials of a block are then no neighbours in time.
    pub fn is_sequential(&self) -> bool {
        let blocks: Vec<u32> = self.trials.iter().map(|t| t.block).collect();
        let runs = 1 + blocks.windows(2).filter(|pair| pair[0] != pair[1]).count();
        let distinct = blocks.iter().collect::<BTreeSet<_>>().len();
        let one_by_one = self.trials.windows(2).all(|pair| pair[0].treatment <= pair[1].treatment);
        self.treatments.len() > 1 && distinct > 1 && runs > distinct && one_by_one
    }

    /// Returns the levels of `factor`, in the order in which treatments have them.
    pub fn levels(&self, factor: &str) -> Vec<&LevelValue> {
        let mut levels: Vec<&LevelValue> = Vec::new();
        for level in self.treatments.iter().filter_map(|t| t.levels.get(factor)) {
            if !levels.contains(&level) {
                levels.push(level);
            }
        }
        levels
    }

    /// Returns the seed of the data sets' rows.
    pub fn seed_of_data(&self) -> u64 {
        self.data_seed.unwrap_or(self.seed)
    }
}

impl Treatment {
    /// Rates at which transactions of its clients are due: the load's, or those of groups.
    pub fn rates(&self) -> impl Iterator<Item = &LoadRate> {
        self.options.rate.iter().chain(self.groups.iter().filter_map(|group| group.rate.as_ref()))
    }

    /// Whether all transactions are due by rates, which then set the tps.
    pub fn has_rate(&self) -> bool {
        let paced = !self.groups.is_empty() && self.groups.iter().all(|group| group.rate.is_some());
        self.options.rate.is_some() || paced
    }

    /// Whether a rate of it has stages.
    pub fn has_rate_stages(&self) -> bool {
        self.rates().any(|rate| rate.stages().is_some())
    }

    /// Whether each client's next transaction is due as soon as the previous one is done.
    pub fn is_closed_loop(&self) -> bool {
        let options = &self.options;
        options.rate.is_none()
            && !options.has_pauses()
            && self.groups.iter().all(ClientGroup::is_closed_loop)
    }

    /// Whether both treatments have as many clients in the same groups, and the same rates and
    /// pauses.
    pub fn is_loaded_alike(&self, other: &Self) -> bool {
        self.clients == other.clients
            && self.options.rate == other.options.rate
            && self.options.pauses == other.options.pauses
            && self.groups == other.groups
    }

    /// Whether crash tests of both treatments say the same: the treatments differ only in the load.
    pub fn is_crashed_alike(&self, other: &Self) -> bool {
        self.storage == other.storage
            && self.device == other.device
            && self.postgres_version == other.postgres_version
            && self.postgres_bindir == other.postgres_bindir
            && self.settings == other.settings
    }

    /// Returns the index of the first treatment of `all` that is crashed alike as the one at index
    /// `at`.
    pub fn first_crashed_alike(all: &[Self], at: usize) -> usize {
        all[..at].iter().position(|other| other.is_crashed_alike(&all[at])).unwrap_or(at)
    }

    /// Returns the indexes of the treatments of `all` that have crash tests of their own: the first
    /// of each set that is crashed alike.
    pub fn crashed_apart(all: &[Self]) -> Vec<usize> {
        (0..all.len()).filter(|at| Self::first_crashed_alike(all, *at) == *at).collect()
    }
}

/// One trial to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PlannedTrial {
    /// Place in the run, from 0.
    pub ordinal: u32,
    /// Round over all treatments that the trial belongs to, from 1.
    pub block: u32,
    /// Index of the treatment.
    pub treatment: usize,
    /// Number among the treatment's trials, from 1.
    pub repeat: u32,
}
