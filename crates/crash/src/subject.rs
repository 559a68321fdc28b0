//! The subject of crash tests: a storage, a server's programs and its settings.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use pgdyno_exec::account::{Account, server_account};
use pgdyno_experiment::ResolvedExperiment;
use pgdyno_experiment::checks::crash::{options, planted_faults, struck_storages};
use pgdyno_experiment::settings::{base_settings, max_connections, replace_setting};
use pgdyno_facts::Serials;
use pgdyno_model::crash::{CrashOptions, States};
use pgdyno_model::experiment::Connect;
use pgdyno_model::storage::{Backing, DeviceSettings, EmulatedDisk, FilesystemChoice};
use pgdyno_model::target::Target;
use pgdyno_model::{Fault, Storage, Treatment};
use pgdyno_postgres::Install;
use pgdyno_storage::Wipe;
use pgdyno_storage::fault::CUTTABLE;

use super::error::CrashError;
use super::workload::CrashLoad;
use pgdyno_provision::programs::install_programs;
use pgdyno_provision::{BenchError, Context, serials};

/// Where the load goes instead of straight to the server: to what stands between, a pooler or a
/// proxy.
pub type Through = Arc<dyn Fn(&Target) -> Target + Send + Sync>;

/// Damage that a test does to the server, so that the oracles have something to find.
#[derive(Clone, Default)]
pub struct Interference {
    /// Where the load goes.
    pub through: Option<Through>,
    /// Called in each round with a superuser's target and PGDATA, after recovery and before
    /// verification.
    pub after_recovery: Option<AfterRecovery>,
}

/// Damages a server that came back.
pub type AfterRecovery = Arc<dyn Fn(&Target, &Path) + Send + Sync>;

/// The storage, programs and settings that are crashed.
#[derive(Clone)]
pub struct Subject {
    /// The name in reports.
    pub name: String,
    /// The name of the storage of PGDATA.
    pub(crate) storage: String,
    /// All storages, by name.
    pub(crate) storages: BTreeMap<String, Storage>,
    /// Settings of the storage's devices that the treatment makes.
    pub(crate) device: DeviceSettings,
    pub(crate) wipe: Wipe,
    pub(crate) serials: Serials,
    pub(crate) install: Install,
    pub(crate) account: Account,
    pub(crate) initdb: Vec<String>,
    pub(crate) connect: Connect,
    /// The settings that are asked for.
    pub(crate) settings: BTreeMap<String, String>,
    pub(crate) options: CrashOptions,
    pub(crate) interference: Interference,
}

impl Subject {
    /// Returns the subject that `treatment` of `resolved` describes. Fetches missing programs.
    ///
    /// # Errors
    /// There are no programs of the treatment's version, or they refuse a setting.
    pub fn new(
        resolved: &ResolvedExperiment,
        treatment: &Treatment,
        context: Context<'_>,
    ) -> Result<Self, BenchError> {
        let account = server_account()?;
        let install = install_programs(resolved, &account, context)?
            .remove(&resolved.build(treatment))
            .ok_or(CrashError::NoPrograms)?;
        let experiment = &resolved.experiment;
        let mut settings = base_settings(resolved);
        for (name, value) in &treatment.settings {
            replace_setting(&mut settings, name, value);
        }
        let labels: Vec<String> =
            treatment.levels.0.iter().map(|(name, level)| format!("{name}={level}")).collect();
        let name =
            if labels.is_empty() { described(resolved, treatment) } else { labels.join(" ") };
        Ok(Self {
            name,
            storage: treatment.storage.clone(),
            storages: experiment.storage.clone(),
            device: treatment.device.clone(),
            wipe: resolved.wipe.clone(),
            serials: serials(resolved),
            install,
            account,
            initdb: experiment.postgres.initdb.clone(),
            connect: experiment.postgres.connect,
            settings,
            options: CrashOptions {
                planted: planted_faults(experiment, treatment),
                ..options(experiment, &resolved.plan)?.clone()
            },
            interference: Interference::default(),
        })
    }

