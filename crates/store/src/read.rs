//! Reading the store.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;

use pgdyno_model::facts::{HostFacts, Owner, Setting};
use pgdyno_model::measurement::Second;
use pgdyno_model::record::{FsyncRate, SessionEnd, SessionRecord};
use pgdyno_model::telemetry::{Sample, Table};
use pgdyno_model::units::Epoch;
use pgdyno_model::{Failure, Latencies, Measurement, RunRecord, SecondLatencies, TrialRecord};
use rusqlite::types::{FromSql, Type, ValueRef};
use rusqlite::{Row, params};
use serde::de::DeserializeOwned;

use super::{Hold, SessionId, Store, StoreError};

/// Session without an end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenSession {
    /// Number of the session.
    pub id: SessionId,
    /// Run that the session belongs to.
    pub run: String,
    /// When the session began.
    pub started_at: Epoch,
    /// Process that began the session.
    pub owner: Owner,
    /// Name of that process's machine; none from an earlier version.
    pub host: Option<String>,
    /// Whether a process holds the session.
    pub hold: Hold,
}

impl OpenSession {
    /// Returns the error for a process that wants the run while this session is open.
    pub fn into_error(self) -> StoreError {
        let Self { run, started_at, owner, host, .. } = self;
        StoreError::SessionOpen { run, pid: owner.pid, host, since: started_at }
    }
}

/// Telemetry of one probe as the store has it.
pub(super) struct StoredTelemetry {
    /// Number of the table's row.
    pub(super) id: i64,
    /// Positions of its samples. A thinned run has gaps.
    pub(super) positions: Vec<i64>,
    pub(super) table: Table,
}

impl Store {
    /// A run as it was begun, or, where it was given more repeats, with the plan that holds since.
    ///
    /// # Errors
    /// [`StoreError::UnknownRun`] for a name that is no run's; [`StoreError::Damaged`];
    /// [`StoreError::Sqlite`] or [`StoreError::Corrupt`].
    pub fn run(&self, id: &str) -> Result<RunRecord, StoreError> {
        self.check_head(id)?;
        self.record(
            "read a run",
            "SELECT r.id, recipe, started_at, pgdyno_version, experiment, folder,
                    coalesce(e.overrides, r.overrides) AS overrides,
                    coalesce(e.plan, r.plan) AS plan
             FROM run r LEFT JOIN run_extension e ON e.run = r.id WHERE r.id = ?
             ORDER BY e.id DESC LIMIT 1",
            id,
            |row| {
                Ok(RunRecord {
                    id: row.get(0)?,
                    recipe: row.get(1)?,
                    started_at: time(row, 2)?,
                    pgdyno_version: row.get(3)?,
                    experiment: row.get(4)?,
                    folder: row.get(5)?,
                    overrides: json(row, 6)?,
                    plan: json(row, 7)?,
                })
            },
        )
    }

    /// A run's sessions in order.
    ///
    /// # Errors
    /// [`StoreError::Sqlite`] or [`StoreError::Corrupt`].
    pub fn sessions(
        &self,
        run: &str,
    ) -> Result<Vec<(SessionId, SessionRecord, Option<SessionEnd>)>, StoreError> {
        self.rows(
            "read a run's sessions",
            "SELECT s.id, s.started_at, s.owner_pid, s.owner_started_ticks, s.owner_boot_id, s.host,
                    s.storage, json_quote(e.state) AS state
             FROM session s LEFT JOIN session_end e ON e.session = s.id
             WHERE s.run = ? ORDER BY s.id",
            [run],
            |row| {
                let host: HostFacts = json(row, 5)?;
                let owner = Owner { host: host.id.clone(), ..owner(row, 2)? };
                let (started_at, storage) = (time(row, 1)?, json(row, 6)?);
                let session = SessionRecord { started_at, owner, host, storage };
                Ok((SessionId(row.get(0)?), session, json(row, 7)?))
            },
        )
    }

