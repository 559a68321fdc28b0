//! Serves `pgdyno load`: fills a workload's tables in a database that the user names.

use std::num::{NonZeroU32, NonZeroU64};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use pgdyno_connect::conninfo;
pub use pgdyno_connect::conninfo::ConnectOptions;
use pgdyno_connect::control::{ControlClient, schemas_of_user};
use pgdyno_dataset::workload::{self, DataSet};
use pgdyno_dataset::{self as dataset, BulkLoad, DatasetError};
pub use pgdyno_dataset::{Existing, LoadStrategy};
use pgdyno_model::experiment::Loading;
use pgdyno_model::progress::{Event, Notice, Progress};
use pgdyno_model::target::Target;
use pgdyno_model::units::Bytes;
use pgdyno_postgres::external::data_directory;
use pgdyno_provision::sql::SqlError;

use pgdyno_provision::BenchError;

/// A bulk load into a database that the user names.
#[derive(Clone, Debug)]
pub struct Load {
    /// A built-in workload's name, or a folder.
    pub workload: String,
    /// The data set's size in the workload's unit.
    pub scale: NonZeroU32,
    /// Seed for generated rows.
    pub seed: u64,
    /// How rows are made and loaded.
    pub loading: Loading,
    /// Way to load each table; none chooses by the number of cores.
    pub strategy: Option<LoadStrategy>,
    /// Rows of a chunk (count); none: 500,000.
    pub chunk: Option<NonZeroU64>,
    /// Treatment of tables that exist.
    pub existing: Existing,
    /// The database to fill.
    pub connect: ConnectOptions,
}

/// The result of a load.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The data set, such as `tpcb-like at scale 10, seed 1`.
    pub what: String,
    /// Rows sent (count).
    pub rows: u64,
    /// Bytes sent on the wire.
    pub bytes: u64,
    /// Duration of the load, including keys and VACUUM.
    pub took: Duration,
    /// The wait event of the server's side that was sampled most often, and its share of the
    /// samples; none without samples.
    pub limit: Option<(String, f64)>,
}

/// Loads a workload's data set into the database that `load` names.
///
/// # Errors
/// The workload or the connection cannot be used, or something is in the way: then nothing is made.
/// After an interruption, the rows that were loaded stay.
pub fn load(load: &Load, progress: &dyn Progress, stop: &AtomicBool) -> Result<Loaded, BenchError> {
    let workload = workload::load(&load.workload, &[])?;
    let resolved = conninfo::resolve(&load.connect)?;
    for note in &resolved.notes {
        progress.event(&Event::Note(Notice::Connection(note.clone())));
    }
    let (mut client, target) = resolved.connect()?;
    let usual = BulkLoad::new(&workload.data, load.scale.get(), load.seed, &load.loading);
    let schema = schemas_of_user(&target)?.into_iter().next();
    let schema = schema.ok_or_else(|| {
        DatasetError::refused(
            format!(
                "load {}: the search_path of the session names no schema that is there",
                usual.identity()
            ),
            "CREATE SCHEMA, or name one that is there in the search_path",
        )
    })?;
    let filling = BulkLoad {
        schema: &schema,
        strategy: load.strategy,
        existing: load.existing,
        chunk: load.chunk.map_or(usual.chunk, NonZeroU64::get),
        ..usual
    };
    check_room(&mut client, &target, &filling, progress)?;
    drop(client);
    let filled = dataset::bulk_load(&filling, &target, progress, stop).map_err(|e| match e {
        e if e.is_lost() => {
            BenchError::with_help(e, "what was loaded stays: the same command goes on")
        }
        e => e.into(),
    })?;
    Ok(Loaded {
        what: filling.identity(),
        rows: filled.rows,
        bytes: filled.bytes,
        took: filled.took,
        limit: filled.limits.into_iter().next(),
    })
}

/// Checks that a server on this machine has the room and the memory for a load. For a server
/// elsewhere, only reports the room that the load takes.
fn check_room(
    client: &mut ControlClient,
    target: &Target,
    filling: &BulkLoad<'_>,
    progress: &dyn Progress,
) -> Result<(), BenchError> {
    let needed = needed(filling.data, filling.scale);
    let what = filling.identity();
    let room = data_directory(client, target)
        .and_then(|directory| pgdyno_exec::directory::room(&directory).ok().flatten());
    if let Some(available) = room.filter(|available| *available < needed) {
        return Err(DatasetError::refused(
            format!(
                "load {what}: it takes about {needed}, and the server's disk has {available} free"
            ),
            "free room, or lower the scale",
        )
        .into());
    }
    let data = what.clone();
    progress.event(&Event::Note(Notice::RoomForLoad { data, needed, available: room }));
    let asked = "SELECT setting::bigint * 1024 FROM pg_catalog.pg_settings \
                 WHERE name = 'maintenance_work_mem'";
    let each: i64 = client
        .query_one(asked, &[])
        .map_err(|e| SqlError::new("ask for maintenance_work_mem", e))?
        .get(0);
    let jobs = filling.jobs();
    let needed = memory(jobs, u64::try_from(each).unwrap_or(0));
    match pgdyno_facts::memory_available().filter(|_| target.is_here()) {
        Some(available) if available < needed => Err(DatasetError::refused(
            format!(
                "load {what}: {jobs} connections that build keys take about {needed} of memory, \
                 and {available} are available"
            ),
            "lower --jobs, or the server's maintenance_work_mem",
        )
        .into()),
        _ => Ok(()),
    }
}

/// Returns the room that tables, keys and WAL take.
fn needed(data: &DataSet, scale: u32) -> Bytes {
    Bytes(dataset::tables_room(data, scale).0.saturating_add(dataset::WAL_ROOM.0))
}

/// Returns the most memory that `jobs` connections take on both sides. Each takes some 16 MB for
/// pgdyno's blocks and the backend, and `maintenance_work_mem` to build a key.
fn memory(jobs: usize, maintenance_work_mem: u64) -> Bytes {
    const EACH: u64 = 16 << 20;
    Bytes((jobs as u64).saturating_mul(maintenance_work_mem.saturating_add(EACH)))
}
