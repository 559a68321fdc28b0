//! Adding to the store.

use pgdyno_model::record::{FsyncRate, SessionEnd, SessionRecord};
use pgdyno_model::telemetry::Table;
use pgdyno_model::units::Epoch;
use pgdyno_model::{Latencies, Measurement, Plan, RunRecord, TrialRecord};
use rusqlite::{Connection, ToSql, Transaction, TransactionBehavior, named_params, params};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{SessionId, Store, StoreError, seal, tables};

/// Error that ends a transaction.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub(super) enum Failure {
    Sqlite(#[from] rusqlite::Error),
    Store(#[from] StoreError),
}

/// Values of a row, each with its column: `:run`.
pub(super) type Values<'a> = [(&'static str, &'a dyn ToSql)];

impl Store {
    /// Does `work` in one transaction, which takes the store for writing at once.
    pub(super) fn write<T, E: Into<Failure>>(
        &mut self,
        doing: &'static str,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, E>,
    ) -> Result<T, StoreError> {
        let failed = self.failed(doing);
        let transaction = self
            .connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(&failed)?;
        let done = work(&transaction).map_err(|failure| match failure.into() {
            Failure::Sqlite(error) => failed(error),
            Failure::Store(error) => error,
        })?;
        transaction.commit().map_err(&failed)?;
        Ok(done)
    }

    /// Adds a row with a name of its own to `table`, and seals it in `chain`.
    ///
    /// # Errors
    /// [`StoreError::Unstorable`] if the name is taken; [`StoreError::Sqlite`].
    pub(super) fn add_record(
        &mut self,
        doing: &'static str,
        (chain, table): (&str, &str),
        what: impl Fn() -> String,
        values: &Values<'_>,
    ) -> Result<(), StoreError> {
        let is_taken = |error: &rusqlite::Error| {
            let code = error.sqlite_error().map(|error| error.extended_code);
            code == Some(rusqlite::ffi::SQLITE_CONSTRAINT_PRIMARYKEY)
        };
        match self.write(doing, |transaction| add(transaction, chain, table, values)) {
            Err(StoreError::Sqlite { source, .. }) if is_taken(&source) => {
                let found = "there is one of that name".to_owned();
                Err(StoreError::Unstorable { what: what(), found })
            }
            other => other.map(drop),
        }
    }

    /// Adds a run.
    ///
    /// # Errors
    /// [`StoreError::Unstorable`] if there is a run of that name; [`StoreError::Sqlite`].
    pub fn begin_run(&mut self, run: &RunRecord) -> Result<(), StoreError> {
        let what = || format!("run {}", run.id);
        let values = named_params! {
            ":id": run.id,
            ":recipe": run.recipe,
            ":started_at": run.started_at.0,
            ":pgdyno_version": run.pgdyno_version,
            ":experiment": run.experiment,
            ":folder": run.folder,
            ":overrides": encode(what, &run.overrides)?,
            ":plan": encode(what, &run.plan)?,
        };
        self.add_record("add a run", (&run.id, "run"), what, values)
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
        let values = named_params! {
            ":run": run,
            ":extended_at": at.0,
            ":overrides": encode(what, &overrides.to_vec())?,
            ":plan": encode(what, plan)?,
        };
        self.add_record("give a run more repeats", (run, "run_extension"), what, values)
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
        let (owner, at_work) = (&session.owner, || StoreError::AtWork { run: run.to_owned() });
        let values = named_params! {
            ":run": run,
            ":started_at": session.started_at.0,
            ":owner_pid": owner.pid,
            ":owner_started_ticks": owner.started_ticks,
            ":owner_boot_id": owner.boot_id,
            ":host": encode(what, &session.host)?,
            ":storage": encode(what, &session.storage)?,
        };
        let (path, dead) = (self.path.clone(), self.dead.clone());
        let mut locks = std::mem::take(&mut self.locks);
        let begun = self.write("add a session", |transaction| -> Result<_, Failure> {
            // Two processes may resume one run at one moment: the transaction decides which does.
            for open in open_sessions_of(transaction, run)? {
                if !dead.contains(&open) {
                    return Err(at_work().into());
                }
                end(transaction, open, SessionEnd::Interrupted)?;
            }
            let id = SessionId(add(transaction, run, "session", values)?);
            // Before others see the session: one without a holder counts as interrupted.
            if locks.take(&path, id)? { Ok(id) } else { Err(at_work().into()) }
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
        let measurement = trial.measurement.as_ref();
        let measurement =
            measurement.map(|m| encode_without(what, m, Some("series"))).transpose()?;
        let server = trial.server.as_ref();
        let server = server.map(|s| encode_without(what, s, Some("settings"))).transpose()?;
        let server_count = trial.server_count.as_ref().map(|c| encode(what, c)).transpose()?;
        let failure = trial.failure.as_ref().map(|f| encode(what, f)).transpose()?;
        let values = named_params! {
            ":run": run,
            ":session": session.0,
            ":ordinal": trial.ordinal,
            ":block": trial.block,
            ":treatment": trial.treatment,
            ":repeat": trial.repeat,
            ":started_at": trial.started_at.0,
            ":measured_at": trial.measured_at.map(|at| at.0),
            ":failure": failure,
            ":measurement": measurement,
            ":server_count": server_count,
            ":server": server,
        };
        self.write("add a trial", |transaction| {
            let id = insert(transaction, "trial", values)?;
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
            seal::add_trial(transaction, run, &id.into())
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
        let values = named_params! {
            ":run": run,
            ":session": session.0,
            ":storage": rate.storage,
            ":method": rate.method,
            ":block_bytes": rate.block_bytes,
            ":flushes": rate.flushes,
            ":seconds": rate.seconds,
            ":measured_at": rate.measured_at.0,
            ":latency_us_p50": rate.latency.quantile_us(0.5),
            ":latency_us_p99": rate.latency.quantile_us(0.99),
            ":latency_us_max": rate.latency.max_us(),
            ":v2": rate.latency.to_bytes(),
        };
        self.add_record("add an fsync rate", (run, "fsync_rate"), what, values)
    }
}

/// Inserts a row into `table` and seals it in `chain`. Returns its number.
pub(super) fn add(
    transaction: &Connection,
    chain: &str,
    table: &str,
    values: &Values<'_>,
) -> rusqlite::Result<i64> {
    let number = insert(transaction, table, values)?;
    let key = tables::named(table)?.key().unwrap_or("rowid");
    let key: rusqlite::types::Value = transaction
        .prepare_cached(&format!("SELECT {key} FROM {table} WHERE rowid = ?"))?
        .query_row([number], |row| row.get(0))?;
    seal::add(transaction, chain, table, key)?;
    Ok(number)
}

/// Inserts a row into `table` and returns its number.
pub(super) fn insert(
    transaction: &Connection,
    table: &str,
    values: &Values<'_>,
) -> rusqlite::Result<i64> {
    let places = values.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    let columns = places.replace(':', "");
    transaction
        .prepare_cached(&format!("INSERT INTO {table} ({columns}) VALUES ({places})"))?
        .execute(values)?;
    Ok(transaction.last_insert_rowid())
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
    let (run, has_ended): (String, bool) = transaction.query_row(
        "SELECT run, EXISTS (SELECT 1 FROM session_end WHERE session = ?1)
         FROM session WHERE id = ?1",
        [session.0],
        |row| row.try_into(),
    )?;
    if has_ended {
        return Ok(());
    }
    let values = named_params! {
        ":session": session.0,
        ":ended_at": Epoch::now().0,
        ":state": state,
    };
    add(transaction, &run, "session_end", values).map(drop)
}

fn add_series(
    transaction: &Transaction<'_>,
    trial: i64,
    measurement: &Measurement,
) -> rusqlite::Result<()> {
    let mut add = transaction.prepare("INSERT INTO second VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)")?;
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
        "INSERT INTO telemetry VALUES (NULL, ?, ?, ?, ?)",
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
    encode_without(what, value, None)
}

/// As [`encode`], with the array `field` emptied.
fn encode_without<T: Serialize + DeserializeOwned>(
    what: impl Fn() -> String,
    value: &T,
    field: Option<&str>,
) -> Result<String, StoreError> {
    let encoded = || {
        let json = serde_json::to_string(value)?;
        serde_json::from_str::<T>(&json)?;
        let Some(field) = field else { return Ok(json) };
        let mut json: Value = serde_json::from_str(&json)?;
        json[field] = Value::Array(Vec::new());
        Ok(json.to_string())
    };
    encoded().map_err(|e: serde_json::Error| StoreError::Unstorable {
        what: what(),
        found: e.to_string(),
    })
}
