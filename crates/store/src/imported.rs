//! Others' figures in the store, apart from those that pgdyno measured.

use pgdyno_audit::{ImportedRun, Provenance};
use pgdyno_model::units::Epoch;
use rusqlite::{named_params, params};

use super::read::json;
use super::write::encode;
use super::{Store, StoreError};

/// An imported run in a list.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct ImportSummary {
    /// Name.
    pub id: String,
    /// Always `imported`.
    pub provenance: Provenance,
    /// File of the report, as it was named.
    pub source: String,
    /// When the report was imported.
    #[serde(serialize_with = "pgdyno_text::format::as_text")]
    pub imported_at: Epoch,
    /// Content that was recognised, in words.
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
        let what = || format!("the figures of {}", import.source);
        let recognised = encode(what, &import.recognised)?;
        let known = self.rows(
            "look for an imported run",
            "SELECT id FROM imported_run WHERE sha256 = ? AND recognised = ? ORDER BY rowid DESC",
            params![import.sha256, recognised],
            |row| row.get::<_, String>(0),
        )?;
        if let Some(id) = known.into_iter().next() {
            return Ok(id);
        }
        let values = named_params! {
            ":id": import.id,
            ":source": import.source,
            ":sha256": import.sha256,
            ":imported_at": import.imported_at.0,
            ":pgdyno_version": import.pgdyno_version,
            ":recognised": recognised,
        };
        self.add_record("add an imported run", (&import.id, "imported_run"), what, values)?;
        Ok(import.id.clone())
    }

    /// Returns all imported runs, newest first.
    ///
    /// # Errors
    /// [`StoreError::Sqlite`] or [`StoreError::Corrupt`].
    pub fn imports(&self) -> Result<Vec<ImportSummary>, StoreError> {
        let ids: Vec<String> = self.rows(
            "list what is stored",
            "SELECT id FROM imported_run ORDER BY imported_at DESC, rowid DESC",
            params![],
            |row| row.get(0),
        )?;
        let summary = |id: &String| {
            let import = self.import(id)?;
            let ImportedRun { id, provenance, source, imported_at, recognised, .. } = import;
            Ok(ImportSummary { id, provenance, source, imported_at, holds: recognised.summary() })
        };
        ids.iter().map(summary).collect()
    }

    /// Returns one imported run, whole.
    ///
    /// # Errors
    /// [`StoreError::UnknownRun`] for a name that is no imported run's; [`StoreError::Damaged`];
    /// [`StoreError::Sqlite`] or [`StoreError::Corrupt`].
    pub fn import(&self, id: &str) -> Result<ImportedRun, StoreError> {
        self.check(id)?;
        self.record(
            "read an imported run",
            "SELECT id, source, sha256, imported_at, pgdyno_version, recognised
             FROM imported_run WHERE id = ?",
            id,
            |row| {
                Ok(ImportedRun {
                    id: row.get(0)?,
                    provenance: Provenance::Imported,
                    source: row.get(1)?,
                    sha256: row.get(2)?,
                    imported_at: Epoch(row.get(3)?),
                    pgdyno_version: row.get(4)?,
                    recognised: json(row, 5)?,
                })
            },
        )
    }
}
