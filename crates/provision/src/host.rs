//! This host, asked which devices are the same.

use std::path::Path;

use pgdyno_exec::device::identity::BlockDevice;
use pgdyno_experiment::{Host, ResolvedExperiment};
use pgdyno_facts::Serials;

/// This host.
#[derive(Clone, Copy, Debug)]
pub struct ThisHost;

impl Host for ThisHost {
    fn is_same_device(&self, a: &Path, b: &Path) -> bool {
        match (BlockDevice::at(a), BlockDevice::at(b)) {
            (Ok(a), Ok(b)) => a.number == b.number,
            _ => a == b,
        }
    }

    fn is_same_disk(&self, a: &Path, b: &Path) -> bool {
        match (BlockDevice::at(a), BlockDevice::at(b)) {
            (Ok(a), Ok(b)) => a.number == b.number || a.name == b.disk() || b.name == a.disk(),
            // What is not there cannot be told to be another.
            _ => a == b,
        }
    }
}

/// Returns whether serial numbers of devices are kept in the records of `resolved`.
pub fn serials(resolved: &ResolvedExperiment) -> Serials {
    match resolved.experiment.telemetry.keep_serials {
        true => Serials::Kept,
        false => Serials::Hashed,
    }
}
