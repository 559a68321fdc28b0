//! Names of runs, probes and crash tests, as users give them.

use pgdyno_model::nearest::probable;
use rusqlite::params;

use super::{Store, StoreError};

/// The record that a name stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stored {
    /// The run of that full name.
    Run(String),
    /// The probe of that full name.
    Probe(String),
    /// The crash tests of that full name.
    Crash(String),
    /// The imported run of that full name.
    Imported(String),
}

impl Stored {
    /// Returns the full name.
    pub fn id(&self) -> &str {
        match self {
            Self::Run(id) | Self::Probe(id) | Self::Crash(id) | Self::Imported(id) => id,
        }
    }

    /// Returns the kind of the record: `run`, `probe`, `crash test` or `import`.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Run(_) => "run",
            Self::Probe(_) => "probe",
            Self::Crash(_) => "crash test",
            Self::Imported(_) => "import",
        }
    }

    /// Returns the kind of the record with its article, for a sentence.
    fn with_article(&self) -> &'static str {
        match self {
            Self::Run(_) => "a run",
            Self::Probe(_) => "a probe",
            Self::Crash(_) => "a crash test",
            Self::Imported(_) => "an imported report",
        }
    }
}

impl Store {
    /// Returns the record that `name` stands for: `latest` (of the runs), a full name, or the
    /// beginning of one.
    ///
    /// # Errors
    /// As [`Store::resolve`].
    pub fn resolve_any(&self, name: &str) -> Result<Stored, StoreError> {
        let others = self.others()?;
        if let Some(other) = others.iter().find(|other| other.id() == name) {
            return Ok(other.clone());
        }
        let runs = self.ids()?;
        if others.is_empty() || name == "latest" || runs.iter().any(|id| id == name) {
            return self.resolve(name).map(Stored::Run);
        }
        let mut candidates: Vec<Stored> = runs.into_iter().map(Stored::Run).chain(others).collect();
        candidates.retain(|stored| !name.is_empty() && stored.id().starts_with(name));
        match candidates.len() {
            0 => Err(self.unknown(name)?),
            1 => Ok(candidates.swap_remove(0)),
            _ => {
                let candidates = candidates.iter().map(|stored| stored.id().to_owned()).collect();
                Err(StoreError::AmbiguousRun { name: name.to_owned(), candidates })
            }
        }
    }

    /// Returns the full name of the run that `name` stands for: `latest`, a full name, or the
    /// beginning of one. A full name always wins over a beginning. If it is that of another kind of
    /// record, it stands for no run.
    ///
    /// # Errors
    /// [`StoreError::NoRuns`], [`StoreError::NotARun`], [`StoreError::UnknownRun`] with the nearest
    /// names, [`StoreError::AmbiguousRun`]; [`StoreError::Sqlite`].
    pub fn resolve(&self, name: &str) -> Result<String, StoreError> {
        let ids = self.ids()?;
        let Some(latest) = ids.first() else {
            return Err(StoreError::NoRuns { path: self.path.clone() });
        };
        if name == "latest" {
            return Ok(latest.clone());
        }
        if ids.iter().any(|id| id == name) {
            return Ok(name.to_owned());
        }
        if let Some(other) = self.others()?.iter().find(|other| other.id() == name) {
            return Err(StoreError::NotARun { name: name.to_owned(), kind: other.with_article() });
        }
        let mut candidates: Vec<_> =
            ids.iter().filter(|id| !name.is_empty() && id.starts_with(name)).cloned().collect();
        match candidates.len() {
            0 => Err(self.unknown(name)?),
            1 => Ok(candidates.swap_remove(0)),
            _ => Err(StoreError::AmbiguousRun { name: name.to_owned(), candidates }),
        }
    }

    /// Returns all records but runs.
    fn others(&self) -> Result<Vec<Stored>, StoreError> {
        let mut others: Vec<Stored> =
            self.probes()?.into_iter().map(|probe| Stored::Probe(probe.id)).collect();
        others.extend(self.crashes()?.into_iter().map(|crash| Stored::Crash(crash.id)));
        others.extend(self.import_ids()?.into_iter().map(Stored::Imported));
        Ok(others)
    }

    /// Returns the names of all runs, newest first.
    fn ids(&self) -> Result<Vec<String>, StoreError> {
        self.rows(
            "list the runs",
            "SELECT id FROM run ORDER BY started_at DESC, rowid DESC",
            params![],
            |row| row.get(0),
        )
    }

    /// Returns the error of a name that no record has.
    pub(super) fn unknown(&self, name: &str) -> Result<StoreError, StoreError> {
        let mut nearest = self.ids()?;
        nearest.extend(self.others()?.iter().map(|other| other.id().to_owned()));
        // A beginning with a slip in it: a name ends with a date and drawn letters.
        nearest.retain(|id| {
            let beginning = id.get(..name.len()).unwrap_or(id);
            probable(name, &[beginning]).is_some()
        });
        nearest.truncate(3);
        Ok(StoreError::UnknownRun { path: self.path.clone(), name: name.to_owned(), nearest })
    }
}
