//! What an experiment needs and changes: told before anything starts.

use pgdyno_model::format::counted;
use pgdyno_model::storage::{Backing, DeviceSettings};
use pgdyno_model::units::Bytes;
use pgdyno_results::analysis::host_noise;
use pgdyno_results::report;
use pgdyno_storage::StorageError;

use crate::crash::log_room::{LogRoom, log_rooms};
use crate::prepare::Prepared;
use crate::provisioner::RoomNeeded;
use crate::{LabError, estimate};
use pgdyno_experiment::file::{self, Override, Source};

impl Prepared {
    /// Why it needs root, one reason each; none: it does not.
    pub fn root_needed_for(&self) -> Vec<&'static str> {
        let mut why = Vec::new();
        let storages = || self.storages().into_iter().map(|name| &self.experiment.storage[name]);
        let set = |device: &DeviceSettings| *device != DeviceSettings::default();
        if storages().any(|s| !matches!(s.backing, Backing::Directory(_))) {
            why.push("making filesystems");
        }
        if storages().any(|s| set(&s.device)) || self.plan.treatments.iter().any(|t| set(&t.device))
        {
            why.push("setting devices");
        }
        if self.experiment.between.drop_caches {
            why.push("dropping the kernel's caches");
        }
        why
    }

    /// Refuses a plan of which nothing can be measured without root, before anything is fetched.
    ///
    /// # Errors
    /// pgdyno does not run as root, and every treatment lies on a storage that only root can make.
    pub(crate) fn check_root(&self) -> Result<(), LabError> {
        let only_root = |name: &&str| self.experiment.storage[*name].is_made();
        let mut missing = self.plan.treatments.iter().map(|treatment| {
            self.lies_on(&treatment.storage).into_iter().find(only_root).map(str::to_owned)
        });
        let first = missing.next().flatten();
        match first {
            Some(storage) if !pgdyno_exec::caches::is_root() && missing.all(|m| m.is_some()) => {
                Err(StorageError::NotRoot { storage, what: "make filesystems" }.into())
            }
            _ => Ok(()),
        }
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
        let devices: Vec<String> = self
            .storages()
            .into_iter()
            .flat_map(|name| self.experiment.storage[name].devices())
            .map(|device| device.display().to_string())
            .collect();
        let made = self.storages().into_iter().map(|name| &self.experiment.storage[name].backing);
        let files = made.filter(|backing| loop_files(backing) > 0).count();
        if files > 0 {
            changes.push(format!("{files} filesystems in loop files"));
        }
        if !devices.is_empty() {
            changes.push(format!("what is on {}, which is lost", devices.join(", ")));
        }
        let reasons = self.root_needed_for();
        if reasons.contains(&"setting devices") {
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

    /// The disk room that it takes at most, and what for.
    pub fn room(&self) -> (Bytes, String) {
        let backing = |name: &str| &self.experiment.storage[name].backing;
        let mut bytes = 0_u64;
        let mut what = Vec::new();
        for (name, RoomNeeded { bytes: room, data }) in estimate::room(self) {
            if matches!(backing(&name), Backing::Directory(_)) {
                bytes = bytes.saturating_add(room.0);
                what.push(data);
            }
        }
        let files: u64 = self.storages().into_iter().map(|name| loop_files(backing(name))).sum();
        if files > 0 {
            bytes = bytes.saturating_add(files);
            what.push("loop files".to_owned());
        }
        for LogRoom { needed: RoomNeeded { bytes: room, data }, .. } in log_rooms(self) {
            bytes = bytes.saturating_add(room.0);
            what.push(data);
        }
        (Bytes(bytes), what.join(", "))
    }

    /// Treatments, time and room in a line.
    fn size_in_words(&self) -> String {
        let (least, most, by_count) = estimate::time(self);
        let (least, most) = (hours(least), hours(most));
        let time = if least == most { most } else { format!("{least} to {most}") };
        let repeats = match &self.plan.stopping {
            Some(s) => format!("{} to {} repeats", s.floor, s.ceiling),
            None => counted(self.experiment.repeats.get(), "repeat"),
        };
        let more = if by_count { " and what the counted transactions take" } else { "" };
        let (room, what) = self.room();
        let room =
            if room.0 == 0 { String::new() } else { format!(", up to {room} of disk for {what}") };
        let found = host_noise::found_on_a_busy_host(&self.plan);
        format!(
            "{} x {repeats}, about {time}{more}{room}{}",
            counted(self.plan.treatments.len() as u64, "treatment"),
            found.map_or_else(String::new, |found| format!("; {}", report::on_a_busy_host(found)))
        )
    }
}

/// Minutes, or hours where there are many.
fn hours(time: std::time::Duration) -> String {
    let minutes = time.as_secs().div_ceil(60);
    match minutes {
        0..=119 => format!("{minutes} min"),
        _ => format!("{} h", minutes.div_ceil(60)),
    }
}

/// The bytes of all loop files in a backing.
fn loop_files(backing: &Backing) -> u64 {
    match backing {
        Backing::Loop(file) => file.size.0,
        Backing::Emulated(disk) => disk.size.0,
        Backing::Raid0(raid) => raid.members.iter().map(loop_files).sum(),
        Backing::Directory(_) | Backing::Device(_) | Backing::Ram(_) => 0,
    }
}

/// An experiment in a few lines: what it asks, what it needs at each of its sizes, what it changes.
///
/// # Errors
/// Anything that is wrong with it.
pub fn summary(source: &Source) -> Result<String, LabError> {
    // With a fixed order, so that the same recipe is told alike each time.
    let prepared = Prepared::with_seed(source.clone(), Vec::new(), || Ok(1))?;
    let question = prepared.plan.question.as_deref().unwrap_or("(no question)");
    let mut lines = vec![prepared.plan.name.clone(), format!("    {question}")];
    let sizes = file::sizes(source)?;
    for size in &sizes {
        let prepared = Prepared::with_seed(source.clone(), size.overrides.clone(), || Ok(1))?;
        lines.push(format!(
            "    --size {:<7} {}: {}",
            size.name,
            size.about,
            prepared.size_in_words()
        ));
    }
    if sizes.is_empty() {
        lines.push(format!("    {}", prepared.size_in_words()));
    }
    lines.push(match prepared.root_needed_for().as_slice() {
        [] => "    needs no root".to_owned(),
        why => format!("    needs root, for {}", why.join(" and ")),
    });
    lines.push(format!("    makes, and takes down again: {}", prepared.changes().join("; ")));
    Ok(lines.join("\n"))
}

/// Returns the overrides that `--size NAME` stands for in `source`.
///
/// # Errors
/// The experiment has no such size.
pub fn overrides_of(source: &Source, name: &str) -> Result<Vec<Override>, LabError> {
    Ok(file::size(source, name)?.overrides)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pgdyno_experiment::recipes;

    #[test]
    fn every_recipe_has_its_sizes_and_each_is_an_experiment() {
        for recipe in recipes::all() {
            let names: Vec<String> =
                file::sizes(&recipe).unwrap().into_iter().map(|s| s.name).collect();
            match recipe.name.as_str() {
                "quickstart" | "noise-floor" => assert_eq!(names, ["quick"]),
                // No report stands behind these.
                "commit-loss" | "crash-matrix" | "flush-latency" => {
                    assert_eq!(names, ["quick", "large"]);
                }
                "ssd-acceptance" => assert_eq!(names, ["quick", "report", "verbatim", "large"]),
                "big-table" => {
                    assert_eq!(names, ["quick", "report", "buffers", "kinds", "raid0", "large"]);
                }
                "zfs-xfs" => {
                    assert_eq!(names, ["quick", "report", "barriers", "alignment", "large"]);
                }
                "group-commit" => assert_eq!(names, ["quick", "report", "sustained", "large"]),
                _ => assert_eq!(names, ["quick", "report", "large"], "{}", recipe.name),
            }
            for name in names {
                let overrides = overrides_of(&recipe, &name).unwrap();
                let prepared = Prepared::new(recipe.clone(), overrides);
                assert!(
                    prepared.is_ok(),
                    "{} --size {name}: {}",
                    recipe.name,
                    prepared.unwrap_err()
                );
            }
        }
    }

    #[test]
    fn at_their_usual_size_recipes_tell_a_fifth_on_a_busy_host() {
        for recipe in recipes::all() {
            let found = |overrides| {
                let prepared = Prepared::new(recipe.clone(), overrides).unwrap();
                host_noise::found_on_a_busy_host(prepared.plan())
            };
            let quick = found(Vec::new());
            assert_eq!(quick, found(overrides_of(&recipe, "quick").unwrap()), "{}", recipe.name);
            let most = match recipe.name.as_str() {
                // So many repeats of it would be no matter of minutes.
                "filesystem-options" => 0.5,
                // Their treatments differ by more, or their question is no difference.
                "flush-latency" | "crash-matrix" => 0.85,
                _ => 0.2,
            };
            assert!(quick.unwrap() <= most, "{}: {quick:?}", recipe.name);
        }
    }

    #[test]
    fn needs_and_changes_are_told() {
        insta::assert_snapshot!(summary(&recipes::source("zfs-xfs").unwrap()).unwrap());
        insta::assert_snapshot!(summary(&recipes::source("quickstart").unwrap()).unwrap());
    }
}
