//! Common parts of the faults of emulated disks: the disks and the server, draws and waits.

use std::time::Duration;

use pgdyno_connect::control::Client;
use pgdyno_emulated_disk::{Control, Selector};
use pgdyno_engine::random::Random;
use pgdyno_model::crash::Under;
use pgdyno_model::target::Target;

use crate::workload::CrashLoad;
use pgdyno_provision::sql::{execute, query_number};
use pgdyno_provision::{BenchError, Context};

/// Longest wait until a request meets an armed rule. A checkpoint of a small database takes about a
/// second.
pub(super) const PATIENCE: Duration = Duration::from_secs(20);

/// A server that load runs on, and the disks below it.
pub(crate) struct Rig<'a> {
    /// The disks of PGDATA, then that of pg_wal if it has its own.
    pub(crate) disks: Vec<Control>,
    /// The disks that the fault strikes.
    pub(crate) under: Under,
    pub(crate) target: Target,
    pub(crate) load: &'static CrashLoad,
    /// The number of the round.
    pub(crate) round: u32,
    pub(crate) draws: &'a mut Random,
    pub(crate) context: Context<'a>,
}

/// Draws a number from 0 to below `n`.
pub(super) fn drawn(draws: &mut Random, n: i64) -> u64 {
    u64::try_from(draws.uniform(0, n - 1)).unwrap_or_default()
}

/// Sets hint bits and completes a checkpoint. Returns the writes over page versions that a recovery
/// from it needs.
pub(super) fn needed_pages(client: &mut Client, load: &CrashLoad) -> Result<Selector, BenchError> {
    execute(client, "set hint bits", &format!("VACUUM {}", load.changed_most))?;
    execute(client, "checkpoint before a fault of a disk", "CHECKPOINT")?;
    let sql = "SELECT (redo_lsn - '0/0')::bigint FROM pg_catalog.pg_control_checkpoint()";
    let redo = query_number(client, "ask where recovery would begin", sql)?;
    Ok(Selector::needed_from(u64::try_from(redo).unwrap_or_default()))
}

/// Lets load change pages for a drawn time, before they are written.
pub(super) fn change_pages(draws: &mut Random, context: Context<'_>) -> Result<(), BenchError> {
    context.sleep(Duration::from_millis(150 + drawn(draws, 250)))
}
