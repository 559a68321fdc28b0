//! The judgement of a machine that came back after somebody pulled its plug.
//!
//! Nothing is swept before this: the cluster's files are what the power loss left.

use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use pgdyno_durability::{Aftermath, AsynchronousCommit, Promise, Unseen, judge, ledger_excerpt};
use pgdyno_exec::journal::Journal;
use pgdyno_exec::paths;
use pgdyno_experiment::ResolvedExperiment;
use pgdyno_facts as facts;
use pgdyno_model::crash::{Aim, Control, CrashRecord, Fault, FaultOutcome};
use pgdyno_model::ledger::{Effect, Entry, History, State, Token};
use pgdyno_model::progress::{Activity, Progress, RoundStage};
use pgdyno_postgres::{Cluster, ClusterError, ClusterSpec, Install, StopMode};

use super::connection::{Connection, history};
use super::error::PlugError;
use super::local::LocalSession;
use crate::recovery::start_failure;
use crate::round_plan::{Planted, RoundPlan};
use crate::session::new_record;
use crate::subject::Subject;
use crate::verify;
use crate::workload::CrashLoad;
use pgdyno_provision::{BenchError, Context};

/// So many times `wal_writer_delay` are what the header says of asynchronous commit.
pub(super) const DELAYS: u32 = 3;

/// Starts the server of session `local` again and judges it by the ledger that the witness kept.
///
/// # Errors
/// The programs or the cluster's files are gone, the witness fails, or a signal asked to stop. The
/// next start judges again then, unless the files are gone.
pub(super) fn judge_return(
    resolved: &ResolvedExperiment,
    local: &LocalSession,
    connection: &Connection,
    progress: &dyn Progress,
    stop: &AtomicBool,
) -> Result<CrashRecord, BenchError> {
    let records =
        connection.history(&local.id).map_err(|e| connection.failed("read the ledger of", &e))?;
    let history = history(&records, local.options.clients);
    // By the witness's clock: the last deed that it heard of.
    let struck_at = Duration::from_millis(records.last().map_or(0, |record| record.at_ms));
    let journal = Journal::open(&paths::state_dir())?;
    let context = Context { journal: &journal, progress, stop };
    let subject = subject(resolved, local, context)?;
    let mut cluster = adopt(&subject, local, connection, context)?;
    let mut record = new_record(&subject, &local.id);
    let smart = subject.storages[&subject.storage].smart.as_ref();
    record.storage = facts::fingerprint(&local.storage, &local.directory, subject.serials, smart)?;
    let (aftermath, recovery, log) = match recover(&mut cluster, local, context) {
        Ok(recovered) => recovered,
        Err(e) => {
            // The files stay as they are: the next start judges them.
            cluster.stop(StopMode::Immediate);
            std::mem::forget(cluster);
            return Err(e);
        }
    };
    let asynchronous = local.loses_at_most_ms.map(|most| AsynchronousCommit {
        wal_writer_delay: Duration::from_millis(most) / DELAYS,
        flush_time: None,
        durable_before: None,
    });
    let promise = Promise { asynchronous, struck_at };
    let judged = judge(&history, &aftermath, &promise);
    let plan = RoundPlan {
        fault: Fault::Plug,
        number: 1,
        seed: local.options.seed,
        aim: Aim::Hand,
        planted: Planted::Nothing,
        until_failure: false,
        first: 1,
    };
    let mut round = plan.record(&history, &judged, recovery, &log);
    round.struck_after_ms = struck_at.as_secs_f64() * 1e3;
    round.ledger = ledger_excerpt(&history, &aftermath, struck_at);
    if judged.verdict.is_failure() {
        cluster.stop(StopMode::Immediate);
        let into = paths::data_dir().join("crashes").join(&local.id);
        pgdyno_storage::fault::keep(&[(cluster.data(), "data".into())], &into)?;
        round.kept = Some(into.display().to_string());
    }
    cluster.remove()?;
    record.outcome.controls.push(control(&history, &aftermath, &promise));
    record.outcome.faults.push(FaultOutcome::new(Fault::Plug, vec![round]));
    record.outcome.complete = true;
    record.outcome.conclude();
    Ok(record)
}

