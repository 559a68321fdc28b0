//! Runs' names, as users give them.

use rusqlite::params;

use super::{Store, StoreError};

impl Store {
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

    /// The error for a name that is no run's.
    pub(super) fn unknown(&self, name: &str) -> Result<StoreError, StoreError> {
        const ALIKE: f64 = 0.7;
        let mut nearest: Vec<(f64, String)> =
            self.ids()?.into_iter().map(|id| (strsim::jaro_winkler(name, &id), id)).collect();
        nearest.retain(|(alike, _)| *alike >= ALIKE);
        nearest.sort_by(|a, b| b.0.total_cmp(&a.0));
        let nearest = nearest.into_iter().take(3).map(|(_, id)| id).collect();
        Ok(StoreError::UnknownRun { path: self.path.clone(), name: name.to_owned(), nearest })
    }
}
