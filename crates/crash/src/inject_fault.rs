//! Injects the fault of a round: waits for its moment, and brings it about.

use std::time::{Duration, Instant};

use pgdyno_engine::random::Random;
use pgdyno_model::Fault;
use pgdyno_model::crash::Aim;
use pgdyno_model::progress::RoundStage;
use pgdyno_postgres::StopMode;
use pgdyno_provision::sql::SqlError;

use super::aim;
use super::disk::{self, Rig};
use super::error::CrashError;
use super::load::Load;
use super::missed::Missed;
use super::repeated::Repeated;
use super::round_plan::{RoundContext, RoundPlan};
use super::test_bed::{DiskCut, TestBed};
use super::wal_watcher::parse_lsn;
use pgdyno_provision::provisioner::DATABASE;
use pgdyno_provision::{BenchError, Context};

/// Checkpoints that are begun while the fault is waited for: at least so many, and up to so many
/// more.
const CHECKPOINTS_MIN: f64 = 3.0;
const CHECKPOINTS_MORE: f64 = 3.0;

/// A switch to the next WAL segment and a checkpoint: all segments before it are removed or
/// recycled, so that nothing but this checkpoint can be recovered from.
///
/// Recovery replays WAL since the last checkpoint that completed: without one during the load no
/// flush of a data file is under test.
pub(super) const SWITCH_AND_CHECKPOINT: [&str; 2] =
    ["SELECT pg_catalog.pg_switch_wal()", "CHECKPOINT"];

/// A fault that happened.
pub(super) struct InjectedFault {
    pub(super) at: Instant,
    /// Time from the load's beginning to the fault.
    pub(super) after: Duration,
    /// Position in the server's log from which it is read.
    pub(super) log_mark: Option<u64>,
    pub(super) notes: Vec<String>,
    /// Checkpoints that had completed since the baseline (count).
    pub(super) checkpoints: u64,
    /// Flushes of the storages up to now (count), since they were made.
    pub(super) flushes: Option<u64>,
    /// The power cut of an emulated disk, by its own report.
    pub(super) cut: Option<DiskCut>,
    /// A commit right before the fault.
    pub(super) committed: Option<Committed>,
}

/// Injects the fault of `plan` at a drawn moment, at least `wait` after the load's beginning.
///
/// # Errors
/// The inner error says why the fault did not happen.
pub(super) fn inject_fault(
    plan: &RoundPlan,
    bed: &mut TestBed,
    load: &Load,
    wait: Duration,
    draws: &mut Random,
    around: &RoundContext<'_>,
) -> Result<Result<InjectedFault, Missed>, BenchError> {
    let context = around.context;
    let began = Instant::now();
    plan.report(around, RoundStage::Fault);
    // Some complete before the fault, and which is under way when it strikes is a matter of
    // chance.
    let pause = wait.div_f64(CHECKPOINTS_MIN + CHECKPOINTS_MORE * draws.unit());
    let target = bed.cluster().control_target(DATABASE);
    let checkpoints = Repeated::begin(&SWITCH_AND_CHECKPOINT, pause, &target);
    if let Err(missed) = wait_until_due(plan.aim, began, wait, load, &checkpoints, context)? {
        return Ok(Err(missed));
    }
    let under_way = aim::begin(plan.aim, around.subject.load(), &target);
    if let Some((_, within)) = &under_way {
        std::thread::sleep(within.mul_f64(draws.unit()));
    }
    let missed = under_way.as_ref().is_some_and(|(under_way, _)| under_way.has_ended());
    let is_backend = plan.fault == Fault::Backend;
    let log_mark = is_backend.then(|| bed.cluster().log_mark());
    let victim = is_backend.then(|| choose_backend(bed, draws)).transpose()?;
    let Strike { at, committed, completed, met } =
        strike(plan, victim, bed, checkpoints, draws, around)?;
    let mut notes = match met {
        Ok(notes) => notes,
        // The power went all the same.
        Err(missed) if plan.fault.hangs_on_the_last_flush() => {
            vec![format!("the aim was missed: {missed}")]
        }
        Err(missed) => return Ok(Err(missed)),
    };
    if missed {
        notes.push(format!("{} was over when the fault struck", plan.aim.name()));
    }
    let cut = if plan.fault.needs_filesystem() { bed.last_cut()? } else { None };
    Ok(Ok(InjectedFault {
        at: cut.map_or(at, |cut| cut.at),
        after: at.duration_since(began),
        log_mark,
        notes,
        checkpoints: completed,
        flushes: bed.flushes(),
        cut,
        committed,
    }))
}

/// A fault that was brought about.
struct Strike {
    at: Instant,
    committed: Option<Committed>,
    /// Checkpoints that had completed (count).
    completed: u64,
    /// Notes on the fault, or why it did not happen.
    met: Result<Vec<String>, Missed>,
}

