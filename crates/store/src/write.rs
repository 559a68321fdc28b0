//! Adding to the store.

use pgdyno_model::record::{FsyncRate, SessionEnd, SessionRecord};
use pgdyno_model::telemetry::Table;
use pgdyno_model::units::Epoch;
use pgdyno_model::{Latencies, Measurement, Plan, RunRecord, TrialRecord};
use rusqlite::{Connection, Transaction, TransactionBehavior, named_params, params};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{SessionId, Store, StoreError, seal};

/// Row with a name of its own, and the chain of seals that it belongs to.
pub(super) struct Record<'a> {
    pub(super) chain: &'a str,
    /// The table.
    pub(super) part: &'static str,
    pub(super) id: &'a str,
}

impl Store {
    /// Does `work`, which writes and seals rows, in one transaction.
    pub(super) fn write<T>(
        &mut self,
        doing: &'static str,
        work: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        let failed = self.failed(doing);
        self.in_transaction(doing, |transaction| work(transaction).map_err(failed))
    }

    /// Does `work` in one transaction, which takes the store for writing at once.
    pub(super) fn in_transaction<T>(
        &mut self,
        doing: &'static str,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let failed = self.failed(doing);
        let transaction = self
            .connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(&failed)?;
        let done = work(&transaction)?;
        transaction.commit().map_err(&failed)?;
        Ok(done)
    }

    /// Adds the row of `record` by `insert`, and seals it. `taken` says that its name is taken.
    ///
    /// # Errors
    /// [`StoreError::Unstorable`] if `insert` adds no row; [`StoreError::Sqlite`].
    pub(super) fn add_record(
        &mut self,
        doing: &'static str,
        record: &Record<'_>,
        what: impl Fn() -> String,
        taken: &str,
        insert: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<usize>,
    ) -> Result<(), StoreError> {
        let added = self.write(doing, |transaction| {
            let added = insert(transaction)?;
            if added > 0 {
                seal::add(transaction, record.chain, record.part, record.id.to_owned())?;
            }
            Ok(added)
        })?;
        let unstorable = || StoreError::Unstorable { what: what(), found: taken.into() };
        (added > 0).then_some(()).ok_or_else(unstorable)
    }

    /// Adds a run.
    ///
    /// # Errors
    /// [`StoreError::Unstorable`] if there is a run of that name; [`StoreError::Sqlite`].
    pub fn begin_run(&mut self, run: &RunRecord) -> Result<(), StoreError> {
        let what = || format!("run {}", run.id);
        let plan = encode(what, &run.plan)?;
        let overrides = encode(what, &run.overrides)?;
        let record = Record { chain: &run.id, part: "run", id: &run.id };
        self.add_record("add a run", &record, what, "there is a run of that name", |transaction| {
            transaction.execute(
                "INSERT INTO run (id, recipe, started_at, pgdyno_version, experiment, overrides, \
                     plan, folder)
                 VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
                params![
                    run.id,
                    run.recipe,
                    run.started_at.0,
                    run.pgdyno_version,
                    run.experiment,
                    overrides,
                    plan,
                    run.folder
                ],
            )
        })
    }

    /// Gives `run` more repeats: `plan` has its trials, then more; `overrides` are those that make
    /// that plan.
    ///
    /// # Errors
    /// [`StoreError::Sqlite`], also for a run that is not there.
    pub fn extend_run(
        &mut self,
        run: &str,
        at: Epoch,
        overrides: &[String],
        plan: &Plan,
    ) -> Result<(), StoreError> {
        let what = || format!("more repeats of run {run}");
        let (overrides, plan) = (encode(what, &overrides.to_vec())?, encode(what, plan)?);
        self.write("give a run more repeats", |transaction| {
            transaction.execute(
                "INSERT INTO run_extension (run, extended_at, overrides, plan) VALUES (?, ?, ?, ?)",
                params![run, at.0, overrides, plan],
            )?;
            seal::add(transaction, run, "run_extension", transaction.last_insert_rowid())
        })
    }

