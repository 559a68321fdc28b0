//! Whether a store is as it was written: SQLite's own check, and the checksums of every record.

use std::collections::BTreeSet;

use rusqlite::params;

use super::remove::REMOVALS;
use super::seal::{self, Damage};
use super::{Store, StoreError};

/// Result of `pgdyno verify`.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Verification {
    /// File of the store.
    pub store: String,
    /// Whether nothing is damaged. Rows without checksums do not count against it.
    pub sound: bool,
    /// Faults that SQLite found in the file.
    pub file: Vec<String>,
    /// Checked records, newest first.
    pub records: Vec<CheckedRecord>,
}

/// Run, probe, crash test or import that was checked.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct CheckedRecord {
    /// Name.
    pub id: String,
    /// `run`, `probe`, `crash test` or `import`; `removals` for the list of records that
    /// `pgdyno rm` removed; `missing` if only its checksums are left.
    pub kind: &'static str,
    /// Result of the check.
    pub state: RecordState,
    /// Rows with a checksum (count).
    pub rows: u64,
    /// Rows without a checksum, from versions that had none (count). A trial counts as one.
    pub not_checksummed: u64,
    /// Rows that differ from what was stored.
    pub damage: Vec<Damage>,
}

/// Result of checking a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RecordState {
    /// Every row is as it was stored.
    Sound,
    /// Rows with a checksum are as they were stored; other rows have none.
    Partly,
    /// The record comes from a version without checksums.
    NotChecksummed,
    /// A row differs from what was stored.
    Damaged,
}

impl Store {
    /// Checks the file, and the records that `names` mean, as [`Store::resolve_any`] has them;
    /// without any, all.
    ///
    /// # Errors
    /// A name that is no record's, or an ambiguous one; [`StoreError::Sqlite`] where the file
    /// cannot be read at all.
    pub fn verify(&self, names: &[String]) -> Result<Verification, StoreError> {
        let file = self.check_file();
        let mut wanted = if names.is_empty() { self.records()? } else { Vec::new() };
        for name in names {
            let found = self.resolve_any(name)?;
            wanted.push((found.id().to_owned(), found.kind()));
        }
        let records = wanted
            .into_iter()
            .map(|(id, kind)| self.checked(id, kind))
            .collect::<Result<Vec<_>, _>>()?;
        let sound = file.is_empty() && records.iter().all(|r| r.state != RecordState::Damaged);
        Ok(Verification { store: self.path.display().to_string(), sound, file, records })
    }

    /// Refuses a record whose rows are not as they were stored: its figures are not shown.
    ///
    /// # Errors
    /// [`StoreError::Damaged`]; [`StoreError::Sqlite`].
    pub fn check(&self, id: &str) -> Result<(), StoreError> {
        self.refuse_damaged(id, seal::check(&self.connection, id))
    }

    /// Checks a run's own rows like [`Store::check`]: its experiment and plan.
    pub(super) fn check_head(&self, run: &str) -> Result<(), StoreError> {
        self.refuse_damaged(run, seal::check_head(&self.connection, run))
    }

    fn refuse_damaged(
        &self,
        id: &str,
        checked: rusqlite::Result<seal::Checked>,
    ) -> Result<(), StoreError> {
        let mut damage = checked.map_err(self.failed("check what is stored"))?.damage;
        if damage.is_empty() {
            return Ok(());
        }
        let first = Box::new(damage.swap_remove(0));
        Err(StoreError::Damaged {
            path: self.path.clone(),
            id: id.to_owned(),
            first,
            more: damage.len(),
        })
    }

    fn checked(&self, id: String, kind: &'static str) -> Result<CheckedRecord, StoreError> {
        // A probe of a run is in the run's chain.
        let chain = self.chain_of(&id)?;
        let seal::Checked { rows, unsealed, damage } = seal::check(&self.connection, &chain)
            .unwrap_or_else(|error| seal::Checked::unreadable(&id, &error));
        let state = match (damage.is_empty(), unsealed, rows) {
            (false, ..) => RecordState::Damaged,
            (true, 0, _) => RecordState::Sound,
            (true, _, 0) => RecordState::NotChecksummed,
            _ => RecordState::Partly,
        };
        Ok(CheckedRecord { id, kind, state, rows, not_checksummed: unsealed, damage })
    }

    /// The chain that holds a record: its own, or that of its run.
    pub(super) fn chain_of(&self, id: &str) -> Result<String, StoreError> {
        self.value(
            "find a record's run",
            "SELECT coalesce((SELECT run FROM probe_record WHERE id = ?1),
                             (SELECT run FROM crash_record WHERE id = ?1), ?1)",
            [id],
        )
    }

    /// All records by name, newest first, with those of which only checksums are left. Probes and
    /// crash tests of a run are checked with it.
    fn records(&self) -> Result<Vec<(String, &'static str)>, StoreError> {
        let mut all: Vec<(String, &'static str)> = self
            .all_records()?
            .into_iter()
            .map(|record| (record.id().to_owned(), record.kind()))
            .collect();
        let mut chains: BTreeSet<String> = self
            .rows(
                "list what is stored",
                "SELECT chain FROM seal UNION SELECT ? FROM removal",
                [REMOVALS],
                |row| row.get(0),
            )?
            .into_iter()
            .collect();
        chains.retain(|chain| all.iter().all(|(id, _)| id != chain));
        let kind = |chain: &str| if chain == REMOVALS { REMOVALS } else { "missing" };
        all.extend(chains.into_iter().map(|chain| (chain.clone(), kind(&chain))));
        Ok(all)
    }

    /// Faults that SQLite finds in the file.
    fn check_file(&self) -> Vec<String> {
        let found = self.rows("check the file", "PRAGMA integrity_check(20)", params![], |row| {
            row.get::<_, String>(0)
        });
        match found {
            Ok(lines) => lines.into_iter().filter(|line| line != "ok").collect(),
            Err(error) => {
                let why = std::error::Error::source(&error).map(ToString::to_string);
                vec![format!("it cannot be read whole: {}", why.unwrap_or_default())]
            }
        }
    }
}