/// Brings about the fault of `plan`.
fn strike(
    plan: &RoundPlan,
    victim: Option<i32>,
    bed: &mut TestBed,
    checkpoints: Repeated,
    draws: &mut Random,
    around: &RoundContext<'_>,
) -> Result<Strike, BenchError> {
    let RoundContext { subject, context, .. } = *around;
    let mut completed = checkpoints.completed();
    // These make checkpoints of their own, at the moments that they need.
    let checkpoints =
        Some(checkpoints).filter(|_| ![Fault::TornWrite, Fault::IoError].contains(&plan.fault));
    let (mut at, mut committed) = (Instant::now(), None);
    let under = subject.options.under;
    let cuts_at = plan.fault.hangs_on_the_last_flush()
        && subject.is_emulated()
        && disk::cuts_at(plan.fault, plan.aim, under);
    let met = match (plan.fault, victim) {
        (fault, _) if cuts_at || fault.needs_emulated_disk() => {
            let (disks, target) = (bed.disks()?, bed.cluster().control_target(DATABASE));
            let (load, round) = (subject.load(), plan.number);
            let rig = Rig { disks, under, target, load, round, draws, context };
            if cuts_at { disk::cut_at(plan.aim, rig)? } else { disk::inject(fault, rig)? }
        }
        (fault, victim) => {
            (at, committed) = crash(fault, victim, bed, draws)?;
            Ok(victim.map(|pid| format!("killed backend {pid}")).into_iter().collect())
        }
    };
    // The power goes after what the disk was armed for.
    if cuts_at || plan.fault.needs_emulated_disk() {
        completed = checkpoints.as_ref().map_or(completed, Repeated::completed);
        at = bed.cut_power(0.0)?;
    }
    Ok(Strike { at, committed, completed, met })
}

/// Waits until the fault is due, a checkpoint has completed, and the one that is aimed at too.
///
/// # Errors
/// The inner error says why there is nothing to crash any more.
fn wait_until_due(
    aim: Aim,
    began: Instant,
    wait: Duration,
    load: &Load,
    checkpoints: &Repeated,
    context: Context<'_>,
) -> Result<Result<(), Missed>, BenchError> {
    let has_ended = || Ok(load.has_ended().then_some(()));
    let left = wait.saturating_sub(began.elapsed());
    if context.poll(left, Duration::from_millis(5), has_ended)?.is_some() {
        return Ok(Err(Missed::LoadEnded));
    }
    checkpoints.wait_for(1, context)?;
    if aim == Aim::AfterCheckpoint {
        checkpoints.wait_for(checkpoints.completed() + 1, context)?;
    }
    Ok(Ok(()))
}

/// Brings about a fault that strikes at once: when it did, and the commit right before a power
/// loss.
fn crash(
    fault: Fault,
    victim: Option<i32>,
    bed: &mut TestBed,
    draws: &mut Random,
) -> Result<(Instant, Option<Committed>), BenchError> {
    let at = Instant::now();
    match (fault, victim) {
        (Fault::Process, _) => {
            bed.cluster().kill();
            bed.cluster().wait_dead();
        }
        (Fault::Immediate, _) => bed.cluster().stop(StopMode::Immediate),
        (Fault::Backend, Some(pid)) => bed.cluster().kill_child(pid)?,
        (Fault::Power, _) => {
            let (survives, switches) = (draws.unit(), bed.switches()?);
            let committed = commit(bed)?;
            return Ok((bed.cut_power_by(switches, survives)?, committed));
        }
        (fault, _) => {
            return Err(CrashError::NoFault { storage: bed.facts().name.clone(), fault }.into());
        }
    }
    Ok((at, None))
}

/// One of the load's backends, drawn.
fn choose_backend(bed: &mut TestBed, draws: &mut Random) -> Result<i32, BenchError> {
    let mut client = bed.cluster().control("postgres")?;
    let sql = "SELECT pid FROM pg_catalog.pg_stat_activity WHERE backend_type = 'client backend' \
               AND application_name <> 'pgdyno control' ORDER BY pid";
    let rows = client.query(sql, &[]).map_err(|e| SqlError::new("choose a backend", e))?;
    let pids: Vec<i32> = rows.iter().map(|row| row.get(0)).collect();
    if pids.is_empty() {
        return Err(CrashError::NoBackend.into());
    }
    let last = i64::try_from(pids.len()).unwrap_or(i64::MAX) - 1;
    let drawn = usize::try_from(draws.uniform(0, last)).unwrap_or_default();
    Ok(pids[drawn])
}

/// A commit of pgdyno's own that was acknowledged.
#[derive(Clone, Copy, Debug)]
pub(super) struct Committed {
    /// A WAL position before its end.
    pub(super) position: u64,
    pub(super) acknowledged: Instant,
}

/// Commits once, so that something hangs on the flush before it when the power goes; none where the
/// server does not.
fn commit(bed: &mut TestBed) -> Result<Option<Committed>, BenchError> {
    let mut client = bed.cluster().control(DATABASE)?;
    // A server that cannot commit any more is crashed all the same.
    let _ = client.batch_execute("SET statement_timeout = '1s'");
    // One statement is one transaction, which tells where its record lies, before that of its
    // commit.
    let sql = "SELECT pg_catalog.pg_logical_emit_message(true, 'pgdyno', '')::text";
    let position = client.query_one(sql, &[]).ok().and_then(|row| parse_lsn(row.get(0)));
    Ok(position.map(|position| Committed { position, acknowledged: Instant::now() }))
}
