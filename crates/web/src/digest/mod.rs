//! Digests: the figures of a run that lists and histories show, so that nobody has to analyse it
//! again.
//!
//! [`RunDigest::new`] makes one of an analysed run. [`DigestCache`] keeps them in a file beside the
//! store (`STORE.cache`), by the run's content: the head of its chain of checksums. The file may be
//! removed at any time; the digests are then made anew.

mod cache;
pub(crate) mod fill;

pub(crate) use cache::DigestCache;
use serde::{Deserialize, Serialize};

use pgdyno_analysis::{Badge, RunView, TreatmentView, TrialState};
use pgdyno_report::RunReport;

/// Figures of a run in brief.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct RunDigest {
    /// How far the run answers its question.
    pub(crate) badge: Badge,
    /// The answer in one or two sentences.
    pub(crate) headline: String,
    /// Transactions per second of completed trials in their order; of many an even choice.
    pub(crate) spark: Vec<f64>,
    /// The last session's machine, in words.
    pub(crate) host: Option<String>,
    /// The pgdyno that ran it.
    pub(crate) pgdyno_version: String,
    /// Treatments, in the plan's order.
    pub(crate) treatments: Vec<TreatmentDigest>,
}

/// Figures of a treatment in brief.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct TreatmentDigest {
    /// Levels of its factors in one line.
    pub(crate) label: String,
    /// Completed trials (count).
    pub(crate) trials: usize,
    /// Mean of the trials' transactions per second; none without a completed trial.
    pub(crate) tps: Option<f64>,
    /// 95% confidence interval of `tps`; none where none can be formed.
    pub(crate) ci95: Option<[f64; 2]>,
    /// 99th percentile of latency of all transactions together (microseconds).
    pub(crate) latency_us_p99: Option<f64>,
    /// PostgreSQL's version; none without a completed trial.
    pub(crate) postgres_version: Option<String>,
}

impl RunDigest {
    /// Most values of [`RunDigest::spark`].
    pub(crate) const SPARK_MOST: usize = 40;

    /// Makes the digest of a run.
    pub(crate) fn new(report: &RunReport) -> Self {
        let view = &report.view;
        let done = view.trials.iter().filter(|trial| trial.state == TrialState::Completed);
        let tps: Vec<f64> = done.filter_map(|trial| trial.tps).collect();
        let host = view.sessions.last().map(|session| &session.host);
        Self {
            badge: report.headline.badge,
            headline: report.headline.answer.clone(),
            spark: choose_evenly(&tps),
            host: host.map(|host| {
                let name = view.run.host.as_ref().or(host.name.as_ref());
                let name = name.map_or_else(String::new, |name| format!("{name}: "));
                format!("{name}{}, {} CPUs, {}", host.cpu_model, host.cpus, host.memory)
            }),
            pgdyno_version: view.run.pgdyno_version.clone(),
            treatments: view.treatments.iter().map(|t| digest(view, t)).collect(),
        }
    }
}

fn digest(view: &RunView, treatment: &TreatmentView) -> TreatmentDigest {
    let server = view.trials.iter().filter(|trial| trial.treatment == treatment.index);
    let server = server.filter_map(|trial| view.servers.get(trial.server?)).next_back();
    TreatmentDigest {
        label: treatment.label.clone(),
        trials: treatment.trials,
        tps: treatment.tps.as_ref().map(|tps| tps.mean),
        ci95: treatment.tps.as_ref().and_then(|tps| tps.ci95),
        latency_us_p99: treatment.latency_us.as_ref().map(|latency| latency.p99),
        postgres_version: server.map(|server| {
            format!("{}.{}", server.version_num / 10_000, server.version_num % 10_000)
        }),
    }
}

/// Returns at most [`RunDigest::SPARK_MOST`] of `values`, evenly spread from the first to the last,
/// to four digits.
fn choose_evenly(values: &[f64]) -> Vec<f64> {
    let most = RunDigest::SPARK_MOST.min(values.len());
    let last = values.len().saturating_sub(1);
    let place = |i: usize| (i * last).checked_div(most.saturating_sub(1)).unwrap_or(0);
    (0..most).map(|i| to_four_digits(values[place(i)])).collect()
}

fn to_four_digits(value: f64) -> f64 {
    format!("{value:.3e}").parse().unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_series_keeps_its_ends_and_a_short_one_everything() {
        assert_eq!(choose_evenly(&[]), Vec::<f64>::new());
        assert_eq!(choose_evenly(&[7.0]), [7.0]);
        assert_eq!(choose_evenly(&[1.0, 2.0, 12_345.678]), [1.0, 2.0, 12_350.0]);
        let long: Vec<f64> = (1..=1000).map(f64::from).collect();
        let chosen = choose_evenly(&long);
        assert_eq!(chosen.len(), RunDigest::SPARK_MOST);
        assert_eq!((chosen[0], chosen[RunDigest::SPARK_MOST - 1]), (1.0, 1000.0));
        assert!(chosen.is_sorted());
    }
}
