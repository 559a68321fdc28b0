//! Crash tests, as far as the judgement of a run needs them.

use pgdyno_model::Fault;
use pgdyno_model::crash::{CrashOutcome, FaultOutcome, StatesOutcome, Verdict};
use serde::Serialize;

/// Fault that set the verdict of a session, with the loss in its own rounds.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GravestFault {
    /// Fault.
    pub fault: Fault,
    /// Verdict.
    pub verdict: Verdict,
    /// Whether the fault is meant to fail.
    pub planted: bool,
    /// Rounds of the fault (count).
    pub rounds: usize,
    /// Transactions acknowledged in these rounds (count).
    pub acknowledged: u64,
    /// Acknowledged transactions that are missing (count).
    pub lost: u64,
}

impl From<&FaultOutcome> for GravestFault {
    fn from(fault: &FaultOutcome) -> Self {
        Self {
            fault: fault.fault,
            verdict: fault.verdict,
            planted: fault.planted,
            rounds: fault.rounds.len(),
            acknowledged: fault.acknowledged(),
            lost: fault.lost(),
        }
    }
}

impl From<&StatesOutcome> for GravestFault {
    fn from(states: &StatesOutcome) -> Self {
        Self {
            fault: Fault::Power,
            verdict: states.verdict,
            planted: false,
            rounds: usize::try_from(states.boundaries.judged).unwrap_or(usize::MAX),
            acknowledged: states.stretch.acknowledged,
            lost: states.lost,
        }
    }
}

impl GravestFault {
    /// Finds the fault, or the states of a recorded stretch, that set the verdict of `outcome`;
    /// none if nothing was tried.
    pub fn find(outcome: &CrashOutcome) -> Option<Self> {
        let states = outcome.states.as_ref().map(Self::from);
        states.or_else(|| outcome.gravest().map(Self::from))
    }

    /// Returns whether the server failed a fault that a correct server survives.
    ///
    /// Every server fails a planted fault, so that such a failure says nothing about this one.
    pub fn is_broken(&self) -> bool {
        self.verdict.failing().is_some() && !self.fault.is_planted()
    }
}
