//! Faults of the disk: each becomes something that is armed on the emulated disks, and a moment to
//! wait for.

mod arming;
mod io_error;
mod torn_write;

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::error::CrashError;
pub(super) use arming::Rig;
use arming::{PATIENCE, drawn};
use pgdyno_connect::control;
use pgdyno_emulated_disk::{
    Content, Control, ControlError, Cut, Effect, Hits, Operation, Rule, Selector, TearUnit,
};
use pgdyno_model::Fault;
use pgdyno_model::crash::{Aim, CrashOptions, Under};
use pgdyno_provision::sql::{SqlError, execute};
use pgdyno_storage::fault::{DiskFiller, make_durable};

use super::missed::{Met, Missed};
use super::repeated::Repeated;
use pgdyno_provision::BenchError;

/// Arms the fault before load is offered, once the baseline is durable.
pub(super) fn before_load(
    fault: Fault,
    options: &CrashOptions,
    seed: u64,
    disks: &mut [Control],
) -> Result<(), ControlError> {
    for disk in disks.iter_mut() {
        disk.seed(seed)?;
    }
    match fault {
        Fault::EmulatedLie if options.lie < 1.0 => {
            let on = Selector::all(Operation::Flush);
            let rule = Rule { on, hits: Hits::Chance(options.lie), effect: Effect::Lie };
            disks_under(options.under, disks)
                .iter_mut()
                .try_for_each(|disk| disk.arm(&rule).map(drop))
        }
        Fault::EmulatedLie => {
            disks_under(options.under, disks).iter_mut().try_for_each(|disk| disk.lie(true))
        }
        _ => Ok(()),
    }
}

/// The disks that a fault is under: PGDATA's stands first, that of pg_wal last.
fn disks_under(under: Under, disks: &mut [Control]) -> &mut [Control] {
    let last = disks.len().saturating_sub(1);
    match under {
        Under::Both => disks,
        Under::Data => disks.get_mut(..1).unwrap_or_default(),
        Under::Wal => disks.get_mut(last..).unwrap_or_default(),
    }
}

/// Injects `fault` while load runs on the server, and waits until it has happened. Returns notes on
/// it. The caller cuts the power afterwards.
///
/// # Errors
/// The inner error: the fault did not happen, and why.
pub(super) fn inject(fault: Fault, rig: Rig<'_>) -> Met {
    match fault {
        Fault::EmulatedLie => lose(rig),
        Fault::TornWrite => torn_write::inject(rig),
        Fault::IoError => io_error::inject(rig),
        Fault::DiskFull => fill(rig),
        other => Ok(Err(Missed::NotOfADisk(other))),
    }
}

/// Whether the power is to go right after a request of [`cut_at`]. Of a data disk that lies more is
/// lost by [`inject`], when checkpoints are over.
pub(super) fn cuts_at(fault: Fault, aim: Aim, under: Under) -> bool {
    match aim {
        Aim::WalFlush => fault == Fault::Power || under != Under::Data,
        Aim::Checkpoint => fault == Fault::Power,
        _ => false,
    }
}

/// The power goes right after a request that `aim` names: a write of WAL that is in the disk's
/// cache and not flushed yet, or one of a checkpoint's writes of data pages. What of the cache
/// survives is drawn.
///
/// # Errors
/// The inner one: there was no such write.
pub(super) fn cut_at(aim: Aim, rig: Rig<'_>) -> Met {
    let Rig { mut disks, draws, context, .. } = rig;
    let (what, content, among, disk) = match aim {
        Aim::Checkpoint => ("a data page", Content::DataPage, 60, disks.first_mut()),
        _ => ("WAL", Content::WalPage, 20, disks.last_mut()),
    };
    let Some(disk) = disk else { return Ok(Err(Missed::NoEmulatedDisk)) };
    // An honest disk writes its sectors whole, and they may be of 4 kB.
    let tear = (draws.unit() < 0.5).then_some(TearUnit::Bytes4096);
    let cut = Cut { survives: draws.unit(), tear };
    let hits = Hits::Nth(1 + drawn(draws, among));
    let rule = Rule { on: Selector::writes_of(content), hits, effect: Effect::Cut(cut) };
    disk.arm(&rule)?;
    Ok(match disk.wait_for_cut(PATIENCE, context.stop)? {
        Some(cut) => Ok(vec![format!(
            "the power went after write {}, of {what}: of the writes in the cache {} were lost, {} \
             survived{}",
            cut.at_write,
            cut.dropped,
            cut.survived,
            if cut.torn { ", one tore" } else { "" }
        )]),
        None => Err(Missed::NoWrite { of: what, within: PATIENCE }),
    })
}

