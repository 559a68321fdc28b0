//! The verdict on one round, from what the oracles found.

use std::cmp::Reverse;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use pgdyno_model::crash::{Check, CheckOutcome, Failing, Verdict};
use pgdyno_model::ledger::{Entry, History, State};

use crate::found::{Aftermath, Promise};
use crate::oracles::{ORACLES, Oracle, missing};

/// Verdict on one round, with its evidence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judgement {
    /// The verdict.
    pub verdict: Verdict,
    /// Why.
    pub reason: String,
    /// Outcome of every oracle that was asked.
    pub checks: Vec<Check>,
    /// Acknowledged transactions that are missing, with the time from their acknowledgement to the
    /// fault; oldest first.
    pub lost: Vec<(Entry, Duration)>,
}

/// Judges what a fault left behind against what clients had been told.
///
/// The first that applies decides:
///
/// 1. The server did not come back: *fail*. The fault was not tried: *invalid*.
/// 2. An oracle found a failure: *fail*, named after the gravest kind.
/// 3. An oracle could not run, nothing was checked, or nothing had been acknowledged: *unknown*.
/// 4. An oracle found a loss that the settings allow: *bounded loss*.
/// 5. Otherwise: *pass*.
///
/// ```
/// # use std::time::Duration;
/// # use pgdyno_durability::{Aftermath, Promise, judge};
/// # use pgdyno_model::{crash::Verdict, ledger::History};
/// let promise = Promise { asynchronous: None, struck_at: Duration::ZERO };
/// let aftermath = Aftermath::NotTried("the load had ended".into());
/// let judgement = judge(&History::default(), &aftermath, &promise);
/// assert_eq!((judgement.verdict, judgement.checks.len()), (Verdict::Invalid, 0));
/// ```
pub fn judge(history: &History, aftermath: &Aftermath, promise: &Promise) -> Judgement {
    judge_by(ORACLES, history, aftermath, promise)
}

fn judge_by(
    oracles: &[Oracle],
    history: &History,
    aftermath: &Aftermath,
    promise: &Promise,
) -> Judgement {
    let without_checks = |verdict, reason: &str| Judgement {
        verdict,
        reason: reason.into(),
        checks: Vec::new(),
        lost: Vec::new(),
    };
    let found = match aftermath {
        Aftermath::Up(found) => found,
        Aftermath::WillNotStart(seen) => {
            return without_checks(Verdict::Fail(Failing::WillNotStart), seen);
        }
        Aftermath::WillNotMount(seen) => {
            return without_checks(Verdict::Fail(Failing::WillNotMount), seen);
        }
        Aftermath::NotTried(why) => return without_checks(Verdict::Invalid, why),
    };
    let checks: Vec<(Failing, Check)> = oracles
        .iter()
        .map(|oracle| {
            // A panic is no evidence that all is well.
            let outcome = catch_unwind(AssertUnwindSafe(|| oracle.ask(history, found, promise)))
                .unwrap_or_else(|_| CheckOutcome::CouldNotRun("the oracle panicked".into()));
            (oracle.failing, Check { name: oracle.name.into(), outcome })
        })
        .collect();
    let (verdict, reason) = conclude(&checks, history);
    let missing = found.tokens().map(|there| missing(history, &there));
    let mut lost: Vec<(Entry, Duration)> = missing
        .into_iter()
        .flatten()
        .map(|e| (e, promise.struck_at.saturating_sub(e.at)))
        .collect();
    lost.sort_by_key(|(entry, age)| (Reverse(*age), entry.token));
    Judgement {
        verdict,
        reason,
        checks: checks.into_iter().map(|(_, check)| check).collect(),
        lost,
    }
}

/// Draws the conclusion from all checks: rules 2 to 5 of [`judge`].
fn conclude(checks: &[(Failing, Check)], history: &History) -> (Verdict, String) {
    let of = |pick: fn(&CheckOutcome) -> Option<&String>| -> Vec<(Failing, &str, &String)> {
        let picked =
            checks.iter().filter_map(|(f, c)| Some((*f, c.name.as_str(), pick(&c.outcome)?)));
        picked.collect()
    };
    let mut failed = of(|o| if let CheckOutcome::Failed(why) = o { Some(why) } else { None });
    failed.sort_by_key(|(failing, ..)| Reverse(*failing));
    if let Some((worst, ..)) = failed.first() {
        return (Verdict::Fail(*worst), join_findings(&failed));
    }
    let blind = of(|o| if let CheckOutcome::CouldNotRun(why) = o { Some(why) } else { None });
    if !blind.is_empty() {
        return (Verdict::Unknown, format!("could not be checked: {}", join_findings(&blind)));
    }
    if checks.is_empty() {
        return (Verdict::Unknown, "nothing was checked".into());
    }
    if history.count(State::Acknowledged) == 0 {
        return (Verdict::Unknown, "nothing had been acknowledged when the fault struck".into());
    }
    let allowed = of(|o| if let CheckOutcome::Allowed(why) = o { Some(why) } else { None });
    if !allowed.is_empty() {
        return (Verdict::BoundedLoss, join_findings(&allowed));
    }
    (Verdict::Pass, "every acknowledged transaction is there".into())
}

/// Joins findings to one text. A finding that several oracles share appears once: a server that
/// died blinds all of them.
fn join_findings(findings: &[(Failing, &str, &String)]) -> String {
    let mut by_finding: Vec<(&String, Vec<&str>)> = Vec::new();
    for (_, name, why) in findings {
        match by_finding.iter_mut().find(|(told, _)| told == why) {
            Some((_, names)) => names.push(name),
            None => by_finding.push((why, vec![name])),
        }
    }
    let line = |(why, names): &(&String, Vec<&str>)| match names.as_slice() {
        [name] => format!("{name}: {why}"),
        [name, others @ ..] => format!("{name}, and {} more: {why}", others.len()),
        [] => String::new(),
    };
    by_finding.iter().map(line).collect::<Vec<_>>().join(". ")
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]
pub(crate) mod tests;
