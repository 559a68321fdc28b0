//! Probes of a storage in the store.

use pgdyno_model::ProbeRecord;
use pgdyno_model::units::Epoch;
use rusqlite::{Row, named_params, params};

use super::read::json;
use super::write::encode;
use super::{SessionId, Store, StoreError};

/// A probe in a list.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct ProbeSummary {
    /// Name.
    pub id: String,
    /// Kind of probe: `fsync` or `disk`.
    pub kind: String,
    /// Storage, directory or device that was probed.
    pub name: String,
    /// Run that the probe belongs to; none if it stands by itself.
    pub run: Option<String>,
    /// When the probe began.
    #[serde(serialize_with = "pgdyno_text::format::as_text")]
    pub started_at: Epoch,
    /// Whether all planned points were measured.
    pub complete: bool,
}

impl Store {
    /// Adds a probe; `session` is that of its run, where it has one.
    ///
    /// # Errors
    /// [`StoreError::Unstorable`] for a record that could not be read back, or if there is a probe
    /// of that name; [`StoreError::Sqlite`].
    pub fn add_probe(
        &mut self,
        session: Option<SessionId>,
        probe: &ProbeRecord,
    ) -> Result<(), StoreError> {
        let what = || format!("probe {}", probe.id);
        let values = named_params! {
            ":id": probe.id,
            ":run": probe.run,
            ":session": session.map(|s| s.0),
            ":kind": probe.result.kind(),
            ":name": probe.name,
            ":started_at": probe.started_at.0,
            ":pgdyno_version": probe.pgdyno_version,
            ":host": encode(what, &probe.host)?,
            ":storage": encode(what, &probe.storage)?,
            ":result": encode(what, &probe.result)?,
        };
        let chain = probe.run.as_deref().unwrap_or(&probe.id);
        self.add_record("add a probe", (chain, "probe_record"), what, values)
    }

    /// Returns all probes, newest first.
    ///
    /// # Errors
    /// [`StoreError::Sqlite`].
    pub fn probes(&self) -> Result<Vec<ProbeSummary>, StoreError> {
        self.rows(
            "list the probes",
            "SELECT id, kind, name, run, started_at, complete FROM probe_record
             ORDER BY started_at DESC, rowid DESC",
            params![],
            |row| {
                Ok(ProbeSummary {
                    id: row.get(0)?,
                    kind: row.get(1)?,
                    name: row.get(2)?,
                    run: row.get(3)?,
                    started_at: Epoch(row.get(4)?),
                    complete: row.get(5)?,
                })
            },
        )
    }

    /// Returns one probe, whole.
    ///
    /// # Errors
    /// [`StoreError::UnknownRun`] for a name that is no probe's; [`StoreError::Damaged`];
    /// [`StoreError::Sqlite`] or [`StoreError::Corrupt`].
    pub fn probe(&self, id: &str) -> Result<ProbeRecord, StoreError> {
        self.check(&self.chain_of(id)?)?;
        self.record("read a probe", &format!("{SELECT} WHERE id = ?"), id, record)
    }

    /// Probes of a run, in the order in which they began.
    ///
    /// # Errors
    /// [`StoreError::Sqlite`] or [`StoreError::Corrupt`].
    pub fn probes_of(&self, run: &str) -> Result<Vec<ProbeRecord>, StoreError> {
        let sql = format!("{SELECT} WHERE run = ? ORDER BY started_at, rowid");
        // SQLite takes the run from the index by which it finds the rows. No checksum covers that.
        let of_run = |row: &Row<'_>| Ok(ProbeRecord { run: Some(run.to_owned()), ..record(row)? });
        self.rows("read a run's probes", &sql, [run], of_run)
    }
}

const SELECT: &str = "SELECT id, run, name, started_at, pgdyno_version, host, storage, result
     FROM probe_record";

fn record(row: &Row<'_>) -> rusqlite::Result<ProbeRecord> {
    Ok(ProbeRecord {
        id: row.get(0)?,
        run: row.get(1)?,
        name: row.get(2)?,
        started_at: Epoch(row.get(3)?),
        pgdyno_version: row.get(4)?,
        host: json(row, 5)?,
        storage: json(row, 6)?,
        result: json(row, 7)?,
    })
}
