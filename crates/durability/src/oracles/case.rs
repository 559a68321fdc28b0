//! A case: the evidence that oracles judge, and how they report.

use pgdyno_model::crash::CheckOutcome;
use pgdyno_model::ledger::History;

use crate::found::{Contents, Found, Observed, Promise, Unseen};

/// Evidence that an oracle checks.
#[derive(Clone, Copy, Debug)]
pub struct Case<'a> {
    /// Transactions of all clients.
    pub history: &'a History,
    /// Observations after the fault.
    pub found: &'a Found,
    /// The contents that are judged: those after recovery or those after the second start.
    pub contents: &'a Contents,
    /// Durability that the settings promise.
    pub promise: &'a Promise,
}

/// Maximum of complaints that a finding names.
const NAMED: usize = 5;

pub(super) fn with<T>(
    observed: &Observed<T>,
    look: impl FnOnce(&T) -> CheckOutcome,
) -> CheckOutcome {
    match observed {
        Ok(value) => look(value),
        Err(unseen) => outcome_of(unseen),
    }
}

pub(super) fn outcome_of(unseen: &Unseen) -> CheckOutcome {
    match unseen {
        Unseen::Damaged(what) => CheckOutcome::Failed(what.clone()),
        Unseen::CouldNotRun(why) => CheckOutcome::CouldNotRun(why.clone()),
        Unseen::NotApplicable(why) => CheckOutcome::NotApplicable(why.clone()),
    }
}

/// Passes without complaints; otherwise fails with the first few and their number.
pub(super) fn complaints(all: &[String]) -> CheckOutcome {
    if all.is_empty() {
        return CheckOutcome::Passed;
    }
    let mut text = all.iter().take(NAMED).cloned().collect::<Vec<_>>().join("; ");
    if all.len() > NAMED {
        text = format!("{text}; and {} more", all.len() - NAMED);
    }
    CheckOutcome::Failed(text)
}
