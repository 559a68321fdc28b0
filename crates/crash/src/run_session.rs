//! All rounds of a session: positive controls first, then every fault.

use std::collections::BTreeSet;

use pgdyno_exec::{ScratchDirectory, paths};
use pgdyno_model::FailureKind;
use pgdyno_model::crash::{
    CheckOutcome, CrashOutcome, CrashRecord, Fault, FaultOutcome, Round, States, Verdict,
};
use pgdyno_model::progress::Warning;

use super::aim::aims;
use super::all_states::{StretchSource, run_all_states};
use super::controls::run_controls;
use super::round_plan::{Planted, RoundPlan};
use super::session::{CrashSession, new_record, round_seed};
use super::subject::Subject;
use pgdyno_provision::{BenchError, Context};

/// Runs the positive controls and then every round of every fault of `subject`; or judges all
/// states of a stretch of `source`, if its options say so.
///
/// After a signal, returns the record of what was done until then.
///
/// # Errors
/// The tests cannot begin; or a signal asked to stop before the first round ended.
pub(crate) fn run_session(
    subject: &Subject,
    id: &str,
    source: StretchSource,
    context: Context<'_>,
) -> Result<CrashRecord, BenchError> {
    let scratch = ScratchDirectory::make(&paths::state_dir(), "ledgers", context.journal)?;
    let record = new_record(subject, id);
    let mut session = CrashSession::new(subject, record, scratch.path(), context);
    let worked = match subject.options.states {
        States::Drawn => run_controls(&mut session).and_then(|()| run_faults(&mut session)),
        States::Flushes | States::All => run_all_states(&mut session, source),
    };
    session.clear();
    let mut record = session.record;
    let outcome = &mut record.outcome;
    let is_begun = !outcome.faults.is_empty() || outcome.states.is_some();
    let mut not_begun = None;
    match worked {
        Ok(()) => outcome.complete = true,
        // Such a record would say nothing.
        Err(BenchError::Interrupted) if !is_begun && outcome.controls.is_empty() => {
            return Err(BenchError::Interrupted);
        }
        Err(BenchError::Interrupted) => {}
        Err(e) if context.is_stopped() => drop(e),
        // Before the first round the experiment asks for something that cannot be had.
        Err(e) if !is_begun && e.kind() != FailureKind::Wait => return Err(e),
        // After the first round the results are worth keeping; untried rounds count as not passed.
        Err(e) => {
            let reason = e.failure();
            context.warn(Warning::CrashTestsCutShort { reason: reason.clone() });
            if is_begun {
                outcome.notes.push(format!("not done to the end: {reason}"));
            } else {
                not_begun = Some(reason);
            }
        }
    }
    outcome.notes.extend(passed_over(outcome));
    outcome.conclude();
    if let Some(reason) = not_begun {
        outcome.reason = reason.to_string();
    }
    Ok(record)
}

/// Names the checks that did not apply, each once.
fn passed_over(outcome: &CrashOutcome) -> BTreeSet<String> {
    let checks =
        outcome.faults.iter().flat_map(|fault| &fault.rounds).flat_map(|round| &round.checks);
    checks
        .filter_map(|check| match &check.outcome {
            CheckOutcome::NotApplicable(why) => {
                Some(format!("not looked at: {}: {why}", check.name))
            }
            _ => None,
        })
        .collect()
}

fn run_faults(session: &mut CrashSession<'_>) -> Result<(), BenchError> {
    for fault in session.subject.options.faults.clone() {
        let mut rounds = Vec::new();
        let played = run_rounds(session, fault, &mut rounds);
        if !rounds.is_empty() {
            session.record.outcome.faults.push(FaultOutcome::new(fault, rounds));
        }
        played?;
    }
    Ok(())
}

/// Runs all rounds of `fault` and adds each to `rounds` once it is judged.
fn run_rounds(
    session: &mut CrashSession<'_>,
    fault: Fault,
    rounds: &mut Vec<Round>,
) -> Result<(), BenchError> {
    let subject = session.subject;
    let prepared = session.prepare(subject, fault);
    if !prepared.emulated().is_empty() {
        let note =
            format!("{fault} was played on a disk that pgdyno emulates, which is no real device");
        session.record.outcome.notes.push(note);
    }
    for (number, aim) in (1..).zip(aims(fault, prepared.is_emulated()).iter().cycle()) {
        if is_enough(fault, subject.options.rounds, rounds) {
            break;
        }
        let seed = round_seed(subject.options.seed, fault, number);
        let first = session.first_token();
        let planted = Planted::Nothing;
        let plan =
            RoundPlan { fault, number, seed, aim: *aim, planted, until_failure: false, first };
        let mut round = session.round(&prepared, &plan)?;
        session.check_filesystems(&mut round)?;
        if round.verdict.is_failure() {
            // The remains of a planted failure are of no interest.
            let is_first =
                !subject.options.plants(fault) && rounds.iter().all(|r| r.kept.is_none());
            round.kept = if is_first { session.keep(fault, number) } else { None };
        }
        // A test bed that failed, was not struck as planned or could not be looked at serves no
        // other round.
        if !matches!(round.verdict, Verdict::Pass | Verdict::BoundedLoss) {
            session.clear();
        }
        rounds.push(round);
    }
    Ok(())
}

/// Whether `rounds` suffice where `asked` are asked for. Up to as many again are played where none
/// of them put anything under test, and nothing was found.
fn is_enough(fault: Fault, asked: u32, rounds: &[Round]) -> bool {
    let asked = asked as usize;
    let tells = |round: &Round| {
        round.power.counts(fault) || !matches!(round.verdict, Verdict::Pass | Verdict::BoundedLoss)
    };
    rounds.len() >= asked && (rounds.len() >= 2 * asked || rounds.iter().any(tells))
}
