//! An experiment made ready: parsed, resolved, its scripts parsed. Nothing on the host is touched.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pgdyno_dataset::trust::{Purpose, Trust, has_commands};
use pgdyno_dataset::workload::{DataSet, Workload};
use pgdyno_engine::WeightedScript;
use pgdyno_engine::program::MAX_DISTRIBUTIONS;
use pgdyno_engine::script::Script;
use pgdyno_facts::Serials;
use pgdyno_model::progress::Notice;
use pgdyno_model::{Experiment, Plan, Storage, Treatment};
use pgdyno_storage::Wipe;

use crate::LabError;
use pgdyno_experiment::devices::{same_device, share_a_device};
use pgdyno_experiment::file::{self, Override, Source};
use pgdyno_experiment::resolve::resolve;

/// Which programs a cluster is made with.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Build {
    /// Their folder; none: any that fits.
    pub(crate) bindir: Option<PathBuf>,
    /// Their major version; none: whatever is found.
    pub(crate) version: Option<u32>,
}

/// A cluster that a plan needs: treatments that agree in all of these share one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ClusterKey {
    pub(crate) storage: String,
    pub(crate) build: Build,
    /// The external server, where factors choose among several.
    pub(crate) server: Option<String>,
    pub(crate) data: String,
    pub(crate) scale: u32,
}

impl ClusterKey {
    /// Whether the other cluster, made by the same programs, begins with the same data.
    pub(crate) fn holds_the_data_of(&self, other: &Self) -> bool {
        (&self.build, &self.data, self.scale) == (&other.build, &other.data, other.scale)
    }
}

/// Devices and files that the caller allows by name on the command line.
#[derive(Clone, Debug, Default)]
pub struct Consent {
    /// Devices that are given up.
    pub wipe: Wipe,
    /// Files of others whose commands may run.
    pub trust: Trust,
}

/// An experiment ready to be run.
#[derive(Clone, Debug)]
pub struct Prepared {
    pub(crate) source: Source,
    pub(crate) overrides: Vec<Override>,
    pub(crate) experiment: Experiment,
    pub(crate) plan: Plan,
    /// The devices that the user gave up on the command line.
    pub(crate) wipe: Wipe,
    /// The files of others that the user trusts.
    pub(crate) trust: Trust,
    workloads: BTreeMap<String, Workload>,
    scripts: BTreeMap<String, Vec<WeightedScript>>,
    /// Notices about how the scripts were read.
    pub(crate) notes: Vec<Notice>,
}

impl Prepared {
    /// Makes the experiment of `source`, with `overrides`, ready. Unless it gives a seed, one is
    /// drawn.
    ///
    /// # Errors
    /// Anything wrong in the file, an override, a workload or a script, with its place.
    pub fn new(source: Source, overrides: Vec<Override>) -> Result<Self, LabError> {
        Self::with_seed(source, overrides, draw_seed)
    }

    /// Makes the experiment of a run ready once more: with the seeds of its stored `plan`.
    pub(crate) fn of_run(
        source: Source,
        overrides: Vec<Override>,
        plan: &Plan,
    ) -> Result<Self, LabError> {
        let mut prepared = Self::with_seed(source, overrides, || Ok(plan.seed))?;
        if plan.data_seed.is_none() {
            prepared.plan.data_seed = None;
        }
        Ok(prepared)
    }

    /// As [`Prepared::new`], with the seed that `draw` gives where the experiment gives none.
    pub(crate) fn with_seed(
        source: Source,
        overrides: Vec<Override>,
        draw: impl FnOnce() -> Result<u64, LabError>,
    ) -> Result<Self, LabError> {
        let experiment = file::parse(&source, &overrides)?;
        let seed = experiment.seed.map_or_else(draw, Ok)?;
        let (plan, workloads) = resolve(&experiment, seed)?;
        let mut scripts = BTreeMap::new();
        let mut notes = Vec::new();
        for (name, workload) in &workloads {
            let parsed = workload
                .scripts
                .iter()
                .map(|s| {
                    // Scripts of pgbench 9.5 and before run as they are, as they do under
                    // `pgdyno pgbench`.
                    let (script, note) = Script::parse_auto(&s.name, &s.text)?;
                    notes.extend(note.map(Notice::Script));
                    notes.extend(too_many_for_distributions(&script));
                    Ok(WeightedScript { script: Arc::new(script), weight: s.weight })
                })
                .collect::<Result<Vec<_>, LabError>>()?;
            scripts.insert(name.clone(), parsed);
        }
        let prepared = Self {
            source,
            overrides,
            experiment,
            plan,
            wipe: Wipe::default(),
            trust: Trust::default(),
            workloads,
            scripts,
            notes,
        };
        if prepared.experiment.crash.is_some() {
            crate::crash::feasibility::check(&prepared.experiment, &prepared.plan)?;
        }
        crate::generators::check(&prepared.experiment.generators, &prepared.plan)?;
        crate::flush_accounting::check(&prepared.experiment, &prepared.plan)?;
        Ok(prepared)
    }

