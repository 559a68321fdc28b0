//! Probes of a storage in the store.

use pgdyno_model::ProbeRecord;
use pgdyno_model::units::Epoch;
use rusqlite::params;

use super::write::{Record, encode};
use super::{SessionId, Store, StoreError};

/// A probe in a list.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct ProbeSummary {
    /// Name of the probe.
    pub id: String,
    /// Kind of probe: `fsync` or `disk`.
    pub kind: String,
    /// Storage, directory or device that was probed.
    pub name: String,
    /// Run that the probe belongs to; none if it stands by itself.
    pub run: Option<String>,
    /// When the probe began.
    #[serde(serialize_with = "pgdyno_model::format::as_text")]
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
        let host = encode(what, &probe.host)?;
        let storage = encode(what, &probe.storage)?;
        let result = encode(what, &probe.result)?;
        let chain = probe.run.as_deref().unwrap_or(&probe.id);
        let record = Record { chain, part: "probe_record", id: &probe.id };
        self.add_record(
            "add a probe",
            &record,
            what,
            "there is a probe of that name",
            |transaction| {
                transaction.execute(
                    "INSERT INTO probe_record (id, run, session, kind, name, started_at, \
                     pgdyno_version, host, storage, result)
                 VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
                    params![
                        probe.id,
                        probe.run,
                        session.map(|s| s.0),
                        probe.result.kind(),
                        probe.name,
                        probe.started_at.0,
                        probe.pgdyno_version,
                        host,
                        storage,
                        result
                    ],
                )
            },
        )
    }

    /// Returns all probes, newest first.
    ///
    /// # Errors
    /// [`StoreError::Sqlite`].
    pub fn probes(&self) -> Result<Vec<ProbeSummary>, StoreError> {
        self.rows(
            "list the probes",
            "SELECT id, kind, name, run, started_at, complete FROM probe_record \
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
        let rows = self.rows(
            "read a probe",
            "SELECT run, name, started_at, pgdyno_version, host, storage, result FROM probe_record \
             WHERE id = ?",
            [id],
            |row| {
                let json: [String; 3] = [row.get(4)?, row.get(5)?, row.get(6)?];
                Ok((row.get(0)?, row.get(1)?, Epoch(row.get(2)?), row.get(3)?, json))
            },
        )?;
        let Some((run, name, started_at, pgdyno_version, [host, storage, result])) =
            rows.into_iter().next()
        else {
            return Err(self.unknown(id)?);
        };
        self.check(&self.chain_of(id)?)?;
        Ok(ProbeRecord {
            id: id.to_owned(),
            run,
            name,
            started_at,
            pgdyno_version,
            host: self.json("a probe's host", &host)?,
            storage: self.json("a probe's storage", &storage)?,
            result: self.json("a probe's result", &result)?,
        })
    }
}