/// Returns the subject as it was when the load began.
fn subject(
    resolved: &ResolvedExperiment,
    local: &LocalSession,
    context: Context<'_>,
) -> Result<Subject, BenchError> {
    let mut subject = Subject::new(resolved, &resolved.plan.treatments[0], context)?;
    subject.name.clone_from(&local.name);
    subject.storage.clone_from(&local.storage);
    subject.settings.clone_from(&local.settings);
    subject.options = local.options.clone();
    subject.options.faults = vec![Fault::Plug];
    subject.options.controls = false;
    Ok(subject)
}

/// Takes over the cluster that the load ran on.
fn adopt(
    subject: &Subject,
    local: &LocalSession,
    connection: &Connection,
    context: Context<'_>,
) -> Result<Cluster, BenchError> {
    let source = subject.install.source.clone();
    let install = Install::open(&local.bindir, source)
        .map_err(|source| PlugError::ProgramsGone { name: local.name.clone(), source })?;
    let mut spec = ClusterSpec::new(install, local.directory.clone())?;
    spec.settings.clone_from(&local.settings);
    Ok(Cluster::adopt(spec, context.journal, context.stop).map_err(|source: ClusterError| {
        // Nothing is left to be judged: the next start begins anew.
        let closed = connection
            .close(&local.id, &format!("not judged: {source}"))
            .and_then(|()| local.remove());
        let not_closed = closed.err().map(|e| e.message());
        PlugError::NotAdopted { name: local.name.clone(), source, not_closed }
    })?)
}

/// Starts the server and looks at it, for the oracles. Returns also the time that recovery took, if
/// the server came up, and the server's log.
///
/// # Errors
/// A signal asked to stop, or the server could not be looked at.
fn recover(
    cluster: &mut Cluster,
    local: &LocalSession,
    context: Context<'_>,
) -> Result<(Aftermath, Option<Duration>, String), BenchError> {
    let report = |stage: RoundStage| {
        context.begin(Activity::JudgingReturn { session: local.id.clone(), stage });
    };
    report(RoundStage::Recovery);
    let (scale, limit) = (local.options.scale, local.options.recovery_limit.0);
    let mark = cluster.log_mark();
    let began = Instant::now();
    let up = cluster.start_within(limit, context.stop);
    let took = began.elapsed();
    context.check_stop()?;
    if let Err(e) = up {
        let log = cluster.log_since(mark);
        return Ok((Aftermath::WillNotStart(start_failure(&e, &log)), None, log));
    }
    report(RoundStage::Verification);
    let before = verify::Before {
        system_identifier: Ok(local.system_identifier),
        acknowledged: Err(Unseen::NotApplicable("nobody watched WAL at the witness".into())),
        checksums: local.checksums,
        objects: Err(Unseen::NotApplicable("nobody kept the names of the objects".into())),
    };
    let load = CrashLoad::named(local.options.workload);
    let terms = verify::Terms::new(load, scale, limit, context.stop)?;
    let found = verify::look(cluster, &before, mark, verify::Depth::Thorough, &terms)?;
    Ok((Aftermath::Up(Box::new(found)), Some(took), cluster.log_since(mark)))
}

/// Whether one lost transaction would have been seen: the same server judged by a ledger that has
/// one more.
///
/// A plug that is pulled for a control is more than anybody can be asked for.
fn control(history: &History, aftermath: &Aftermath, promise: &Promise) -> Control {
    let mut history = history.clone();
    if let Some(client) = history.clients.first_mut() {
        let sequence = client.last().map_or(1, |last| last.token.sequence + 1);
        // So old that no setting allows its loss.
        let (begun, at) = (Duration::ZERO, Duration::ZERO);
        let effect = Effect { account: 1, teller: 1, branch: 1, delta: 1 };
        client.push(Entry {
            token: Token { client: 0, sequence },
            effect,
            state: State::Acknowledged,
            begun,
            at,
        });
    }
    let judged = judge(&history, aftermath, promise);
    Control {
        name: "one more acknowledged transaction in the ledger than was sent".into(),
        fault: Some(Fault::Plug),
        seen: judged.verdict.is_failure(),
        verdict: judged.verdict,
        reason: judged.reason,
    }
}
