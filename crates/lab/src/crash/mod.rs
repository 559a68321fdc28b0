//! Crash tests: does it keep what it acknowledged?
//!
//! A *subject* is a storage, programs and settings. A round makes its tables' baseline durable,
//! offers load whose every transaction a ledger outside of the server knows, brings a fault about
//! at a moment drawn by the seed, lets the server recover, and has `pgdyno-durability` judge what
//! is there. Positive controls show that the instrument sees.

mod aim;
mod checkpoints;
mod controls;
mod disk;
mod ground;
mod load;
mod plan;
mod planted;
mod power;
mod recovery;
mod repeated;
mod round;
mod strike;
mod subject;
mod verify;
mod watcher;
pub mod witness;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use pgdyno_engine::random::Random;
use pgdyno_host::{Journal, ScratchDirectory, facts, paths};
use pgdyno_model::Storage;
use pgdyno_model::crash::{
    CheckOutcome, CrashOutcome, CrashRecord, Fault, FaultOutcome, Round, Verdict,
};
use pgdyno_model::units::Epoch;

pub(crate) use controls::control_rounds;
pub use plan::dry_run;
pub(crate) use plan::{check, subject};
pub(crate) use planted::planted;
pub(crate) use subject::Subject;
pub use subject::{AfterRecovery, Interference, Through};

use crate::LabError;
use crate::prepare::Prepared;
use crate::run::{clear_leftovers, id_of, open_store};
use ground::Ground;
use pgdyno_model::progress::{Event, Progress};
use round::{Orders, Planted};

/// Crashes what `prepared` describes, by itself: its only treatment is the subject, its `[crash]`
/// says how. What comes of it is in the store at `store` when this returns, also what a signal cut
/// short.
///
/// # Errors
/// What is wrong before the first round, or what keeps pgdyno from going on; nothing is left on the
/// host.
pub fn crash(
    prepared: &Prepared,
    interference: Interference,
    store: &Path,
    progress: &dyn Progress,
    stop: &AtomicBool,
) -> Result<CrashRecord, LabError> {
    not_by_hand(prepared)?;
    let journal = clear_leftovers(progress, stop)?;
    let mut store = open_store(store)?;
    let treatment = &prepared.plan.treatments[0];
    let subject = Subject { interference, ..plan::subject(prepared, treatment, progress, stop)? };
    let id = id_of("crash", Epoch::of(SystemTime::now()));
    let record = Session::new(&subject, &id, &journal, progress, stop).work()?;
    store.add_crash(None, &record)?;
    Ok(record)
}

/// Refuses the fault that only a hand brings about.
pub(crate) fn not_by_hand(prepared: &Prepared) -> Result<(), LabError> {
    if prepared.experiment.crash.as_ref().is_none_or(|crash| !crash.faults.contains(&Fault::Plug)) {
        return Ok(());
    }
    Err(LabError::Crash {
        what: "this machine".into(),
        found: "nothing that pgdyno does pulls a plug".into(),
        help: "`pgdyno crash --fault plug --witness ADDR` waits for you to pull it".into(),
    })
}

/// A session of crash tests of one subject.
pub(crate) struct Session<'a> {
    subject: &'a Subject,
    id: &'a str,
    journal: &'a Journal,
    progress: &'a dyn Progress,
    stop: &'a AtomicBool,
    /// Stands as long as rounds leave it whole.
    ground: Option<Ground>,
    /// The storages that it stands on.
    stands_on: BTreeMap<String, Storage>,
    /// Rounds begun, controls among them.
    begun: u64,
    record: CrashRecord,
}

