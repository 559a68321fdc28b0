//! Sentences on how tables and indexes grew, and how many rows a day a rate comes to.

use std::collections::BTreeSet;

use pgdyno_model::units::Bytes;
use pgdyno_text::format;

use pgdyno_analysis::{RunView, TreatmentView, TrialState, TrialView, label};

/// Says what grew by a page or more in the first such trial of each workload.
pub(super) fn notes(view: &RunView) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let mut out = Vec::new();
    for trial in view.trials.iter().filter(|t| t.tps.is_some()) {
        let Some(treatment) = view.plan.treatments.get(trial.treatment) else { continue };
        if let Some(words) = sentence(trial)
            && seen.insert(&treatment.workload)
        {
            out.push(words);
        }
    }
    out
}

fn sentence(trial: &TrialView) -> Option<String> {
    const PAGE: f64 = 8192.0;
    let bytes = |value: f64| Bytes(value.max(0.0) as u64);
    let grown: Vec<String> = trial
        .sizes
        .iter()
        .filter(|size| size.after_bytes - size.before_bytes >= PAGE)
        .take(3)
        .filter_map(|size| {
            Some(format!(
                "`{}` from {} to {} ({} bytes for each transaction)",
                size.name,
                bytes(size.before_bytes),
                bytes(size.after_bytes),
                format::rate(size.bytes_per_transaction?)
            ))
        })
        .collect();
    (!grown.is_empty()).then(|| {
        let label = label(&trial.factors);
        let which = if label.is_empty() { String::new() } else { format!(" ({label})") };
        format!("Trial {}{which} grew {}.", trial.ordinal + 1, grown.join(", "))
    })
}

/// Says how many rows a day the rates of treatments come to, where each transaction adds rows.
///
/// A run of many treatments names its best only. A rate that was not held for a minute says nothing
/// about a day.
pub(super) fn rows_a_day(view: &RunView) -> Vec<String> {
    const MOST: usize = 4;
    const LEAST_S: f64 = 60.0;
    let held = |t: &TreatmentView| {
        let its = view.trials.iter().filter(|trial| trial.treatment == t.index);
        its.filter_map(|trial| trial.measured_s).reduce(f64::min).filter(|s| *s >= LEAST_S)
    };
    view.treatments
        .iter()
        .filter(|t| view.treatments.len() <= MOST || view.best == Some(t.index))
        .filter_map(|t| of_a_day(t, rows_of_a_transaction(view, t)?, held(t)?))
        .collect()
}

fn of_a_day(t: &TreatmentView, rows: f64, held: f64) -> Option<String> {
    const DAY_S: f64 = 86_400.0;
    let tps = t.tps.as_ref()?;
    let interval = match tps.ci95.map(|ci95| ci95.map(|tps| short(tps * rows * DAY_S))) {
        Some([low, high]) => format!(" (95% CI {low} to {high})"),
        None => String::new(),
    };
    Some(format!(
        "{}: {} tps × {} × 86,400 s come to {} rows a day{interval}, if the rate lasts that was \
         held for {} s.",
        t.label,
        format::rate(tps.mean),
        if rows > 1.0 { format!("{rows} rows") } else { "1 row".to_owned() },
        short(tps.mean * rows * DAY_S),
        format::seconds(held),
    ))
}

/// Returns the rows that each transaction of `t` adds (count); none where the server did not count
/// them, or counted others.
fn rows_of_a_transaction(view: &RunView, t: &TreatmentView) -> Option<f64> {
    let is_its =
        |trial: &&TrialView| trial.treatment == t.index && trial.state == TrialState::Completed;
    let each = view.trials.iter().filter(is_its).map(|trial| {
        let count = trial.server_count.as_ref()?;
        let expected = count.rows_expected.filter(|_| count.rows == count.rows_expected)?;
        // Those that were under way as the window closed are expected too. Over a minute they are
        // no half of a row.
        let transactions = trial.transactions? + trial.warm_up_transactions.unwrap_or(0);
        Some((expected as f64 / transactions as f64).round()).filter(|each| *each >= 1.0)
    });
    each.reduce(|a, b| a.filter(|_| a == b)).flatten()
}

/// Formats a large count: `5.01 billion`.
fn short(value: f64) -> String {
    match value {
        v if v >= 1e9 => format!("{} billion", format::times(v / 1e9)),
        v if v >= 1e6 => format!("{} million", format::times(v / 1e6)),
        v => format::rate(v),
    }
}