    /// Returns the load that is crashed.
    pub(super) fn load(&self) -> &'static CrashLoad {
        CrashLoad::named(self.options.workload)
    }

    /// The server's settings: what is asked for, and what keeps a short test in a small file.
    pub(crate) fn server_settings(&self) -> BTreeMap<String, String> {
        let mut settings = self.settings.clone();
        let mut offer = |name: &str, value: String| {
            if !settings.keys().any(|n| n.eq_ignore_ascii_case(name)) {
                settings.insert(name.to_owned(), value);
            }
        };
        // The server makes checkpoints by itself too.
        offer("max_wal_size", max_wal_size(&self.initdb));
        if let Some(connections) = max_connections(self.options.clients) {
            offer("max_connections", connections.to_string());
        }
        // The server's log is read for damage, in English; initdb takes over the locale's language.
        replace_setting(&mut settings, "lc_messages", "C");
        settings
    }

    /// initdb's options: unless somebody decided, page checksums, and WAL segments of 1 MB, so that
    /// WAL which a checkpoint has made superfluous is gone soon.
    pub(crate) fn initdb(&self) -> Vec<String> {
        let decided =
            |a: &String| a == "-k" || a == "--data-checksums" || a == "--no-data-checksums";
        let mut options = self.initdb.clone();
        if !options.iter().any(decided) {
            options.push("--data-checksums".into());
        }
        // Before PostgreSQL 18 that is the default, and no option.
        if self.install.major < 18 {
            options.retain(|option| option != "--no-data-checksums");
        }
        if !options.iter().any(|a| a.starts_with("--wal-segsize")) {
            options.push("--wal-segsize=1".into());
        }
        options
    }

    /// Lets a filesystem that writes pages elsewhere each time write them in place: else there is
    /// none that could tear.
    pub(crate) fn write_in_place(&mut self) {
        for name in self.struck_storages() {
            let filesystem =
                self.storages.get_mut(&name).and_then(|storage| storage.filesystem.as_mut());
            let Some(filesystem) = filesystem.filter(|filesystem| filesystem.name == "btrfs")
            else {
                continue;
            };
            // Compression would silently take it back.
            filesystem
                .mount
                .retain(|option| !option.starts_with("compress") && option != "datacow");
            if !filesystem.mount.iter().any(|option| option == "nodatacow") {
                filesystem.mount.push("nodatacow".into());
            }
        }
    }

    /// The storages that a fault strikes: that of PGDATA, and that of pg_wal where it has its own.
    fn struck_storages(&self) -> Vec<String> {
        struck_storages(&self.storages, &self.storage)
    }

    /// Returns the subject on the storages that `fault` needs.
    ///
    /// An emulated disk takes the place of a loop file in two cases: the fault is one of the disk,
    /// or the kernel cannot shut the filesystem down as a power loss would. Emulated disks that the
    /// user named are the only ones that a fault of the disk strikes. Where all states are looked
    /// at, every loop file is replaced.
    pub(crate) fn on_storages_for(&self, fault: Fault) -> Self {
        let mut other = self.clone();
        let struck = self.struck_storages();
        let chosen = !self.emulated().is_empty();
        for name in struck {
            let Some(storage) = other.storages.get_mut(&name) else { continue };
            if let Backing::Loop(file) = &storage.backing
                && (self.options.states != States::Drawn || takes_emulated(storage, fault))
                && !(chosen && fault.needs_emulated_disk())
            {
                storage.backing = Backing::Emulated(EmulatedDisk {
                    directory: file.directory.clone(),
                    size: file.size,
                    sector_size: file.sector_size,
                    seed: self.options.seed,
                    ..EmulatedDisk::default()
                });
            }
        }
        other
    }

    /// Whether PGDATA and pg_wal lie on emulated disks, both of them.
    pub(crate) fn is_emulated(&self) -> bool {
        self.emulated() == self.struck_storages()
    }

    /// The storages of PGDATA and pg_wal that are emulated.
    pub(crate) fn emulated(&self) -> Vec<String> {
        let mut struck = self.struck_storages();
        struck.retain(|name| !self.storages[name].backing.emulated().is_empty());
        struck
    }

    /// Returns the subject with `name` set to `value`.
    pub(crate) fn with_setting(&self, name: &str, value: &str) -> Self {
        let mut other = self.clone();
        replace_setting(&mut other.settings, name, value);
        other
    }
}

/// A subject without factors by its filesystem and settings.
pub(super) fn described(resolved: &ResolvedExperiment, treatment: &Treatment) -> String {
    let storage = &resolved.experiment.storage[&treatment.storage];
    let mut words = vec![match (&storage.backing, &storage.filesystem) {
        (Backing::Directory(None), None) => "a directory".to_owned(),
        (Backing::Directory(Some(path)), None) => path.display().to_string(),
        (_, Some(filesystem)) => filesystem.name.clone(),
        (_, None) => treatment.storage.clone(),
    }];
    let settings = resolved.experiment.postgres.settings.iter();
    words.extend(settings.map(|(name, value)| format!("{name}={value}")));
    words.join(", ")
}

/// Whether the kernel's shutting it down loses what a power loss would. Without barriers a
/// filesystem does not ask the disk to keep what it has: only a disk that can forget shows it.
fn is_shut_down_as_by_the_power(filesystem: &FilesystemChoice) -> bool {
    let without_barriers = |option: &String| ["barrier=0", "nobarrier"].contains(&option.as_str());
    CUTTABLE.contains(&filesystem.name.as_str()) && !filesystem.mount.iter().any(without_barriers)
}

/// Whether `fault` strikes `storage` on an emulated disk.
pub(super) fn takes_emulated(storage: &Storage, fault: Fault) -> bool {
    let is_emulated = !storage.backing.emulated().is_empty();
    let shut_down = || storage.filesystem.as_ref().is_some_and(is_shut_down_as_by_the_power);
    is_emulated || fault.needs_emulated_disk() || (fault == Fault::Power && !shut_down())
}

/// Returns the `max_wal_size` of a server that `initdb` makes with these options: as little as it
/// takes, which is two segments.
fn max_wal_size(options: &[String]) -> String {
    const LEAST: u64 = 32;
    let mut words = options.iter().flat_map(|option| option.split(['=', ' ']));
    let asked = words.find(|word| *word == "--wal-segsize").and_then(|_| words.next());
    let segment = asked.and_then(|mb| mb.parse().ok()).unwrap_or(1);
    format!("{}MB", LEAST.max(2 * segment))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crashed_servers_wal_holds_two_segments_of_the_asked_size() {
        for (options, expected) in [
            (&[][..], "32MB"),
            (&["--wal-segsize=16", "-k"], "32MB"),
            (&["--data-checksums", "--wal-segsize=64"], "128MB"),
            (&["--wal-segsize", "1024"], "2048MB"),
        ] {
            let options: Vec<String> = options.iter().map(|&o| o.to_owned()).collect();
            assert_eq!(max_wal_size(&options), expected, "{options:?}");
        }
    }
}
