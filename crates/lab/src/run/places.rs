//! The storages of a run: made when they are needed, one at a time where they share a device.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use pgdyno_host::facts::{self, Serials};
use pgdyno_host::storage::{MadeStack, Stack, Surroundings, Wipe};
use pgdyno_host::{Account, Journal, StorageDirectory, paths};
use pgdyno_model::Storage;
use pgdyno_model::facts::StorageFacts;
use pgdyno_model::storage::{Backing, DeviceSettings};
use pgdyno_model::units::Bytes;

use crate::LabError;
use crate::estimate;
use crate::prepare::Prepared;
use pgdyno_model::progress::{Event, Progress};

/// All storages of a run.
pub(super) struct Places {
    account: Account,
    journal: Journal,
    wipe: Wipe,
    serials: Serials,
    /// What the data that lie on each take, and what they are.
    needed: BTreeMap<String, (Bytes, String)>,
    storages: BTreeMap<String, State>,
    /// What each was when it was made last: it may have given way to another since.
    known: BTreeMap<String, StorageFacts>,
}

enum State {
    /// Not made yet, or taken down for another one.
    Down,
    Up(Box<Place>),
    /// It cannot be made.
    Broken {
        why: String,
        /// This machine lacks something that it takes.
        unavailable: bool,
    },
}

/// A storage that stands.
struct Place {
    stack: MadeStack,
    /// A directory that is used as it is, checked; dropped after the stack.
    _directory: Option<StorageDirectory>,
}

impl Places {
    /// None of `prepared`'s storages is made yet.
    pub(super) fn of(prepared: &Prepared, account: &Account, journal: &Journal) -> Self {
        let keep = prepared.experiment.telemetry.keep_serials;
        Self {
            account: account.clone(),
            journal: journal.clone(),
            wipe: prepared.wipe.clone(),
            serials: if keep { Serials::Kept } else { Serials::Hashed },
            needed: estimate::room(prepared),
            storages: prepared
                .storages()
                .into_iter()
                .map(|name| (name.to_owned(), State::Down))
                .collect(),
            known: BTreeMap::new(),
        }
    }

    /// Whether the directories that are used as they are can be used: before anything is fetched or
    /// made.
    pub(super) fn check_directories(&self, prepared: &Prepared) -> Result<(), LabError> {
        for name in self.storages.keys() {
            if let Backing::Directory(named) = &prepared.experiment.storage[name].backing {
                StorageDirectory::open(named.as_deref(), &self.account)?;
            }
        }
        Ok(())
    }

    /// Makes storage `name` unless it stands.
    pub(super) fn make(
        &mut self,
        name: &str,
        asked: &Storage,
        progress: &dyn Progress,
        stop: &AtomicBool,
    ) -> Result<(), LabError> {
        match self.storages.get(name) {
            Some(State::Up(_)) => return Ok(()),
            Some(State::Broken { why, .. }) => {
                return Err(LabError::Storage { found: why.clone() });
            }
            Some(State::Down) | None => {}
        }
        let (place, facts) = self.made(name, asked, progress, stop)?;
        self.known.insert(name.to_owned(), facts);
        self.storages.insert(name.to_owned(), State::Up(Box::new(place)));
        Ok(())
    }

    fn made(
        &self,
        name: &str,
        asked: &Storage,
        progress: &dyn Progress,
        stop: &AtomicBool,
    ) -> Result<(Place, StorageFacts), LabError> {
        let default = paths::default_storage_dir();
        let around =
            Surroundings { default_directory: &default, account: &self.account, wipe: &self.wipe };
        let stack = Stack::plan(name, asked, &around)?;
        self.check_size(name, &stack)?;
        let directory = match stack.is_made() {
            true => None,
            false => Some(StorageDirectory::open(asked.named_directory(), &self.account)?),
        };
        if stack.is_made() {
            progress.event(&Event::Working { what: format!("making storage {name}"), share: None });
            // Why it must not be written to says more than what is on it.
            if let Some(refusal) = stack.refusals().into_iter().next() {
                return Err(refusal.into());
            }
            for device in asked.devices() {
                let what =
                    pgdyno_host::storage::safety::describe(device, self.serials == Serials::Kept)?;
                progress.event(&Event::Note(format!("storage {name} overwrites {what}")));
            }
        }
        let stack = stack.make(&self.account, &self.journal, stop)?;
        let obtained = stack.facts(self.serials == Serials::Kept)?;
        let mut facts = facts::fingerprint(name, &stack.path(), self.serials)?;
        facts.obtained = Some(obtained);
        Ok((Place { stack, _directory: directory }, facts))
    }

