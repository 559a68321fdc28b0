//! A sentence on a run that may end by itself.

use pgdyno_analysis::{Compared, Decision, Ended, StoppingView, label};
use pgdyno_model::{Plan, Stopping};
use pgdyno_text::format;

use super::phrases::listed;

/// Names the comparisons of `view` that are not decided.
pub(crate) fn open_comparisons(plan: &Plan, view: &StoppingView) -> Vec<String> {
    let label = |treatment: usize| label(&plan.treatments[treatment].levels);
    let name = |compared: Compared| match compared {
        Compared::Alone(treatment) => label(treatment),
        Compared::With(a, b) => format!("{} beside {}", label(a), label(b)),
    };
    let open = view.states.iter().filter(|(_, state)| *state == Decision::Open);
    open.map(|(compared, _)| name(*compared)).collect()
}

/// Says what is decided, what is open and why a run of `plan` ended.
pub(crate) fn stopping(plan: &Plan, stopping: &Stopping, view: &StoppingView) -> String {
    const SHOWN: usize = 3;
    let (blocks, open) = (view.blocks, open_comparisons(plan, view));
    let count = |wanted: Decision| view.states.iter().filter(|(_, state)| *state == wanted).count();
    let precision =
        stopping.precision.map_or_else(String::new, |p| format!(" to ±{}%", format::percent(p)));
    let decided: Vec<String> = [
        (count(Decision::Different), "different".to_owned()),
        (count(Decision::Equivalent), "equivalent".to_owned()),
        (count(Decision::Precise), format!("known{precision}")),
        (count(Decision::Nothing), "without a completed trial".to_owned()),
    ]
    .into_iter()
    .filter(|(n, _)| *n > 0)
    .map(|(n, what)| format!("{n} {what}"))
    .collect();
    let decided =
        if decided.is_empty() { "nothing is decided".to_owned() } else { decided.join(", ") };
    let still = match open.as_slice() {
        [] => String::new(),
        open => format!("; still open: {}", listed(open, SHOWN, "; ")),
    };
    let begin = match view.ended {
        Some(Ended::Decided) => {
            format!("The run ended after {blocks} blocks, everything being decided")
        }
        Some(Ended::Ceiling) => format!("The run ended at its most repeats, {blocks}"),
        Some(Ended::Budget) => format!(
            "The run ended after {blocks} blocks, its budget{} being spent",
            stopping.budget.map_or_else(String::new, |b| format!(" of {b}"))
        ),
        None => format!("{blocks} blocks are measured so far"),
    };
    format!(
        "{begin}: {decided}{still}. Verdicts and intervals hold for all looks together \
         (Bonferroni), which makes intervals wider than those of so many repeats fixed beforehand."
    )
}
