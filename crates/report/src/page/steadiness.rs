//! Texts on the steadiness of single trials.

use pgdyno_text::format;
use serde::Serialize;

use super::super::table::NONE;
use crate::prose::{cause, not_judged};
use pgdyno_analysis::{Change, RunView, Steadiness, TrialState};

/// Steadiness of a completed trial.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "SteadinessRow"))]
pub(super) struct Row {
    /// Index in the run's trials.
    trial: usize,
    /// Number of the trial, from 1.
    number: u32,
    warm_up: String,
    seconds: usize,
    effective: String,
    within: String,
    /// Reason for a missing interval, if the column of warm-up does not say it.
    why: Option<String>,
    changes: Vec<String>,
}

/// Returns a row for each completed trial that is long enough to be judged.
pub(super) fn rows(view: &RunView) -> Vec<Row> {
    let trials = view.trials.iter().enumerate();
    let completed = trials.filter(|(_, trial)| trial.state == TrialState::Completed);
    completed
        .filter_map(|(i, trial)| {
            let s = trial.steadiness.as_ref().filter(|s| s.changes.is_some())?;
            Some(Row {
                trial: i,
                number: trial.ordinal + 1,
                warm_up: warm_up(s),
                seconds: trial.series.len(),
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
