//! Others' figures in the store, apart from those that pgdyno measured.

use pgdyno_audit::{ImportedRun, Provenance, Recognised};
use pgdyno_model::units::Epoch;
use rusqlite::params;

use super::write::encode;
use super::{Store, StoreError, seal};

/// An imported run in a list.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct ImportSummary {
    /// Name of the imported run.
    pub id: String,
    /// Always `imported`.
    pub provenance: Provenance,
    /// File of the report, as it was named.
    pub source: String,
    /// When the report was imported.
    #[serde(serialize_with = "pgdyno_model::format::as_text")]
    pub imported_at: Epoch,
    /// Description of the figures that were recognised in the report.
    pub holds: String,
}

impl Store {
    /// Adds the figures that were recognised in a report, and returns the name under which they are
    /// kept. Equal figures of one file are kept once.
    ///
    /// # Errors
    /// [`StoreError::Unstorable`] for figures that could not be read back; [`StoreError::Sqlite`]
    /// or [`StoreError::Corrupt`].
    pub fn add_import(&mut self, import: &ImportedRun) -> Result<String, StoreError> {
        let recognised =
            encode(|| format!("what was recognised in {}", import.source), &import.recognised)?;
        let known = self.rows(
            "look for an imported run",
            "SELECT id FROM imported_run WHERE sha256 = ? AND recognised = ? ORDER BY rowid DESC",
            params![import.sha256, recognised],
            |row| row.get::<_, String>(0),
        )?;
        if let Some(id) = known.into_iter().next() {
            return Ok(id);
        }
        self.write("add an imported run", |transaction| {
            transaction.execute(
                "INSERT INTO imported_run (id, source, sha256, imported_at, pgdyno_version, \
                     recognised)
                 VALUES (?, ?, ?, ?, ?, ?)",
                params![
                    import.id,
                    import.source,
                    import.sha256,
                    import.imported_at.0,
                    import.pgdyno_version,
                    recognised
                ],
            )?;
            seal::add(transaction, &import.id, "imported_run", import.id.clone())
        })?;
        Ok(import.id.clone())
    }

    /// Returns all imported runs, newest first.
    ///
    /// # Errors
    /// [`StoreError::Sqlite`] or [`StoreError::Corrupt`].
    pub fn imports(&self) -> Result<Vec<ImportSummary>, StoreError> {
        let ids = self.import_ids()?;
        let summary = |id: String| {
            let import = self.import(&id)?;
            let ImportedRun { id, provenance, source, imported_at, recognised, .. } = import;
            Ok(ImportSummary { id, provenance, source, imported_at, holds: recognised.summary() })
        };
        ids.into_iter().map(summary).collect()
    }

    /// Returns the names of all imported runs, newest first.
    pub(super) fn import_ids(&self) -> Result<Vec<String>, StoreError> {
        self.rows(
            "list the imported runs",
            "SELECT id FROM imported_run ORDER BY imported_at DESC, rowid DESC",
            params![],
            |row| row.get(0),
        )
    }

    /// Returns one imported run, whole.
    ///
    /// # Errors
    /// [`StoreError::UnknownRun`] for a name that is no imported run's; [`StoreError::Damaged`];
    /// [`StoreError::Sqlite`] or [`StoreError::Corrupt`].
    pub fn import(&self, id: &str) -> Result<ImportedRun, StoreError> {
        let rows = self.rows(
            "read an imported run",
            "SELECT source, sha256, imported_at, pgdyno_version, recognised FROM imported_run \
             WHERE id = ?",
            [id],
            |row| {
                let texts: [String; 4] = [row.get(0)?, row.get(1)?, row.get(3)?, row.get(4)?];
                Ok((texts, Epoch(row.get(2)?)))
            },
        )?;
        let Some(([source, sha256, pgdyno_version, recognised], imported_at)) =
            rows.into_iter().next()
        else {
            return Err(self.unknown(id)?);
        };
        self.check(id)?;
        Ok(ImportedRun {
            id: id.to_owned(),
            provenance: Provenance::Imported,
            source,
            sha256,
            imported_at,
            pgdyno_version,
            recognised: self.json::<Recognised>("an imported run's figures", &recognised)?,
        })
    }
}
