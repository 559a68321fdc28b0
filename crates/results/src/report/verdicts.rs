//! Texts of the HTML report on comparisons and on the steadiness of single trials.

use pgdyno_model::format;
use serde::Serialize;

use crate::analysis::{Change, Comparison, RunView, Steadiness, TrialState};
use crate::prose::{cause, not_judged};

const NONE: &str = "–";

/// Figures of a comparison that its sentence leaves out.
#[derive(Serialize)]
pub(super) struct Difference {
    treatment: String,
    to: String,
    /// p50, p95, p99.
    latency: [String; 3],
    p: String,
    p_together: String,
    detectable: String,
}

/// Every comparison with an interval.
pub(super) fn differences(view: &RunView) -> Vec<Difference> {
    let label =
        |index: usize| view.treatments.get(index).map(|t| t.label.clone()).unwrap_or_default();
    let difference = |c: &Comparison| Difference {
        treatment: label(c.treatment),
        to: label(c.to),
        latency: ["p50", "p95", "p99"].map(|name| {
            let found = c.latency.iter().find(|l| l.percentile == name);
            with_interval(found.map(|l| l.value), found.and_then(|l| l.ci95))
        }),
        p: probability(c.ratio.p),
        p_together: probability(c.ratio.p_together),
        detectable: c
            .ratio
            .minimum_detectable
            .map_or_else(|| NONE.to_owned(), |d| format!("{}%", format::percent(d))),
    };
    view.comparisons.iter().filter(|c| c.ratio.ci95.is_some()).map(difference).collect()
}

/// `1.46× (1.41–1.52)`
pub(super) fn with_interval(value: Option<f64>, ci95: Option<[f64; 2]>) -> String {
    match (value, ci95) {
        (Some(value), Some([lo, hi])) => {
            format!("{}× ({}–{})", format::times(value), format::times(lo), format::times(hi))
        }
        (Some(value), None) => format!("{}×", format::times(value)),
        (None, _) => NONE.to_owned(),
    }
}

fn probability(p: Option<f64>) -> String {
    match p {
        None => NONE.to_owned(),
        Some(p) if p < 0.0005 => "< 0.001".to_owned(),
        Some(p) => format!("{p:.3}"),
    }
}

/// Steadiness of a completed trial.
#[derive(Serialize)]
pub(super) struct Row {
    /// Number of the trial, from 1.
    number: u32,
    warm_up: String,
    seconds: usize,
    effective: String,
    within: String,
    /// Why there is no interval, where the column of warm-up does not say it.
    why: Option<String>,
    changes: Vec<String>,
}

/// Returns a row for each completed trial that is long enough to be judged.
pub(super) fn steadiness(view: &RunView) -> Vec<Row> {
    let completed = view.trials.iter().filter(|t| t.state == TrialState::Completed);
    completed
        .filter_map(|t| {
            let s = t.steadiness.as_ref().filter(|s| s.changes.is_some())?;
            Some(Row {
                number: t.ordinal + 1,
                warm_up: warm_up(s),
                seconds: t.series.len(),
                effective: s
                    .autocorrelation
                    .map_or_else(|| NONE.to_owned(), |a| format!("{:.0}", a.effective)),
                within: s
                    .within
                    .map_or_else(|| NONE.to_owned(), |w| format!("±{}%", format::percent(w))),
                why: s
                    .within_why
                    .as_ref()
                    .filter(|_| s.steady_why.is_none() && s.autocorrelation.is_some())
                    .map(not_judged),
                changes: s.changes.iter().flatten().map(change).collect(),
            })
        })
        .collect()
}

fn warm_up(s: &Steadiness) -> String {
    match (s.steady, s.warm_up_s) {
        (None, _) => s.steady_why.as_ref().map_or_else(|| NONE.to_owned(), not_judged),
        (Some(false), _) => "never became steady".to_owned(),
        (Some(true), Some(seconds)) if seconds > 0 => format!("{seconds} s"),
        (Some(true), _) => "none".to_owned(),
    }
}

fn change(c: &Change) -> String {
    let with = match c.with.as_slice() {
        [] => "nothing that was watched".to_owned(),
        causes => causes.iter().map(cause).collect::<Vec<_>>().join("; "),
    };
    format!("{} s: {} → {} tps ({with})", c.t_s, format::rate(c.before), format::rate(c.after))
}