impl<'a> Session<'a> {
    pub(crate) fn new(
        subject: &'a Subject,
        id: &'a str,
        journal: &'a Journal,
        progress: &'a dyn Progress,
        stop: &'a AtomicBool,
    ) -> Self {
        let record = CrashRecord {
            id: id.to_owned(),
            run: None,
            treatment: None,
            name: subject.name.clone(),
            started_at: Epoch::of(SystemTime::now()),
            pgdyno_version: env!("CARGO_PKG_VERSION").to_owned(),
            host: facts::host(),
            storage: pgdyno_model::facts::StorageFacts {
                name: subject.storage.clone(),
                ..pgdyno_model::facts::StorageFacts::default()
            },
            outcome: CrashOutcome {
                options: subject.options.clone(),
                settings: subject.settings.clone(),
                server_version: subject.install.version.clone(),
                verdict: Verdict::Unknown,
                reason: String::new(),
                faults: Vec::new(),
                controls: Vec::new(),
                notes: Vec::new(),
                complete: false,
            },
        };
        Self {
            subject,
            id,
            journal,
            progress,
            stop,
            ground: None,
            stands_on: BTreeMap::new(),
            begun: 0,
            record,
        }
    }

    /// The record of a session that does not work through rounds.
    fn into_record(self) -> CrashRecord {
        self.record
    }

    /// Controls, then every round of every fault. After a signal, what was done until then.
    pub(crate) fn work(mut self) -> Result<CrashRecord, LabError> {
        let state = paths::state_dir();
        let scratch = ScratchDirectory::make(&state, "ledgers", self.journal)?;
        let worked = self.controls(scratch.path()).and_then(|()| self.faults(scratch.path()));
        self.clear();
        match worked {
            Ok(()) => self.record.outcome.complete = true,
            // Nothing came of it that would be worth a record.
            Err(LabError::Interrupted)
                if self.record.outcome.faults.is_empty()
                    && self.record.outcome.controls.is_empty() =>
            {
                return Err(LabError::Interrupted);
            }
            Err(LabError::Interrupted) => {}
            Err(e) if self.stop.load(Ordering::Relaxed) => drop(e),
            // Before the first round it is what was asked that cannot be had.
            Err(e) if self.record.outcome.faults.is_empty() => return Err(e),
            // After it, what was found is worth keeping; what was not tried is not passed.
            Err(e) => {
                let why = format!("not done to the end: {}", e.in_words());
                self.progress.event(&Event::Warning(why.clone()));
                self.record.outcome.notes.push(why);
            }
        }
        let outcome = &mut self.record.outcome;
        let checks =
            outcome.faults.iter().flat_map(|fault| &fault.rounds).flat_map(|round| &round.checks);
        let passed_over: BTreeSet<String> = checks
            .filter_map(|check| match &check.outcome {
                CheckOutcome::NotApplicable(why) => {
                    Some(format!("not looked at: {}: {why}", check.name))
                }
                _ => None,
            })
            .collect();
        outcome.notes.extend(passed_over);
        outcome.conclude();
        Ok(self.record)
    }

    fn faults(&mut self, scratch: &Path) -> Result<(), LabError> {
        for fault in self.subject.options.faults.clone() {
            let mut rounds = Vec::new();
            let played = self.rounds(fault, scratch, &mut rounds);
            if !rounds.is_empty() {
                self.record.outcome.faults.push(FaultOutcome::of(fault, rounds));
            }
            played?;
        }
        Ok(())
    }

    /// `subject` on what `fault` takes; a ground of another kind is taken down.
    fn grounded(&mut self, subject: &Subject, fault: Fault) -> Subject {
        let grounded = subject.grounded(fault);
        if self.ground.as_ref().is_some_and(|_| self.stands_on != grounded.storages) {
            self.clear();
        }
        self.stands_on.clone_from(&grounded.storages);
        grounded
    }

    /// All rounds of `fault`, those that were played whole in `rounds`.
    fn rounds(
        &mut self,
        fault: Fault,
        scratch: &Path,
        rounds: &mut Vec<Round>,
    ) -> Result<(), LabError> {
        let subject = self.subject;
        let grounded = self.grounded(subject, fault);
        if !grounded.emulated().is_empty() {
            let note = format!(
                "{fault} was played on a disk that pgdyno emulates, which is no real device"
            );
            self.record.outcome.notes.push(note);
        }
        for (number, aim) in (1..).zip(aim::aims(fault, grounded.is_emulated()).iter().cycle()) {
            if is_enough(fault, subject.options.rounds, rounds) {
                break;
            }
            let seed = round_seed(subject.options.seed, fault, number);
            let first = self.first_token();
            let orders =
                Orders { fault, number, seed, aim: *aim, planted: Planted::Nothing, first };
            let mut round = self.round(&grounded, &orders, scratch)?;
            if round.verdict.is_failure() {
                // What was meant to fail is nothing to look at.
                let first =
                    !subject.options.plants(fault) && rounds.iter().all(|r| r.kept.is_none());
                round.kept = if first { self.keep(fault, number, scratch) } else { None };
            }
            // What failed, was not struck as it should be or could not be looked at is no ground
            // for another round.
            if !matches!(round.verdict, Verdict::Pass | Verdict::BoundedLoss) {
                self.clear();
            }
            rounds.push(round);
        }
        Ok(())
    }

