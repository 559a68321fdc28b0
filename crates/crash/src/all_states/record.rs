//! A stretch of load on a disk that records it.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::error::CrashError;
use pgdyno_durability::Unseen;
use pgdyno_emulated_disk::states::Stretch;
use pgdyno_emulated_disk::{Content, DiskLog, EventKind};
use pgdyno_experiment::footprint::RoomNeeded;
use pgdyno_model::Fault;
use pgdyno_model::crash::{MissingWrite, PageKind, RecordedStretch};
use pgdyno_model::ledger::{History, LogPositions, State, Token};
use pgdyno_model::progress::{Activity, RoundStage};

use super::super::inject_fault::SWITCH_AND_CHECKPOINT;
use super::super::load::{Load, RecordedLoad};
use super::super::log_room::LogRoom;
use super::super::repeated::Repeated;
use super::super::round_plan::ms;
use super::super::subject::Subject;
use super::super::test_bed::TestBed;
use super::super::verify::{self, Before};
use pgdyno_provision::provisioner::DATABASE;
use pgdyno_provision::{BenchError, Context};

/// Checkpoints that are begun within the stretch (count).
const CHECKPOINTS: u32 = 4;

/// A stretch of load with everything that its states are judged by.
pub(super) struct Recording {
    pub(super) log: DiskLog,
    /// The log's file.
    pub(super) log_file: PathBuf,
    /// The image that the log began with.
    pub(super) image: PathBuf,
    /// The ledger's file.
    pub(super) ledger: PathBuf,
    pub(super) stretch: Stretch,
    pub(super) facts: RecordedStretch,
    pub(super) history: History,
    pub(super) positions: BTreeMap<Token, LogPositions>,
    pub(super) before: Before,
    /// How long the WAL writer sleeps, where commits are asynchronous.
    pub(super) wal_writer_delay: Option<Duration>,
    /// When each flush was done, by its number and on the ledger's clock.
    pub(super) flushed_at: BTreeMap<u64, Duration>,
    /// When the stretch ended, on the ledger's clock.
    pub(super) ended_at: Duration,
}

impl Recording {
    /// Describes a write of which only the first `kept` bytes are there.
    pub(super) fn missing_write(&self, number: u64, kept: u64) -> MissingWrite {
        let pages = File::open(&self.log_file);
        let pages = pages.and_then(|file| self.log.pages(number, &file)).unwrap_or_default();
        let pages = pages.into_iter().map(|page| {
            let kind = match page.content {
                Content::DataPage => PageKind::Data,
                Content::WalPage => PageKind::Wal,
            };
            (kind, page.position)
        });
        MissingWrite { number, kept, pages: pages.collect(), files: Vec::new() }
    }
}

/// Records a stretch of the load of `subject` on `bed`, and cuts its power.
///
/// # Errors
/// There is no room for the log, the load ended early, or pgdyno itself cannot go on.
pub(super) fn record(
    bed: &mut TestBed,
    subject: &Subject,
    first: u64,
    scratch: &Path,
    context: Context<'_>,
) -> Result<Recording, BenchError> {
    let length = subject.options.load.0;
    bed.reset_baseline(context.stop)?;
    let mut client = bed.cluster().control(DATABASE)?;
    let settings = verify::settings(&mut client)?;
    let system_identifier = verify::system_identifier(&mut client);
    drop(client);
    context.begin(Activity::CrashRound {
        subject: subject.name.clone(),
        fault: Fault::Power,
        round: Some((1, 1)),
        stage: RoundStage::Load,
    });
    let disk = bed.record()?;
    check_room(subject, None)?;
    let direct = bed.cluster().target(DATABASE);
    let target = subject.interference.through.as_ref();
    let target = target.map_or_else(|| direct.clone(), |through| through(&direct));
    let position = disk.position();
    let seed = subject.options.seed;
    let began = Instant::now();
    let load =
        Load::start(target, &subject.options, length, seed, first, scratch, Some(&position))?;
    let is_warm = load.wait_warm(subject.options.clients, context)?;
    let pause = length / (CHECKPOINTS + 1);
    let checkpoints =
        Repeated::begin(&SWITCH_AND_CHECKPOINT, pause, &bed.cluster().control_target(DATABASE));
    let has_ended = || Ok(load.has_ended().then_some(()));
    let has_ended =
        !is_warm || context.poll(length, Duration::from_millis(5), has_ended)?.is_some();
    let completed = checkpoints.completed();
    let at = bed.cut_power(0.0)?;
    drop(checkpoints);
    let (length, load_time) = (at.duration_since(began), load.clock());
    let ledger = load.path().to_owned();
    let RecordedLoad { history, positions, said } = load.finish_recorded()?;
    if has_ended {
        return Err(CrashError::EndedEarly { storage: bed.facts().name.clone(), said }.into());
    }
    let log = disk.log();
    let events = DiskLog::read(&log).map_err(CrashError::Log)?;
    let image = disk.image();
    let stretch = Stretch::of_log(&events, &log, &image).map_err(CrashError::Log)?;
    let flushed_at: BTreeMap<u64, Duration> = events
        .events
        .iter()
        .filter(|event| matches!(event.kind, EventKind::Flush { is_done: true, .. }))
        .filter_map(|event| Some((event.number, load_time(event.at.to_instant()?))))
        .collect();
    let facts = RecordedStretch {
        length_ms: ms(length),
        writes: stretch.write_count(),
        flushes: flushed_at.len() as u64,
        log_bytes: log.metadata().map_or(0, |file| file.len()),
        checkpoints: completed,
        acknowledged: history.count(State::Acknowledged),
        ..RecordedStretch::default()
    };
    let acknowledged = Err(no_position());
    let before = Before {
        system_identifier,
        acknowledged,
        checksums: settings.checksums,
        objects: bed.objects().clone(),
    };
    Ok(Recording {
        log: events,
        log_file: log,
        image,
        ledger,
        stretch,
        facts,
        history,
        positions,
        before,
        wal_writer_delay: settings.wal_writer_delay,
        flushed_at,
        ended_at: load_time(at),
    })
}

/// Why no position in WAL is held against a state.
pub(super) fn no_position() -> Unseen {
    Unseen::NotApplicable("a state of a disk log has no such position".into())
}

/// Refuses a stretch whose log, and what lies `beside` it, may not find room.
///
/// # Errors
/// There is too little room, or it is not known.
pub(super) fn check_room(subject: &Subject, beside: Option<&RoomNeeded>) -> Result<(), BenchError> {
    let backing = &subject.storages[&subject.storage].backing;
    let Some(room) = LogRoom::new(&subject.options, backing) else { return Ok(()) };
    let room = match beside {
        Some(beside) => room.with(beside),
        None => room,
    };
    room.check(&subject.storage)
}
