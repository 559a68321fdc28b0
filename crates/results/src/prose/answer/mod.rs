//! The first sentences of a report: what the data say to the experiment's question.
//!
//! An experiment declares the kind of its answer (`[answer]`); where it does not, its form tells.
//! Each kind has a file here.

mod acceptance;
mod effect;
mod equal;
mod leader;
mod next;
mod safety;
mod sweep;

use pgdyno_model::AnswerKind;

use super::promise::not_ranked;
use crate::analysis::family::Family;
use crate::analysis::{RunView, noise_floor};

/// One to four sentences that answer the question as far as the data do, and what to do where they
/// do not.
pub(crate) fn answer(view: &RunView, family: &Family) -> Vec<String> {
    let speed = leader::speed(view);
    let mut said = match (kind(view), speed) {
        (AnswerKind::Safety, _) => safety::answer(view),
        (AnswerKind::Acceptance, _) => acceptance::answer(view),
        (_, Err(nothing)) => return vec![nothing],
        (AnswerKind::AA, Ok(_)) => equal::answer(view, family),
        (AnswerKind::Effect, Ok(_)) => effect::answer(view, family),
        (AnswerKind::Sweep, Ok(_)) => sweep::answer(view),
        (AnswerKind::Leader | AnswerKind::Capacity, Ok(_)) => leader::answer(view),
    };
    // Of safety that is the answer itself.
    if kind(view) != AnswerKind::Safety {
        said.extend(not_ranked(view));
    }
    said.extend(next::command(view, kind(view)));
    said
}

/// The kind that the experiment declares, else what its form suggests.
fn kind(view: &RunView) -> AnswerKind {
    let plan = &view.plan;
    match &plan.answer {
        Some(answer) => answer.kind,
        None if plan.find.is_some() => AnswerKind::Capacity,
        None if noise_floor::same_pair(plan).is_some() => AnswerKind::AA,
        None => AnswerKind::Leader,
    }
}
