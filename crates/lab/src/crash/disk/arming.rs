//! Draws, waits and errors of faults that are armed on an emulated disk.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use pgdyno_connect::control::Client;
use pgdyno_emulated_disk::ControlError;
use pgdyno_engine::random::Random;

use crate::LabError;
use crate::sql::query_number;

/// Longest wait until a request meets an armed rule. A checkpoint of a small database takes about a
/// second.
pub(super) const PATIENCE: Duration = Duration::from_secs(20);

/// Draws a number from 0 to below `n`.
pub(super) fn drawn(draws: &mut Random, n: i64) -> u64 {
    u64::try_from(draws.uniform(0, n - 1)).unwrap_or_default()
}

pub(super) fn refused(error: &ControlError) -> LabError {
    LabError::Storage { found: format!("an emulated disk: {error}") }
}

/// The position from which recovery would begin now.
pub(super) fn redo_position(client: &mut Client) -> Result<u64, LabError> {
    let sql = "SELECT (redo_lsn - '0/0')::bigint FROM pg_catalog.pg_control_checkpoint()";
    let redo = query_number(client, "ask where recovery would begin", sql)?;
    Ok(u64::try_from(redo).unwrap_or_default())
}

/// Lets load change pages for a drawn time, before they are written.
pub(super) fn change_pages(draws: &mut Random, stop: &AtomicBool) -> Result<(), LabError> {
    let until = Instant::now() + Duration::from_millis(150 + drawn(draws, 250));
    while Instant::now() < until {
        if stop.load(Ordering::Relaxed) {
            return Err(LabError::Interrupted);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}
