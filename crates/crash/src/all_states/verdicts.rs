//! The verdicts of a stretch's states as lines of a file, in the order of the states.
//!
//! A line of a flush boundary tells which transactions came and went since the one before, so that
//! the next one can be held against it.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read as _};
use std::time::Duration;

use pgdyno_emulated_disk::states::{Candidate, State};
use pgdyno_model::crash::{Control, StateKind, Verdict};
use pgdyno_model::ledger::Token;
use serde::{Deserialize, Serialize};

use super::judge_state::{JudgedState, PhaseTimes};

/// A line of the file.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Line {
    /// A control that was judged.
    Control(Control),
    /// A state that was judged.
    State(Box<StateLine>),
    /// How long a session's states had been judged when it ended.
    Spent(Duration),
}

/// The verdict of a state.
#[derive(Serialize, Deserialize)]
pub(super) struct StateLine {
    kind: StateKind,
    state: State,
    verdict: Verdict,
    reason: String,
    lost: Vec<Token>,
    log: String,
    took: PhaseTimes,
    /// Transactions that are there and were not at the flush boundary before.
    came: Vec<Token>,
    /// Transactions that were there at the flush boundary before.
    gone: Vec<Token>,
    /// How long states had been judged by then.
    spent: Duration,
}

impl StateLine {
    /// Returns the line of `candidate`, judged after states had been judged for `spent`. At the
    /// flush boundary before `earlier` were there, and now those in `there`, where that is known.
    pub(super) fn new(
        candidate: &Candidate,
        judged: &JudgedState,
        earlier: &BTreeSet<Token>,
        there: Option<&BTreeSet<Token>>,
        spent: Duration,
    ) -> Self {
        let there = there.unwrap_or(earlier);
        Self {
            kind: candidate.kind,
            state: candidate.state.clone(),
            verdict: judged.verdict,
            reason: judged.reason.clone(),
            lost: judged.lost.clone(),
            log: judged.log.clone(),
            took: judged.took,
            came: there.difference(earlier).copied().collect(),
            gone: earlier.difference(there).copied().collect(),
            spent,
        }
    }

    /// Tells whether the line is the verdict on `candidate`.
    pub(super) fn is_of(&self, candidate: &Candidate) -> bool {
        self.kind == candidate.kind && self.state == candidate.state
    }
}

/// Verdicts of an earlier process on a stretch.
#[derive(Default)]
pub(crate) struct Judged {
    pub(super) controls: Vec<Control>,
    /// Flush boundaries, in order.
    pub(super) boundaries: Vec<StateLine>,
    /// States between flushes, in order.
    pub(super) within: Vec<StateLine>,
    /// How long states were judged.
    pub(crate) spent: Duration,
}

impl Judged {
    /// Reads the lines of `file`. Cuts off one that a killed process did not write to its end.
    ///
    /// # Errors
    /// Description of a line that is no verdict, or of a file that cannot be read.
    pub(super) fn read(file: &mut File) -> Result<Self, String> {
        let said = |e: io::Error| e.to_string();
        let mut text = Vec::new();
        file.read_to_end(&mut text).map_err(said)?;
        let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
        if whole < text.len() {
            file.set_len(whole as u64).map_err(said)?;
        }
        let mut judged = Self::default();
        for line in text[..whole].split_inclusive(|byte| *byte == b'\n') {
            match serde_json::from_slice(line).map_err(|e| e.to_string())? {
                Line::Control(control) => judged.controls.push(control),
                Line::Spent(spent) => judged.spent = judged.spent.max(spent),
                Line::State(state) => {
                    judged.spent = state.spent;
                    let is_boundary = state.kind == StateKind::Boundary;
                    let states =
                        if is_boundary { &mut judged.boundaries } else { &mut judged.within };
                    states.push(*state);
                }
            }
        }
        Ok(judged)
    }

    /// Returns how many states were judged (count).
    pub(crate) fn count(&self) -> usize {
        self.boundaries.len() + self.within.len()
    }

    /// Returns the transactions that were there at the last flush boundary.
    pub(super) fn there(&self) -> BTreeSet<Token> {
        let mut there = BTreeSet::new();
        for line in &self.boundaries {
            there.extend(&line.came);
            line.gone.iter().for_each(|token| {
                there.remove(token);
            });
        }
        there
    }
}

impl From<StateLine> for JudgedState {
    fn from(line: StateLine) -> Self {
        let StateLine { verdict, reason, lost, log, took, .. } = line;
        Self { verdict, reason, lost, there: None, log, took }
    }
}
