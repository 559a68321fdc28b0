//! One round: load with a ledger, a fault at a drawn moment, recovery within a limit, verification.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use pgdyno_durability::{Aftermath, Judgement, Promise, Unseen, judge};
use pgdyno_engine::random::Random;
use pgdyno_host::postgres::StopMode;
use pgdyno_model::Fault;
use pgdyno_model::crash::{Aim, CrashOptions, Failing, Lost, Round, Verdict};
use pgdyno_model::ledger::{History, State};

use super::aim::UnderWay;
use super::disk;
use super::ground::{DATABASE, Ground};
use super::load::Load;
use super::subject::Subject;
use super::verify::{self, Before};
use super::watcher::Watcher;
use crate::LabError;
use crate::progress::{Event, Progress};

/// Lost tokens that a record names.
const NAMED: usize = 20;
/// Lines of the server's log that a record keeps.
const LINES: usize = 40;

/// What is planted for a positive control, after recovery and before verification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Planted {
    Nothing,
    /// One acknowledged transaction is taken back, tracelessly.
    OneLost,
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

/// The moments at which something happened.
struct Struck {
    at: Instant,
    /// From the load's beginning.
    after: Duration,
    /// Where the server's log is read from.
    log_mark: Option<u64>,
    notes: Vec<String>,
}

impl Orders {
    /// Plays the round on `ground`. What fails of the server's is in the round; only what is pgdyno's own to do is an error.
    pub(super) fn play(&self, ground: &mut Ground, around: &Surroundings<'_>) -> Result<Round, LabError> {
        let Surroundings { subject, stop, .. } = *around;
        let options = &subject.options;
        let mut draws = Random::new(self.seed);
        self.tell(around, "load");
        ground.begin_again(stop)?;
        let mut client = ground.cluster().control(DATABASE)?;
        let settings = verify::settings(&mut client)?;
        let system_identifier = verify::system_identifier(&mut client);
        drop(client);
        disk::before_load(self.fault, options.under, self.seed, &mut ground.disks()?)
            .map_err(|e| LabError::Storage { found: format!("storage `{}`: {e}", subject.storage) })?;
        let direct = ground.cluster().target(DATABASE);
        let target = subject.through.as_ref().map_or_else(|| direct.clone(), |through| through(&direct));
        let load = Load::start(target, options, self.seed, self.first, around.scratch)?;
        // Its commits would flush what asynchronous commits leave.
        let watcher = settings
            .loses_at_most
            .is_none()
            .then(|| Watcher::start(&ground.cluster().control_target(DATABASE)));
        let struck = match load.wait_warm(options.clients, stop)? {
            true => self.strike(ground, &load, &mut draws, around)?,
            false => Err("the load did not get going".to_owned()),
        };
        let struck_at = struck.as_ref().map_or(Duration::ZERO, |s| load.time_of(s.at));
        let had_ended = struck.is_err();
        let acknowledged = watcher.map(|watcher| {
            let none = || Unseen::CouldNotRun("no commit was acknowledged to the one who watches WAL".into());
            watcher.finish().ok_or_else(none)
        });
        let (history, said) = load.finish()?;
        let asynchronous = "with synchronous_commit = off no position is promised";
        let before = Before {
            system_identifier,
            acknowledged: acknowledged.unwrap_or_else(|| Err(Unseen::NotApplicable(asynchronous.into()))),
            checksums: settings.checksums,
        };
        let (struck, why) = match struck {
            Ok(struck) => (Some(struck), String::new()),
            Err(why) => (None, why),
        };
        let notes = struck.as_ref().map(|s| s.notes.clone()).unwrap_or_default();
        let after = struck.as_ref().map(|s| s.after).unwrap_or_default();
        let (aftermath, recovery, log) = match struck {
            None if had_ended && !said.is_empty() => {
                (Aftermath::NotTried(format!("{why}: {said}")), None, String::new())
            }
            None => (Aftermath::NotTried(why), None, String::new()),
            Some(struck) => self.recover(ground, &before, &history, &struck, &mut draws, around)?,
        };
        let promise = Promise { loses_at_most: settings.loses_at_most, struck_at };
        let judged = judge(&history, &aftermath, &promise);
        Ok(self.record(&history, &judged, recovery, after, notes, &log))
    }

    fn tell(&self, around: &Surroundings<'_>, what: &str) {
        let CrashOptions { rounds, .. } = around.subject.options;
        let planted = if self.planted == Planted::Nothing {
            format!("round {} of {rounds}", self.number)
        } else {
            "positive control".to_owned()
        };
        let what = format!("crash {}: {}, {planted}: {what}", around.subject.name, self.fault);
        around.progress.event(&Event::Working { what, share: None });
    }