    /// Where the tokens of the next round begin.
    fn first_token(&mut self) -> u64 {
        /// More than a round has.
        const APART: u64 = 10_000_000;
        self.begun += 1;
        self.begun * APART + 1
    }

    /// One round of `subject`, which may differ from the session's own in its settings, on a ground
    /// that is made where none stands.
    fn round(
        &mut self,
        subject: &Subject,
        orders: &Orders,
        scratch: &Path,
    ) -> Result<Round, LabError> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(LabError::Interrupted);
        }
        // Of rounds before; what of them is worth keeping is kept.
        for ledger in ledgers(scratch) {
            let _ = std::fs::remove_file(ledger);
        }
        let ground = match &mut self.ground {
            Some(ground) => ground,
            None => {
                let ground = Ground::make(subject, self.journal, self.progress, self.stop)?;
                self.record.storage = ground.facts().clone();
                self.ground.insert(ground)
            }
        };
        let (progress, stop) = (self.progress, self.stop);
        orders.play(ground, &round::Surroundings { subject, scratch, progress, stop })
    }

    /// Keeps what a failed round left, for whoever wants to look; where.
    fn keep(&mut self, fault: Fault, number: u32, scratch: &Path) -> Option<String> {
        let into: PathBuf =
            paths::data_dir().join("crashes").join(self.id).join(format!("{fault}-{number}"));
        let named = |path: PathBuf| {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            (path, name)
        };
        let ledgers: Vec<(PathBuf, String)> = ledgers(scratch).into_iter().map(named).collect();
        let kept = self.ground.as_mut().map_or(Ok(()), |ground| ground.keep(&into));
        let ledgers = kept.and_then(|()| Ok(pgdyno_host::fault::keep(&ledgers, &into)?));
        match ledgers {
            Ok(()) => Some(into.display().to_string()),
            Err(e) => {
                let note = format!("what round {number} of {fault} left could not be kept: {e}");
                self.progress.event(&Event::Warning(note.clone()));
                self.record.outcome.notes.push(note);
                None
            }
        }
    }

    /// Takes the ground down.
    fn clear(&mut self) {
        for left in self.ground.take().map(Ground::take_down).unwrap_or_default() {
            self.progress.event(&Event::Warning(left));
        }
    }
}

/// Whether `rounds` suffice where `asked` are asked for. Up to as many again are played where none
/// of them put anything under test, and nothing was found.
fn is_enough(fault: Fault, asked: u32, rounds: &[Round]) -> bool {
    let asked = asked as usize;
    let tells = |round: &Round| {
        round.power.counts(fault) || !matches!(round.verdict, Verdict::Pass | Verdict::BoundedLoss)
    };
    rounds.len() >= asked && (rounds.len() >= 2 * asked || rounds.iter().any(tells))
}

/// The ledgers' files in `scratch`.
fn ledgers(scratch: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(scratch).into_iter().flatten().flatten();
    entries
        .filter(|e| e.file_name().to_string_lossy().starts_with("ledger-"))
        .map(|e| e.path())
        .collect()
}

/// What all of a round is drawn from: the same whatever was before it, so that a session with the
/// same seed repeats it.
fn round_seed(seed: u64, fault: Fault, number: u32) -> u64 {
    let kind = Fault::ALL.iter().position(|f| *f == fault).unwrap_or_default() as u64;
    Random::new(seed ^ (kind << 56) ^ (u64::from(number) << 32)).next_u64()
}
