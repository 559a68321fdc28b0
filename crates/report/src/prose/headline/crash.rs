//! The verdict card of crash tests.

use pgdyno_model::crash::StatesOutcome;
use pgdyno_model::{CrashRecord, Verdict};
use pgdyno_text::format;

use super::{figure, joined, round_command};
use crate::headline::{Headline, KeyFigure, Panel, Proof, ProofKind};
use crate::{CrashView, FaultView};
use pgdyno_analysis::Badge;

/// Returns the faults that a correct server survives; all where each was planted.
fn judged_faults(view: &CrashView) -> Vec<&FaultView> {
    let judged: Vec<_> = view.faults.iter().filter(|fault| !fault.planted).collect();
    if judged.is_empty() { view.faults.iter().collect() } else { judged }
}

/// Returns verdict and reason. The reason of a session is that of one fault, so that a pass of
/// several names them all.
fn answer(view: &CrashView, judged: &[&FaultView]) -> String {
    let all_passed = judged.iter().all(|fault| fault.verdict == Verdict::Pass);
    if !all_passed || judged.len() < 2 || view.verdict != Verdict::Pass {
        return format!("{}: {}.", view.verdict, view.reason);
    }
    let names: Vec<&str> = judged.iter().map(|fault| fault.fault.as_str()).collect();
    let rounds: usize = judged.iter().map(|fault| fault.rounds).sum();
    format!("{}: all {rounds} rounds of {} lost nothing.", view.verdict, names.join(", "))
}

/// Returns the figures of all states of a recorded stretch.
fn states_figures(states: &StatesOutcome) -> [Option<KeyFigure>; 3] {
    let of = |part: u64, whole: u64| format!("{} of {}", format::count(part), format::count(whole));
    let (judged, total) = states.within_total();
    [
        Some(figure(
            "acknowledged commits lost",
            of(states.lost, states.stretch.acknowledged),
            None,
        )),
        Some(figure(
            "flush boundaries judged",
            of(states.boundaries.judged, states.boundaries.total),
            None,
        )),
        Some(figure("states between flushes judged", of(judged, total), None)),
    ]
}

/// Returns the card of the crash tests `record`, which `view` shows.
pub(crate) fn crash_headline(record: &CrashRecord, view: &CrashView) -> Headline {
    let badge = match view.verdict {
        Verdict::Fail(_) => Badge::Unsafe,
        _ if !view.complete => Badge::Unfinished,
        Verdict::Partial | Verdict::Unknown | Verdict::Invalid => Badge::Inconclusive,
        Verdict::Pass | Verdict::BoundedLoss | Verdict::AsPlanted(_) => Badge::Answered,
    };
    let judged = judged_faults(view);
    let sum = |count: fn(&FaultView) -> u64| format::count(judged.iter().map(|f| count(f)).sum());
    let lost = format!("{} of {}", sum(|fault| fault.lost), sum(|fault| fault.acknowledged));
    let bound = judged.iter().filter_map(|fault| fault.chance_at_most).reduce(f64::max);
    let oldest = judged.iter().filter_map(|fault| fault.oldest_lost_ms).reduce(f64::max);
    let oldest = oldest.map(|ms| format!("oldest {ms:.0} ms before the fault"));
    let bound = bound.map(|chance| {
        format!("a round fails with at most {}% (95% confidence)", format::percent(chance))
    });
    let recovery = view
        .recovery_ms
        .map(|ms| figure("longest recovery", format!("{} s", format::seconds(ms / 1000.0)), None));
    let figures = match &view.states {
        Some(states) => states_figures(&states.figures),
        None => [
            Some(figure("acknowledged commits lost", lost, joined([oldest]))),
            Some(figure("rounds", sum(|fault| fault.rounds as u64), joined([bound]))),
            recovery,
        ],
    };
    let failed = record.outcome.faults.iter().filter(|fault| !fault.planted).find_map(|fault| {
        let round = fault.rounds.iter().find(|round| round.verdict.is_failure())?;
        round_command(record, fault.fault, round)
    });
    Headline {
        question: Some(format!(
            "Does {} keep what it acknowledged through {}?",
            view.name,
            view.fault.replace(',', ", ")
        )),
        badge,
        answer: answer(view, &judged),
        figures: figures.into_iter().flatten().collect(),
        command: failed,
        proofs: vec![Proof {
            kind: ProofKind::Crash,
            text: format!("crash tests: {}", view.verdict),
            panel: Panel::Safety,
            trial: None,
        }],
    }
}