    /// Refuses what the data cannot fit on, before anything is made there.
    fn check_size(&self, name: &str, stack: &Stack) -> Result<(), LabError> {
        let (Some((needed, what)), Some(available)) = (self.needed.get(name), stack.size()) else {
            return Ok(());
        };
        if available >= *needed {
            return Ok(());
        }
        let (storage, directory) = (name.to_owned(), stack.path());
        Err(LabError::NoRoom { what: what.clone(), storage, directory, needed: *needed, available })
    }

    /// Gives storage `name` up: it is not tried again.
    pub(super) fn give_up(&mut self, name: &str, why: &LabError) {
        let (why, unavailable) = (why.in_words(), why.is_unavailable());
        self.storages.insert(name.to_owned(), State::Broken { why, unavailable });
    }

    /// Takes storage `name` down, if it stands; what could not be.
    pub(super) fn take_down(&mut self, name: &str) -> Vec<String> {
        match self.storages.insert(name.to_owned(), State::Down) {
            Some(State::Up(place)) => place.stack.take_down(),
            Some(broken @ State::Broken { .. }) => {
                self.storages.insert(name.to_owned(), broken);
                Vec::new()
            }
            Some(State::Down) | None => Vec::new(),
        }
    }

    /// Takes all of them down; what could not be.
    pub(super) fn take_all_down(mut self) -> Vec<String> {
        let names: Vec<String> = self.storages.keys().cloned().collect();
        names.iter().flat_map(|name| self.take_down(name)).collect()
    }

    /// The names of those that stand.
    pub(super) fn standing(&self) -> BTreeSet<String> {
        let up = self.storages.iter().filter(|(_, state)| matches!(state, State::Up(_)));
        up.map(|(name, _)| name.clone()).collect()
    }

    /// Whether storage `name` was given up.
    pub(super) fn is_broken(&self, name: &str) -> bool {
        matches!(self.storages.get(name), Some(State::Broken { .. }))
    }

    /// Whether storage `name` was given up because this machine lacks something that it takes.
    pub(super) fn is_unavailable(&self, name: &str) -> bool {
        matches!(self.storages.get(name), Some(State::Broken { unavailable: true, .. }))
    }

    /// Where clusters on storage `name` lie.
    pub(super) fn path(&self, name: &str) -> Result<PathBuf, LabError> {
        match self.storages.get(name) {
            Some(State::Up(place)) => Ok(place.stack.path()),
            Some(State::Broken { why, .. }) => Err(LabError::Storage { found: why.clone() }),
            Some(State::Down) | None => {
                Err(LabError::Storage { found: format!("storage `{name}` does not stand") })
            }
        }
    }

    /// What is known of storage `name`.
    pub(super) fn facts(&self, name: &str, asked: &Storage) -> StorageFacts {
        let failure = match self.storages.get(name) {
            Some(State::Broken { why, .. }) => Some(why.clone()),
            _ => None,
        };
        let not_available_here = self.is_unavailable(name);
        let unknown = || StorageFacts { name: name.to_owned(), ..StorageFacts::default() };
        let known = self.known.get(name).cloned().unwrap_or_else(unknown);
        StorageFacts { asked: Some(asked.clone()), failure, not_available_here, ..known }
    }

    /// Sets the devices of storage `name` as `device` says.
    pub(super) fn set(
        &mut self,
        name: &str,
        device: &DeviceSettings,
        stop: &AtomicBool,
    ) -> Result<(), LabError> {
        match self.storages.get_mut(name) {
            Some(State::Up(place)) => Ok(place.stack.set(device, stop)?),
            _ => Ok(()),
        }
    }

    /// Trims storage `name` where the experiment asks for that.
    pub(super) fn trim(&self, name: &str) -> Result<(), LabError> {
        match self.storages.get(name) {
            Some(State::Up(place)) => Ok(place.stack.trim()?),
            _ => Ok(()),
        }
    }
}
