//! One state of a stretch whose failure was kept, judged again.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use crate::error::StretchError;
use pgdyno_dataset::trust::Trust;
use pgdyno_emulated_disk::states::{Candidate, State, Window};
use pgdyno_exec::{ScratchDirectory, paths, trust};
use pgdyno_experiment::ResolvedExperiment;
use pgdyno_model::advice::with_causes;
use pgdyno_model::crash::{StateKind, Verdict};
use pgdyno_model::ledger::Token;
use pgdyno_model::progress::Progress;
use serde::Serialize;

use super::judge_state::Judge;
use super::kept_stretch::{EVIDENCE, Origin, StretchRecord, link_or_copy, recording};
use crate::subject::Subject;
use crate::test_bed::TestBed;
use crate::verify::Depth;
use pgdyno_provision::stores::clear_leftovers;
use pgdyno_provision::{BenchError, Context, ThisHost};

/// A state of a stretch whose failure was kept.
#[derive(Clone, Debug)]
pub struct KeptState {
    /// The folder of the kept evidence.
    pub folder: PathBuf,
    /// The state.
    pub state: State,
    /// Number of an event: a cut right before it left the state. None: the last cut that can.
    pub before: Option<u64>,
}

/// The judgement of a state that was judged again.
#[derive(Clone, Debug, Serialize)]
pub struct StateJudgement {
    /// The state.
    pub state: State,
    /// Number of the first event after which no cut leaves the state; none if there is none.
    pub before: Option<u64>,
    /// Verdict on the state.
    pub verdict: Verdict,
    /// Reason for the verdict.
    pub reason: String,
    /// Acknowledged transactions that are missing.
    pub lost: Vec<Token>,
    /// Lines of the server's log that tell of errors; empty where nothing failed.
    pub log: String,
}

/// Shows a state on a new emulated disk, and judges it by every oracle. The kept files stay as they
/// are.
///
/// # Errors
/// The folder holds no such stretch, or one of another version or server; or pgdyno itself cannot
/// go on.
pub fn judge_again(
    kept: &KeptState,
    trust: Trust,
    progress: &dyn Progress,
    stop: &AtomicBool,
) -> Result<StateJudgement, BenchError> {
    let folder = std::path::absolute(&kept.folder);
    let folder = folder.map_err(|e| cannot(&kept.folder, e.to_string()))?;
    let record = open(&folder)?;
    let Origin::Command { source, overrides } = &record.origin else {
        let found = "a run recorded it, whose experiment is not kept with it";
        return Err(cannot(&folder, found).into());
    };
    let resolved = ResolvedExperiment::new(source.clone(), overrides.clone(), &ThisHost)?
        .with_trust(trust, None)?;
    let journal = clear_leftovers(progress, stop)?;
    let context = Context { journal: &journal, progress, stop };
    let subject = Subject::new(&resolved, &resolved.plan.treatments[0], context)?;
    if let Some(found) = record.difference(&subject) {
        let attempt = format!("judge a state of {}", folder.display());
        return Err(StretchError::OtherSubject { attempt, found }.into());
    }
    // The disk's files have other names there.
    let scratch = ScratchDirectory::make(&paths::state_dir(), "states", &journal)?;
    for (name, evidence) in EVIDENCE {
        link_or_copy(&folder.join(evidence), scratch.path(), name)?;
    }
    let recording = recording(scratch.path(), &record).map_err(|found| cannot(&folder, found))?;
    let state = kept.state.clone();
    let mut window = recording.stretch.window(&state);
    window.until = kept.before.unwrap_or(window.until);
    let candidate = Candidate { state, window, kind: StateKind::Subset, boundaries: 0 };
    let mut bed = TestBed::of_stretch(scratch.path(), &record.cluster, &subject, context)?;
    let mut judge = Judge { bed: &mut bed, recording: &recording, subject: &subject, context };
    let judged = judge.judge(&candidate, Depth::Thorough);
    context.warn_left(bed.take_down());
    let judged = judged?;
    let Window { until, .. } = candidate.window;
    Ok(StateJudgement {
        state: candidate.state,
        before: Some(until).filter(|until| *until != u64::MAX),
        verdict: judged.verdict,
        reason: judged.reason,
        lost: judged.lost,
        log: judged.log,
    })
}

/// Reads the record in a folder that only root and the caller can change.
fn open(folder: &Path) -> Result<StretchRecord, StretchError> {
    trust::check(folder).map_err(|e| cannot(folder, with_causes(&e)))?;
    StretchRecord::read(folder).map_err(|found| cannot(folder, found))
}

fn cannot(folder: &Path, found: impl Into<String>) -> StretchError {
    StretchError::NoEvidence { folder: folder.to_owned(), found: found.into() }
}
