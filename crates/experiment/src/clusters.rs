//! Clusters that a plan needs, and the storages that they lie on.

use std::collections::BTreeSet;
use std::path::PathBuf;

use pgdyno_dataset::workload::DataSet;
use pgdyno_model::{Storage, Treatment};

use crate::resolved_experiment::ResolvedExperiment;

/// PostgreSQL's programs that a cluster is made with.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Build {
    /// Their folder; none: any that fits.
    pub bindir: Option<PathBuf>,
    /// Their major version; none: whatever is found.
    pub version: Option<u32>,
}

/// A cluster that a plan needs: treatments that agree in all of these share one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ClusterKey {
    /// The storage of PGDATA.
    pub storage: String,
    /// The programs.
    pub build: Build,
    /// The external server, where factors choose among several.
    pub server: Option<String>,
    /// The data set's name.
    pub data: String,
    /// The data set's size.
    pub scale: u32,
}

impl ClusterKey {
    /// Returns whether the other cluster, made by the same programs, begins with the same data.
    pub fn holds_the_data_of(&self, other: &Self) -> bool {
        (&self.build, &self.data, self.scale) == (&other.build, &other.data, other.scale)
    }
}

impl ResolvedExperiment {
    /// Returns the data set of `treatment`.
    pub fn data(&self, treatment: &Treatment) -> &DataSet {
        &self.workload(treatment).data
    }

    /// Returns the cluster of `treatment`.
    pub fn key(&self, treatment: &Treatment) -> ClusterKey {
        ClusterKey {
            storage: treatment.storage.clone(),
            build: self.build(treatment),
            server: treatment.server.clone(),
            data: self.data(treatment).name.clone(),
            scale: treatment.scale,
        }
    }

    /// Returns the programs that `treatment` runs on.
    pub fn build(&self, treatment: &Treatment) -> Build {
        let bindir =
            treatment.postgres_bindir.clone().or_else(|| self.experiment.postgres.bindir.clone());
        Build { bindir, version: treatment.postgres_version }
    }

    /// Returns the programs that the plan uses.
    pub fn builds(&self) -> BTreeSet<Build> {
        self.plan.treatments.iter().map(|treatment| self.build(treatment)).collect()
    }

    /// Returns every cluster that the plan needs, in the order in which trials first need them,
    /// with one of its treatments.
    pub fn clusters(&self) -> Vec<(ClusterKey, &Treatment)> {
        let mut seen = BTreeSet::new();
        self.plan
            .trials
            .iter()
            .map(|trial| &self.plan.treatments[trial.treatment])
            .map(|treatment| (self.key(treatment), treatment))
            .filter(|(key, _)| seen.insert(key.clone()))
            .collect()
    }

    /// Returns whether another cluster than that of `key` will hold the same data, or that one once
    /// more: its storage gives way to another one and is made anew. Tables in tablespaces are never
    /// the same.
    pub fn holds_what_others_will(&self, key: &ClusterKey) -> bool {
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

    /// Returns every value that any treatment of cluster `key` gives to any setting.
    pub fn settings_of(&self, key: &ClusterKey) -> Vec<(String, String)> {
        let treatments = self.plan.treatments.iter().filter(|t| self.key(t) == *key);
        distinct(treatments.flat_map(|t| &t.settings))
    }

    /// Returns every value that a server of `build`, or any server, is given for any setting, while
    /// data are loaded or under a treatment.
    pub fn settings_on(&self, build: Option<&Build>) -> Vec<(String, String)> {
        let is_on = |t: &&Treatment| build.is_none_or(|build| self.build(t) == *build);
        let treatments = self.plan.treatments.iter().filter(is_on);
        distinct(treatments.flat_map(|t| &t.settings).chain(&self.plan.loading.settings))
    }

    /// Returns the storages that the plan uses, those of WAL and tablespaces among them.
    pub fn storages(&self) -> BTreeSet<&str> {
        self.plan.treatments.iter().flat_map(|t| self.lies_on(&t.storage)).collect()
    }

    /// Returns every storage that a cluster on `storage` lies on: itself, and those of its WAL and
    /// tablespaces.
    pub fn lies_on<'a>(&'a self, storage: &'a str) -> BTreeSet<&'a str> {
        let mut all = self.experiment.storage.get(storage).map(Storage::others).unwrap_or_default();
        all.insert(storage);
        all
    }

    /// Returns the storages that cannot stand while clusters on `storage` do: they are made on the
    /// same disk.
    pub fn excluded_by(&self, storage: &str) -> BTreeSet<&str> {
        let wanted = self.lies_on(storage);
        let is_excluded = |other: &&str| {
            !wanted.contains(other)
                && wanted.iter().any(|one| self.shared_disks.contains(one, other))
        };
        self.storages().into_iter().filter(is_excluded).collect()
    }

    /// Returns the trials before which a storage has to be made anew, and their treatments: another
    /// one stood on its device.
    pub fn made_anew(&self) -> Vec<(u32, &Treatment)> {
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
}

/// Returns each of `settings` once, in order.
fn distinct<'a>(settings: impl Iterator<Item = (&'a String, &'a String)>) -> Vec<(String, String)> {
    let all: BTreeSet<_> = settings.collect();
    all.into_iter().map(|(name, value)| (name.clone(), value.clone())).collect()
}