/// The disks that lied lose power: every second time all that they had in their caches, else a
/// part, since a drive writes back in an order of its own.
///
/// With an honest WAL a disk that forgets all since the baseline is as it was then, and WAL since
/// then brings it up to date. What harms is a control file that tells of a checkpoint whose pages
/// are missing: so there are some checkpoints before, and a part survives.
fn lose(rig: Rig<'_>) -> Met {
    const CHECKPOINTS: u32 = 8;
    let Rig { mut disks, under, target, draws, .. } = rig;
    let mut survives = if draws.unit() < 0.5 { draws.unit() } else { 0.0 };
    let mut told = Vec::new();
    if under == Under::Data {
        told.push(format!("{CHECKPOINTS} checkpoints were made before, whatever the aim"));
        let mut client = control::connect_to_own(&target)?;
        for _ in 0..CHECKPOINTS {
            execute(&mut client, "checkpoint on a lying disk", "CHECKPOINT")?;
        }
        survives = 0.5 + 0.4 * draws.unit();
    }
    for disk in disks_under(under, &mut disks) {
        let cut = disk.cut(&Cut { survives, tear: None })?;
        let destaged = disk.status()?.counters.destaged;
        told.push(format!(
            "of the writes that were acknowledged as durable or in the cache, {} were lost and {} \
             survived{}",
            cut.dropped,
            cut.survived,
            if destaged > 0 {
                "; older ones had gone to the medium since the cache was full"
            } else {
                ""
            }
        ));
    }
    Ok(Ok(told))
}

/// Takes a segment of WAL each time.
const TAKE_SEGMENTS: [&str; 1] = ["SELECT pg_catalog.pg_switch_wal()"];
/// Takes a megabyte beside the load's tables each time, until its session ends.
const TAKE_PAGES: [&str; 2] = [
    "CREATE TEMP TABLE IF NOT EXISTS pgdyno_room (filler text)",
    "INSERT INTO pgdyno_room SELECT repeat('x', 1000) FROM generate_series(1, 1000)",
];

/// The filesystem of PGDATA or of pg_wal has no room left until the server has run into that.
fn fill(rig: Rig<'_>) -> Met {
    let Rig { target, under, draws, context, .. } = rig;
    let mut client = control::connect_to_own(&target)?;
    let row = client.query_one("SHOW data_directory", &[]);
    let data: String = row.map_err(|e| SqlError::new("ask where PGDATA lies", e))?.get(0);
    let data = PathBuf::from(data);
    let (of_data, of_wal) = (mount_point(&data)?, mount_point(&data.join("pg_wal"))?);
    let is_data = match under {
        Under::Data => true,
        Under::Wal => false,
        Under::Both => drawn(draws, 2) == 0,
    };
    let point = if is_data { &of_data } else { &of_wal };
    // As long as this session lasts no checkpoint gives segments free. A server that allows no slot
    // may make room for itself again and again; that the fault was missed is then told.
    let keep =
        "SELECT pg_catalog.pg_create_physical_replication_slot('pgdyno_disk_full', true, true)";
    let _ = client.batch_execute(keep);
    let ballast = DiskFiller::fill(point)?;
    let taking: &'static [&'static str] =
        if *point == of_wal { &TAKE_SEGMENTS } else { &TAKE_PAGES };
    let taking = Repeated::begin(taking, Duration::ZERO, &target);
    let has_ended = || Ok(taking.has_ended().then_some(()));
    let met = context.poll(PATIENCE, Duration::from_millis(10), has_ended);
    // Before the power goes: whoever runs out of room makes some before the next start.
    drop(ballast);
    drop(taking);
    // Its filesystem may have given up; then there is nothing to make durable.
    let _ = make_durable(point);
    Ok(match met? {
        Some(()) => Ok(vec![format!("{} was full, and the server ran into it", point.display())]),
        None => Err(Missed::NeededNoRoom { on: point.clone(), within: PATIENCE }),
    })
}

/// Where the filesystem of `directory` is mounted.
fn mount_point(directory: &Path) -> Result<PathBuf, BenchError> {
    let unseen = |source| CrashError::Filesystem { directory: directory.to_owned(), source };
    let real = directory.canonicalize().map_err(unseen)?;
    let mounts = pgdyno_exec::mountinfo::mounts().map_err(unseen)?;
    let held = pgdyno_exec::mountinfo::holding(&mounts, &real);
    Ok(held.map(|mount| mount.point.clone()).unwrap_or(real))
}
