//! How far a run answers its question.

use pgdyno_model::AnswerKind;
use pgdyno_model::record::RunState;

use super::effect::asked_comparisons;
use super::noise_floor;
use super::view::{Badge, RatioView, RunView};

/// Returns the kind of answer that the experiment declares, else the one that its form suggests.
pub(crate) fn answer_kind(view: &RunView) -> AnswerKind {
    let plan = &view.plan;
    match &plan.answer {
        Some(answer) => answer.kind,
        None if plan.find.is_some() => AnswerKind::Capacity,
        None if noise_floor::same_pair(plan).is_some() => AnswerKind::AA,
        None => AnswerKind::Leader,
    }
}

/// Returns how far the run answers its question. A broken promise outweighs everything else.
pub(crate) fn badge(view: &RunView) -> Badge {
    let is_broken = |broken: &crate::report::GravestFault| !broken.planted;
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
        |crash: &crate::report::CrashView| crash.verdict.is_good() || crash.verdict.is_failure();
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

/// Whether a difference or an equivalence was shown.
pub(crate) fn is_settled(ratio: &RatioView) -> bool {
    ratio.significant == Some(true) || ratio.equivalent == Some(true)
}
