//! Footprint of a plan on the host: privileges, changes and disk room.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use pgdyno_dataset as dataset;
use pgdyno_model::crash::{CrashOptions, States};
use pgdyno_model::storage::{Backing, DeviceSettings};
use pgdyno_model::units::Bytes;

use crate::resolved_experiment::ResolvedExperiment;

/// Room that the log of a recorded stretch and the writes beside the image take for each second of
/// load, at most: twice what a disk of 200 MB/s would write.
const LOG_ROOM_A_SECOND: u64 = 400 << 20;

/// Room that is needed on a storage.
#[derive(Clone, Debug)]
pub struct RoomNeeded {
    /// The room.
    pub bytes: Bytes,
    /// The data that take it, for messages.
    pub data: String,
}

impl ResolvedExperiment {
    /// Returns the reasons why the plan needs root; none: it does not.
    pub fn root_needed_for(&self) -> Vec<&'static str> {
        let mut why = Vec::new();
        let mut storages = self.storages().into_iter().map(|name| &self.experiment.storage[name]);
        if storages.any(|s| !matches!(s.backing, Backing::Directory(_))) {
            why.push("making filesystems");
        }
        if self.sets_devices() {
            why.push("setting devices");
        }
        if self.experiment.between.drop_caches {
            why.push("dropping the kernel's caches");
        }
        why
    }

    /// Returns whether the plan changes settings of devices.
    fn sets_devices(&self) -> bool {
        let set = |device: &DeviceSettings| *device != DeviceSettings::default();
        self.storages().into_iter().any(|name| set(&self.experiment.storage[name].device))
            || self.plan.treatments.iter().any(|treatment| set(&treatment.device))
    }

    /// Returns the first storage that only root can make, if every treatment needs such a one: then
    /// nothing can be measured without root.
    pub fn needs_root_for_all(&self) -> Option<&str> {
        let is_made = |name: &&str| self.experiment.storage[*name].is_made();
        let made = |storage| self.lies_on(storage).into_iter().find(is_made);
        let made: Option<Vec<&str>> =
            self.plan.treatments.iter().map(|treatment| made(&treatment.storage)).collect();
        made?.first().copied()
    }

    /// Returns the devices that storages of the plan are made on.
    pub(crate) fn devices(&self) -> Vec<PathBuf> {
        let of_storage = |name| self.experiment.storage[name].devices();
        self.storages().into_iter().flat_map(of_storage).map(Path::to_owned).collect()
    }

    /// Returns the changes to the host while the experiment runs. All are undone when it ends.
    pub fn changes(&self) -> Vec<String> {
        let mut changes = Vec::new();
        match self.experiment.postgres.is_external() {
            true => {
                changes.push("a schema on the given server".to_owned());
                if self.experiment.postgres.alter_system {
                    changes
                        .push("settings of the whole given server, put back afterwards".to_owned());
                }
            }
            false => changes.push(match self.clusters().len() {
                1 => "a cluster, its server and its data".to_owned(),
                n => format!("{n} clusters, their servers and data"),
            }),
        }
        let devices: Vec<String> =
            self.devices().iter().map(|device| device.display().to_string()).collect();
        let made = self.storages().into_iter().map(|name| &self.experiment.storage[name].backing);
        let files = made.filter(|backing| loop_files(backing) > 0).count();
        if files > 0 {
            changes.push(format!("{files} filesystems in loop files"));
        }
        if !devices.is_empty() {
            changes.push(format!("what is on {}, which is lost", devices.join(", ")));
        }
        if self.sets_devices() {
            changes.push("settings of devices, put back afterwards".to_owned());
        }
        if self.experiment.between.drop_caches {
            changes.push("the kernel's caches, before every trial".to_owned());
        }
        if !self.experiment.between.command.is_empty() {
            changes.push("what its own command does, before every trial".to_owned());
        }
        changes
    }

    /// Returns the disk room that the plan takes at most, and the data that take it.
    pub fn room(&self) -> (Bytes, String) {
        let backing = |name: &str| &self.experiment.storage[name].backing;
        let in_directories =
            |(name, _): &(String, RoomNeeded)| matches!(backing(name), Backing::Directory(_));
        let mut all: Vec<RoomNeeded> =
            room(self).into_iter().filter(in_directories).map(|(_, needed)| needed).collect();
        let files: u64 = self.storages().into_iter().map(|name| loop_files(backing(name))).sum();
        if files > 0 {
            all.push(RoomNeeded { bytes: Bytes(files), data: "loop files".to_owned() });
        }
        all.extend(log_rooms(self).into_iter().map(|(_, needed)| needed));
        let bytes = all.iter().fold(0_u64, |sum, needed| sum.saturating_add(needed.bytes.0));
        let data: Vec<String> = all.into_iter().map(|needed| needed.data).collect();
        (Bytes(bytes), data.join(", "))
    }
}

