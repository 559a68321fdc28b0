//! A sentence on a run that may end by itself.

use pgdyno_model::{Stopping, format};

use super::phrases::listed;
use crate::analysis::{Decision, Ended};

/// Says what is decided, what is open and why the run ended; `named` are all comparisons.
pub(crate) fn stopping(
    stopping: &Stopping,
    named: &[(String, Decision)],
    open: &[String],
    blocks: u32,
    ended: Option<Ended>,
) -> String {
    const SHOWN: usize = 3;
    let count = |wanted: Decision| named.iter().filter(|(_, state)| *state == wanted).count();
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
    let still = match open {
        [] => String::new(),
        open => format!("; still open: {}", listed(open, SHOWN, "; ")),
    };
    let begin = match ended {
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
        "{begin}: {decided}{still}. Verdicts and intervals hold for all looks together (Bonferroni), which makes intervals wider than \
         those of so many repeats fixed beforehand."
    )
}
