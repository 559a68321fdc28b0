//! Sentences on the flush accounting of a run's trials.

use std::collections::BTreeSet;

use pgdyno_model::{FlushAccounting, NotJudged};
use pgdyno_text::format;

use crate::note::{NoteKind, NoteList};
use pgdyno_analysis::{RunView, TrialState};

/// Instants that a sentence names.
const NAMED: usize = 3;

/// Findings in the trials of a treatment.
#[derive(Default)]
struct Found<'a> {
    label: &'a str,
    sum: FlushAccounting,
    /// First trial with an early acknowledgement (ordinal from 1), and the instants of its first
    /// ones (seconds).
    first: Option<(u32, &'a [f64])>,
    reasons: BTreeSet<String>,
}

/// Returns a sentence for each treatment whose commits were to be judged.
pub(crate) fn flush_accounting(view: &RunView) -> Vec<String> {
    find_treatments(view).iter().map(sentence).collect()
}

/// Notes early acknowledgements, and treatments without a judged commit.
pub(super) fn notes(view: &RunView, out: &mut NoteList) {
    let all = find_treatments(view);
    let early: Vec<String> = all.iter().filter(|f| f.sum.early > 0).map(sentence).collect();
    if !early.is_empty() {
        out.add(NoteKind::EarlyAcknowledgements, format!(
            "Acknowledged without a flush, so that a power loss could take what was committed. {}",
            early.join(" ")
        ));
    }
    for not_judged in all.iter().filter(|f| f.sum.judged == 0) {
        out.add(NoteKind::CommitsNotJudged, sentence(not_judged));
    }
}

fn find_treatments(view: &RunView) -> Vec<Found<'_>> {
    let of_treatment = |(index, label)| {
        let trials = view.trials.iter().filter(|t| t.treatment == index);
        let trials = trials.filter(|t| t.state != TrialState::Superfluous);
        let mut found = Found { label, ..Found::default() };
        let mut asked = false;
        for (trial, account) in trials.filter_map(|t| Some((t, t.flush_accounting.as_ref()?))) {
            asked = true;
            found.sum.merge(account);
            found.reasons.extend(account.not_judged.as_ref().map(reason));
            if account.early > 0 && found.first.is_none() {
                found.first = Some((trial.ordinal + 1, &account.first_early_s));
            }
        }
        asked.then_some(found)
    };
    let labels = view.treatments.iter().map(|t| t.label.as_str());
    labels.enumerate().filter_map(of_treatment).collect()
}

fn sentence(found: &Found<'_>) -> String {
    let Found { label, sum, first, reasons } = found;
    let reasons = || reasons.iter().cloned().collect::<Vec<_>>().join("; ");
    let pipelines = match sum.unjudged {
        0 => String::new(),
        n => format!(" {} in pipelines were not judged.", format::counted(n, "commit")),
    };
    let judged = format::count(sum.judged);
    match first {
        Some((trial, instants)) => {
            let named: Vec<String> =
                instants.iter().take(NAMED).map(|at| format!("{at:.3}")).collect();
            format!(
                "{label}: {} of {judged} commits acknowledged without a flush of their own, first \
                 in trial {trial} at {} s of its window.{pipelines}",
                format::count(sum.early),
                named.join(", ")
            )
        }
        None if sum.judged > 0 => format!(
            "{label}: each of {judged} commits was acknowledged after a flush of its \
             own.{pipelines}"
        ),
        None if !found.reasons.is_empty() => {
            format!("{label}: no commit was judged by flushes: {}.", reasons())
        }
        None => format!(
            "{label}: no commit was judged by flushes: the server said of none that it changed \
             rows.{pipelines}"
        ),
    }
}

fn reason(reason: &NotJudged) -> String {
    match reason {
        NotJudged::Asynchronous => {
            "synchronous_commit is off, so that no commit waits for one".to_owned()
        }
        NotJudged::ScriptSetsIt(script) => format!("script `{script}` sets synchronous_commit"),
        NotJudged::TemporaryTables(script) => {
            format!("script `{script}` uses temporary tables, whose changes wait for none")
        }
        NotJudged::NotLogged(relation) => {
            format!("changes in `{relation}` are not in the server's WAL and may wait for none")
        }
    }
}
