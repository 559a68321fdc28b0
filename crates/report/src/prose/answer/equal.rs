//! Answers how far the same treatment differs from itself (A/A).

use pgdyno_text::format;

use super::super::comparison::reason;
use super::super::noise_floor::doubt;
use super::super::phrases::so_far;
use super::leader;
use pgdyno_analysis::{RunView, noise_floor};

pub(super) fn answer(view: &RunView) -> Vec<String> {
    let Some([a, b]) = noise_floor::same_pair(&view.plan) else { return leader::answer(view) };
    let label = |index: usize| view.treatments[index].label.as_str();
    let Some(ratio) = &view.equal_ratio else {
        return vec![format!(
            "{} or {} has no completed trial: the noise floor is not known.",
            label(a),
            label(b)
        )];
    };
    let (Some(value), Some(ci95 @ [lo, hi])) = (ratio.value, ratio.ci95) else {
        let why = reason(ratio.why, "no interval");
        return vec![format!("The noise floor is not known: {why}.")];
    };
    let blocks = view.treatments[a].trials.min(view.treatments[b].trials);
    let mut said = vec![format!(
        "{}the same treatment differs from itself by up to {}% here ({}× its own tps, 95% CI \
         {}–{}, {blocks} blocks): a smaller difference on this host may be none.",
        if so_far(view).is_empty() { "Noise floor: " } else { "So far, " },
        format::percent(noise_floor::farther(ci95)),
        format::times(value),
        format::times(lo),
        format::times(hi),
    )];
    said.extend(doubt(ci95).map(str::to_owned));
    said
}
