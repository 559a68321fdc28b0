//! Room for the disk log of a recorded stretch. It lies beside the image of an emulated disk, not
//! on that disk, and is known before anything is made.

use std::path::PathBuf;

use crate::error::CrashError;
use pgdyno_exec::{directory, paths};
use pgdyno_experiment::ResolvedExperiment;
use pgdyno_experiment::footprint::{RoomNeeded, log_room, log_rooms};
use pgdyno_model::crash::CrashOptions;
use pgdyno_model::storage::Backing;

use pgdyno_provision::BenchError;

/// Room for the log of a stretch on a storage.
pub(crate) struct LogRoom {
    pub(crate) needed: RoomNeeded,
    /// The folder of the disk's files, or the nearest above it that is there.
    pub(crate) directory: PathBuf,
}

impl LogRoom {
    /// Returns the room for the log of a stretch on a storage on `backing`; none where no stretch
    /// is recorded.
    pub(crate) fn new(options: &CrashOptions, backing: &Backing) -> Option<Self> {
        Some(Self::beside(backing, log_room(options)?))
    }

    /// Returns the room `needed` beside the image of a disk on `backing`.
    fn beside(backing: &Backing, needed: RoomNeeded) -> Self {
        let named = match backing {
            Backing::Loop(file) => file.directory.clone(),
            Backing::Emulated(disk) => disk.directory.clone(),
            Backing::Raid0(_) | Backing::Directory(_) | Backing::Device(_) | Backing::Ram(_) => {
                None
            }
        };
        let folder = named.unwrap_or_else(paths::default_storage_dir);
        let directory = directory::nearest(&folder).to_owned();
        Self { needed, directory }
    }

    /// Returns the room with what `other` takes in the same folder.
    pub(super) fn with(mut self, other: &RoomNeeded) -> Self {
        self.needed.bytes.0 = self.needed.bytes.0.saturating_add(other.bytes.0);
        self.needed.data = format!("{}, {}", self.needed.data, other.data);
        self
    }

    /// Refuses a stretch on `storage` whose log may not find room.
    ///
    /// # Errors
    /// Too little is free, or the folder cannot be asked.
    pub(super) fn check(&self, storage: &str) -> Result<(), BenchError> {
        let Self { needed: RoomNeeded { bytes, data }, directory } = self;
        let Some(free) = directory::too_little_room(directory, *bytes)? else { return Ok(()) };
        let (storage, directory, data) = (storage.to_owned(), directory.clone(), data.clone());
        Err(CrashError::NoLogRoom { storage, needed: *bytes, directory, data, free }.into())
    }
}

/// Refuses `resolved` if a log of its crash tests may not find room.
///
/// # Errors
/// There is less room than a log may take.
pub fn check_log_rooms(resolved: &ResolvedExperiment) -> Result<(), BenchError> {
    by_storage(resolved).try_for_each(|(storage, room)| room.check(storage))
}

/// Returns the rooms for the logs of all crash tests of `resolved`, by storage.
fn by_storage(resolved: &ResolvedExperiment) -> impl Iterator<Item = (&str, LogRoom)> {
    let rooms = log_rooms(resolved).into_iter();
    rooms.map(|(storage, needed)| {
        (storage, LogRoom::beside(&resolved.experiment.storage[storage].backing, needed))
    })
}

/// Describes the rooms for the logs of all crash tests of `resolved`, and what is free.
pub fn describe_log_rooms(resolved: &ResolvedExperiment) -> String {
    let describe = |(_, room): (&str, LogRoom)| {
        let LogRoom { needed: RoomNeeded { bytes, data }, directory } = room;
        let free = directory::room(&directory).ok().flatten();
        let known = free.map_or_else(|| "unknown".to_owned(), |free| free.to_string());
        let lack = match free.is_some_and(|free| free < bytes) {
            true => "  That is not enough: it would be refused.\n",
            false => "",
        };
        format!(
            "Room in {}: up to {bytes} for {data}, beside the image; {known} free\n{lack}",
            directory.display()
        )
    };
    by_storage(resolved).map(describe).collect()
}
