//! One round: load with a ledger, a fault at a drawn moment, recovery within a limit, verification.

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use pgdyno_durability::{
    Aftermath, AsynchronousCommit, Judgement, Observed, Promise, Unseen, judge,
};
use pgdyno_engine::random::Random;
use pgdyno_host::fault::FileBaseline;
use pgdyno_model::Fault;
use pgdyno_model::crash::{Aim, CrashOptions, Failing, Lost, Round, RoundPower, Verdict};
use pgdyno_model::ledger::{History, State};

use super::disk;
use super::ground::{DATABASE, Ground};
use super::load::Load;
use super::power::Stake;
use super::subject::Subject;
use super::verify::{self, Before, Settings};
use super::watcher::Watcher;
use crate::LabError;
use pgdyno_model::progress::{Event, Progress};

/// Lost tokens that a record names.
const NAMED: usize = 20;
/// Lines of the server's log that a record keeps.
const LINES: usize = 40;

/// What is planted for a positive control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Planted {
    Nothing,
    /// After recovery one acknowledged transaction is taken back, tracelessly.
    OneLost,
    /// Before recovery the files of this folder of PGDATA are put back as they were at the
    /// baseline, as if no flush of theirs had reached the disk.
    StaleFiles(&'static str),
}

/// What a round is to do.
#[derive(Clone, Copy, Debug)]
pub(super) struct Orders {
    pub(super) fault: Fault,
    pub(super) number: u32,
    pub(super) seed: u64,
    pub(super) aim: Aim,
    pub(super) planted: Planted,
    /// The first token of each client: those of a round before are nobody's in this one.
    pub(super) first: u64,
}

/// What it needs.
pub(super) struct Surroundings<'a> {
    pub(super) subject: &'a Subject,
    /// Where its ledger lies: not on the storage that is crashed.
    pub(super) scratch: &'a Path,
    pub(super) progress: &'a dyn Progress,
    pub(super) stop: &'a AtomicBool,
}

/// What is known of a server before the load, everything being durable.
struct Baseline {
    settings: Settings,
    system_identifier: Observed<u64>,
    /// Flushes that the storages had completed (count).
    flushes: Option<u64>,
    stale: Option<FileBaseline>,
}

