//! Names of runs, probes and crash tests, as users give them.

use pgdyno_text::nearest::probable;

use super::{Store, StoreError};

/// Record, as a name means it.
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

    /// Kind: `run`, `probe`, `crash test` or `import`.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Run(_) => "run",
            Self::Probe(_) => "probe",
            Self::Crash(_) => "crash test",
            Self::Imported(_) => "import",
        }
    }

    /// Kind with its article.
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
    /// Every record by itself, newest first: runs with all that belongs to them, then probes, crash
    /// tests and imports.
    ///
    /// # Errors
    /// [`StoreError::Sqlite`].
    pub fn all_records(&self) -> Result<Vec<Stored>, StoreError> {
        self.named(false)
    }

    /// As [`Store::all_records`], with probes and crash tests of runs if `with_parts`.
    fn named(&self, with_parts: bool) -> Result<Vec<Stored>, StoreError> {
        let kinds = [
            (Stored::Run as fn(String) -> Stored, "run", "started_at", "TRUE"),
            (Stored::Probe, "probe_record", "started_at", "run IS NULL"),
            (Stored::Crash, "crash_record", "started_at", "run IS NULL"),
            (Stored::Imported, "imported_run", "imported_at", "TRUE"),
        ];
        let mut all = Vec::new();
        for (kind, table, time, is_alone) in kinds {
            let sql = format!(
                "SELECT id FROM {table} WHERE ? OR {is_alone} ORDER BY {time} DESC, rowid DESC"
            );
            let ids = self.rows("list what is stored", &sql, [with_parts], |row| row.get(0))?;
            all.extend(ids.into_iter().map(kind));
        }
        Ok(all)
    }

    /// The run, the probe, the crash tests or the imported run that `name` means: `latest` (of the
    /// runs), a full name, or the beginning of one.
    ///
    /// # Errors
    /// As [`Store::resolve`].
    pub fn resolve_any(&self, name: &str) -> Result<Stored, StoreError> {
        let all = self.named(true)?;
        match all.iter().rfind(|stored| stored.id() == name) {
            Some(stored) => Ok(stored.clone()),
            None => self.by_beginning(name, all),
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
        let mut all = self.named(true)?;
        let found = match all.iter().find(|stored| stored.id() == name) {
            Some(stored) => stored.clone(),
            None => {
                all.retain(|stored| matches!(stored, Stored::Run(_)));
                self.by_beginning(name, all)?
            }
        };
        match found {
            Stored::Run(id) => Ok(id),
            other => Err(StoreError::NotARun { name: name.to_owned(), kind: other.with_article() }),
        }
    }

    /// The one of `all` whose name begins with `name`; of `latest`, the first run.
    fn by_beginning(&self, name: &str, mut all: Vec<Stored>) -> Result<Stored, StoreError> {
        if name == "latest" || all.is_empty() {
            all.retain(|stored| matches!(stored, Stored::Run(_)));
            let latest = all.into_iter().next();
            return latest.ok_or_else(|| StoreError::NoRuns { path: self.path.clone() });
        }
        all.retain(|stored| !name.is_empty() && stored.id().starts_with(name));
        match all.len() {
            0 => Err(self.unknown(name)?),
            1 => Ok(all.swap_remove(0)),
            _ => {
                let candidates = all.iter().map(|stored| stored.id().to_owned()).collect();
                Err(StoreError::AmbiguousRun { name: name.to_owned(), candidates })
            }
        }
    }

    /// The error for a name that is nobody's.
    pub(super) fn unknown(&self, name: &str) -> Result<StoreError, StoreError> {
        let all = self.named(true)?;
        let mut nearest: Vec<String> = all.iter().map(|stored| stored.id().to_owned()).collect();
        // A beginning with a slip in it: a name ends with a date and drawn letters.
        nearest.retain(|id| {
            let beginning = id.get(..name.len()).unwrap_or(id);
            probable(name, &[beginning]).is_some()
        });
        nearest.truncate(3);
        Ok(StoreError::UnknownRun { path: self.path.clone(), name: name.to_owned(), nearest })
    }
}