    /// Brings the fault about at a drawn moment. The inner error says why there was nothing to crash any more.
    fn strike(
        &self,
        ground: &mut Ground,
        load: &Load,
        draws: &mut Random,
        around: &Surroundings<'_>,
    ) -> Result<Result<Struck, String>, LabError> {
        let Surroundings { subject, stop, .. } = *around;
        let options = &subject.options;
        let began = Instant::now();
        let most = options.load.0;
        let wait = most.mul_f64(0.2 + 0.8 * draws.unit());
        self.tell(around, "the fault is due");
        while began.elapsed() < wait {
            if stop.load(Ordering::Relaxed) {
                return Err(LabError::Interrupted);
            }
            if load.has_ended() {
                return Ok(Err("the load ended before the fault".to_owned()));
            }
            std::thread::sleep((wait - began.elapsed().min(wait)).min(Duration::from_millis(5)));
        }
        let mut notes = Vec::new();
        let under_way = UnderWay::begin(self.aim, &ground.cluster().control_target(DATABASE));
        if let Some((_, within)) = &under_way {
            std::thread::sleep(within.mul_f64(draws.unit()));
        }
        let missed = under_way.as_ref().is_some_and(|(under_way, _)| under_way.has_ended());
        let log_mark = (self.fault == Fault::Backend).then(|| ground.cluster().log_mark());
        let victim = match self.fault {
            Fault::Backend => Some(self.backend(ground, draws)?),
            _ => None,
        };
        let mut at = Instant::now();
        match (self.fault, victim) {
            (Fault::Power | Fault::LyingDisk, _)
                if subject.is_emulated() && disk::cuts_at(self.fault, self.aim, options.under) =>
            {
                let struck = disk::cut_at(self.aim, &mut ground.disks()?, draws, stop)?;
                at = Instant::now();
                ground.cut_power(0.0)?;
                match struck {
                    Ok(told) => notes.extend(told),
                    Err(why) => return Ok(Err(why)),
                }
            }
            (Fault::Process, _) => {
                ground.cluster().kill();
                ground.cluster().wait_dead();
            }
            (Fault::Immediate, _) => ground.cluster().stop(StopMode::Immediate),
            (Fault::Backend, Some(pid)) => {
                ground.cluster().kill_child(pid)?;
                notes.push(format!("killed backend {pid}"));
            }
            (Fault::Power, _) => ground.cut_power(draws.unit())?,
            (Fault::Backend | Fault::Plug, _) => {
                let what = subject.name.clone();
                let found = format!("nothing brings the fault {} about here", self.fault);
                return Err(LabError::Crash { what, found, help: "this is a bug: please report it".into() });
            }
            (Fault::LyingDisk | Fault::TornWrite | Fault::IoError | Fault::DiskFull, _) => {
                let (mut disks, target) = (ground.disks()?, ground.cluster().control_target(DATABASE));
                let struck = disk::strike(self.fault, options.under, &mut disks, &target, draws, stop)?;
                at = Instant::now();
                ground.cut_power(0.0)?;
                match struck {
                    Ok(told) => notes.extend(told),
                    Err(why) => return Ok(Err(why)),
                }
            }
        }
        if missed {
            notes.push(format!("{} was over when the fault struck", self.aim.name()));
        }
        Ok(Ok(Struck { at, after: at.duration_since(began), log_mark, notes }))
    }

    /// One of the load's backends, drawn.
    fn backend(&self, ground: &mut Ground, draws: &mut Random) -> Result<i32, LabError> {
        let mut client = ground.cluster().control("postgres")?;
        let sql = "SELECT pid FROM pg_catalog.pg_stat_activity WHERE backend_type = 'client backend' \
                   AND application_name <> 'pgdyno control' ORDER BY pid";
        let wrong = |e| LabError::Sql {
            doing: "choose a backend".into(),
            found: pgdyno_host::postgres::control::said(&e),
        };
        let pids: Vec<i32> = client.query(sql, &[]).map_err(wrong)?.iter().map(|row| row.get(0)).collect();
        if pids.is_empty() {
            return Err(LabError::Sql { doing: "choose a backend".into(), found: "there is none".into() });
        }
        let last = i64::try_from(pids.len()).unwrap_or(i64::MAX) - 1;
        let drawn = usize::try_from(draws.uniform(0, last)).unwrap_or_default();
        Ok(pids[drawn])
    }

