//! The verdict card of crash tests.

use pgdyno_model::{CrashRecord, Verdict, format};

use super::{figure, joined, round_command};
use crate::analysis::{Badge, Headline, Panel, Proof, ProofKind};
use crate::report::CrashView;

/// Returns the card of the crash tests `record`, which `view` shows.
pub(crate) fn crash_headline(record: &CrashRecord, view: &CrashView) -> Headline {
    let badge = match view.verdict {
        Verdict::Fail(_) => Badge::Unsafe,
        _ if !view.complete => Badge::Unfinished,
        Verdict::Unknown | Verdict::Invalid => Badge::Inconclusive,
        Verdict::Pass | Verdict::BoundedLoss | Verdict::AsPlanted(_) => Badge::Answered,
    };
    let lost = format!("{} of {}", format::count(view.lost), format::count(view.acknowledged));
    let bound = view.faults.iter().filter_map(|fault| fault.chance_at_most).reduce(f64::max);
    let oldest = view.oldest_lost_ms.map(|ms| format!("oldest {ms:.0} ms before the fault"));
    let bound = bound.map(|chance| {
        format!("a round fails with at most {}% (95% confidence)", format::percent(chance))
    });
    let recovery = view
        .recovery_ms
        .map(|ms| figure("longest recovery", format!("{} s", format::seconds(ms / 1000.0)), None));
    let figures = [
        Some(figure("acknowledged commits lost", lost, joined([oldest]))),
        Some(figure("rounds", format::count(view.rounds as u64), joined([bound]))),
        recovery,
    ];
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
        answer: format!("{}: {}.", view.verdict, view.reason),
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
