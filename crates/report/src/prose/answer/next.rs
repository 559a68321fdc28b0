//! Suggests the next command for a run that leaves comparisons open.

use pgdyno_model::AnswerKind;
use pgdyno_model::record::RunState;
use pgdyno_text::format;

use super::super::HOPELESS;
use super::super::shell::command_line;
use pgdyno_analysis::badge::is_settled;
use pgdyno_analysis::{Comparison, RunView};

/// Advice for comparisons that the data do not decide.
pub(crate) struct Next {
    /// Sentence with the command and its benefit.
    pub(crate) sentence: String,
    /// Command, ready to be copied; none if the store does not know all of it.
    pub(crate) command: Option<String>,
}

/// Returns the next command if the answer is not conclusive; none if the question asks for no
/// comparison.
pub(crate) fn command(view: &RunView, kind: AnswerKind) -> Option<Next> {
    if view.treatments.len() < 2
        || matches!(kind, AnswerKind::AA | AnswerKind::Acceptance | AnswerKind::Safety)
    {
        return None;
    }
    if view.run.state != RunState::Completed || view.plan.stopping.is_some() {
        // What continues it, and why it ended, stand in the notes.
        return None;
    }
    let open: Vec<&Comparison> =
        view.comparisons.iter().filter(|c| !is_settled(&c.ratio)).collect();
    if open.is_empty() {
        return None;
    }
    let repeats = view.treatments.iter().map(|t| t.trials).max().unwrap_or(1);
    if repeats < 2 {
        // The trials of one repeat may build on each other, so that none can be added.
        let again = "One repeat decides nothing: run it anew with `--set experiment.repeats=5`";
        let precise = ", or with `--set experiment.precision=2%` for as many as it takes";
        // The stages of a sweep follow each other, which leaves no blocks after which a run could
        // end.
        let more = if kind == AnswerKind::Sweep { "" } else { precise };
        return Some(Next { sentence: format!("{again}{more}."), command: None });
    }
    let of_all = format!("{} of {} comparisons", open.len(), view.comparisons.len());
    if open.iter().all(|c| c.ratio.ci95.is_none()) {
        let sentence = format!(
            "{of_all}: no interval, and more repeats give none. Longer trials do: run it anew with \
             `--set load.duration=…`."
        );
        return Some(Next { sentence, command: None });
    }
    let more = if repeats < 5 { 10 } else { 2 * repeats };
    let gain = (more as f64 / repeats.max(1) as f64).sqrt();
    let detectable = open.iter().filter_map(|c| c.ratio.minimum_detectable).reduce(f64::max);
    let then = detectable.filter(|share| *share <= HOPELESS).map_or_else(String::new, |share| {
        format!(" (a difference of about {}% would then show)", format::percent(share / gain))
    });
    let repeats = format!("experiment.repeats={more}");
    let command = command_line(&["pgdyno", "run", "--resume", &view.run.id, "--set", &repeats]);
    let sentence = format!(
        "{of_all} undecided. More repeats: `pgdyno run --resume {} --set \
         experiment.repeats={more}`{then}; or anew with `--set experiment.precision=2%`, for as \
         many as it takes.",
        view.run.id,
    );
    Some(Next { sentence, command })
}