    /// Lets the server recover, a second fault in the middle of it where that is the aim, and looks at what is there.
    fn recover(
        &self,
        ground: &mut Ground,
        before: &Before,
        history: &History,
        struck: &Struck,
        draws: &mut Random,
        around: &Surroundings<'_>,
    ) -> Result<(Aftermath, Option<Duration>, String), LabError> {
        let Surroundings { subject, stop, .. } = *around;
        self.tell(around, "recovery");
        if self.aim == Aim::Recovery {
            if let Err(e) = ground.power_on(stop) {
                return Ok((Aftermath::WillNotMount(e.in_words()), None, String::new()));
            }
            ground.cluster().begin_start()?;
            std::thread::sleep(Duration::from_millis(20) + Duration::from_millis(150).mul_f64(draws.unit()));
            match self.fault {
                Fault::Power | Fault::LyingDisk => ground.cut_power(0.0)?,
                Fault::Immediate => ground.cluster().stop(StopMode::Immediate),
                _ => {
                    ground.cluster().kill();
                    ground.cluster().wait_dead();
                }
            }
        }
        if let Err(e) = ground.power_on(stop) {
            return Ok((Aftermath::WillNotMount(e.in_words()), None, String::new()));
        }
        let mark = struck.log_mark.unwrap_or_else(|| ground.cluster().log_mark());
        let began = Instant::now();
        let limit = subject.options.recovery_limit.0;
        let up = match self.fault {
            // Its postmaster lives, and recovers by itself.
            Fault::Backend => ground.cluster().wait_ready(limit, stop),
            _ => ground.cluster().start_within(limit, stop),
        };
        let took = began.elapsed();
        if stop.load(Ordering::Relaxed) {
            return Err(LabError::Interrupted);
        }
        if let Err(e) = up {
            ground.cluster().stop(StopMode::Immediate);
            // One that did not even begin to tell: what it told before.
            let log = Some(ground.cluster().log_since(mark)).filter(|log| !log.is_empty());
            let log = log.unwrap_or_else(|| ground.cluster().log_since(0));
            return Ok((Aftermath::WillNotStart(in_a_line(&LabError::from(e), &log)), None, log));
        }
        self.tell(around, "verification");
        if self.planted == Planted::OneLost {
            take_back(ground, history)?;
        }
        let found = verify::look(ground.cluster(), before, mark);
        let log = ground.cluster().log_since(mark);
        Ok((Aftermath::Up(Box::new(found)), Some(took), log))
    }

    pub(super) fn record(
        &self,
        history: &History,
        judged: &Judgement,
        recovery: Option<Duration>,
        after: Duration,
        notes: Vec<String>,
        log: &str,
    ) -> Round {
        let lost: Vec<Lost> =
            judged.lost.iter().map(|(entry, age)| Lost { token: entry.token, age_ms: ms(*age) }).collect();
        Round {
            number: self.number,
            seed: self.seed,
            aim: self.aim,
            struck_after_ms: ms(after),
            acknowledged: history.count(State::Acknowledged),
            in_doubt: history.count(State::Unknown),
            lost: lost.len() as u64,
            oldest_lost_ms: lost.first().map(|l| l.age_ms),
            tokens: lost.into_iter().take(NAMED).collect(),
            recovery_ms: recovery.map(ms),
            verdict: judged.verdict,
            reason: judged.reason.clone(),
            checks: judged.checks.clone(),
            notes,
            log: match judged.verdict {
                Verdict::Fail(Failing::WillNotStart) => last(log),
                Verdict::Fail(_) => excerpt(log),
                _ => String::new(),
            },
            kept: None,
        }
    }
}

/// Takes one acknowledged transaction back, and all that it did: every rule but the ledger's holds.
fn take_back(ground: &mut Ground, history: &History) -> Result<(), LabError> {
    let Some(entry) = history.entries().find(|e| e.state == State::Acknowledged) else { return Ok(()) };
    let (token, effect) = (entry.token, entry.effect);
    let sql = format!(
        "BEGIN; DELETE FROM pgdyno_token WHERE client = {} AND sequence = {}; \
         UPDATE pgbench_accounts SET abalance = abalance - ({delta}) WHERE aid = {}; \
         UPDATE pgbench_tellers SET tbalance = tbalance - ({delta}) WHERE tid = {}; \
         UPDATE pgbench_branches SET bbalance = bbalance - ({delta}) WHERE bid = {}; COMMIT",
        token.client,
        token.sequence,
        effect.account,
        effect.teller,
        effect.branch,
        delta = effect.delta,
    );
    let mut client = ground.cluster().control(DATABASE)?;
    crate::run::execute(&mut client, "plant a lost transaction", &sql)
}

/// Why a server did not come back, in a line: what was seen, and the gravest that it said.
pub(super) fn in_a_line(error: &LabError, log: &str) -> String {
    let seen = error.to_string();
    let seen = seen.lines().next().unwrap_or_default();
    let seen = seen.split("; its last lines").next().unwrap_or_default();
    let said = log.lines().find(|line| line.contains("PANIC:") || line.contains("FATAL:  invalid"));
    let said = said.or_else(|| {
        log.lines().find(|line| line.contains("FATAL:") && !line.contains("the database system is"))
    });
    match said.and_then(|line| line.split_once("] ")) {
        Some((_, said)) => format!("{seen}; it said: {said}"),
        None => seen.to_owned(),
    }
}

/// The last lines of a log.
fn last(log: &str) -> String {
    let lines: Vec<&str> = log.lines().collect();
    lines[lines.len().saturating_sub(LINES)..].join("\n")
}

/// The lines of a log that tell of errors and of recovery, without those that every start and end has.
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