    /// Returns the plan.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Returns whether the noise of earlier runs on the host counts beside the run's own.
    pub fn counts_host_noise(&self) -> bool {
        self.experiment.host_noise
    }

    /// Returns whether serial numbers of devices are kept in records.
    pub(crate) fn serials(&self) -> Serials {
        match self.experiment.telemetry.keep_serials {
            true => Serials::Kept,
            false => Serials::Hashed,
        }
    }

    pub(crate) fn workload(&self, treatment: &Treatment) -> &Workload {
        &self.workloads[&treatment.workload]
    }

    pub(crate) fn scripts(&self, treatment: &Treatment) -> &[WeightedScript] {
        &self.scripts[&treatment.workload]
    }

    pub(crate) fn data(&self, treatment: &Treatment) -> &DataSet {
        &self.workload(treatment).data
    }

    pub(crate) fn key(&self, treatment: &Treatment) -> ClusterKey {
        ClusterKey {
            storage: treatment.storage.clone(),
            build: self.build(treatment),
            server: treatment.server.clone(),
            data: self.data(treatment).name.clone(),
            scale: treatment.scale,
        }
    }

    /// The programs that `treatment` runs on.
    pub(crate) fn build(&self, treatment: &Treatment) -> Build {
        let bindir =
            treatment.postgres_bindir.clone().or_else(|| self.experiment.postgres.bindir.clone());
        Build { bindir, version: treatment.postgres_version }
    }

    /// Every cluster the plan needs, in the order in which trials first need them, with one of its
    /// treatments.
    pub(crate) fn clusters(&self) -> Vec<(ClusterKey, &Treatment)> {
        let mut seen = BTreeSet::new();
        self.plan
            .trials
            .iter()
            .map(|trial| &self.plan.treatments[trial.treatment])
            .map(|treatment| (self.key(treatment), treatment))
            .filter(|(key, _)| seen.insert(key.clone()))
            .collect()
    }

    /// Whether another cluster than that of `key` will hold the same data, or that one once more:
    /// its storage gives way to another one and is made anew. Tables in tablespaces are never the
    /// same.
    pub(crate) fn holds_what_others_will(&self, key: &ClusterKey) -> bool {
        let plain = |storage: &str| self.experiment.storage[storage].tablespaces.is_empty();
        let same = |other: &ClusterKey| other.holds_the_data_of(key) && plain(&other.storage);
        let once_more = self.made_anew().iter().any(|(_, treatment)| same(&self.key(treatment)));
        plain(&key.storage)
            && (once_more
                || self
                    .clusters()
                    .iter()
                    .any(|(other, _)| other.storage != key.storage && same(other)))
    }

    /// Every value that any treatment of cluster `key` gives to any setting.
    pub(crate) fn settings_of(&self, key: &ClusterKey) -> Vec<(String, String)> {
        let treatments = self.plan.treatments.iter().filter(|t| self.key(t) == *key);
        distinct(treatments.flat_map(|t| &t.settings))
    }

    /// Every value that a server of `build`, or any server, is given for any setting, while data
    /// are loaded or under a treatment.
    pub(crate) fn settings_on(&self, build: Option<&Build>) -> Vec<(String, String)> {
        let is_on = |t: &&Treatment| build.is_none_or(|build| self.build(t) == *build);
        let treatments = self.plan.treatments.iter().filter(is_on);
        distinct(treatments.flat_map(|t| &t.settings).chain(&self.plan.loading.settings))
    }

    /// The storages that the plan uses, those of WAL and tablespaces among them.
    pub(crate) fn storages(&self) -> BTreeSet<&str> {
        self.plan.treatments.iter().flat_map(|t| self.lies_on(&t.storage)).collect()
    }

    /// Every storage that a cluster on `storage` lies on: itself, and those of its WAL and
    /// tablespaces.
    pub(crate) fn lies_on<'a>(&'a self, storage: &'a str) -> BTreeSet<&'a str> {
        let mut all = self.experiment.storage.get(storage).map(Storage::others).unwrap_or_default();
        all.insert(storage);
        all
    }

    /// The storages that cannot stand while clusters on `storage` do: they are made on the same
    /// device.
    pub(crate) fn excluded_by(&self, storage: &str) -> BTreeSet<&str> {
        let wanted = self.lies_on(storage);
        let asked = |name: &str| &self.experiment.storage[name];
        let excluded = |other: &str| {
            !wanted.contains(other)
                && wanted.iter().any(|one| share_a_device(asked(one), asked(other)))
        };
        self.storages().into_iter().filter(|other| excluded(other)).collect()
    }

