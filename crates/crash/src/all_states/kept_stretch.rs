//! A recorded stretch and the verdicts on its states, kept so that another process can go on.
//!
//! They lie in `$XDG_DATA_HOME/pgdyno/crashes/SESSION/stretch/`, which no sweep removes; the files'
//! names are [`stretch`]'s. Image, log and ledger are links to the session's own files where both
//! lie on one filesystem. The record is written last: the next start removes a folder without one.
//! A process that judges holds the lock of the verdicts' file, which goes with the process.
//!
//! 1. [`KeptStretch::keep`] once a stretch is recorded, [`KeptStretch::append`] for each verdict.
//! 2. In a later process [`KeptStretch::open`], then [`KeptStretch::append`] again.
//! 3. [`KeptStretch::keep_evidence`] if a state failed, and [`KeptStretch::remove`].

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::error::{CrashError, Difference, StretchError};
use pgdyno_durability::{Objects, Unseen};
use pgdyno_emulated_disk::DiskLog;
use pgdyno_emulated_disk::states::Stretch;
use pgdyno_engine::ledger::{read, read_positions};
use pgdyno_exec::{directory, trust};
use pgdyno_experiment::file::{Override, Source};
use pgdyno_model::advice::with_causes;
use pgdyno_model::crash::{CrashOptions, RecordedStretch};
use pgdyno_model::facts::StorageFacts;
use pgdyno_model::ledger::State;
use pgdyno_model::units::Bytes;
use pgdyno_storage::kept::{KeptCrashes, stretch};
use serde::{Deserialize, Serialize};

use super::super::subject::Subject;
use super::super::verify::Before;
use super::record::Recording;
use super::verdicts::{Judged, Line};
use pgdyno_provision::BenchError;

/// The version of the format that this pgdyno writes and reads.
const VERSION: u32 = 2;

/// The names of a stretch's files, and those that they have as evidence of a failure.
pub(super) const EVIDENCE: [(&str, &str); 3] =
    [(stretch::IMAGE, "image-0"), (stretch::LOG, "disk-log"), (stretch::LEDGER, "ledger-1")];

/// The crash test that recorded a stretch.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Origin {
    /// `pgdyno crash`, whose options describe an experiment.
    Command { source: Source, overrides: Vec<Override> },
    /// The treatment of a run, by its index.
    Run { run: String, treatment: usize },
}

/// The beginning of every record: versions of its format and of pgdyno.
#[derive(Deserialize)]
struct Head {
    #[serde(rename = "pgdyno-stretch")]
    version: u32,
    pgdyno_version: String,
}

/// A stretch's record: everything known about it beside image, log and ledger.
#[derive(Serialize, Deserialize)]
pub(crate) struct StretchRecord {
    #[serde(rename = "pgdyno-stretch")]
    version: u32,
    pgdyno_version: String,
    pub(crate) origin: Origin,
    pub(crate) options: CrashOptions,
    settings: BTreeMap<String, String>,
    server_version: String,
    pub(super) storage: StorageFacts,
    /// The name of the cluster's directory on the storage.
    pub(super) cluster: String,
    facts: RecordedStretch,
    fingerprint: String,
    system_identifier: Option<u64>,
    checksums: bool,
    objects: Option<BTreeMap<String, Objects>>,
    wal_writer_delay: Option<Duration>,
    flushed_at: BTreeMap<u64, Duration>,
    ended_at: Duration,
}

impl StretchRecord {
    /// Returns the record of `recording`, made for `origin` of `subject` with a `cluster` so called
    /// on `storage`.
    pub(super) fn new(
        origin: Origin,
        subject: &Subject,
        recording: &Recording,
        storage: StorageFacts,
        cluster: String,
    ) -> Self {
        Self {
            version: VERSION,
            pgdyno_version: env!("CARGO_PKG_VERSION").to_owned(),
            origin,
            options: subject.options.clone(),
            settings: subject.settings.clone(),
            server_version: subject.install.version.clone(),
            storage,
            cluster,
            facts: recording.facts.clone(),
            fingerprint: recording.stretch.fingerprint(),
            system_identifier: recording.before.system_identifier.clone().ok(),
            checksums: recording.before.checksums,
            objects: recording.before.objects.clone().ok(),
            wal_writer_delay: recording.wal_writer_delay,
            flushed_at: recording.flushed_at.clone(),
            ended_at: recording.ended_at,
        }
    }