    /// Adds a session to `run`, on which no other process may work. This store holds its lock until
    /// the session ends. Sessions of dead processes ([`Store::assume_ended`]) end before.
    ///
    /// # Errors
    /// [`StoreError::SessionOpen`]; [`StoreError::Io`] where nothing can be locked;
    /// [`StoreError::Sqlite`], also for a run that is not there.
    pub fn begin_session(
        &mut self,
        run: &str,
        session: &SessionRecord,
    ) -> Result<SessionId, StoreError> {
        let what = || format!("a session of run {run}");
        let host = encode(what, &session.host)?;
        let storage = encode(what, &session.storage)?;
        let failed = self.failed("add a session");
        let at_work = || StoreError::AtWork { run: run.to_owned() };
        let (path, dead) = (self.path.clone(), self.dead.clone());
        let mut locks = std::mem::take(&mut self.locks);
        let begun = self.in_transaction("add a session", |transaction| {
            // Two processes may resume one run at the same moment: the transaction decides which
            // does.
            for open in open_sessions_of(transaction, run).map_err(&failed)? {
                if !dead.contains(&open) {
                    return Err(at_work());
                }
                end(transaction, open, SessionEnd::Interrupted).map_err(&failed)?;
            }
            let owner = &session.owner;
            let insert = || {
                transaction.execute(
                    "INSERT INTO session (run, started_at, owner_pid, owner_started_ticks, \
                         owner_boot_id, host, storage)
                     VALUES (?, ?, ?, ?, ?, ?, ?)",
                    params![
                        run,
                        session.started_at.0,
                        owner.pid,
                        owner.started_ticks,
                        owner.boot_id,
                        host,
                        storage
                    ],
                )?;
                let id = transaction.last_insert_rowid();
                seal::add(transaction, run, "session", id)?;
                Ok::<_, rusqlite::Error>(SessionId(id))
            };
            let id = insert().map_err(&failed)?;
            // Before others see the session: one without a holder counts as interrupted.
            if locks.take(&path, id)? { Ok(id) } else { Err(at_work()) }
        });
        self.locks = locks;
        if matches!(begun, Err(StoreError::AtWork { .. })) {
            self.refuse_at_work(run)?;
        }
        begun
    }

    /// Ends a session, now. A session that has ended stays as it was ended.
    ///
    /// # Errors
    /// [`StoreError::Sqlite`].
    pub fn end_session(&mut self, session: SessionId, state: SessionEnd) -> Result<(), StoreError> {
        self.write("end a session", |transaction| end(transaction, session, state))?;
        self.locks.release(session);
        Ok(())
    }

