//! The noise floor of a host.

use pgdyno_model::units::Epoch;
use serde::Serialize;

use crate::gate::Measure;

/// What the newest completed A/A run on a host found.
#[derive(Clone, Debug, Serialize)]
pub struct NoiseFloor {
    /// The run.
    pub run: String,
    /// When it began.
    #[serde(serialize_with = "pgdyno_model::format::as_text")]
    pub started_at: Epoch,
    /// The two names.
    pub names: [String; 2],
    /// The ratio of their tps.
    pub ratio: f64,
    /// Its 95% confidence interval.
    pub ci95: [f64; 2],
    /// Blocks that had both (count).
    pub blocks: usize,
    /// The farther end of the interval as a share: a difference below it may be none.
    pub floor: f64,
    /// The same of percentiles of latency, for those that have an interval.
    pub latency: Vec<LatencyFloor>,
}

/// How far a percentile of latency of the same treatment differed.
#[derive(Clone, Debug, Serialize)]
pub struct LatencyFloor {
    /// Which.
    pub percentile: &'static str,
    /// The farther end of the ratio's interval as a share.
    pub floor: f64,
}

impl NoiseFloor {
    /// The floor of `measure` (a share); none where it has no interval.
    pub(crate) fn of(&self, measure: Measure) -> Option<f64> {
        let of_latency =
            || self.latency.iter().find(|l| l.percentile == measure.name()).map(|l| l.floor);
        if measure == Measure::Tps { Some(self.floor) } else { of_latency() }
    }
}
