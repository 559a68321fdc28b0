//! Which storages cannot stand together, since they are made on the same device.

use std::path::Path;

use pgdyno_exec::device::identity::BlockDevice;
use pgdyno_model::Storage;

/// Whether `a` and `b` name the same device, or one names a partition of the other's disk.
pub fn share_a_device(a: &Storage, b: &Storage) -> bool {
    a.devices().iter().any(|first| b.devices().iter().any(|second| overlap(first, second)))
}

/// Whether `a` and `b` lead to the same device.
pub fn same_device(a: &Path, b: &Path) -> bool {
    match (BlockDevice::at(a), BlockDevice::at(b)) {
        (Ok(a), Ok(b)) => a.number == b.number,
        _ => a == b,
    }
}

fn overlap(a: &Path, b: &Path) -> bool {
    match (BlockDevice::at(a), BlockDevice::at(b)) {
        (Ok(a), Ok(b)) => a.number == b.number || a.name == b.disk() || b.name == a.disk(),
        // What is not there cannot be told to be another.
        _ => a == b,
    }
}