    /// Reads the record in `folder`.
    ///
    /// # Errors
    /// Why it cannot be used: it is not there, damaged, or of another version.
    pub(super) fn read(folder: &Path) -> Result<Self, String> {
        let path = folder.join(stretch::RECORD);
        let text = fs::read(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        let damaged = |e: serde_json::Error| format!("{} is damaged: {e}", path.display());
        let Head { version, pgdyno_version } = serde_json::from_slice(&text).map_err(damaged)?;
        if (version, pgdyno_version.as_str()) != (VERSION, env!("CARGO_PKG_VERSION")) {
            return Err(format!(
                "pgdyno {pgdyno_version} recorded it in version {version} of the format, and this \
                 is pgdyno {}, which reads its own version {VERSION}",
                env!("CARGO_PKG_VERSION")
            ));
        }
        serde_json::from_slice(&text).map_err(damaged)
    }

    /// Returns how `subject` differs from the recorded one.
    pub(super) fn difference(&self, subject: &Subject) -> Option<Difference> {
        let (recorded, found) = (&self.server_version, &subject.install.version);
        if recorded != found {
            let (recorded, found) = (recorded.to_string(), found.to_string());
            return Some(Difference::Version { recorded, found });
        }
        let limits =
            |options: &CrashOptions| CrashOptions { budget: None, jobs: 1, ..options.clone() };
        let is_other =
            self.settings != subject.settings || limits(&self.options) != limits(&subject.options);
        is_other.then_some(Difference::Options)
    }
}

/// A kept stretch that nobody else judges.
pub(crate) struct KeptStretch {
    /// The session that recorded it.
    pub(crate) session: String,
    /// Folder of the stretch.
    pub(super) folder: PathBuf,
    pub(crate) record: StretchRecord,
    /// File of the verdicts, whose lock is held.
    verdicts: File,
}

/// A kept stretch to go on with.
pub(crate) struct ResumedStretch {
    pub(crate) kept: KeptStretch,
    pub(super) recording: Recording,
    pub(crate) judged: Judged,
}

/// Returns the sessions whose stretch is kept, the oldest first.
pub(crate) fn kept_sessions() -> Vec<String> {
    let kept = KeptCrashes::find().all.into_iter();
    kept.filter(|kept| kept.has_stretch).map(|kept| kept.id).collect()
}

impl KeptStretch {
    /// Keeps `recording`, which `session` made.
    ///
    /// # Errors
    /// There is no room, or the place is not pgdyno's alone; nothing is left there.
    pub(super) fn keep(
        session: &str,
        record: StretchRecord,
        recording: &Recording,
    ) -> Result<Self, BenchError> {
        let folder = stretch::folder_of(session);
        let kept = write(&folder, &record, recording);
        match kept {
            Ok(verdicts) => Ok(Self { session: session.to_owned(), folder, record, verdicts }),
            Err(e) => {
                stretch::remove(&folder);
                Err(e)
            }
        }
    }

    /// Opens the stretch that `session` recorded, and locks it.
    ///
    /// # Errors
    /// There is none, it is of another version or damaged, or another process judges it.
    pub(crate) fn open(session: &str) -> Result<ResumedStretch, BenchError> {
        let folder = stretch::folder_of(session);
        let cannot = |found: String| StretchError::unreadable(session, found);
        let failed =
            |name: &str, e: io::Error| cannot(format!("{}: {e}", folder.join(name).display()));
        trust::check(&folder).map_err(|e| cannot(with_causes(&e)))?;
        let record = StretchRecord::read(&folder).map_err(cannot)?;
        let mut verdicts = File::options()
            .read(true)
            .append(true)
            .open(folder.join(stretch::VERDICTS))
            .map_err(|e| failed(stretch::VERDICTS, e))?;
        match verdicts.try_lock() {
            Ok(()) => {}
            Err(TryLockError::Error(e)) => return Err(failed(stretch::VERDICTS, e).into()),
            Err(TryLockError::WouldBlock) => {
                return Err(StretchError::InUse { session: session.to_owned() }.into());
            }
        }
        let judged = Judged::read(&mut verdicts).map_err(|found| {
            cannot(format!("{} is damaged: {found}", folder.join(stretch::VERDICTS).display()))
        })?;
        let recording = recording(&folder, &record).map_err(cannot)?;
        let kept = Self { session: session.to_owned(), folder, record, verdicts };
        Ok(ResumedStretch { kept, recording, judged })
    }

    /// Returns the crash test that recorded the stretch of `session`; none if that cannot be read.
    pub(crate) fn origin(session: &str) -> Option<Origin> {
        #[derive(Deserialize)]
        struct Of {
            origin: Origin,
        }
        let text = fs::read(stretch::folder_of(session).join(stretch::RECORD)).ok()?;
        serde_json::from_slice(&text).ok().map(|Of { origin }| origin)
    }

    /// Adds a line to the verdicts.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(super) fn append(&mut self, line: &Line) -> io::Result<()> {
        let mut text = serde_json::to_vec(line)?;
        text.push(b'\n');
        self.verdicts.write_all(&text)
    }

    /// Refuses to judge the stretch with `subject`, if it was recorded of another one.
    ///
    /// # Errors
    /// Server, settings or options differ.
    pub(crate) fn check_subject(&self, subject: &Subject) -> Result<(), BenchError> {
        match self.record.difference(subject) {
            None => Ok(()),
            Some(found) => {
                let attempt = format!("resume {}", self.session);
                Err(StretchError::OtherSubject { attempt, found }.into())
            }
        }
    }

