//! Crash tests in the store.

use pgdyno_model::CrashRecord;
use pgdyno_model::units::Epoch;
use rusqlite::{Row, named_params, params};

use super::read::json;
use super::write::encode;
use super::{SessionId, Store, StoreError};

/// Crash tests in a list.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct CrashSummary {
    /// Name.
    pub id: String,
    /// Storage or treatment that was crashed.
    pub name: String,
    /// Run that the crash tests belong to; none if they stand by themselves.
    pub run: Option<String>,
    /// When the crash tests began.
    #[serde(serialize_with = "pgdyno_text::format::as_text")]
    pub started_at: Epoch,
    /// Name of the verdict.
    pub verdict: String,
    /// Whether all rounds or states were done that were planned.
    pub complete: bool,
    /// Folder of the evidence that failed rounds left on this machine; none where there is none, or
    /// nobody has looked.
    pub kept: Option<std::path::PathBuf>,
    /// Room that `kept` takes on the disk (bytes).
    pub kept_bytes: Option<u64>,
}

impl Store {
    /// Adds crash tests; `session` is that of their run, where they have one.
    ///
    /// # Errors
    /// [`StoreError::Unstorable`] for a record that could not be read back, or if there is one of
    /// that name; [`StoreError::Sqlite`].
    pub fn add_crash(
        &mut self,
        session: Option<SessionId>,
        crash: &CrashRecord,
    ) -> Result<(), StoreError> {
        let what = || format!("crash tests {}", crash.id);
        let values = named_params! {
            ":id": crash.id,
            ":run": crash.run,
            ":session": session.map(|s| s.0),
            ":treatment": crash.treatment,
            ":name": crash.name,
            ":started_at": crash.started_at.0,
            ":pgdyno_version": crash.pgdyno_version,
            ":host": encode(what, &crash.host)?,
            ":storage": encode(what, &crash.storage)?,
            ":outcome": encode(what, &crash.outcome)?,
        };
        let chain = crash.run.as_deref().unwrap_or(&crash.id);
        self.add_record("add crash tests", (chain, "crash_record"), what, values)
    }

    /// Returns all crash tests, newest first.
    ///
    /// # Errors
    /// [`StoreError::Sqlite`].
    pub fn crashes(&self) -> Result<Vec<CrashSummary>, StoreError> {
        self.rows(
            "list the crash tests",
            "SELECT id, name, run, started_at, verdict, complete FROM crash_record
             ORDER BY started_at DESC, rowid DESC",
            params![],
            |row| {
                Ok(CrashSummary {
                    id: row.get(0)?,
                    name: row.get(1)?,
                    run: row.get(2)?,
                    started_at: Epoch(row.get(3)?),
                    verdict: row.get(4)?,
                    complete: row.get(5)?,
                    kept: None,
                    kept_bytes: None,
                })
            },
        )
    }

    /// Returns the crash tests of that name, whole.
    ///
    /// # Errors
    /// [`StoreError::UnknownRun`] for a name that is none's; [`StoreError::Damaged`];
    /// [`StoreError::Sqlite`] or [`StoreError::Corrupt`].
    pub fn crash(&self, id: &str) -> Result<CrashRecord, StoreError> {
        self.check(&self.chain_of(id)?)?;
        self.record("read crash tests", &format!("{SELECT} WHERE id = ?"), id, record)
    }

    /// Crash tests of a run, in the order of recording.
    ///
    /// # Errors
    /// [`StoreError::Sqlite`] or [`StoreError::Corrupt`].
    pub fn crashes_of(&self, run: &str) -> Result<Vec<CrashRecord>, StoreError> {
        let sql = format!("{SELECT} WHERE run = ? ORDER BY rowid");
        // SQLite takes the run from the index by which it finds the rows. No checksum covers that.
        let of_run = |row: &Row<'_>| Ok(CrashRecord { run: Some(run.to_owned()), ..record(row)? });
        self.rows("read a run's crash tests", &sql, [run], of_run)
    }
}

const SELECT: &str =
    "SELECT id, run, treatment, name, started_at, pgdyno_version, host, storage, outcome
     FROM crash_record";

fn record(row: &Row<'_>) -> rusqlite::Result<CrashRecord> {
    Ok(CrashRecord {
        id: row.get(0)?,
        run: row.get(1)?,
        treatment: row.get(2)?,
        name: row.get(3)?,
        started_at: Epoch(row.get(4)?),
        pgdyno_version: row.get(5)?,
        host: json(row, 6)?,
        storage: json(row, 7)?,
        outcome: json(row, 8)?,
    })
}
