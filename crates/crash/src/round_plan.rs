//! The plan of one round, and the record of its verdict.

use std::path::Path;
use std::time::Duration;

use pgdyno_durability::Judgement;
use pgdyno_model::Fault;
use pgdyno_model::crash::{Aim, Failing, Lost, Round, RoundPower, Verdict};
use pgdyno_model::ledger::{History, State};
use pgdyno_model::progress::{Activity, RoundStage};

use super::subject::Subject;
use pgdyno_provision::Context;

/// Lost tokens that a record names.
const NAMED: usize = 20;
/// Lines of the server's log that a record keeps.
const LINES: usize = 40;

/// Damage that a positive control plants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Planted {
    Nothing,
    /// After recovery one acknowledged transaction is taken back, tracelessly.
    OneLost,
    /// Before recovery the files of this folder of PGDATA are put back as they were at the
    /// baseline, as if no flush of theirs had reached the disk.
    StaleFiles(&'static str),
}

/// The fault, aim and seed of one round.
#[derive(Clone, Copy, Debug)]
pub(super) struct RoundPlan {
    pub(super) fault: Fault,
    pub(super) number: u32,
    pub(super) seed: u64,
    pub(super) aim: Aim,
    pub(super) planted: Planted,
    /// Whether one failure is all that is looked for, as in a control.
    pub(super) until_failure: bool,
    /// The first token of each client. Tokens of earlier rounds mean nothing in this one.
    pub(super) first: u64,
}

/// The subject of a round and where its ledger lies.
#[derive(Clone, Copy)]
pub(super) struct RoundContext<'a> {
    pub(super) subject: &'a Subject,
    /// Directory of the ledger: not on the storage that is crashed.
    pub(super) scratch: &'a Path,
    pub(super) context: Context<'a>,
}

impl RoundPlan {
    /// Reports that the round is at `stage`.
    pub(super) fn report(&self, around: &RoundContext<'_>, stage: RoundStage) {
        let asked = around.subject.options.rounds;
        around.context.begin(Activity::CrashRound {
            subject: around.subject.name.clone(),
            fault: self.fault,
            round: (self.planted == Planted::Nothing).then_some((self.number, asked)),
            stage,
        });
    }

    /// Returns the record of a round that was judged.
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
            filesystems: Vec::new(),
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
            ledger: None,
            kept: None,
        }
    }
}

/// The last lines of a log.
fn last(log: &str) -> String {
    let lines: Vec<&str> = log.lines().collect();
    lines[lines.len().saturating_sub(LINES)..].join("\n")
}

/// The lines of a log that tell of errors and of recovery, without those that every start and end
/// has.
pub(super) fn excerpt(log: &str) -> String {
    const TELLING: [&str; 8] =
        ["PANIC", "FATAL", "ERROR", "WARNING", "redo", "recover", "invalid", "could not"];
    const USUAL: [&str; 2] = ["checkpoint starting", "checkpoint complete"];
    let says = |line: &str, signs: &[&str]| signs.iter().any(|sign| line.contains(sign));
    let telling = log.lines().filter(|line| says(line, &TELLING) && !says(line, &USUAL));
    telling.take(LINES).collect::<Vec<_>>().join("\n")
}

pub(super) fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
