//! Makes the storages of a run when they are needed, one at a time where they share a device.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use crate::error::LabError;
use pgdyno_emulated_disk::DiskServer;
use pgdyno_experiment::ResolvedExperiment;
use pgdyno_experiment::footprint::{self, RoomNeeded};
use pgdyno_model::facts::StorageFacts;
use pgdyno_model::storage::{Backing, DeviceSettings};
use pgdyno_model::{Failure, FailureKind, Storage};

use pgdyno_provision::BenchError;
use pgdyno_provision::provisioner::{ProvisionedStorage, Provisioner};

/// All storages of a run.
pub(super) struct StoragePool<'a> {
    resolved: &'a ResolvedExperiment,
    /// Room that the data on each storage take.
    needed: BTreeMap<String, RoomNeeded>,
    storages: BTreeMap<String, State>,
    /// Facts of each storage as it was last made. It may have been taken down since.
    known: BTreeMap<String, StorageFacts>,
}

enum State {
    /// Not made yet, or taken down for another storage.
    Down,
    Up(Box<ProvisionedStorage>),
    /// The storage cannot be made.
    Broken {
        failure: Failure,
    },
}

impl<'a> StoragePool<'a> {
    /// Makes a pool of the storages of `resolved`. None of them stands yet.
    pub(super) fn new(resolved: &'a ResolvedExperiment) -> Self {
        let down = |name: &str| (name.to_owned(), State::Down);
        Self {
            resolved,
            needed: footprint::room(resolved),
            storages: resolved.storages().into_iter().map(down).collect(),
            known: BTreeMap::new(),
        }
    }

    /// Checks directories that are used as they are, before anything is fetched or made.
    pub(super) fn check_directories(
        &self,
        provisioner: &Provisioner<'_>,
    ) -> Result<(), BenchError> {
        for name in self.storages.keys() {
            if let Backing::Directory(named) = &self.request(name).backing {
                provisioner.check_directory(named.as_deref())?;
            }
        }
        Ok(())
    }

    fn request(&self, name: &str) -> &'a Storage {
        &self.resolved.experiment.storage[name]
    }

    /// Makes storage `name` unless it stands.
    pub(super) fn ensure_mounted(
        &mut self,
        name: &str,
        provisioner: &Provisioner<'_>,
    ) -> Result<(), BenchError> {
        match self.storages.get(name) {
            Some(State::Up(_)) => return Ok(()),
            Some(State::Broken { failure }) => {
                return Err(LabError::GivenUp(failure.clone()).into());
            }
            Some(State::Down) | None => {}
        }
        let made = provisioner.storage(name, self.request(name), self.needed.get(name))?;
        self.known.insert(name.to_owned(), made.facts.clone());
        self.storages.insert(name.to_owned(), State::Up(Box::new(made)));
        Ok(())
    }

    /// Gives storage `name` up for the rest of the run.
    pub(super) fn give_up(&mut self, name: &str, error: &BenchError) {
        self.storages.insert(name.to_owned(), State::Broken { failure: error.failure() });
    }

    /// Takes storage `name` down if it stands. Returns what could not be taken down.
    pub(super) fn take_down(&mut self, name: &str) -> Vec<String> {
        let Some(state) = self.storages.get_mut(name).filter(|s| matches!(s, State::Up(_))) else {
            return Vec::new();
        };
        match std::mem::replace(state, State::Down) {
            State::Up(made) => made.stack.take_down(),
            State::Down | State::Broken { .. } => Vec::new(),
        }
    }

    /// Takes every storage down. Returns what could not be taken down.
    pub(super) fn take_all_down(&mut self) -> Vec<String> {
        self.standing().iter().flat_map(|name| self.take_down(name)).collect()
    }

    /// Returns the names of the storages that stand.
    pub(super) fn standing(&self) -> BTreeSet<String> {
        let up = self.storages.iter().filter(|(_, state)| matches!(state, State::Up(_)));
        up.map(|(name, _)| name.clone()).collect()
    }

    /// Returns whether storage `name` was given up.
    pub(super) fn is_broken(&self, name: &str) -> bool {
        matches!(self.storages.get(name), Some(State::Broken { .. }))
    }

    /// Returns whether storage `name` was given up because this machine lacks what it takes.
    pub(super) fn is_unavailable(&self, name: &str) -> bool {
        matches!(
            self.storages.get(name),
            Some(State::Broken { failure }) if failure.kind == FailureKind::Unavailable
        )
    }

    /// Returns the directory in which clusters on storage `name` lie.
    pub(super) fn path(&self, name: &str) -> Result<PathBuf, LabError> {
        match self.storages.get(name) {
            Some(State::Up(made)) => Ok(made.stack.path()),
            Some(State::Broken { failure }) => Err(LabError::GivenUp(failure.clone())),
            Some(State::Down) | None => Err(LabError::NotMounted { storage: name.to_owned() }),
        }
    }

    /// Returns the first emulated disk of storage `name`; none if it lies on none, or does not
    /// stand.
    pub(super) fn disk(&self, name: &str) -> Option<DiskServer> {
        match self.storages.get(name) {
            Some(State::Up(made)) => made.stack.disks().into_iter().next(),
            _ => None,
        }
    }

    /// Returns the facts of storage `name`.
    pub(super) fn facts(&self, name: &str) -> StorageFacts {
        let failure = match self.storages.get(name) {
            Some(State::Broken { failure }) => Some(failure.to_string()),
            _ => None,
        };
        let not_available_here = self.is_unavailable(name);
        let unknown = || StorageFacts { name: name.to_owned(), ..StorageFacts::default() };
        let known = self.known.get(name).cloned().unwrap_or_else(unknown);
        let asked = Some(self.request(name).clone());
        StorageFacts { asked, failure, not_available_here, ..known }
    }

    /// Sets the devices of storage `name` as `device` says.
    pub(super) fn set(
        &mut self,
        name: &str,
        device: &DeviceSettings,
        provisioner: &Provisioner<'_>,
    ) -> Result<(), BenchError> {
        match self.storages.get_mut(name) {
            Some(State::Up(made)) => Ok(made.stack.set(device, provisioner.context.stop)?),
            _ => Ok(()),
        }
    }

    /// Trims storage `name`, if the experiment asks for that.
    pub(super) fn trim(&self, name: &str) -> Result<(), BenchError> {
        match self.storages.get(name) {
            Some(State::Up(made)) => Ok(made.stack.trim()?),
            _ => Ok(()),
        }
    }

    /// Discards the free blocks of storage `name`.
    pub(super) fn discard(&self, name: &str) -> Result<(), BenchError> {
        match self.storages.get(name) {
            Some(State::Up(made)) => Ok(made.stack.discard()?),
            _ => Ok(()),
        }
    }
}
