//! Crash tests in the store.

use pgdyno_model::CrashRecord;
use pgdyno_model::crash::CrashOutcome;
use pgdyno_model::units::Epoch;
use rusqlite::{Row, params};

use super::write::{Record, encode};
use super::{SessionId, Store, StoreError};

/// Crash tests in a list.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct CrashSummary {
    /// Name of the crash tests.
    pub id: String,
    /// Name of the crashed storage or treatment.
    pub name: String,
    /// Run that the crash tests belong to; none if they stand by themselves.
    pub run: Option<String>,
    /// When the crash tests began.
    #[serde(serialize_with = "pgdyno_model::format::as_text")]
    pub started_at: Epoch,
    /// Name of the verdict.
    pub verdict: String,
    /// Whether all rounds or states were done that were planned.
    pub complete: bool,
    /// Folder of the evidence that failed rounds left on this machine; none where there is none, or
    /// nobody has looked.
    pub kept: Option<std::path::PathBuf>,
    /// Room that the evidence takes on the disk (bytes).
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
        let host = encode(what, &crash.host)?;
        let storage = encode(what, &crash.storage)?;
        let outcome = encode(what, &crash.outcome)?;
        let chain = crash.run.as_deref().unwrap_or(&crash.id);
        let record = Record { chain, part: "crash_record", id: &crash.id };
        self.add_record(
            "add crash tests",
            &record,
            what,
            "there are some of that name",
            |transaction| {
                transaction.execute(
                    "INSERT INTO crash_record (id, run, session, treatment, name, started_at, \
                     pgdyno_version, host, storage,
                                           outcome)
                 VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
                    params![
                        crash.id,
                        crash.run,
                        session.map(|s| s.0),
                        crash.treatment,
                        crash.name,
                        crash.started_at.0,
                        crash.pgdyno_version,
                        host,
                        storage,
                        outcome
                    ],
                )
            },
        )
    }

    /// Returns all crash tests, newest first.
    ///
    /// # Errors
    /// [`StoreError::Sqlite`].
    pub fn crashes(&self) -> Result<Vec<CrashSummary>, StoreError> {
        self.rows(
            "list the crash tests",
            "SELECT id, name, run, started_at, verdict, complete FROM crash_record \
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
        let rows = self.rows("read crash tests", &format!("{SELECT} WHERE id = ?"), [id], raw)?;
        match rows.into_iter().next() {
            Some(raw) => {
                self.check(&self.chain_of(id)?)?;
                self.crash_of(raw)
            }
            None => Err(self.unknown(id)?),
        }
    }

    /// Returns the crash tests of a run, in the order of recording.
    ///
    /// # Errors
    /// [`StoreError::Sqlite`] or [`StoreError::Corrupt`].
    pub fn crashes_of(&self, run: &str) -> Result<Vec<CrashRecord>, StoreError> {
        let sql = format!("{SELECT} WHERE run = ? ORDER BY rowid");
        let rows = self.rows("read a run's crash tests", &sql, [run], raw)?;
        // SQLite takes the run from the index by which it finds the rows, and no checksum covers
        // that.
        let of_run = |raw| Ok(CrashRecord { run: Some(run.to_owned()), ..self.crash_of(raw)? });
        rows.into_iter().map(of_run).collect()
    }

    fn crash_of(&self, raw: Raw) -> Result<CrashRecord, StoreError> {
        let (mut record, [host, storage, outcome]) = raw;
        record.host = self.json("crash tests' host", &host)?;
        record.storage = self.json("crash tests' storage", &storage)?;
        record.outcome = self.json::<CrashOutcome>("crash tests' outcome", &outcome)?;
        Ok(record)
    }
}

const SELECT: &str = "SELECT id, run, treatment, name, started_at, pgdyno_version, host, storage, \
    outcome FROM crash_record";

/// A record whose JSON is still to be read.
type Raw = (CrashRecord, [String; 3]);

fn raw(row: &Row<'_>) -> rusqlite::Result<Raw> {
    let record = CrashRecord {
        id: row.get(0)?,
        run: row.get(1)?,
        treatment: row.get(2)?,
        name: row.get(3)?,
        started_at: Epoch(row.get(4)?),
        pgdyno_version: row.get(5)?,
        host: pgdyno_model::facts::HostFacts::default(),
        storage: pgdyno_model::facts::StorageFacts::default(),
        outcome: CrashOutcome::default(),
    };
    Ok((record, [row.get(6)?, row.get(7)?, row.get(8)?]))
}
