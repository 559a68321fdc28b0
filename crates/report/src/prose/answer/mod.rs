//! First sentences of a report: the answer of the data to the experiment's question.
//!
//! An experiment declares the kind of its answer (`[answer]`); where it does not, its form tells.
//! Each kind has a file here.

mod acceptance;
mod effect;
mod equal;
mod leader;
pub(super) mod next;
mod safety;
mod sweep;

use pgdyno_model::AnswerKind;

use super::promise::not_ranked;
use crate::CrashView;
use pgdyno_analysis::RunView;
use pgdyno_analysis::badge::answer_kind;

/// Answers the question in one to four sentences, and names the next command if the data do not
/// decide it.
pub(crate) fn answer(view: &RunView, crashes: &[CrashView]) -> Vec<String> {
    let speed = leader::speed(view);
    let mut said = match (answer_kind(view), speed) {
        (AnswerKind::Safety, _) => safety::answer(view, crashes),
        (AnswerKind::Acceptance, _) => acceptance::answer(view, crashes),
        (_, Err(nothing)) => return vec![nothing.to_string()],
        (AnswerKind::AA, Ok(_)) => equal::answer(view),
        (AnswerKind::Effect, Ok(_)) => effect::answer(view),
        (AnswerKind::Sweep, Ok(_)) => sweep::answer(view),
        (AnswerKind::Leader | AnswerKind::Capacity, Ok(_)) => leader::answer(view),
    };
    // Of safety that is the answer itself.
    if answer_kind(view) != AnswerKind::Safety {
        said.extend(not_ranked(view));
    }
    said.extend(next::command(view, answer_kind(view)).map(|next| next.sentence));
    said
}
