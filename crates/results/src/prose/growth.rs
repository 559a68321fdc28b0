//! Sentences on how tables and indexes grew.

use std::collections::BTreeSet;

use pgdyno_model::format;
use pgdyno_model::units::Bytes;

use crate::analysis::treatment::label;
use crate::analysis::{RunView, TrialView};

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

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
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
