//! Names of runs and probes, as users give them.

use rusqlite::params;

use super::{Store, StoreError};

/// What a name means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stored {
    /// The run of that full name.
    Run(String),
    /// The probe of that full name.
    Probe(String),
}

impl Store {
    /// The run or the probe that `name` means: `latest` (of the runs), a full name, or the beginning of one.
    ///
    /// # Errors
    /// As [`Store::resolve`].
    pub fn resolve_any(&self, name: &str) -> Result<Stored, StoreError> {
        let (runs, probes) = (self.ids()?, self.probe_ids()?);
        if probes.iter().any(|id| id == name) {
            return Ok(Stored::Probe(name.to_owned()));
        }
        if probes.is_empty() || name == "latest" || runs.iter().any(|id| id == name) {
            return self.resolve(name).map(Stored::Run);
        }
        let begin = |ids: Vec<String>| ids.into_iter().filter(|id| !name.is_empty() && id.starts_with(name));
        let (runs, probes): (Vec<_>, Vec<_>) = (begin(runs).collect(), begin(probes).collect());
        match (runs.as_slice(), probes.as_slice()) {
            ([], []) => Err(self.unknown(name)?),
            ([run], []) => Ok(Stored::Run(run.clone())),
            ([], [probe]) => Ok(Stored::Probe(probe.clone())),
            _ => Err(StoreError::AmbiguousRun { name: name.to_owned(), candidates: [runs, probes].concat() }),
        }
    }

    /// The full name of the run that `name` means: `latest`, a full name, or the beginning of one.
    ///
    /// # Errors
    /// [`StoreError::NoRuns`], [`StoreError::UnknownRun`] with the nearest names, [`StoreError::AmbiguousRun`];
    /// [`StoreError::Sqlite`].
    pub fn resolve(&self, name: &str) -> Result<String, StoreError> {
        let ids = self.ids()?;
        let Some(latest) = ids.first() else { return Err(StoreError::NoRuns { path: self.path.clone() }) };
        if name == "latest" {
            return Ok(latest.clone());
        }
        if ids.iter().any(|id| id == name) {
            return Ok(name.to_owned());
        }
        let mut candidates: Vec<_> =
            ids.iter().filter(|id| !name.is_empty() && id.starts_with(name)).cloned().collect();
        match candidates.len() {
            0 => Err(self.unknown(name)?),
            1 => Ok(candidates.swap_remove(0)),
            _ => Err(StoreError::AmbiguousRun { name: name.to_owned(), candidates }),
        }
    }

    /// All runs' names, newest first.
    fn ids(&self) -> Result<Vec<String>, StoreError> {
        self.rows(
            "list the runs",
            "SELECT id FROM run ORDER BY started_at DESC, rowid DESC",
            params![],
            |row| row.get(0),
        )
    }

    /// All probes' names, newest first.
    fn probe_ids(&self) -> Result<Vec<String>, StoreError> {
        Ok(self.probes()?.into_iter().map(|probe| probe.id).collect())
    }

    /// The error for a name that is no run's and no probe's.
    pub(super) fn unknown(&self, name: &str) -> Result<StoreError, StoreError> {
        const ALIKE: f64 = 0.7;
        let mut names = self.ids()?;
        names.extend(self.probe_ids()?);
        let mut nearest: Vec<(f64, String)> =
            names.into_iter().map(|id| (strsim::jaro_winkler(name, &id), id)).collect();
        nearest.retain(|(alike, _)| *alike >= ALIKE);
        nearest.sort_by(|a, b| b.0.total_cmp(&a.0));
        let nearest = nearest.into_iter().take(3).map(|(_, id)| id).collect();
        Ok(StoreError::UnknownRun { path: self.path.clone(), name: name.to_owned(), nearest })
    }
}
