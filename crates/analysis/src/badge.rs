//! Judges how far a run answers its question.

use pgdyno_model::AnswerKind;
use pgdyno_model::record::RunState;

use super::effect::asked_comparisons;
use super::noise_floor;
use pgdyno_model::CrashRecord;
use serde::{Deserialize, Serialize};

use super::view::{GravestFault, RatioView, RunView};

/// How far a result answers its question.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Badge {
    /// The data answer the question.
    Answered,
    /// The data do not decide.
    Inconclusive,
    /// A promise was broken in crash tests, although nothing was planted.
    Unsafe,
    /// Not everything that was planned is done.
    Unfinished,
    /// No question was asked.
    #[default]
    Recorded,
}

/// Returns the kind of answer that the experiment declares, else the one that its form suggests.
pub fn answer_kind(view: &RunView) -> AnswerKind {
    let plan = &view.plan;
    match &plan.answer {
        Some(answer) => answer.kind,
        None if plan.find.is_some() => AnswerKind::Capacity,
        None if noise_floor::same_pair(plan).is_some() => AnswerKind::AA,
        None => AnswerKind::Leader,
    }
}

/// Returns how far the run answers its question. A broken promise outweighs everything else.
pub fn badge(view: &RunView) -> Badge {
    let is_broken = |broken: &GravestFault| !broken.planted;
    if view
        .treatments
        .iter()
        .any(|t| t.crash.as_ref().and_then(|crash| crash.broken()).is_some_and(is_broken))
    {
        return Badge::Unsafe;
    }
    if view.run.state != RunState::Completed {
        return Badge::Unfinished;
    }
    if is_decided(view) { Badge::Answered } else { Badge::Inconclusive }
}

/// Whether the data of a complete run decide its question.
fn is_decided(view: &RunView) -> bool {
    let is_measured =
        view.treatments.iter().any(|t| t.tps.as_ref().is_some_and(|tps| tps.mean > 0.0));
    let has_verdict =
        |crash: &CrashRecord| crash.outcome.verdict.is_good() || crash.outcome.verdict.is_failure();
    match answer_kind(view) {
        AnswerKind::Safety => !view.crashes.is_empty() && view.crashes.iter().all(has_verdict),
        AnswerKind::Acceptance => is_measured && view.crashes.iter().all(has_verdict),
        AnswerKind::AA => view.comparisons.iter().any(|c| c.ratio.ci95.is_some()),
        _ if view.treatments.len() < 2 => is_measured,
        AnswerKind::Effect => {
            view.effect.as_ref().is_some_and(|effect| effect.significant)
                || asked_comparisons(view).iter().any(|c| is_settled(&c.ratio))
        }
        AnswerKind::Leader | AnswerKind::Sweep | AnswerKind::Capacity => {
            let to_best = view.treatments.iter().filter_map(|t| t.ratio_to_best.as_ref());
            view.comparisons.iter().map(|c| &c.ratio).chain(to_best).any(is_settled)
        }
    }
}

/// Returns whether a difference or an equivalence was shown.
pub fn is_settled(ratio: &RatioView) -> bool {
    ratio.significant == Some(true) || ratio.equivalent == Some(true)
}
