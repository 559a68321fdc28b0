//! States in which a power cut could have left the disk during one stretch of load: at every flush,
//! and a sample of those between two flushes.
//!
//! 1. [`record()`] runs a load on an emulated disk that records every write and flush.
//! 2. `pgdyno_emulated_disk::states` gives the states: every flush boundary, then states between
//!    two flushes.
//! 3. The disk shows each state, the filesystem is mounted, the server recovers, and
//!    [`judge_state`] judges it by the ledger as it was then.
//! 4. A [`Tally`] adds the states up.
//!
//! A [`KeptStretch`] holds the recording and the verdicts, so that another process can go on where
//! one was killed.
//!
//! The control is the disk as it was before the load, judged by the whole ledger: every
//! acknowledged transaction is missing from it.

mod commit_records;
mod file_map;
mod flush_accounting;
mod judge_again;
mod judge_state;
mod judging;
pub(super) mod kept_stretch;
mod lanes;
mod record;
mod shrink;
mod tally;
mod torn_pages;
mod verdicts;
mod wal_pages;

use crate::error::StretchError;
use file_map::name_files;
use flush_accounting::account_for_flushes;
pub use judge_again::{KeptState, StateJudgement, judge_again};
use judge_state::Judge;
use judging::{Judging, Queue};
use kept_stretch::StretchRecord;
pub(crate) use kept_stretch::{KeptStretch, Origin, ResumedStretch};
use pgdyno_model::Fault;
use pgdyno_model::crash::{StatesOutcome, Verdict};
use pgdyno_model::progress::{Notice, Warning};
use record::{Recording, check_room, record};
use shrink::{Suspect, cause};
use tally::Tally;
use torn_pages::DataPages;
use verdicts::Judged;

use super::session::CrashSession;
use super::subject::Subject;
use super::test_bed::TestBed;
use pgdyno_provision::BenchError;

/// Where the stretch of a session comes from.
pub(crate) enum StretchSource {
    /// The session records it.
    New(Origin),
    /// An earlier session recorded and kept it.
    Kept(Box<ResumedStretch>),
}

/// Judges the states of a stretch until the budget is spent.
///
/// After an error, too, the session's record holds all verdicts until then.
///
/// # Errors
/// pgdyno itself cannot go on, or a signal asked to stop.
pub(super) fn run_all_states(
    session: &mut CrashSession<'_>,
    source: StretchSource,
) -> Result<(), BenchError> {
    let mut subject = session.prepare(session.subject, Fault::Power);
    let context = session.context;
    let is_resumed = matches!(source, StretchSource::Kept(_));
    let (recording, mut kept, judged) = match source {
        StretchSource::New(origin) => {
            let (recording, kept) = record_and_keep(session, &subject, origin)?;
            (recording, kept, Judged::default())
        }
        StretchSource::Kept(resumed) => {
            let ResumedStretch { kept, recording, judged } = *resumed;
            (recording, Some(kept), judged)
        }
    };
    let mut pages = DataPages::new(&recording);
    let within = recording.stretch.within(subject.options.seed, |state| pages.are_torn(state));
    let mut tally = Tally::new(&recording, &within);
    let boundaries = recording.stretch.boundaries();
    let queue = Queue { recording: &recording, boundaries, within: within.candidates };
    if let (true, Some(kept)) = (is_resumed, &kept) {
        if !queue.begins_with(&judged) {
            let found = "its verdicts are not of its states";
            return Err(StretchError::unreadable(&kept.session, found).into());
        }
        let bed = TestBed::of_stretch(&kept.folder, &kept.record.cluster, &subject, context)?;
        session.adopt(bed, kept.record.storage.clone());
    }
    let (jobs, bed) = (subject.options.jobs, session.bed(&subject)?);
    if jobs > 1 && !bed.can_have_replicas() {
        subject.options.jobs = 1;
        session.record.outcome.notes.push(format!(
            "one state was judged at a time in place of {jobs}: this kernel does not mount two \
             clones of a btrfs at once (from Linux 6.7 on it does)"
        ));
    }
    let bed = session.bed(&subject)?;
    let mut replicas = Vec::new();
    let mut judging = Judging::new(&queue, &subject, context, &mut tally, kept.as_mut());
    let mut worked = judging.judge_all(bed, &mut replicas, judged);
    let controls = judging.end();
    context.warn_left(replicas.into_iter().flat_map(TestBed::take_down).collect());
    let suspects = tally.suspects().to_vec();
    let mut outcome = tally.outcome();
    if worked.is_ok() && outcome.failed > 0 {
        let bed = session.bed(&subject)?;
        let mut judge = Judge { bed, recording: &recording, subject: &subject, context };
        worked = explain(&mut judge, &suspects, &mut outcome);
    }
    outcome.kept = keep_evidence(session, &subject, kept.as_ref(), &outcome);
    if let Some(kept) = kept {
        settle(session, kept, worked.is_ok(), outcome.verdict);
    }
    let record = &mut session.record.outcome;
    record.states = Some(outcome);
    record.controls.extend(controls);
    record.notes.push(
        "states of a disk that pgdyno emulates: what controllers and firmware do, failing reads \
         and slow requests are not among them"
            .into(),
    );
    worked
}

