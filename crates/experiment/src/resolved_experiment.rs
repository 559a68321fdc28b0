//! An experiment with its plan and scripts, ready to be run.

use std::collections::BTreeMap;
use std::sync::Arc;

use pgdyno_dataset::trust::Trust;
use pgdyno_dataset::workload::Workload;
use pgdyno_engine::WeightedScript;
use pgdyno_engine::program::MAX_DISTRIBUTIONS;
use pgdyno_engine::script::Script;
use pgdyno_model::progress::Notice;
use pgdyno_model::{Experiment, Plan, Treatment};
use pgdyno_storage::Wipe;

use crate::checks;
use crate::error::ExperimentError;
use crate::file::{self, Override, Source};
use crate::host::{Host, SharedDisks};
use crate::resolve::resolve;

/// An experiment with its plan, ready to be run.
#[derive(Clone, Debug)]
pub struct ResolvedExperiment {
    /// The file or recipe.
    pub source: Source,
    /// Changes to the source, in order.
    pub overrides: Vec<Override>,
    /// The experiment that source and overrides describe.
    pub experiment: Experiment,
    /// The treatments and trials.
    pub plan: Plan,
    /// Devices that the caller allows to be erased.
    pub wipe: Wipe,
    /// Files of others that the caller trusts.
    pub trust: Trust,
    /// Notices about how the scripts were read.
    pub notices: Vec<Notice>,
    pub(crate) workloads: BTreeMap<String, Workload>,
    pub(crate) scripts: BTreeMap<String, Vec<WeightedScript>>,
    pub(crate) shared_disks: SharedDisks,
}

impl ResolvedExperiment {
    /// Makes the experiment of `source`, with `overrides`, ready. Unless it gives a seed, one is
    /// drawn. `host` is asked which storages share a disk.
    ///
    /// # Errors
    /// Anything wrong in the file, an override, a workload or a script, with its place.
    pub fn new(
        source: Source,
        overrides: Vec<Override>,
        host: &dyn Host,
    ) -> Result<Self, ExperimentError> {
        // Short enough to be typed.
        let seed = getrandom::u32().map_err(|error| ExperimentError::Seed(error.into()))?;
        Self::with_seed(source, overrides, seed.into(), host)
    }

    /// Makes the experiment of a run ready once more: with the seeds of its stored `plan`.
    ///
    /// # Errors
    /// As [`ResolvedExperiment::new`].
    pub fn from_run(
        source: Source,
        overrides: Vec<Override>,
        plan: &Plan,
        host: &dyn Host,
    ) -> Result<Self, ExperimentError> {
        let mut resolved = Self::with_seed(source, overrides, plan.seed, host)?;
        if plan.data_seed.is_none() {
            resolved.plan.data_seed = None;
        }
        Ok(resolved)
    }

    /// Makes the experiment ready as [`ResolvedExperiment::new`] does, with `seed` where it gives
    /// none.
    ///
    /// # Errors
    /// As [`ResolvedExperiment::new`].
    pub fn with_seed(
        source: Source,
        overrides: Vec<Override>,
        seed: u64,
        host: &dyn Host,
    ) -> Result<Self, ExperimentError> {
        let experiment = file::parse(&source, &overrides)?;
        let shared_disks = SharedDisks::new(&experiment.storage, host);
        let seed = experiment.seed.unwrap_or(seed);
        let (plan, workloads) = resolve(&experiment, seed, &shared_disks)?;
        let mut scripts = BTreeMap::new();
        let mut notices = Vec::new();
        for (name, workload) in &workloads {
            let parsed = workload
                .scripts
                .iter()
                .map(|s| {
                    // Scripts of pgbench 9.5 and before run as they are, as they do under
                    // `pgdyno pgbench`.
                    let (script, note) = Script::parse_auto(&s.name, &s.text)?;
                    notices.extend(note.map(Notice::Script));
                    notices.extend(too_many_for_distributions(&script));
                    checks::check_script(workload, &script)?;
                    let (weight, pauses) = (s.weight, s.pauses);
                    Ok(WeightedScript { script: Arc::new(script), weight, pauses })
                })
                .collect::<Result<Vec<_>, ExperimentError>>()?;
            scripts.insert(name.clone(), parsed);
        }
        checks::check(&experiment, &plan, &scripts)?;
        Ok(Self {
            source,
            overrides,
            experiment,
            plan,
            wipe: Wipe::default(),
            trust: Trust::default(),
            notices,
            workloads,
            scripts,
            shared_disks,
        })
    }