    /// Keeps image, log, ledger and record in `into`, as evidence of a failure.
    ///
    /// # Errors
    /// They cannot be linked or copied.
    pub(super) fn keep_evidence(&self, into: &Path) -> Result<(), BenchError> {
        fs::create_dir_all(into).map_err(|e| io_error("make", into, e))?;
        let named = EVIDENCE.iter().chain([&(stretch::RECORD, stretch::RECORD)]);
        for (name, evidence) in named {
            link_or_copy(&self.folder.join(name), into, evidence)?;
        }
        Ok(())
    }

    /// Removes the stretch, once all its states are judged.
    pub(crate) fn remove(self) {
        stretch::remove(&self.folder);
    }
}

/// Writes all files of a stretch into `folder`. Returns the file of its verdicts, locked.
fn write(folder: &Path, record: &StretchRecord, recording: &Recording) -> Result<File, BenchError> {
    let failed = |what: &'static str, path: &Path| {
        let path = path.to_owned();
        move |e: io::Error| io_error(what, &path, e)
    };
    let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.map_err(failed("make", folder))?;
    trust::check(folder)?;
    let mut options = File::options();
    options.append(true).create_new(true).mode(0o600);
    let path = folder.join(stretch::VERDICTS);
    let verdicts = options.open(&path).map_err(failed("make", &path))?;
    verdicts.lock().map_err(failed("lock", &path))?;
    link_or_copy(&recording.image, folder, stretch::IMAGE)?;
    link_or_copy(&recording.log_file, folder, stretch::LOG)?;
    link_or_copy(&recording.ledger, folder, stretch::LEDGER)?;
    let path = folder.join(stretch::NEW_RECORD);
    let text = serde_json::to_vec(record).map_err(io::Error::from);
    let mut file = options.open(&path).map_err(failed("make", &path))?;
    text.and_then(|text| file.write_all(&text)).map_err(failed("write", &path))?;
    fs::rename(&path, folder.join(stretch::RECORD)).map_err(failed("rename", &path))?;
    Ok(verdicts)
}

/// Gives the file `from` the name `name` in `folder`, too; a copy where that is on another
/// filesystem.
pub(super) fn link_or_copy(from: &Path, folder: &Path, name: &str) -> Result<(), BenchError> {
    /// The unit of `st_blocks`, whatever the filesystem's blocks are.
    const BLOCK: u64 = 512;
    if fs::hard_link(from, folder.join(name)).is_ok() {
        return Ok(());
    }
    let needed = fs::metadata(from).map_err(|e| io_error("read", from, e))?.blocks() * BLOCK;
    if let Some(free) = directory::too_little_room(folder, Bytes(needed))? {
        let (file, folder) = (from.to_owned(), folder.to_owned());
        return Err(CrashError::NoCopyRoom { file, needed: Bytes(needed), folder, free }.into());
    }
    Ok(pgdyno_storage::fault::keep(&[(from.to_owned(), name.to_owned())], folder)?)
}

/// Reads the recording in `folder`.
pub(super) fn recording(folder: &Path, record: &StretchRecord) -> Result<Recording, String> {
    let (image, log_file) = (folder.join(stretch::IMAGE), folder.join(stretch::LOG));
    let ledger = folder.join(stretch::LEDGER);
    let log = DiskLog::read(&log_file).map_err(|e| with_causes(&e))?;
    let size = fs::metadata(&image).map_err(|e| format!("{}: {e}", image.display()))?.len();
    let stretch = Stretch::of_log(&log, &log_file, &image).map_err(|e| with_causes(&e))?;
    if size != log.size || stretch.fingerprint() != record.fingerprint {
        return Err(format!(
            "{} or {} is damaged: they are not as they were recorded",
            log_file.display(),
            image.display()
        ));
    }
    let unreadable = |e: io::Error| format!("{}: {e}", ledger.display());
    let history = read(&ledger).map_err(unreadable)?;
    let positions = read_positions(&ledger).map_err(unreadable)?;
    if history.count(State::Acknowledged) != record.facts.acknowledged {
        return Err(format!("{} is damaged: it is not as it was recorded", ledger.display()));
    }
    let unknown = |what: &str| Unseen::CouldNotRun(format!("{what} was not known"));
    let before = Before {
        system_identifier: record.system_identifier.ok_or_else(|| unknown("the identifier before")),
        acknowledged: Err(super::record::no_position()),
        checksums: record.checksums,
        objects: record.objects.clone().ok_or_else(|| unknown("what objects there were")),
    };
    Ok(Recording {
        log,
        log_file,
        image,
        ledger,
        stretch,
        facts: record.facts.clone(),
        history,
        positions,
        before,
        wal_writer_delay: record.wal_writer_delay,
        flushed_at: record.flushed_at.clone(),
        ended_at: record.ended_at,
    })
}

fn io_error(what: &'static str, path: &Path, source: io::Error) -> CrashError {
    CrashError::Io { what, path: path.to_owned(), source }
}
