//! Devices that storages share.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use pgdyno_model::Storage;

/// The host's answers that a plan depends on.
pub trait Host {
    /// Returns whether `a` and `b` lead to the same device.
    fn is_same_device(&self, a: &Path, b: &Path) -> bool;

    /// Returns whether `a` and `b` lead to the same device, or one of them to a partition of the
    /// other's disk.
    fn is_same_disk(&self, a: &Path, b: &Path) -> bool;
}

/// Pairs of storages that are made on the same disk, and so cannot stand together.
#[derive(Clone, Debug)]
pub(crate) struct SharedDisks(BTreeSet<(String, String)>);

impl SharedDisks {
    /// Asks `host` which of `storages` share a disk.
    pub(crate) fn new(storages: &BTreeMap<String, Storage>, host: &dyn Host) -> Self {
        let share = |a: &Storage, b: &Storage| {
            a.devices()
                .iter()
                .any(|one| b.devices().iter().any(|other| host.is_same_disk(one, other)))
        };
        let mut pairs = BTreeSet::new();
        for (name, storage) in storages {
            for (other, _) in storages.iter().filter(|(_, other)| share(storage, other)) {
                pairs.insert((name.clone(), other.clone()));
            }
        }
        Self(pairs)
    }

    /// Returns whether storages `a` and `b` share a disk.
    pub(crate) fn contains(&self, a: &str, b: &str) -> bool {
        self.0.contains(&(a.to_owned(), b.to_owned()))
    }
}

/// A host without devices: paths lead to the same device only if they are equal.
#[cfg(test)]
pub(crate) struct NoDevices;

#[cfg(test)]
impl Host for NoDevices {
    fn is_same_device(&self, a: &Path, b: &Path) -> bool {
        a == b
    }

    fn is_same_disk(&self, a: &Path, b: &Path) -> bool {
        a == b
    }
}
