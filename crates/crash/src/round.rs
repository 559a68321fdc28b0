//! One round: load with a ledger, a fault at a drawn moment, recovery within a limit, verification.

use std::time::Duration;

use pgdyno_durability::{
    Aftermath, AsynchronousCommit, Observed, Promise, Unseen, judge, ledger_excerpt,
};
use pgdyno_engine::random::Random;
use pgdyno_model::crash::{CrashOptions, Round};
use pgdyno_model::progress::RoundStage;
use pgdyno_storage::fault::FileBaseline;

use super::disk;
use super::error::CrashError;
use super::inject_fault::inject_fault;
use super::load::Load;
use super::missed::Missed;
use super::power::Stake;
use super::recovery::{Faulted, recover};
use super::round_plan::{Planted, RoundContext, RoundPlan, ms};
use super::test_bed::TestBed;
use super::verify::{self, Before, Settings};
use super::wal_watcher::WalWatcher;
use pgdyno_provision::BenchError;
use pgdyno_provision::provisioner::DATABASE;

/// A server before the load: everything on it is durable.
struct Baseline {
    settings: Settings,
    system_identifier: Observed<u64>,
    /// Flushes that the storages had completed (count).
    flushes: Option<u64>,
    stale: Option<FileBaseline>,
}

/// Runs the round that `plan` describes on `bed`. A failure of the server is part of the record.
///
/// # Errors
/// pgdyno itself cannot go on: a storage, a control connection or the ledger fails.
pub(super) fn run_round(
    plan: &RoundPlan,
    bed: &mut TestBed,
    around: &RoundContext<'_>,
) -> Result<Round, BenchError> {
    let RoundContext { subject, context, .. } = *around;
    let mut draws = Random::new(plan.seed);
    plan.report(around, RoundStage::Load);
    let baseline = begin(plan, bed, around)?;
    let delay = baseline.settings.wal_writer_delay;
    let direct = bed.cluster().target(DATABASE);
    let target = subject.interference.through.as_ref();
    let target = target.map_or_else(|| direct.clone(), |through| through(&direct));
    let wait = wait(&subject.options, delay, &mut draws);
    let load =
        Load::start(target, &subject.options, wait, plan.seed, plan.first, around.scratch, None)?;
    let watcher = WalWatcher::start(&bed.cluster().control_target(DATABASE));
    let struck = match load.wait_warm(subject.options.clients, context)? {
        true => inject_fault(plan, bed, &load, wait, &mut draws, around)?,
        false => Err(Missed::NoLoad),
    };
    let struck = match struck {
        Ok(struck) => struck,
        Err(missed) => {
            drop(watcher);
            return record_missed(plan, load, &missed);
        }
    };
    let load_time = load.clock();
    let flushed = watcher.finish(struck.at);
    let (history, _) = load.finish()?;
    // Without synchronous commits an acknowledgement promises no position.
    let committed = struck.committed.filter(|_| delay.is_none());
    let positions =
        [flushed.map(|flushed| flushed.position), committed.map(|commit| commit.position)];
    let none = || Unseen::CouldNotRun("the server was not seen to flush any WAL".into());
    let before = Before {
        system_identifier: baseline.system_identifier,
        acknowledged: positions.into_iter().flatten().max().ok_or_else(none),
        checksums: baseline.settings.checksums,
        objects: bed.objects().clone(),
    };
    let asynchronous = delay.map(|wal_writer_delay| AsynchronousCommit {
        wal_writer_delay,
        flush_time: struck.cut.map(|cut| cut.longest_flush),
        durable_before: flushed.and_then(|flushed| flushed.covers_until).map(&load_time),
    });
    let promise = Promise { asynchronous, struck_at: load_time(struck.at) };
    let stale = baseline.stale.as_ref();
    let faulted = Faulted {
        before: &before,
        history: &history,
        promise: &promise,
        fault: &struck,
        stale,
        restarts_after_crash: baseline.settings.restarts_after_crash,
    };
    let recovered = recover(plan, bed, &faulted, &mut draws, around)?;
    let judged = judge(&history, &recovered.aftermath, &promise);
    let flushes = struck.flushes.zip(baseline.flushes);
    let stake = Stake {
        checkpoints: struck.checkpoints,
        flushes: flushes.map(|(after, before)| after.saturating_sub(before)),
        last_flush: struck.cut.and_then(|cut| cut.last_flush).map(&load_time),
        own_commit: committed.map(|commit| load_time(commit.acknowledged)),
        struck_at: promise.struck_at,
        load: struck.after,
        cache_lost: struck.cut.map(|cut| cut.cache_lost),
        is_asynchronous: delay.is_some(),
    };
    Ok(Round {
        struck_after_ms: ms(struck.after),
        power: stake.power(&history),
        notes: struck.notes,
        ledger: ledger_excerpt(&history, &recovered.aftermath, promise.struck_at),
        ..plan.record(&history, &judged, recovered.took, &recovered.log)
    })
}

/// Records a round whose fault did not happen: `missed` says why.
fn record_missed(plan: &RoundPlan, load: Load, missed: &Missed) -> Result<Round, BenchError> {
    let (history, said) = load.finish()?;
    let why = if said.is_empty() { missed.to_string() } else { format!("{missed}: {said}") };
    let promise = Promise { asynchronous: None, struck_at: Duration::ZERO };
    let judged = judge(&history, &Aftermath::NotTried(why), &promise);
    Ok(plan.record(&history, &judged, None, ""))
}

/// Resets the baseline of `bed`, and arms what is armed before the load.
fn begin(
    plan: &RoundPlan,
    bed: &mut TestBed,
    around: &RoundContext<'_>,
) -> Result<Baseline, BenchError> {
    let RoundContext { subject, context, .. } = *around;
    bed.reset_baseline(context.stop)?;
    let stale = match plan.planted {
        Planted::StaleFiles(folder) => {
            Some(FileBaseline::copy(&bed.cluster().data(), folder, around.scratch)?)
        }
        Planted::Nothing | Planted::OneLost => None,
    };
    let mut client = bed.cluster().control(DATABASE)?;
    let settings = verify::settings(&mut client)?;
    let system_identifier = verify::system_identifier(&mut client);
    disk::before_load(plan.fault, &subject.options, plan.seed, &mut bed.disks()?)
        .map_err(|e| CrashError::Disk { storage: subject.storage.clone(), source: e.into() })?;
    Ok(Baseline { settings, system_identifier, flushes: bed.flushes(), stale })
}

/// How long the load goes on before the fault is due. With asynchronous commit it is several times
/// what may be lost, so that a storage which loses everything cannot hide behind that bound.
fn wait(
    options: &CrashOptions,
    wal_writer_delay: Option<Duration>,
    draws: &mut Random,
) -> Duration {
    // Three of them are what may be lost.
    const DELAYS: f64 = 12.0;
    let drawn = options.load.0.mul_f64(0.2 + 0.8 * draws.unit());
    let more = draws.unit();
    wal_writer_delay.map_or(drawn, |delay| drawn.max(delay.mul_f64(DELAYS + 3.0 * more)))
}