    /// Every session without an end, of all runs: a process works on it, or it was killed.
    ///
    /// # Errors
    /// [`StoreError::Sqlite`].
    pub fn open_sessions(&self) -> Result<Vec<OpenSession>, StoreError> {
        // Lists ask this: a machine that cannot be read is for those who read the run. Numbers
        // alone come from an index: the machines of all sessions are many pages.
        let mut open = self.rows(
            "list the open sessions",
            "SELECT id, run, owner_pid, owner_started_ticks, owner_boot_id, started_at,
                    CASE WHEN json_valid(host) THEN json_extract(host, '$.id') END,
                    CASE WHEN json_valid(host) THEN json_extract(host, '$.name') END
             FROM session WHERE id IN (
                 SELECT id FROM session s
                 WHERE NOT EXISTS (SELECT 1 FROM session_end WHERE session = s.id)
             ) ORDER BY id",
            params![],
            |row| {
                Ok(OpenSession {
                    id: SessionId(row.get(0)?),
                    run: row.get(1)?,
                    started_at: time(row, 5)?,
                    owner: Owner { host: text(row, 6)?, ..owner(row, 2)? },
                    host: text(row, 7)?,
                    hold: Hold::Unknown,
                })
            },
        )?;
        let sessions = open.iter().map(|open| (open.id, open.owner.host.is_some()));
        let holds = self.locks.look(&self.path, sessions);
        open.iter_mut().zip(holds).for_each(|(open, hold)| open.hold = hold);
        Ok(open)
    }

    /// The ordinals of the planned trials that are completed.
    ///
    /// # Errors
    /// [`StoreError::Sqlite`].
    pub fn completed_trials(&self, run: &str) -> Result<BTreeSet<u32>, StoreError> {
        let ordinals = self.rows(
            "list the completed trials",
            "SELECT DISTINCT ordinal FROM trial WHERE run = ? AND failure IS NULL",
            [run],
            |row| row.get(0),
        )?;
        Ok(ordinals.into_iter().collect())
    }

    /// All attempts at a run's trials, in the order of recording.
    ///
    /// # Errors
    /// [`StoreError::Damaged`]; [`StoreError::Sqlite`] or [`StoreError::Corrupt`].
    pub fn trials(&self, run: &str) -> Result<Vec<TrialRecord>, StoreError> {
        self.check(run)?;
        self.trial_ids(run)?.into_iter().map(|id| self.trial(id).map(|(_, trial)| trial)).collect()
    }

    /// Returns the (block, tps) of completed trials by treatment, by which treatments are compared.
    /// Nothing else of the trials is read.
    ///
    /// # Errors
    /// [`StoreError::Sqlite`] or [`StoreError::Corrupt`].
    pub fn compared(&self, run: &str) -> Result<BTreeMap<usize, Vec<(u32, f64)>>, StoreError> {
        let rows = self.rows(
            "read a run's tps",
            "SELECT treatment, block, measurement FROM trial
             WHERE id IN (SELECT MIN(id) FROM trial
                          WHERE run = ? AND failure IS NULL GROUP BY ordinal)
                   AND measurement IS NOT NULL
             ORDER BY id",
            [run],
            |row| Ok((row.get(0)?, row.get(1)?, json::<Measurement>(row, 2)?)),
        )?;
        let mut compared: BTreeMap<usize, Vec<(u32, f64)>> = BTreeMap::new();
        for (treatment, block, measurement) in rows {
            let trial = measurement.compared().map(|tps| (block, tps));
            compared.entry(treatment).or_default().extend(trial);
        }
        Ok(compared)
    }

    /// Numbers of all attempts at a run's trials, in the order of recording: one whole trial
    /// is large, so that the analysis reads one at a time.
    pub fn trial_ids(&self, run: &str) -> Result<Vec<i64>, StoreError> {
        self.rows(
            "list a run's trials",
            "SELECT id FROM trial WHERE run = ? ORDER BY id",
            [run],
            |row| row.get(0),
        )
    }

