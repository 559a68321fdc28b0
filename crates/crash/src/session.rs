//! A session of crash tests: its test bed, which stands as long as rounds leave it whole, and its
//! record.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use pgdyno_engine::random::Random;
use pgdyno_exec::paths;
use pgdyno_facts as facts;
use pgdyno_model::Storage;
use pgdyno_model::crash::{CrashOutcome, CrashRecord, Fault, Round};
use pgdyno_model::facts::StorageFacts;
use pgdyno_model::progress::Warning;
use pgdyno_model::units::Epoch;

use super::round::run_round;
use super::round_plan::{RoundContext, RoundPlan};
use super::subject::Subject;
use super::test_bed::TestBed;
use pgdyno_provision::{BenchError, Context};

/// A session of crash tests of one subject.
pub(super) struct CrashSession<'a> {
    pub(super) subject: &'a Subject,
    pub(super) context: Context<'a>,
    pub(super) record: CrashRecord,
    /// Where ledgers lie: not on the storage that is crashed.
    pub(super) scratch: &'a Path,
    /// Stands as long as rounds leave it whole.
    bed: Option<TestBed>,
    /// The storages that the test bed is made of.
    storages: BTreeMap<String, Storage>,
    /// Rounds begun, controls among them (count).
    begun: u64,
}

impl<'a> CrashSession<'a> {
    /// Begins a session that is recorded as `record`. Ledgers are written to `scratch`.
    pub(super) fn new(
        subject: &'a Subject,
        record: CrashRecord,
        scratch: &'a Path,
        context: Context<'a>,
    ) -> Self {
        Self { subject, context, record, scratch, bed: None, storages: BTreeMap::new(), begun: 0 }
    }

    /// Returns `subject` on storages that `fault` can strike. Takes a test bed of other storages
    /// down.
    pub(super) fn prepare(&mut self, subject: &Subject, fault: Fault) -> Subject {
        let prepared = subject.on_storages_for(fault);
        if self.bed.is_some() && self.storages != prepared.storages {
            self.clear();
        }
        self.storages.clone_from(&prepared.storages);
        prepared
    }

    /// Returns the first token of each client in the next round.
    pub(super) fn first_token(&mut self) -> u64 {
        /// More than a round has.
        const APART: u64 = 10_000_000;
        self.begun += 1;
        self.begun * APART + 1
    }

    /// Runs one round of `subject`, whose settings may differ from the session's own. Makes a test
    /// bed where none stands.
    ///
    /// # Errors
    /// pgdyno itself cannot go on, or a signal asked to stop.
    pub(super) fn round(
        &mut self,
        subject: &Subject,
        plan: &RoundPlan,
    ) -> Result<Round, BenchError> {
        self.context.check_stop()?;
        // Ledgers of earlier rounds: those of failures have been kept elsewhere.
        for ledger in ledgers(self.scratch) {
            let _ = std::fs::remove_file(ledger);
        }
        let (scratch, context) = (self.scratch, self.context);
        let bed = self.bed(subject)?;
        run_round(plan, bed, &RoundContext { subject, scratch, context })
    }

    /// Returns the test bed of `subject`. Makes it where none stands.
    ///
    /// # Errors
    /// A storage or the cluster cannot be made, or there is too little room.
    pub(super) fn bed(&mut self, subject: &Subject) -> Result<&mut TestBed, BenchError> {
        let bed = match self.bed.take() {
            Some(bed) => bed,
            None => {
                let bed = TestBed::make(subject, self.context)?;
                self.record.storage = bed.facts().clone();
                bed
            }
        };
        Ok(self.bed.insert(bed))
    }

    /// Takes `bed`, which stands for one on `storage`.
    pub(super) fn adopt(&mut self, bed: TestBed, storage: StorageFacts) {
        self.record.storage = storage;
        self.bed = Some(bed);
    }

    /// Adds to `round` the filesystems' mounts after its power cut and what their fsck finds.
    ///
    /// # Errors
    /// A signal asked to stop.
    pub(super) fn check_filesystems(&mut self, round: &mut Round) -> Result<(), BenchError> {
        let limit = self.subject.options.recovery_limit.0;
        let Some(bed) = &mut self.bed else { return Ok(()) };
        match bed.check_filesystems(limit, self.context.stop) {
            Ok(found) => round.filesystems = found,
            Err(e) => {
                self.context.check_stop()?;
                round.notes.push(format!("the filesystem was not checked: {}", e.message()));
                self.clear();
            }
        }
        Ok(())
    }

    /// Keeps the remains of a failed round for inspection. Returns where.
    pub(super) fn keep(&mut self, fault: Fault, number: u32) -> Option<String> {
        let into = self.evidence_folder(fault, number);
        let named = |path: PathBuf| {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            (path, name)
        };
        let ledgers: Vec<(PathBuf, String)> =
            ledgers(self.scratch).into_iter().map(named).collect();
        let kept = self.bed.as_mut().map_or(Ok(()), |bed| bed.keep(&into));
        let kept = kept.and_then(|()| Ok(pgdyno_storage::fault::keep(&ledgers, &into)?));
        self.evidence(fault, number, kept)
    }

    /// Returns the folder for the remains of a round.
    pub(super) fn evidence_folder(&self, fault: Fault, number: u32) -> PathBuf {
        let crashes = paths::data_dir().join("crashes");
        crashes.join(&self.record.id).join(format!("{fault}-{number}"))
    }

    /// Returns the folder for the remains of a round, which are `kept` there; none, with a warning,
    /// if they could not be.
    pub(super) fn evidence(
        &mut self,
        fault: Fault,
        number: u32,
        kept: Result<(), BenchError>,
    ) -> Option<String> {
        match kept {
            Ok(()) => Some(self.evidence_folder(fault, number).display().to_string()),
            Err(e) => {
                let reason = e.failure();
                self.record.outcome.notes.push(format!(
                    "what round {number} of {fault} left could not be kept: {reason}"
                ));
                self.context.warn(Warning::RemainsNotKept { fault, round: number, reason });
                None
            }
        }
    }

    /// Takes the test bed down.
    pub(super) fn clear(&mut self) {
        self.context.warn_left(self.bed.take().map(TestBed::take_down).unwrap_or_default());
    }
}

/// Returns an empty record of a session of `subject`, begun now.
pub(super) fn new_record(subject: &Subject, id: &str) -> CrashRecord {
    CrashRecord {
        id: id.to_owned(),
        run: None,
        treatment: None,
        name: subject.name.clone(),
        started_at: Epoch::now(),
        pgdyno_version: env!("CARGO_PKG_VERSION").to_owned(),
        host: facts::host(),
        storage: StorageFacts { name: subject.storage.clone(), ..StorageFacts::default() },
        outcome: CrashOutcome {
            options: subject.options.clone(),
            settings: subject.settings.clone(),
            server_version: subject.install.version.clone(),
            ..CrashOutcome::default()
        },
    }
}

/// Returns the ledgers' files in `scratch`.
fn ledgers(scratch: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(scratch).into_iter().flatten().flatten();
    entries
        .filter(|e| e.file_name().to_string_lossy().starts_with("ledger-"))
        .map(|e| e.path())
        .collect()
}

/// Returns the seed that everything in a round is drawn from.
///
/// It does not depend on earlier rounds, so that a session with the same seed repeats the round.
pub(super) fn round_seed(seed: u64, fault: Fault, number: u32) -> u64 {
    let kind = Fault::ALL.iter().position(|f| *f == fault).unwrap_or_default() as u64;
    Random::new(seed ^ (kind << 56) ^ (u64::from(number) << 32)).next_u64()
}
