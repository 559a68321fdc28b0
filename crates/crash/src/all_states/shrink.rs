//! The cause of a failure: the fewest lost or torn writes with which a state still fails as it did.

use pgdyno_emulated_disk::states::{Candidate, Loss, Window, fewest};
use pgdyno_model::crash::{FailureCause, MissingFlush, Verdict};
use pgdyno_model::ledger::Token;

use super::judge_state::Judge;
use super::record::Recording;
use crate::verify::Depth;
use pgdyno_provision::BenchError;

/// Writes that a cause names (count).
const NAMED: usize = 5;
/// States that are judged for a cause at most (count).
const MOST: u32 = 60;

/// A failed state whose cause is looked for.
#[derive(Clone, Debug)]
pub(super) struct Suspect {
    pub(super) candidate: Candidate,
    /// How much of the state was looked at.
    pub(super) depth: Depth,
    /// Verdict on the state.
    pub(super) verdict: Verdict,
    /// Index among the failures that are described; none for the first flush boundary.
    pub(super) described: Option<usize>,
}

/// Looks for the fewest losses with which `suspect` still fails as it did. For that it judges other
/// states that the same cut could have left. None: the state did not fail again.
///
/// # Errors
/// pgdyno itself cannot go on, or a signal asked to stop.
pub(super) fn cause(
    judge: &mut Judge<'_, '_>,
    suspect: &Suspect,
) -> Result<Option<FailureCause>, BenchError> {
    let Suspect { candidate, depth, verdict, .. } = suspect;
    let recording = judge.recording;
    let until = candidate.window.until;
    let all = recording.stretch.losses(&candidate.state, until);
    let (mut judged, mut lost) = (0, Vec::new());
    let mut fails = |losses: &[Loss]| {
        if judged == MOST {
            return Ok(false);
        }
        judged += 1;
        let state = recording.stretch.without(losses, until);
        let window = Window { from: state.newest, until };
        let other = Candidate { state, window, ..candidate.clone() };
        let found = judge.judge(&other, *depth)?;
        // A state that fails in another way has another cause.
        let fails = found.verdict == *verdict;
        if fails {
            lost = found.lost;
        }
        Ok::<_, BenchError>(fails)
    };
    if fails(&[])? {
        return Ok(Some(FailureCause::NotWritten));
    }
    if !fails(&all)? {
        return Ok(None);
    }
    let losses = fewest(&all, fails)?;
    let first = losses.iter().take(NAMED).map(|loss| match loss {
        Loss::Write(number) => recording.missing_write(*number, 0),
        Loss::End(tear) => recording.missing_write(tear.write, tear.kept),
    });
    Ok(Some(FailureCause::Lost {
        writes: losses.len() as u64,
        first: first.collect(),
        flush: missing_flush(recording, &losses, &lost),
    }))
}

/// Returns the flush that would have saved the transactions `lost` for want of `losses`: the one
/// that the first acknowledged of them had to wait for.
fn missing_flush(recording: &Recording, losses: &[Loss], lost: &[Token]) -> Option<MissingFlush> {
    let acknowledged = |token: &Token| recording.positions.get(token)?.acknowledged;
    let first = lost.iter().filter_map(|token| Some((acknowledged(token)?, *token))).min()?;
    let (before, token) = first;
    let after = losses.iter().map(|loss| loss.write()).filter(|write| *write < before).max()?;
    Some(MissingFlush { after, before, token })
}