    /// Returns the workload of `treatment`.
    pub fn workload(&self, treatment: &Treatment) -> &Workload {
        &self.workloads[&treatment.workload]
    }

    /// Returns the scripts of `treatment`, with the pauses that its clients make.
    pub fn scripts(&self, treatment: &Treatment) -> Vec<WeightedScript> {
        let factor = treatment.options.pauses.unwrap_or(0.0);
        let scripts = self.scripts[&treatment.workload].iter();
        scripts.map(|s| WeightedScript { pauses: s.pauses.times(factor), ..s.clone() }).collect()
    }
}

/// Returns a notice for a script with more statements than percentiles are kept of.
fn too_many_for_distributions(script: &Script) -> Option<Notice> {
    let statements = script.commands.iter().filter(|command| command.op.is_statement()).count();
    (statements > MAX_DISTRIBUTIONS).then(|| Notice::StatementsWithoutPercentiles {
        script: script.name.clone(),
        kept: MAX_DISTRIBUTIONS,
        statements,
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::PathBuf;

    use pgdyno_model::load_rate::LoadRate;

    use super::*;
    use crate::host::NoDevices;
    use crate::recipes;

    fn quickstart(overrides: &[&str]) -> ResolvedExperiment {
        let overrides = overrides.iter().map(|o| Override::parse(o).unwrap()).collect();
        ResolvedExperiment::new(recipes::source("quickstart").unwrap(), overrides, &NoDevices)
            .unwrap()
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
        let resume = |overrides, plan: &Plan| {
            let source = recipes::source("quickstart").unwrap();
            ResolvedExperiment::from_run(source, overrides, plan, &NoDevices).unwrap().plan
        };
        assert_eq!(resume(Vec::new(), &plan), plan);

        // A plan of an earlier version: one seed for everything.
        let stored = serde_json::to_string(&quickstart(&["experiment.seed=7"]).plan).unwrap();
        let earlier: Plan = serde_json::from_str(&stored.replace("\"data_seed\":1,", "")).unwrap();
        let overrides = vec![Override::parse("experiment.seed=7").unwrap()];
        let resumed = resume(overrides, &earlier);
        assert_eq!((&resumed, resumed.seed_of_data()), (&earlier, 7));
    }

    #[test]
    fn a_treatment_without_a_client_for_each_generator_is_refused() {
        let source = recipes::source("quickstart").unwrap();
        let overrides = vec![Override::parse("generators.launch=\"local:2\"").unwrap()];
        let refused = ResolvedExperiment::new(source, overrides, &NoDevices).unwrap_err();
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
        let resolved = ResolvedExperiment::new(source, Vec::new(), &NoDevices).unwrap();
        assert_eq!(resolved.notices.len(), 1);
        let Notice::Script(note) = &resolved.notices[0] else { panic!("{:?}", resolved.notices) };
        assert!(note.contains("login.sql"), "{note}");
    }

    /// Returns the recipes of an earlier version, and one file with most keys. They never change: a
    /// new version gets a folder of its own.
    fn fixtures() -> Vec<PathBuf> {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/experiments/0.1.0");
        let mut files: Vec<PathBuf> =
            std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        files
    }

    #[test]
    fn experiment_files_of_earlier_versions_are_planned_in_every_size() {
        let files = fixtures();
        assert_eq!(files.len(), 10);
        for path in files {
            let source = Source::read(&path).unwrap();
            let resolved = ResolvedExperiment::new(source.clone(), Vec::new(), &NoDevices);
            let resolved = resolved.unwrap_or_else(|e| panic!("{}: {e}", path.display()));
            assert!(!resolved.plan.trials.is_empty(), "{}", path.display());
            for size in file::sizes(&source).unwrap() {
                let planned = ResolvedExperiment::new(source.clone(), size.overrides, &NoDevices);
                assert!(planned.is_ok(), "{} at size {}", path.display(), size.name);
            }
        }
    }

    #[test]
    fn every_key_of_an_earlier_version_has_its_meaning() {
        let path = fixtures().into_iter().find(|path| path.ends_with("many-keys.toml")).unwrap();
        let source = Source::read(&path).unwrap();
        let ResolvedExperiment { experiment, plan, .. } =
            ResolvedExperiment::new(source, Vec::new(), &NoDevices).unwrap();
        assert_eq!((plan.seed, plan.treatments.len()), (7, 6));
        assert_eq!(experiment.load.options.rate, Some(LoadRate::Constant(500.0)));
        assert_eq!(plan.loading.partitions, 2);
        assert_eq!(experiment.crash.unwrap().rounds, 2);
    }
}
