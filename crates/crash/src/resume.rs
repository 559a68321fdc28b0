//! Going on with a stretch that an earlier session recorded and did not judge to its end.

use std::num::NonZeroU32;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use pgdyno_dataset::trust::Trust;
use pgdyno_experiment::ResolvedExperiment;
use pgdyno_experiment::file::Override;
use pgdyno_model::crash::{CrashRecord, States};
use pgdyno_model::progress::{Notice, Progress, Warning};
use pgdyno_model::units::{Epoch, Span};
use pgdyno_storage::kept::stretch;

use super::Subject;
use super::all_states::kept_stretch::kept_sessions;
use super::all_states::{KeptStretch, Origin, ResumedStretch, StretchSource};
use super::error::StretchError;
use super::run_session::run_session;
use pgdyno_provision::stores::{clear_leftovers, open_store};
use pgdyno_provision::{BenchError, Context, ThisHost, new_record_id};

/// Which session is gone on with, and how.
#[derive(Clone, Debug, Default)]
pub struct Resumption {
    /// The session that recorded the stretch. None: the newest that is kept.
    pub session: Option<String>,
    /// Which states are to be judged, as the session was told; none if nothing is said.
    pub states: Option<States>,
    /// How much longer states are judged. None: what is left of the session's budget.
    pub budget: Option<Span>,
    /// States that are judged at a time. None: as many as in the session.
    pub jobs: Option<NonZeroU32>,
}

/// Judges the states that a session of [`super::crash`] left. What comes of them and of those that
/// it had judged is in the store at `store` when this returns, in a record of its own.
///
/// # Errors
/// As [`super::crash`]. Also if nothing is kept of the session, what is kept is damaged or of
/// another version, another process judges it, or `resumption` or the server contradicts it.
pub fn resume(
    resumption: &Resumption,
    trust: Trust,
    store: &Path,
    progress: &dyn Progress,
    stop: &AtomicBool,
) -> Result<CrashRecord, BenchError> {
    let session = chosen(resumption.session.as_deref())?;
    let resumed = KeptStretch::open(&session)?;
    let record = &resumed.kept.record;
    let (source, mut overrides) = match &record.origin {
        Origin::Command { source, overrides } => (source.clone(), overrides.clone()),
        Origin::Run { run, .. } => {
            return Err(StretchError::PartOfRun { session, run: run.clone() }.into());
        }
    };
    refuse_other_states(&session, record.options.states, resumption.states)?;
    let spent = resumed.judged.spent;
    let budget = match (resumption.budget, record.options.budget) {
        (Some(more), _) => Some(Span(spent.saturating_add(more.0))),
        (None, Some(budget)) if budget.0 <= spent => {
            return Err(StretchError::Spent { session, budget }.into());
        }
        (None, budget) => budget,
    };
    if let Some(jobs) = resumption.jobs {
        overrides.push(Override::new("crash.jobs", i64::from(jobs.get())));
    }
    let resolved =
        ResolvedExperiment::new(source, overrides, &ThisHost)?.with_trust(trust, None)?;
    let journal = clear_leftovers(progress, stop)?;
    let mut store = open_store(store)?;
    let context = Context { journal: &journal, progress, stop };
    let mut subject = Subject::new(&resolved, &resolved.plan.treatments[0], context)?;
    subject.options.budget = budget;
    resumed.kept.check_subject(&subject)?;
    let id = new_record_id("crash", Epoch::now());
    let record = run_session(&subject, &id, kept(resumed, context), context)?;
    store.add_crash(None, &record)?;
    Ok(record)
}

/// Crashes the treatment `index` of `run`, which is `subject`. Goes on with a stretch that an
/// earlier session of the run recorded, if it is whole.
///
/// # Errors
/// The first round cannot begin, or pgdyno cannot go on.
pub fn crash_treatment(
    subject: &Subject,
    id: &str,
    run: &str,
    index: usize,
    context: Context<'_>,
) -> Result<CrashRecord, BenchError> {
    let source = match kept_of(run, index, subject, context) {
        Some(resumed) => kept(resumed, context),
        None => StretchSource::New(Origin::Run { run: run.to_owned(), treatment: index }),
    };
    run_session(subject, id, source, context)
}

/// Returns a kept stretch as a source, and says that it is gone on with.
fn kept(resumed: ResumedStretch, context: Context<'_>) -> StretchSource {
    let (session, judged) = (resumed.kept.session.clone(), resumed.judged.count() as u64);
    context.note(Notice::StretchResumed { session, judged });
    StretchSource::Kept(Box::new(resumed))
}

/// Returns the stretch that was recorded of the treatment `index` of `run`, if it is whole; with a
/// warning if it is not.
fn kept_of(
    run: &str,
    index: usize,
    subject: &Subject,
    context: Context<'_>,
) -> Option<ResumedStretch> {
    if subject.options.states == States::Drawn {
        return None;
    }
    let is_ours = |session: &String| {
        let origin = KeptStretch::origin(session);
        matches!(
            origin,
            Some(Origin::Run { run: of, treatment }) if of == run && treatment == index
        )
    };
    let session = kept_sessions().into_iter().rev().find(is_ours)?;
    let whole = KeptStretch::open(&session)
        .and_then(|resumed| resumed.kept.check_subject(subject).map(|()| resumed));
    whole.inspect_err(|e| context.warn(Warning::StretchNotResumed { reason: e.failure() })).ok()
}

/// Returns the session that is gone on with: the one that is `named`, else the newest that belongs
/// to no run.
fn chosen(named: Option<&str>) -> Result<String, StretchError> {
    let kept = kept_sessions();
    let of_run =
        |session: &String| matches!(KeptStretch::origin(session), Some(Origin::Run { .. }));
    let found = match named {
        Some(named) => kept.iter().find(|session| *session == named),
        None => kept.iter().rev().find(|session| !of_run(session)),
    };
    found.cloned().ok_or_else(|| StretchError::NoneKept {
        named: named.map(str::to_owned),
        folder: stretch::folder_of("SESSION"),
        kept,
    })
}

/// Refuses to judge other states than the session was told.
fn refuse_other_states(
    session: &str,
    recorded: States,
    asked: Option<States>,
) -> Result<(), StretchError> {
    match asked {
        Some(asked) if asked != recorded => {
            Err(StretchError::OtherStates { session: session.to_owned(), asked, recorded })
        }
        _ => Ok(()),
    }
}