impl Orders {
    /// Plays the round on `ground`. What fails of the server's is in the round; only what is
    /// pgdyno's own to do is an error.
    pub(super) fn play(
        &self,
        ground: &mut Ground,
        around: &Surroundings<'_>,
    ) -> Result<Round, LabError> {
        let Surroundings { subject, stop, .. } = *around;
        let mut draws = Random::new(self.seed);
        self.tell(around, "load");
        let baseline = self.begin(ground, around)?;
        let delay = baseline.settings.wal_writer_delay;
        let direct = ground.cluster().target(DATABASE);
        let target = subject.interference.through.as_ref();
        let target = target.map_or_else(|| direct.clone(), |through| through(&direct));
        let wait = wait(&subject.options, delay, &mut draws);
        let load =
            Load::start(target, &subject.options, wait, self.seed, self.first, around.scratch)?;
        let watcher = Watcher::start(&ground.cluster().control_target(DATABASE));
        let struck = match load.wait_warm(subject.options.clients, stop)? {
            true => self.strike(ground, &load, wait, &mut draws, around)?,
            false => Err("the load did not get going".to_owned()),
        };
        let struck = match struck {
            Ok(struck) => struck,
            Err(why) => {
                drop(watcher);
                let (history, said) = load.finish()?;
                let why = if said.is_empty() { why } else { format!("{why}: {said}") };
                let promise = Promise { asynchronous: None, struck_at: Duration::ZERO };
                let judged = judge(&history, &Aftermath::NotTried(why), &promise);
                return Ok(self.record(&history, &judged, None, ""));
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
        };
        let asynchronous = delay.map(|wal_writer_delay| AsynchronousCommit {
            wal_writer_delay,
            flush_time: struck.cut.map(|cut| cut.longest_flush),
            durable_before: flushed.and_then(|flushed| flushed.covers_until).map(&load_time),
        });
        let promise = Promise { asynchronous, struck_at: load_time(struck.at) };
        let stale = baseline.stale.as_ref();
        let recovered =
            self.recover(ground, &before, &history, &struck, stale, &mut draws, around)?;
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
            ..self.record(&history, &judged, recovered.took, &recovered.log)
        })
    }

    /// Brings the ground to where rounds begin, and arms what is armed before the load.
    fn begin(&self, ground: &mut Ground, around: &Surroundings<'_>) -> Result<Baseline, LabError> {
        let Surroundings { subject, stop, .. } = *around;
        ground.begin_again(stop)?;
        let stale = match self.planted {
            Planted::StaleFiles(folder) => {
                Some(FileBaseline::copy(&ground.cluster().data(), folder, around.scratch)?)
            }
            Planted::Nothing | Planted::OneLost => None,
        };
        let mut client = ground.cluster().control(DATABASE)?;
        let settings = verify::settings(&mut client)?;
        let system_identifier = verify::system_identifier(&mut client);
        disk::before_load(self.fault, &subject.options, self.seed, &mut ground.disks()?).map_err(
            |e| LabError::Storage { found: format!("storage `{}`: {e}", subject.storage) },
        )?;
        Ok(Baseline { settings, system_identifier, flushes: ground.flushes(), stale })
    }

    pub(super) fn tell(&self, around: &Surroundings<'_>, what: &str) {
        let CrashOptions { rounds, .. } = around.subject.options;
        let planted = if self.planted == Planted::Nothing {
            format!("round {} of {rounds}", self.number)
        } else {
            "positive control".to_owned()
        };
        let what = format!("crash {}: {}, {planted}: {what}", around.subject.name, self.fault);
        around.progress.event(&Event::Working { what, share: None });
    }

    pub(super) fn record(
        &self,
        history: &History,
        judged: &Judgement,
        recovery: Option<Duration>,
        log: &str,
    ) -> Round {
        let lost: Vec<Lost> = judged
            .lost
            .iter()
            .map(|(entry, age)| Lost { token: entry.token, age_ms: ms(*age) })
            .collect();
        Round {
            number: self.number,
            seed: self.seed,
            aim: self.aim,
            struck_after_ms: 0.0,
            acknowledged: history.count(State::Acknowledged),
            in_doubt: history.count(State::Unknown),
            lost: lost.len() as u64,
            oldest_lost_ms: lost.first().map(|l| l.age_ms),
            tokens: lost.into_iter().take(NAMED).collect(),
            recovery_ms: recovery.map(ms),
            power: RoundPower::default(),
            verdict: judged.verdict,
            reason: judged.reason.clone(),
            checks: judged.checks.clone(),
            notes: Vec::new(),
            log: match judged.verdict {
                Verdict::Fail(Failing::WillNotStart) => last(log),
                Verdict::Fail(_) => excerpt(log),
                _ => String::new(),
            },
            kept: None,
        }
    }
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

/// The last lines of a log.
fn last(log: &str) -> String {
    let lines: Vec<&str> = log.lines().collect();
    lines[lines.len().saturating_sub(LINES)..].join("\n")
}

/// The lines of a log that tell of errors and of recovery, without those that every start and end
/// has.
fn excerpt(log: &str) -> String {
    const TELLING: [&str; 8] =
        ["PANIC", "FATAL", "ERROR", "WARNING", "redo", "recover", "invalid", "could not"];
    const USUAL: [&str; 2] = ["checkpoint starting", "checkpoint complete"];
    let says = |line: &str, signs: &[&str]| signs.iter().any(|sign| line.contains(sign));
    let telling = log.lines().filter(|line| says(line, &TELLING) && !says(line, &USUAL));
    telling.take(LINES).collect::<Vec<_>>().join("\n")
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