    /// Returns one attempt, whole, and the session that made it.
    pub fn trial(&self, id: i64) -> Result<(SessionId, TrialRecord), StoreError> {
        let rows = self.rows(
            "read a trial",
            "SELECT session, ordinal, block, treatment, repeat, started_at, measured_at, failure,
                    measurement,
                    server_count, server, (SELECT text FROM server_log WHERE trial = trial.id)
             FROM trial WHERE id = ?",
            [id],
            |row| {
                let record = TrialRecord {
                    ordinal: row.get(1)?,
                    block: row.get(2)?,
                    treatment: row.get(3)?,
                    repeat: row.get(4)?,
                    started_at: time(row, 5)?,
                    measured_at: row.get::<_, Option<u64>>(6)?.map(Epoch),
                    failure: row.get::<_, Option<String>>(7)?.map(Failure::from_stored),
                    measurement: json(row, 8)?,
                    server_count: json(row, 9)?,
                    server: json(row, 10)?,
                    telemetry: Vec::new(),
                    server_log: row.get::<_, Option<String>>(11)?.unwrap_or_default(),
                };
                Ok((SessionId(row.get(0)?), record))
            },
        )?;
        let Some((session, mut trial)) = rows.into_iter().next() else {
            return Err(self.corrupt("a list of trials", &format!("number {id} is not there")));
        };
        if let Some(measurement) = &mut trial.measurement {
            measurement.series = self.series(id)?;
            self.read_histograms(id, measurement)?;
        }
        if let Some(server) = &mut trial.server {
            server.settings = self.rows(
                "read a trial's settings",
                "SELECT name, value, unit, source FROM setting WHERE trial = ? ORDER BY position",
                [id],
                |row| {
                    Ok(Setting {
                        name: row.get(0)?,
                        value: row.get(1)?,
                        unit: row.get(2)?,
                        source: row.get(3)?,
                    })
                },
            )?;
        }
        let telemetry = self.read_telemetry(id)?;
        trial.telemetry = telemetry.into_iter().map(|telemetry| telemetry.table).collect();
        Ok((session, trial))
    }

    /// Results of the fsync probe in a run's sessions, in order.
    ///
    /// # Errors
    /// [`StoreError::Sqlite`] or [`StoreError::Corrupt`].
    pub fn fsync_rates(&self, run: &str) -> Result<Vec<FsyncRate>, StoreError> {
        self.rows(
            "read a run's fsync rates",
            "SELECT storage, method, block_bytes, flushes, seconds, measured_at, v2
             FROM fsync_rate WHERE run = ? ORDER BY id",
            [run],
            |row| {
                Ok(FsyncRate {
                    storage: row.get(0)?,
                    method: row.get(1)?,
                    block_bytes: row.get(2)?,
                    flushes: row.get(3)?,
                    seconds: row.get(4)?,
                    measured_at: time(row, 5)?,
                    latency: parsed(row, 6, Latencies::from_bytes)?,
                })
            },
        )
    }

    fn series(&self, trial: i64) -> Result<Vec<Second>, StoreError> {
        self.rows(
            "read a trial's series",
            "SELECT s.t_s, s.length_s, s.transactions, s.failed, s.latency_us_p50,
                    s.latency_us_p95, s.latency_us_p99, s.latency_us_max, h.counts,
                    coalesce(c.done, '[]') AS done
             FROM second s LEFT JOIN second_histogram h USING (trial, t_s)
             LEFT JOIN second_command c USING (trial, t_s) WHERE trial = ? ORDER BY t_s",
            [trial],
            |row| {
                let has_latencies = row.get_ref(8)? != ValueRef::Null;
                let latencies = has_latencies.then(|| parsed(row, 8, SecondLatencies::from_bytes));
                Ok(Second {
                    t_s: row.get(0)?,
                    length_s: row.get(1)?,
                    transactions: row.get(2)?,
                    failed: row.get(3)?,
                    latency_us_p50: row.get(4)?,
                    latency_us_p95: row.get(5)?,
                    latency_us_p99: row.get(6)?,
                    latency_us_max: row.get(7)?,
                    latencies: latencies.transpose()?,
                    commands: json(row, 9)?,
                })
            },
        )
    }

    fn read_histograms(&self, trial: i64, measurement: &mut Measurement) -> Result<(), StoreError> {
        let rows = self.rows(
            "read a trial's histograms",
            "SELECT scope, script, statement, v2 FROM histogram WHERE trial = ?",
            [trial],
            |row| {
                let place = (row.get::<_, i64>(1)?, row.get::<_, i64>(2)?);
                Ok((row.get::<_, String>(0)?, place, parsed(row, 3, Latencies::from_bytes)?))
            },
        )?;
        for (scope, (script, statement), read) in rows {
            let script = usize::try_from(script).ok().and_then(|i| measurement.scripts.get_mut(i));
            let statement = usize::try_from(statement).ok();
            let place = match (scope.as_str(), script, statement) {
                ("trial", None, None) => Some(&mut measurement.latency),
                ("service", None, None) => Some(measurement.service.get_or_insert_default()),
                ("script", Some(script), None) => Some(&mut script.latency),
                ("service", Some(script), None) => Some(script.service.get_or_insert_default()),
                ("statement", Some(script), Some(i)) => {
                    script.statements.get_mut(i).map(|s| &mut s.latency)
                }
                ("first_byte", Some(script), Some(i)) => {
                    script.statements.get_mut(i).map(|s| &mut s.first_byte)
                }
                _ => None,
            };
            let of_nothing = || self.corrupt("a histogram", &format!("scope {scope} of nothing"));
            *place.ok_or_else(of_nothing)? = read;
        }
        Ok(())
    }

