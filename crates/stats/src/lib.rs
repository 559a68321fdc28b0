//! Statistics over trials: numbers in, an estimate or a typed reason out.
//!
//! This crate is pure. It knows no clock, no store and no words: a missing interval is a
//! [`NoInterval`], which the reports render.
//!
//! Four kinds of question are answered:
//!
//! - *How fast is one treatment?* [`mean_ci95`] gives the mean over repeats with its interval.
//! - *Which treatments differ?* [`all_pairs()`] judges all treatments of a run together, and
//!   [`p_of_best`] tells which may be the fastest. [`ratio()`] compares two of them, block by
//!   block. [`unpaired_ratio`] and [`ratio_across`] compare two runs; several such comparisons are
//!   judged together by [`holm()`]. A run that may end early plans its looks with
//!   [`InterimAnalyses`].
//! - *Where does the noise live?* [`rest()`] has the variance of a run's trials, [`HostNoise`] that
//!   of equal runs, [`days()`] that of days; [`detectable()`] tells what a plan will find beside
//!   it.
//! - *Is a series steady?* [`warm_up`] finds where it becomes steady, [`changes()`] where its mean
//!   changes, [`trend()`] whether repeats rise or fall.
//!
//! ```
//! use pgdyno_stats::{holm, ratio};
//!
//! // Transactions per second as (block, value): each block measured both treatments.
//! let ext4 = [(1, 1000.0), (2, 1020.0), (3, 990.0)];
//! let xfs = [(1, 1105.0), (2, 1120.0), (3, 1092.0)];
//!
//! let found = ratio(&xfs, &ext4);
//! let [low, high] = found.ci95.expect("three blocks have an interval");
//! assert!(1.08 < low && high < 1.12);
//!
//! // One comparison alone: Holm's rule leaves its p-value as it is.
//! let p = found.p.unwrap();
//! assert_eq!(holm(&[p]), [p]);
//! assert!(p < 0.05, "the difference is significant");
//! ```
//!
//! Trials of one treatment are taken as independent draws from a normal distribution; for ratios,
//! their logarithms are. Intervals are Student's (*The probable error of a mean*, Biometrika 6,
//! 1908). Two groups of unequal variance follow B. L. Welch, *The generalization of "Student's"
//! problem*, Biometrika 34 (1947).

mod additive;
mod all_pairs;
mod best;
mod changes;
mod common_noise;
mod contrast;
mod days;
mod detectable;
mod estimate;
mod even_spread;
mod first_trial;
mod holm;
mod host_noise;
mod interaction;
mod interim;
mod long_run;
mod max_t;
mod mean;
mod no_interval;
mod ordered;
mod own_noise;
mod power;
mod prior;
pub(crate) mod random;
mod ratio;
mod run_design;
mod run_spread;
mod runs;
mod scale;
mod scaling;
mod series;
mod share;
#[cfg(test)]
mod simulations;
mod student;
mod studentized_range;
mod trend;
mod variance;

pub use additive::rest;
pub use all_pairs::{Pair, all_pairs};
pub use best::p_of_best;
pub use changes::changes;
pub use common_noise::{PriorUse, prior_use};
pub use contrast::{RunTrials, average_ratio};
pub use days::{Days, days};
pub use detectable::detectable;
pub use estimate::{Estimate, geometric_mean_ci95, mean_ci95, mean_ci95_at};
pub use first_trial::{FirstTrial, first_trial, first_trials_differ};
pub use holm::holm;
pub use host_noise::{HostNoise, NoHostNoise};
pub use interaction::{Cells, Interaction, interactions};
pub use interim::InterimAnalyses;
pub use long_run::{
    Autocorrelation, LEAST_EFFECTIVE, autocorrelation, relative_error_of_mean,
    standard_error_of_mean,
};
pub use no_interval::{NoFit, NoInterval};
pub use ordered::{Course, Fit, courses};
pub use power::POWER;
#[cfg(test)]
pub(crate) use power::t_power;
pub use prior::noise_prior;
pub use ratio::{Method, Ratio, ratio, ratio_over, unpaired_ratio};
pub use run_design::RunDesign;
pub use run_spread::{FEWEST_RUNS, RunSpread};
pub use runs::{EarlierRuns, ratio_across};
pub use scaling::{Fitted, Scaling, scaling};
pub use series::{WarmUp, warm_up};
pub use share::{Gap, Share, share};
pub use student::CONFIDENCE;
pub use trend::{Trend, share_of_orders_with_trend, trend, trends};
pub use variance::Variance;
