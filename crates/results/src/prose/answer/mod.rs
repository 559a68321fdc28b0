//! First sentences of a report: the answer of the data to the experiment's question.
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

/// Answers the question in one to four sentences, and names the next command if the data do not
/// decide it.
pub(crate) fn answer(view: &RunView, family: &Family) -> Vec<String> {
    let speed = leader::speed(view);
    let mut said = match (kind(view), speed) {
        (AnswerKind::Safety, _) => safety::answer(view),
        (AnswerKind::Acceptance, _) => acceptance::answer(view),
        (_, Err(nothing)) => return vec![nothing.to_string()],
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

/// Returns the kind that the experiment declares, else the one that its form suggests.
fn kind(view: &RunView) -> AnswerKind {
    let plan = &view.plan;
    match &plan.answer {
        Some(answer) => answer.kind,
        None if plan.find.is_some() => AnswerKind::Capacity,
        None if noise_floor::same_pair(plan).is_some() => AnswerKind::AA,
        None => AnswerKind::Leader,
    }
}