/// Adds causes and the names of files to the failures that are described.
fn explain(
    judge: &mut Judge<'_, '_>,
    suspects: &[Suspect],
    outcome: &mut StatesOutcome,
) -> Result<(), BenchError> {
    for suspect in suspects {
        let cause = cause(judge, suspect)?;
        match suspect.described {
            Some(place) => outcome.failures[place].cause = cause,
            None => outcome.cause = cause,
        }
    }
    name_files(judge, outcome)
}

/// Records a stretch, and keeps it for another process; with a warning where it cannot be kept.
fn record_and_keep(
    session: &mut CrashSession<'_>,
    subject: &Subject,
    origin: Origin,
) -> Result<(Recording, Option<KeptStretch>), BenchError> {
    let first = session.first_token();
    let (scratch, context) = (session.scratch, session.context);
    // The image is a sparse file, which the tables fill.
    check_room(subject, Some(&TestBed::room_needed(subject)?))?;
    let bed = session.bed(subject)?;
    let mut recording = record(bed, subject, first, scratch, context)?;
    let unknown = account_for_flushes(bed, &mut recording, subject, &scratch.join("wal"), context)?;
    let directory = bed.cluster().spec().directory.file_name().unwrap_or_default();
    let cluster = directory.to_string_lossy().into_owned();
    let storage = bed.facts().clone();
    let about = StretchRecord::new(origin, subject, &recording, storage, cluster);
    let kept = KeptStretch::keep(&session.record.id, about, &recording);
    session.record.outcome.notes.extend(unknown.map(|why| {
        format!("flushes were accounted for without the commit records, which are not known: {why}")
    }));
    let not_kept = |e: &BenchError| context.warn(Warning::StretchNotKept { reason: e.failure() });
    Ok((recording, kept.inspect_err(not_kept).ok()))
}

/// Keeps image, log and ledger if a state failed. Returns where.
fn keep_evidence(
    session: &mut CrashSession<'_>,
    subject: &Subject,
    kept: Option<&KeptStretch>,
    outcome: &StatesOutcome,
) -> Option<String> {
    // The remains of a planted failure are of no interest.
    if outcome.failed == 0 || subject.options.plants(Fault::Power) {
        return None;
    }
    let Some(kept) = kept else { return session.keep(Fault::Power, 1) };
    let evidence = kept.keep_evidence(&session.evidence_folder(Fault::Power, 1));
    session.evidence(Fault::Power, 1, evidence)
}

/// Removes a stretch that nobody goes on with, and says how to go on with another. `is_done` is
/// whether judging came to its end, be it the budget's. A run does not go on after that.
fn settle(session: &CrashSession<'_>, kept: KeptStretch, is_done: bool, verdict: Verdict) {
    match &kept.record.origin {
        Origin::Command { .. } if !is_done || verdict == Verdict::Partial => {
            session.context.note(Notice::StretchKept { session: kept.session });
        }
        Origin::Run { .. } if !is_done => {}
        _ => kept.remove(),
    }
}