    /// Telemetry of a trial, with the places of its rows.
    pub(super) fn read_telemetry(&self, trial: i64) -> Result<Vec<StoredTelemetry>, StoreError> {
        let mut all = self.rows(
            "read a trial's telemetry",
            "SELECT id, probe, columns, unavailable FROM telemetry WHERE trial = ? ORDER BY id",
            [trial],
            |row| {
                let (probe, columns, unavailable) = (row.get(1)?, json(row, 2)?, row.get(3)?);
                let table = Table { probe, columns, samples: Vec::new(), unavailable };
                Ok(StoredTelemetry { id: row.get(0)?, positions: Vec::new(), table })
            },
        )?;
        for telemetry in &mut all {
            let samples = self.rows(
                "read telemetry",
                "SELECT position, t_s, readings FROM sample WHERE telemetry = ? ORDER BY position",
                [telemetry.id],
                |row| {
                    Ok((row.get::<_, i64>(0)?, Sample { t_s: row.get(1)?, values: json(row, 2)? }))
                },
            )?;
            (telemetry.positions, telemetry.table.samples) = samples.into_iter().unzip();
        }
        Ok(all)
    }

    /// Reads all rows of a query, each by `read`.
    pub(super) fn rows<T>(
        &self,
        doing: &'static str,
        query: &str,
        parameters: impl rusqlite::Params,
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, StoreError> {
        let failed = self.failed(doing);
        let mut statement = self.connection.prepare_cached(query).map_err(&failed)?;
        let rows = statement.query_map(parameters, read).and_then(Iterator::collect);
        rows.map_err(|error| match error {
            rusqlite::Error::FromSqlConversionFailure(column, _, why) => {
                let column = statement.column_name(column).unwrap_or("?");
                self.corrupt(format!("a value of `{column}`"), &why)
            }
            other => failed(other),
        })
    }

    /// The first value that a query finds.
    pub(super) fn value<T: FromSql>(
        &self,
        doing: &'static str,
        query: &str,
        parameters: impl rusqlite::Params,
    ) -> Result<T, StoreError> {
        let found = self.connection.query_row(query, parameters, |row| row.get(0));
        found.map_err(self.failed(doing))
    }

    /// The row of the record `id`, made by `read`.
    pub(super) fn record<T>(
        &self,
        doing: &'static str,
        query: &str,
        id: &str,
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        match self.rows(doing, query, [id], read)?.pop() {
            Some(record) => Ok(record),
            None => Err(self.unknown(id)?),
        }
    }
}

pub(super) fn time(row: &Row<'_>, column: usize) -> rusqlite::Result<Epoch> {
    Ok(Epoch(row.get(column)?))
}

/// Reads JSON. NULL is read as JSON's `null`.
pub(super) fn json<T: DeserializeOwned>(row: &Row<'_>, column: usize) -> rusqlite::Result<T> {
    parsed(row, column, |bytes| serde_json::from_slice(bytes))
}

/// Reads a value by `parse`, which gets `null` of NULL.
fn parsed<T, E: Into<Box<dyn Error + Send + Sync>>>(
    row: &Row<'_>,
    column: usize,
    parse: impl FnOnce(&[u8]) -> Result<T, E>,
) -> rusqlite::Result<T> {
    let unreadable =
        |why: E| rusqlite::Error::FromSqlConversionFailure(column, Type::Blob, why.into());
    let bytes = row.get_ref(column)?.as_bytes_or_null()?;
    parse(bytes.unwrap_or(b"null")).map_err(unreadable)
}

/// A text of a JSON document that may hold anything in its place.
fn text(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<String>> {
    Ok(row.get_ref(column)?.as_str().ok().map(str::to_owned))
}

fn owner(row: &Row<'_>, first: usize) -> rusqlite::Result<Owner> {
    Ok(Owner {
        pid: row.get(first)?,
        started_ticks: row.get(first + 1)?,
        boot_id: row.get(first + 2)?,
        host: None,
    })
}
