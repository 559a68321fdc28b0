//! Faults of the disk: each becomes something that is armed on the emulated disks, and a moment to wait for.

use std::sync::atomic::AtomicBool;

use pgdyno_engine::random::Random;
use pgdyno_host::storage::emulated::{Control, ControlError};
use pgdyno_model::Fault;
use pgdyno_model::target::Target;

use crate::LabError;

/// The disk faults that can be brought about.
pub(super) const FAULTS: &[Fault] = &[Fault::LyingDisk];

/// What is arranged before load is offered, the baseline being durable.
pub(super) fn before_load(fault: Fault, disks: &mut [Control]) -> Result<(), ControlError> {
    match fault {
        Fault::LyingDisk => disks.iter_mut().try_for_each(|disk| disk.lie(true)),
        _ => Ok(()),
    }
}

/// Brings the fault about while load runs on the server at `target`, and waits until it has happened; the power is cut after
/// it. What is worth telling of it.
///
/// # Errors
/// The inner one: it did not happen; why.
pub(super) fn strike(
    fault: Fault,
    disks: &mut [Control],
    target: &Target,
    draws: &mut Random,
    stop: &AtomicBool,
) -> Result<Result<Vec<String>, String>, LabError> {
    let _ = (disks, target, draws, stop);
    match fault {
        // The power cut that follows takes what it had acknowledged.
        Fault::LyingDisk => Ok(Ok(Vec::new())),
        other => Ok(Err(format!("{other} is no fault of a disk's"))),
    }
}