/// Returns the room that the plan takes on each storage at once, with the data sets that lie there.
/// Room of tablespaces is counted where PGDATA lies.
pub fn room(resolved: &ResolvedExperiment) -> BTreeMap<String, RoomNeeded> {
    let mut room: BTreeMap<String, (Bytes, Vec<String>)> = BTreeMap::new();
    let mut add = |storage: &str, needed: Bytes, what: String| {
        let (sum, all) = room.entry(storage.to_owned()).or_default();
        sum.0 = sum.0.saturating_add(needed.0);
        all.push(what);
    };
    for (key, treatment) in resolved.clusters() {
        let mut needed = dataset::room_needed(resolved.data(treatment), key.scale);
        let what = format!("{} at scale {}", key.data, key.scale);
        let wal_room = wal_room(resolved);
        match &resolved.experiment.storage[&key.storage].wal {
            Some(wal) => add(wal, wal_room, format!("the WAL of {what}")),
            None => needed.0 = needed.0.saturating_add(wal_room.0),
        }
        add(&key.storage, needed, what);
    }
    let needed = |(bytes, all): (Bytes, Vec<String>)| RoomNeeded { bytes, data: listed(&all) };
    room.into_iter().map(|(storage, all)| (storage, needed(all))).collect()
}

/// Lists `all` data in a line: each once, with how often it is there.
fn listed(all: &[String]) -> String {
    let times = |(what, times): (&String, usize)| match times {
        1 => what.clone(),
        times => format!("{what} ({times} times)"),
    };
    let mut found: Vec<(&String, usize)> = Vec::new();
    for what in all {
        match found.iter_mut().find(|(earlier, _)| *earlier == what) {
            Some((_, count)) => *count += 1,
            None => found.push((what, 1)),
        }
    }
    found.into_iter().map(times).collect::<Vec<_>>().join(", ")
}

/// Returns the room that a cluster's WAL takes: `max_wal_size`, the largest that any treatment
/// gives it.
fn wal_room(resolved: &ResolvedExperiment) -> Bytes {
    let set = resolved.plan.treatments.iter().filter_map(|t| t.settings.get("max_wal_size"));
    set.filter_map(|text| memory(text)).max().unwrap_or(dataset::WAL_ROOM)
}

/// Parses a size as PostgreSQL's settings spell it; `max_wal_size` without a unit is in megabytes.
fn memory(text: &str) -> Option<Bytes> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let unit: u64 = match unit.trim() {
        "B" => 1,
        "kB" => 1 << 10,
        "MB" | "" => 1 << 20,
        "GB" => 1 << 30,
        "TB" => 1 << 40,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(unit).map(Bytes)
}

/// Returns the room for the log of a stretch; none where no stretch is recorded. It lies beside the
/// image of an emulated disk, not on that disk.
pub fn log_room(options: &CrashOptions) -> Option<RoomNeeded> {
    let seconds = options.load.0.as_secs().saturating_add(1);
    (options.states != States::Drawn).then(|| RoomNeeded {
        bytes: Bytes(seconds.saturating_mul(LOG_ROOM_A_SECOND)),
        data: format!("the disk log of {seconds} s of load"),
    })
}

/// Returns the rooms for the logs of all crash tests of `resolved`, by storage.
pub fn log_rooms(resolved: &ResolvedExperiment) -> Vec<(&str, RoomNeeded)> {
    let Some(needed) = resolved.experiment.crash.as_ref().and_then(log_room) else {
        return Vec::new();
    };
    let crashed = resolved.plan.crashed.iter();
    let storages: BTreeSet<&str> =
        crashed.map(|at| resolved.plan.treatments[*at].storage.as_str()).collect();
    storages.into_iter().map(|storage| (storage, needed.clone())).collect()
}

/// Returns the bytes of all loop files in a backing.
fn loop_files(backing: &Backing) -> u64 {
    match backing {
        Backing::Loop(file) => file.size.0,
        Backing::Emulated(disk) => disk.size.0,
        Backing::Raid0(raid) => raid.members.iter().map(loop_files).sum(),
        Backing::Directory(_) | Backing::Device(_) | Backing::Ram(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_for_wal_is_what_the_settings_allow_it() {
        assert_eq!(memory("512MB"), Some(Bytes(512 << 20)));
        assert_eq!([memory("2GB"), memory("2048"), memory("2 GB")], [Some(Bytes(2 << 30)); 3]);
        assert_eq!(memory("much"), None);
    }
}