    /// Adds a trial with all that belongs to it, or nothing.
    ///
    /// # Errors
    /// [`StoreError::Unstorable`] for a record that could not be read back; [`StoreError::Sqlite`].
    pub fn add_trial(
        &mut self,
        run: &str,
        session: SessionId,
        trial: &TrialRecord,
    ) -> Result<(), StoreError> {
        let what = || format!("trial {} of run {run}", trial.ordinal);
        // The series and the settings have tables of their own; in the JSON they stay empty.
        let measurement =
            trial.measurement.as_ref().map(|m| encode_without(what, m, "series")).transpose()?;
        let server =
            trial.server.as_ref().map(|s| encode_without(what, s, "settings")).transpose()?;
        let server_count = trial.server_count.as_ref().map(|c| encode(what, c)).transpose()?;

        self.write("add a trial", |transaction| {
            transaction.execute(
                "INSERT INTO trial (run, session, ordinal, block, treatment, repeat, started_at, \
                     measured_at, failure,
                                    measurement, server_count, server)
                 VALUES (:run, :session, :ordinal, :block, :treatment, :repeat, :started_at, \
                     :measured_at, :failure,
                         :measurement, :server_count, :server)",
                named_params! {
                    ":run": run,
                    ":session": session.0,
                    ":ordinal": trial.ordinal,
                    ":block": trial.block,
                    ":treatment": trial.treatment,
                    ":repeat": trial.repeat,
                    ":started_at": trial.started_at.0,
                    ":measured_at": trial.measured_at.map(|at| at.0),
                    ":failure": trial.failure,
                    ":measurement": measurement,
                    ":server_count": server_count,
                    ":server": server,
                },
            )?;
            let id = transaction.last_insert_rowid();
            if let Some(measurement) = &trial.measurement {
                add_series(transaction, id, measurement)?;
                add_histograms(transaction, id, measurement)?;
            }
            if let Some(server) = &trial.server {
                let mut add =
                    transaction.prepare("INSERT INTO setting VALUES (?, ?, ?, ?, ?, ?)")?;
                for (position, s) in (0_i64..).zip(&server.settings) {
                    add.execute(params![id, position, s.name, s.value, s.unit, s.source])?;
                }
            }
            for table in &trial.telemetry {
                add_telemetry(transaction, id, table)?;
            }
            transaction
                .execute("INSERT INTO server_log VALUES (?, ?)", params![id, trial.server_log])?;
            seal::add_trial(transaction, run, id)
        })
    }

    /// Adds what the fsync probe found on one storage.
    ///
    /// # Errors
    /// [`StoreError::Unstorable`] for a record that could not be read back; [`StoreError::Sqlite`].
    pub fn add_fsync_rate(
        &mut self,
        run: &str,
        session: SessionId,
        rate: &FsyncRate,
    ) -> Result<(), StoreError> {
        let what = || format!("the fsync rate of storage {}", rate.storage);
        encode(what, rate)?;
        self.write("add an fsync rate", |transaction| {
            transaction.execute(
                "INSERT INTO fsync_rate (run, session, storage, method, block_bytes, flushes, \
                     seconds, measured_at,
                                         latency_us_p50, latency_us_p99, latency_us_max, v2)
                 VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                params![
                    run,
                    session.0,
                    rate.storage,
                    rate.method,
                    rate.block_bytes,
                    rate.flushes,
                    rate.seconds,
                    rate.measured_at.0,
                    rate.latency.quantile_us(0.5),
                    rate.latency.quantile_us(0.99),
                    rate.latency.max_us(),
                    rate.latency.to_bytes(),
                ],
            )?;
            seal::add(transaction, run, "fsync_rate", transaction.last_insert_rowid())
        })
    }
}

/// Sessions of `run` without an end.
pub(super) fn open_sessions_of(
    connection: &Connection,
    run: &str,
) -> rusqlite::Result<Vec<SessionId>> {
    connection
        .prepare_cached(
            "SELECT id FROM session WHERE run = ? AND id NOT IN (SELECT session FROM session_end)",
        )?
        .query_map([run], |row| row.get(0).map(SessionId))?
        .collect()
}

fn end(
    transaction: &Transaction<'_>,
    session: SessionId,
    state: SessionEnd,
) -> rusqlite::Result<()> {
    let state: &str = state.into();
    let added = transaction.execute(
        "INSERT INTO session_end (session, ended_at, state) VALUES (?, ?, ?) \
         ON CONFLICT DO NOTHING",
        params![session.0, Epoch::from_time(std::time::SystemTime::now()).0, state],
    )?;
    if added == 0 {
        return Ok(());
    }
    let run: String =
        transaction
            .query_row("SELECT run FROM session WHERE id = ?", [session.0], |row| row.get(0))?;
    seal::add(transaction, &run, "session_end", session.0)
}

