//! Reading the store.

use std::collections::{BTreeMap, BTreeSet};

use pgdyno_model::facts::{HostFacts, Owner, ServerFacts, Setting};
use pgdyno_model::measurement::Second;
use pgdyno_model::record::{FsyncRate, SessionEnd, SessionRecord};
use pgdyno_model::telemetry::{Sample, Table};
use pgdyno_model::units::Epoch;
use pgdyno_model::{Latencies, Measurement, RunRecord, SecondLatencies, TrialRecord};
use rusqlite::{Row, params};
use serde::de::DeserializeOwned;

use super::{Hold, SessionId, Store, StoreError};

/// Session without an end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenSession {
    /// Number of the session in its store.
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
        let rows = self.rows(
            "read a run",
            "SELECT recipe, started_at, pgdyno_version, experiment, overrides, plan, folder \
             FROM run WHERE id = ?",
            [id],
            |row| {
                let json: [String; 2] = [row.get(4)?, row.get(5)?];
                Ok((row.get(0)?, time(row, 1)?, row.get(2)?, row.get(3)?, json, row.get(6)?))
            },
        )?;
        let Some((recipe, started_at, pgdyno_version, experiment, json, folder)) =
            rows.into_iter().next()
        else {
            return Err(self.unknown(id)?);
        };
        let extended = self.rows(
            "read a run's extensions",
            "SELECT overrides, plan FROM run_extension WHERE run = ? ORDER BY id DESC LIMIT 1",
            [id],
            |row| Ok([row.get(0)?, row.get(1)?]),
        )?;
        self.check_head(id)?;
        let [overrides, plan] = extended.into_iter().next().unwrap_or(json);
        Ok(RunRecord {
            id: id.to_owned(),
            recipe,
            started_at,
            pgdyno_version,
            experiment,
            folder,
            overrides: self.json("a run's overrides", &overrides)?,
            plan: self.json("a run's plan", &plan)?,
        })
    }

    /// A run's sessions in order.
    ///
    /// # Errors
    /// [`StoreError::Sqlite`] or [`StoreError::Corrupt`].
    pub fn sessions(
        &self,
        run: &str,
    ) -> Result<Vec<(SessionId, SessionRecord, Option<SessionEnd>)>, StoreError> {
        let rows = self.rows(
            "read a run's sessions",
            "SELECT s.id, s.started_at, s.owner_pid, s.owner_started_ticks, s.owner_boot_id, \
                 s.host, s.storage, e.state
             FROM session s LEFT JOIN session_end e ON e.session = s.id WHERE s.run = ? \
             ORDER BY s.id",
            [run],
            |row| {
                let json = (row.get::<_, String>(5)?, row.get::<_, String>(6)?);
                Ok((
                    SessionId(row.get(0)?),
                    time(row, 1)?,
                    owner(row, 2)?,
                    json,
                    row.get::<_, Option<String>>(7)?,
                ))
            },
        )?;
        rows.into_iter()
            .map(|(id, started_at, mut owner, (host, storage), end)| {
                let host: HostFacts = self.json("a session's host", &host)?;
                owner.host.clone_from(&host.id);
                let storage = self.json("a session's storage", &storage)?;
                Ok((
                    id,
                    SessionRecord { started_at, owner, host, storage },
                    self.session_end(end.as_deref())?,
                ))
            })
            .collect()
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
                 SELECT id FROM session s \
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

    /// Returns the block and tps of each completed trial, by treatment. It reads nothing else of
    /// the trials.
    ///
    /// # Errors
    /// [`StoreError::Sqlite`] or [`StoreError::Corrupt`].
    pub fn compared(&self, run: &str) -> Result<BTreeMap<usize, Vec<(u32, f64)>>, StoreError> {
        let rows = self.rows(
            "read a run's tps",
            "SELECT treatment, block, measurement FROM trial
             WHERE id IN (SELECT MIN(id) FROM trial \
                          WHERE run = ? AND failure IS NULL GROUP BY ordinal)
                   AND measurement IS NOT NULL
             ORDER BY id",
            [run],
            |row| Ok((row.get(0)?, row.get(1)?, row.get::<_, String>(2)?)),
        )?;
        let mut compared: BTreeMap<usize, Vec<(u32, f64)>> = BTreeMap::new();
        for (treatment, block, json) in rows {
            let measurement: Measurement = self.json("a trial's measurement", &json)?;
            let trial = measurement.compared().map(|tps| (block, tps));
            compared.entry(treatment).or_default().extend(trial);
        }
        Ok(compared)
    }

    /// Returns the row numbers of all attempts at a run's trials, in the order of recording. A
    /// whole trial is large, so that the analysis reads one at a time by [`Self::trial`].
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
            "SELECT session, ordinal, block, treatment, repeat, started_at, measured_at, failure, \
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
                    failure: row.get(7)?,
                    measurement: None,
                    server_count: None,
                    server: None,
                    telemetry: Vec::new(),
                    server_log: row.get::<_, Option<String>>(11)?.unwrap_or_default(),
                };
                let json: [Option<String>; 3] = [row.get(8)?, row.get(9)?, row.get(10)?];
                Ok((SessionId(row.get(0)?), record, json))
            },
        )?;
        let Some((session, mut trial, [measurement, server_count, server])) =
            rows.into_iter().next()
        else {
            return Err(self.corrupt("a list of trials", &format!("number {id} is not there")));
        };
        if let Some(json) = measurement {
            let mut measurement: Measurement = self.json("a trial's measurement", &json)?;
            self.read_series(id, &mut measurement)?;
            self.read_histograms(id, &mut measurement)?;
            trial.measurement = Some(measurement);
        }
        if let Some(json) = server_count {
            trial.server_count = Some(self.json("a trial's server count", &json)?);
        }
        if let Some(json) = server {
            let mut server: ServerFacts = self.json("a trial's server", &json)?;
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
            trial.server = Some(server);
        }
        trial.telemetry =
            self.read_telemetry(id)?.into_iter().map(|telemetry| telemetry.table).collect();
        Ok((session, trial))
    }

    /// Returns the rates that the fsync probe measured in a run's sessions, in order.
    ///
    /// # Errors
    /// [`StoreError::Sqlite`] or [`StoreError::Corrupt`].
    pub fn fsync_rates(&self, run: &str) -> Result<Vec<FsyncRate>, StoreError> {
        let rows = self.rows(
            "read a run's fsync rates",
            "SELECT storage, method, block_bytes, flushes, seconds, measured_at, v2
             FROM fsync_rate WHERE run = ? ORDER BY id",
            [run],
            |row| {
                let rate = FsyncRate {
                    storage: row.get(0)?,
                    method: row.get(1)?,
                    block_bytes: row.get(2)?,
                    flushes: row.get(3)?,
                    seconds: row.get(4)?,
                    latency: Latencies::default(),
                    measured_at: time(row, 5)?,
                };
                Ok((rate, row.get::<_, Vec<u8>>(6)?))
            },
        )?;
        rows.into_iter()
            .map(|(rate, v2)| {
                let latency = Latencies::from_bytes(&v2)
                    .map_err(|e| self.corrupt("an fsync histogram", &e.to_string()))?;
                Ok(FsyncRate { latency, ..rate })
            })
            .collect()
    }

    fn read_series(&self, trial: i64, measurement: &mut Measurement) -> Result<(), StoreError> {
        let rows = self.rows(
            "read a trial's series",
            "SELECT s.t_s, s.length_s, s.transactions, s.failed, s.latency_us_p50, \
                 s.latency_us_p95, s.latency_us_p99,
                    s.latency_us_max, h.counts, c.done
             FROM second s LEFT JOIN second_histogram h USING (trial, t_s)
             LEFT JOIN second_command c USING (trial, t_s) WHERE trial = ? ORDER BY t_s",
            [trial],
            |row| {
                let second = Second {
                    t_s: row.get(0)?,
                    length_s: row.get(1)?,
                    transactions: row.get(2)?,
                    failed: row.get(3)?,
                    latency_us_p50: row.get(4)?,
                    latency_us_p95: row.get(5)?,
                    latency_us_p99: row.get(6)?,
                    latency_us_max: row.get(7)?,
                    latencies: None,
                    commands: Vec::new(),
                };
                Ok((second, row.get::<_, Option<Vec<u8>>>(8)?, row.get::<_, Option<String>>(9)?))
            },
        )?;
        let read = |bytes: Vec<u8>| {
            SecondLatencies::from_bytes(&bytes)
                .map_err(|e| self.corrupt("a histogram of a second", &e))
        };
        let commands = |text: String| self.json("commands of a second", &text);
        measurement.series = rows
            .into_iter()
            .map(|(second, bytes, done)| {
                let latencies = bytes.map(read).transpose()?;
                let commands = done.map(commands).transpose()?.unwrap_or_default();
                Ok(Second { latencies, commands, ..second })
            })
            .collect::<Result<_, StoreError>>()?;
        Ok(())
    }

    fn read_histograms(&self, trial: i64, measurement: &mut Measurement) -> Result<(), StoreError> {
        let rows = self.rows(
            "read a trial's histograms",
            "SELECT scope, script, statement, v2 FROM histogram WHERE trial = ?",
            [trial],
            |row| {
                let place = (row.get::<_, i64>(1)?, row.get::<_, i64>(2)?);
                Ok((row.get::<_, String>(0)?, place, row.get::<_, Vec<u8>>(3)?))
            },
        )?;
        for (scope, (script, statement), v2) in rows {
            let read = Latencies::from_bytes(&v2)
                .map_err(|e| self.corrupt("a histogram", &e.to_string()))?;
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
            match place {
                Some(place) => *place = read,
                None => {
                    return Err(self.corrupt("a histogram", &format!("scope {scope} of nothing")));
                }
            }
        }
        Ok(())
    }

    /// Telemetry of a trial, with the places of its rows.
    pub(super) fn read_telemetry(&self, trial: i64) -> Result<Vec<StoredTelemetry>, StoreError> {
        let tables = self.rows(
            "read a trial's telemetry",
            "SELECT id, probe, columns, unavailable FROM telemetry WHERE trial = ? ORDER BY id",
            [trial],
            |row| {
                Ok((
                    row.get::<_, i64>(0)?,
                    row.get::<_, String>(1)?,
                    row.get::<_, String>(2)?,
                    row.get(3)?,
                ))
            },
        )?;
        tables
            .into_iter()
            .map(|(id, probe, columns, unavailable)| {
                let columns = self.json("a telemetry table's columns", &columns)?;
                let rows = self.rows(
                    "read telemetry",
                    "SELECT position, t_s, readings FROM sample WHERE telemetry = ? \
                     ORDER BY position",
                    [id],
                    |row| Ok((row.get(0)?, row.get(1)?, row.get::<_, String>(2)?)),
                )?;
                let mut positions = Vec::with_capacity(rows.len());
                let mut samples = Vec::with_capacity(rows.len());
                for (position, t_s, readings) in rows {
                    positions.push(position);
                    samples.push(Sample { t_s, values: self.json("a sample", &readings)? });
                }
                let table = Table { probe, columns, samples, unavailable };
                Ok(StoredTelemetry { id, positions, table })
            })
            .collect()
    }

    /// Reads all rows of a query, each by `read`.
    pub(super) fn rows<T>(
        &self,
        doing: &'static str,
        query: &str,
        parameters: impl rusqlite::Params,
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, StoreError> {
        self.connection
            .prepare_cached(query)
            .and_then(|mut statement| statement.query_map(parameters, read)?.collect())
            .map_err(self.failed(doing))
    }

    pub(super) fn json<T: DeserializeOwned>(
        &self,
        what: &str,
        text: &str,
    ) -> Result<T, StoreError> {
        serde_json::from_str(text).map_err(|e| self.corrupt(what, &e))
    }

    pub(super) fn session_end(
        &self,
        state: Option<&str>,
    ) -> Result<Option<SessionEnd>, StoreError> {
        let end = |name: &str| name.parse().map_err(|_| self.corrupt("a session's end", &name));
        state.map(end).transpose()
    }
}

pub(super) fn time(row: &Row<'_>, column: usize) -> rusqlite::Result<Epoch> {
    Ok(Epoch(row.get(column)?))
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