    /// The trials before which a storage has to be made anew, and their treatments: another one
    /// stood on its device.
    pub(crate) fn made_anew(&self) -> Vec<(u32, &Treatment)> {
        if self.experiment.postgres.is_external() {
            return Vec::new();
        }
        let mut standing: BTreeSet<&str> = BTreeSet::new();
        let stand = |storage: &str, standing: &mut BTreeSet<&str>| {
            let excluded = self.excluded_by(storage);
            standing.retain(|other| !excluded.contains(other));
        };
        // All were made once before the first trial, in the order of their names, and those that
        // gave way once more for the fsync probe.
        let rounds = if self.experiment.telemetry.fsync.0.is_zero() { 1 } else { 2 };
        for _ in 0..rounds {
            let missing: Vec<&str> =
                self.storages().into_iter().filter(|storage| !standing.contains(storage)).collect();
            for storage in missing {
                stand(storage, &mut standing);
                standing.extend(self.lies_on(storage));
            }
        }
        let mut anew = Vec::new();
        for trial in &self.plan.trials {
            let treatment = &self.plan.treatments[trial.treatment];
            stand(&treatment.storage, &mut standing);
            let wanted = self.lies_on(&treatment.storage);
            if !wanted.is_subset(&standing) {
                anew.push((trial.ordinal, treatment));
                standing.extend(wanted);
            }
        }
        anew
    }

    /// Refuses PostgreSQL's programs that the file `experiment` names, as [`Prepared::with_trust`]
    /// does: also a dry run asks them for their settings.
    ///
    /// # Errors
    /// [`LabError::NotTrusted`].
    pub fn check_programs(&self, trust: &Trust, experiment: Option<&Path>) -> Result<(), LabError> {
        if let Some(file) = experiment.filter(|_| self.names_programs()) {
            trust.check_text(file, &self.source.text, Purpose::PostgresPrograms)?;
        }
        Ok(())
    }

    /// Runs commands of files that only root and the caller may change, and of those that `trust`
    /// names; `experiment` is the file that the experiment was read from. Other accounts than root
    /// are asked nothing.
    ///
    /// # Errors
    /// [`LabError::NotTrusted`].
    pub fn with_trust(mut self, trust: Trust, experiment: Option<&Path>) -> Result<Self, LabError> {
        self.check_programs(&trust, experiment)?;
        if let (Some(file), Some(purpose)) = (experiment, self.commands()) {
            trust.check_text(file, &self.source.text, purpose)?;
        }
        for (name, workload) in &self.workloads {
            for (text, parsed) in workload.scripts.iter().zip(&self.scripts[name]) {
                if let Some(file) = text.file.as_ref().filter(|_| has_commands(&parsed.script)) {
                    trust.check_text(file, &text.text, Purpose::ShellCommands)?;
                }
            }
        }
        self.trust = trust;
        Ok(self)
    }

    /// Returns what the experiment runs as a command; none if it runs nothing.
    fn commands(&self) -> Option<Purpose> {
        let of_storages = self.experiment.storage.values().map(|storage| &storage.device);
        let of_treatments = self.plan.treatments.iter().map(|treatment| &treatment.device);
        let devices: Vec<_> = of_storages.chain(of_treatments).collect();
        if !self.experiment.between.command.is_empty() {
            Some(Purpose::BetweenCommand)
        } else if devices.iter().any(|device| device.hook.is_some()) {
            Some(Purpose::DeviceHook)
        } else {
            let sets = devices.iter().any(|device| !device.module_parameters.is_empty());
            sets.then_some(Purpose::ModuleParameters)
        }
    }

    /// Returns whether the experiment says where PostgreSQL's programs are.
    fn names_programs(&self) -> bool {
        self.experiment.postgres.bindir.is_some()
            || self.plan.treatments.iter().any(|treatment| treatment.postgres_bindir.is_some())
    }

    /// Gives up what is on the devices that `wipe` names.
    ///
    /// # Errors
    /// No storage of the plan is made on one of them.
    pub fn with_wipe(mut self, wipe: Wipe) -> Result<Self, LabError> {
        let used: Vec<PathBuf> = self
            .storages()
            .into_iter()
            .flat_map(|name| self.experiment.storage[name].devices())
            .map(Path::to_owned)
            .collect();
        if let Some(device) = wipe.devices.iter().find(|d| !used.iter().any(|u| same_device(d, u)))
        {
            let used: Vec<String> = used.iter().map(|d| d.display().to_string()).collect();
            let help = match used.as_slice() {
                [] => "leave `--wipe` out: no storage of it names a device".to_owned(),
                used => format!("its storages are made on {}", used.join(", ")),
            };
            let device = device.display();
            let what =
                format!("cannot wipe {device}: no storage of this experiment's plan is made on it");
            return Err(LabError::refused(what, help));
        }
        self.wipe = wipe;
        Ok(self)
    }