fn add_series(
    transaction: &Transaction<'_>,
    trial: i64,
    measurement: &Measurement,
) -> rusqlite::Result<()> {
    let mut add = transaction.prepare(
        "INSERT INTO second (trial, t_s, length_s, transactions, failed,
                             latency_us_p50, latency_us_p95, latency_us_p99, latency_us_max)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
    )?;
    let mut add_latencies =
        transaction.prepare("INSERT INTO second_histogram VALUES (?, ?, ?, ?)")?;
    let mut add_commands = transaction.prepare("INSERT INTO second_command VALUES (?, ?, ?)")?;
    for s in &measurement.series {
        add.execute(params![
            trial,
            s.t_s,
            s.length_s,
            s.transactions,
            s.failed,
            s.latency_us_p50,
            s.latency_us_p95,
            s.latency_us_p99,
            s.latency_us_max,
        ])?;
        if let Some(latencies) = &s.latencies {
            let (count, bytes) = (latencies.count(), latencies.to_bytes());
            add_latencies.execute(params![trial, s.t_s, count, bytes])?;
        }
        if !s.commands.is_empty() {
            add_commands.execute(params![trial, s.t_s, json(&s.commands)?])?;
        }
    }
    Ok(())
}

fn add_histograms(
    transaction: &Transaction<'_>,
    trial: i64,
    measurement: &Measurement,
) -> rusqlite::Result<()> {
    let mut statement =
        transaction.prepare("INSERT INTO histogram VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)")?;
    let mut add = |scope: &str, script: i64, command: i64, latency: &Latencies| {
        statement.execute(params![
            trial,
            scope,
            script,
            command,
            latency.count(),
            latency.quantile_us(0.5),
            latency.quantile_us(0.99),
            latency.max_us(),
            latency.to_bytes(),
        ])
    };
    add("trial", -1, -1, &measurement.latency)?;
    if let Some(service) = &measurement.service {
        add("service", -1, -1, service)?;
    }
    for (i, script) in (0_i64..).zip(&measurement.scripts) {
        add("script", i, -1, &script.latency)?;
        if let Some(service) = &script.service {
            add("service", i, -1, service)?;
        }
        for (j, command) in (0_i64..).zip(&script.statements) {
            add("statement", i, j, &command.latency)?;
            if command.first_byte.count() > 0 {
                add("first_byte", i, j, &command.first_byte)?;
            }
        }
    }
    Ok(())
}

fn json(value: &impl Serialize) -> rusqlite::Result<String> {
    let failed = |e| rusqlite::Error::ToSqlConversionFailure(Box::new(e));
    serde_json::to_string(value).map_err(failed)
}

fn add_telemetry(transaction: &Transaction<'_>, trial: i64, table: &Table) -> rusqlite::Result<()> {
    transaction.execute(
        "INSERT INTO telemetry (trial, probe, columns, unavailable) VALUES (?, ?, ?, ?)",
        params![trial, table.probe, json(&table.columns)?, table.unavailable],
    )?;
    let id = transaction.last_insert_rowid();
    let mut add = transaction.prepare("INSERT INTO sample VALUES (?, ?, ?, ?)")?;
    for (position, sample) in (0_i64..).zip(&table.samples) {
        // JSON has no NaN: a reading that is none becomes null, which reads back as none.
        add.execute(params![id, position, sample.t_s, json(&sample.values)?])?;
    }
    Ok(())
}

/// Returns `value` as JSON that is known to read back: a NaN, for one, would not.
pub(super) fn encode<T: Serialize + DeserializeOwned>(
    what: impl Fn() -> String,
    value: &T,
) -> Result<String, StoreError> {
    let unstorable =
        |e: serde_json::Error| StoreError::Unstorable { what: what(), found: e.to_string() };
    let json = serde_json::to_string(value).map_err(unstorable)?;
    serde_json::from_str::<T>(&json).map_err(unstorable)?;
    Ok(json)
}

/// Returns [`encode`]'s JSON with the array `field` emptied.
fn encode_without<T: Serialize + DeserializeOwned>(
    what: impl Fn() -> String,
    value: &T,
    field: &str,
) -> Result<String, StoreError> {
    let unstorable =
        |e: serde_json::Error| StoreError::Unstorable { what: what(), found: e.to_string() };
    let mut json: Value = serde_json::from_str(&encode(&what, value)?).map_err(unstorable)?;
    json[field] = Value::Array(Vec::new());
    Ok(json.to_string())
}
