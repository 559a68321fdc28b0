//! Forecasts the differences that a plan can find on a host whose noise is known.

use pgdyno_model::facts::HostFacts;
use pgdyno_model::{Conditioning, Plan};
use pgdyno_stats::{self as stats, Variance};
use serde::Serialize;

use super::earlier::{EarlierRuns, Known};
use super::spread;
use super::view::{Finds, SpreadView};
use crate::question::asked_pairs;
use pgdyno_store::{Store, StoreError};

/// Noise between trials of one run on a busy host: standard deviation of the logarithm of tps.
///
/// The runs of docs/field-reports, on a virtual machine with two cores and nothing else to do, have
/// 5 to 9%, whether a trial took 8 s or 5 min. Earlier ones had up to 12%.
pub const BUSY: f64 = 0.1;

/// Differences that a plan can find beside the noise of its host.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Forecast {
    /// Noise between trials of one run, on which the forecast rests.
    pub trials: SpreadView,
    /// Whether that is the noise of the recipe's own runs.
    pub is_own: bool,
    /// Runs from which the noise was estimated (count).
    pub runs: usize,
    /// Reason for an unmeasured trial that will open the run; none without one.
    pub conditioning: Option<Conditioning>,
    /// Smallest difference found with the plan's own repeats, and with twice as many.
    pub finds: Vec<Finds>,
}

/// Reason for a plan without a forecast.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum NoForecast {
    /// It compares nothing, or repeats nothing.
    #[error("it takes two treatments and two repeats")]
    NothingToCompare,
    /// No run of this host tells its noise.
    #[error("no completed run on this host has repeats to tell its noise from")]
    NoRun {
        /// Smallest difference that the plan finds beside [`BUSY`] noise (a share).
        on_a_busy_host: Option<f64>,
    },
    /// The store's runs cannot be read.
    #[error("{why}")]
    Unreadable { why: String },
}

/// Forecasts what `plan` will find on `host`, from the store's runs there. With `counts`, their
/// noise counts beside the plan's own.
///
/// # Errors
/// [`StoreError::Damaged`]; [`StoreError::Sqlite`] or [`StoreError::Corrupt`].
pub fn forecast(
    store: Option<&Store>,
    plan: &Plan,
    host: &HostFacts,
    counts: bool,
) -> Result<Result<Forecast, NoForecast>, StoreError> {
    let repeats = plan.repeats();
    if plan.treatments.len() < 2 || repeats < 2 {
        return Ok(Err(NoForecast::NothingToCompare));
    }
    let earlier = match store {
        Some(store) => EarlierRuns::read(store, host)?,
        None => EarlierRuns::default(),
    };
    let no_run = || NoForecast::NoRun { on_a_busy_host: found_on_a_busy_host(plan) };
    let conditioning = earlier.conditioning(plan).filter(|_| counts);
    let forecast = |known: Known| Forecast { conditioning, ..beside(&known, plan, counts) };
    Ok(earlier.noise(plan).map(forecast).ok_or_else(no_run))
}

/// Returns the smallest difference that `plan` finds in 80% of cases beside [`BUSY`] noise (a
/// share); none if it compares or repeats nothing.
pub fn found_on_a_busy_host(plan: &Plan) -> Option<f64> {
    found_beside(Variance { value: BUSY.powi(2), freedom: 0.0 }, plan, plan.repeats())
}

/// Returns the smallest difference that `plan` with `repeats` finds in 80% of cases (a share).
/// `noise` is the variance of the logarithms of its trials' tps; its degrees of freedom count
/// beside the plan's own.
fn found_beside(noise: Variance, plan: &Plan, repeats: u32) -> Option<f64> {
    let has_blocks = !plan.is_sequential();
    stats::detectable(plan.treatments.len(), &asked_pairs(plan), repeats, has_blocks, noise)
}

fn beside(known: &Known, plan: &Plan, counts: bool) -> Forecast {
    let freedom = if counts { known.prior.freedom } else { 0.0 };
    let noise = Variance { freedom, ..known.trials };
    let repeats = plan.repeats();
    let finds = |repeats: u32| {
        let difference = found_beside(noise, plan, repeats)?;
        Some(Finds { repeats, difference })
    };
    Forecast {
        trials: spread(known.trials),
        is_own: known.is_own,
        runs: known.prior.runs,
        conditioning: None,
        finds: [repeats, 2 * repeats].into_iter().filter_map(finds).collect(),
    }
}