    /// The programs that the plan uses.
    pub(crate) fn builds(&self) -> BTreeSet<Build> {
        self.plan.treatments.iter().map(|treatment| self.build(treatment)).collect()
    }
}

/// Returns each of `settings` once, in order.
fn distinct<'a>(settings: impl Iterator<Item = (&'a String, &'a String)>) -> Vec<(String, String)> {
    let all: BTreeSet<_> = settings.collect();
    all.into_iter().map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// Draws a seed from the system's randomness, short enough to be typed.
fn draw_seed() -> Result<u64, LabError> {
    let drawn = getrandom::u32().map_err(std::io::Error::from);
    Ok(drawn.map(u64::from).map_err(pgdyno_exec::journal::JournalError::Random)?)
}

/// Returns a notice for a script with more statements than percentiles are kept of.
fn too_many_for_distributions(script: &Script) -> Option<Notice> {
    let statements = script.commands.iter().filter(|command| command.op.is_sql()).count();
    (statements > MAX_DISTRIBUTIONS).then(|| Notice::StatementsWithoutPercentiles {
        script: script.name.clone(),
        kept: MAX_DISTRIBUTIONS,
        statements,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quickstart(overrides: &[&str]) -> Prepared {
        let overrides = overrides.iter().map(|o| Override::parse(o).unwrap()).collect();
        Prepared::new(pgdyno_experiment::recipes::source("quickstart").unwrap(), overrides).unwrap()
    }

    #[test]
    fn each_run_draws_its_order_and_all_runs_hold_the_same_data() {
        let seeds: BTreeSet<u64> = (0..4).map(|_| quickstart(&[]).plan.seed).collect();
        assert!(
            seeds.len() > 1 && seeds.iter().all(|seed| u32::try_from(*seed).is_ok()),
            "{seeds:?}"
        );
        assert_eq!(quickstart(&[]).plan.seed_of_data(), 1);
        let given = quickstart(&["experiment.seed=7"]);
        assert_eq!((given.plan.seed, given.plan.seed_of_data()), (7, 1));
        assert_eq!(given.plan, quickstart(&["experiment.seed=7"]).plan);
        assert_eq!(quickstart(&["workload.seed=3"]).plan.seed_of_data(), 3);
    }

    #[test]
    fn a_resumed_run_keeps_the_seed_that_was_drawn_for_it() {
        let plan = quickstart(&[]).plan;
        let source = || pgdyno_experiment::recipes::source("quickstart").unwrap();
        assert_eq!(Prepared::of_run(source(), Vec::new(), &plan).unwrap().plan, plan);

        // A plan of an earlier version: one seed for everything.
        let stored = serde_json::to_string(&quickstart(&["experiment.seed=7"]).plan).unwrap();
        let earlier: Plan = serde_json::from_str(&stored.replace("\"data_seed\":1,", "")).unwrap();
        let overrides = vec![Override::parse("experiment.seed=7").unwrap()];
        let resumed = Prepared::of_run(source(), overrides, &earlier).unwrap().plan;
        assert_eq!((&resumed, resumed.seed_of_data()), (&earlier, 7));
    }

    #[test]
    fn a_treatment_without_a_client_for_each_generator_is_refused() {
        let source = pgdyno_experiment::recipes::source("quickstart").unwrap();
        let overrides = vec![Override::parse("generators.launch=\"local:2\"").unwrap()];
        let refused = Prepared::new(source, overrides).unwrap_err();
        assert!(refused.to_string().contains("too few clients"), "{refused}");
    }

    #[test]
    fn a_script_of_the_old_dialect_is_taken_and_that_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("login.sql");
        std::fs::write(&script, "\\setrandom user_id 1 20000000\nSELECT f_user_login(:user_id)\n")
            .unwrap();
        let text = format!("[workload]\nscripts = [{{ file = \"{}\" }}]\n", script.display());
        let source = Source {
            name: "old".into(),
            shown: "old".into(),
            text,
            base: folder.path().to_owned(),
        };
        let prepared = Prepared::new(source, Vec::new()).unwrap();
        assert_eq!(prepared.notes.len(), 1);
        let Notice::Script(note) = &prepared.notes[0] else { panic!("{:?}", prepared.notes) };
        assert!(note.contains("login.sql"), "{note}");
    }
}
