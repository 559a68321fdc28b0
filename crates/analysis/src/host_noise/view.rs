//! Noise of tps by host, as `pgdyno noise --json` prints it. Keys are only ever added.

use pgdyno_model::json::Document;
use pgdyno_model::units::Epoch;
use pgdyno_stats::NoHostNoise;
use serde::Serialize;

/// Noise of tps of all hosts in a store.
#[derive(Clone, Debug, Serialize)]
pub struct NoiseView {
    /// Hosts, that of the newest run first. Machines with other facts are other hosts, also where
    /// they bear the same name.
    pub hosts: Vec<HostNoiseView>,
    /// Runs that were read (count): the newest completed ones of each host.
    pub read: usize,
    /// Completed runs in the store (count), without ad hoc ones.
    pub completed: usize,
}

impl Document for NoiseView {
    const SCHEMA: &'static str = "pgdyno.noise/1";
}

/// Noise of tps on one host.
#[derive(Clone, Debug, Serialize)]
pub struct HostNoiseView {
    /// Name of the machine; none where its runs do not name it.
    pub name: Option<String>,
    /// Kinds of facts that differ from those of the newest run's host.
    pub differs: Vec<&'static str>,
    /// Runs that were read (count).
    pub runs: usize,
    /// Begin of the first run.
    #[serde(serialize_with = "pgdyno_text::format::as_text")]
    pub since: Epoch,
    /// Begin of the last run.
    #[serde(serialize_with = "pgdyno_text::format::as_text")]
    pub until: Epoch,
    /// Noise of a trial's mean tps from the differences between its seconds; `known_by` counts
    /// trials.
    pub seconds: Option<SpreadView>,
    /// Noise between trials of one treatment in one run.
    pub trials: Option<SpreadView>,
    /// Noise between equal runs, without that of their trials.
    pub between_runs: Option<SpreadView>,
    /// Reason why it is not known how far runs of another experiment differ.
    pub unknown: Option<NoHostNoise>,
    /// Noise between equal runs of one day, with that of their trials.
    pub runs_of_a_day: Option<SpreadView>,
    /// Noise between days, without that of their runs.
    pub days: Option<SpreadView>,
    /// Experiments that were run on the host, newest first.
    pub experiments: Vec<ExperimentNoise>,
    /// Smallest difference that a run of four treatments finds, for some numbers of repeats.
    pub finds: Vec<Finds>,
    /// Smallest difference that a comparison of two runs of another experiment finds in 80% of
    /// cases (a share).
    pub two_runs_find: Option<f64>,
}

/// One level of noise.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SpreadView {
    /// Relative standard deviation (a share: 0.01 for 1%).
    pub spread: f64,
    /// Degrees of freedom, or trials, that it is known by.
    pub known_by: f64,
}

/// Noise of one experiment.
#[derive(Clone, Debug, Serialize)]
pub struct ExperimentNoise {
    /// Name of its recipe or file.
    pub recipe: String,
    /// Runs (count).
    pub runs: usize,
    /// Treatments (count).
    pub treatments: usize,
    /// Noise between trials, as [`HostNoiseView::trials`].
    pub trials: Option<SpreadView>,
    /// Noise between runs, as [`HostNoiseView::between_runs`].
    pub between_runs: Option<SpreadView>,
}

/// Smallest difference that a run finds, by its repeats.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Finds {
    /// Repeats (count).
    pub repeats: u32,
    /// The smallest true difference of two treatments that is significant in 80% of runs (a share).
    pub difference: f64,
}
