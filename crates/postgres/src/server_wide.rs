//! Server-wide settings of external servers: changed with `ALTER SYSTEM` and a reload, and put
//! back.
//!
//! Call [`ServerWide::record`] first. It reads the settings' lines in `postgresql.auto.conf` and
//! records them in the journal, before anything is changed. Then call [`ServerWide::apply`] for
//! each trial, and [`ServerWide::put_back`] at the end.
//!
//! After a killed process, the next sweep puts the settings back if the server lets it in without a
//! stored password. Otherwise [`put_back_leftovers`] does so when a later run reaches the server.
//!
//! `postgresql.auto.conf` is the only file that SQL can change. A value there that is neither
//! recorded nor pgdyno's is somebody else's, and stays.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use pgdyno_connect::control::{Client, ControlError};
use pgdyno_exec::journal::{
    Entry, Journal, JournalError, OwnedResource, RecordedSetting, RecordedSettings,
};
use pgdyno_exec::process::is_gone;
use pgdyno_model::target::Secret;
use pgdyno_model::{Advice, FailureKind};
use postgres_protocol::escape::{escape_identifier, escape_literal};
use tokio_postgres::Row;

use super::external::{ExternalServer, ExternalServerError, server_name, without_password};
use super::settings::{SettingProblem, SettingsError, same_value};

/// How long the server may take to reload its files.
const RELOAD_LIMIT: Duration = Duration::from_secs(10);

/// Server-wide settings cannot be changed or put back.
#[derive(Debug, thiserror::Error)]
pub enum ServerWideError {
    /// The server refused, or runs with another value.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// The recorded server takes no connection.
    #[error(
        "{0} (no password is stored; give it in PGPASSWORD or .pgpass, or run on that server again)"
    )]
    Unreachable(Box<ExternalServerError>),
    /// The journal cannot be read or written. Nothing was changed.
    #[error(transparent)]
    Journal(#[from] JournalError),
}

impl Advice for ServerWideError {
    fn help(&self) -> Option<String> {
        match self {
            Self::Settings(SettingsError::Control(ControlError::Query { sqlstate, .. }))
                if sqlstate.as_deref() == Some("42501") =>
            {
                Some(
                    "connect as a superuser: changing a server's settings takes ALTER SYSTEM, \
                     pg_reload_conf() and pg_file_settings"
                        .into(),
                )
            }
            Self::Settings(e) => e.help(),
            Self::Unreachable(e) => e.help(),
            Self::Journal(e) => e.help(),
        }
    }

    fn kind(&self) -> FailureKind {
        match self {
            Self::Settings(e) => e.kind(),
            Self::Unreachable(e) => e.kind(),
            Self::Journal(e) => e.kind(),
        }
    }
}

impl From<ControlError> for ServerWideError {
    fn from(error: ControlError) -> Self {
        Self::Settings(error.into())
    }
}

/// The settings of one external server that change between trials.
#[derive(Debug)]
pub struct ServerWide {
    server: ExternalServer,
    journal: Journal,
    entry: Entry,
    recorded: RecordedSettings,
    /// The present lines of `postgresql.auto.conf`, by setting.
    current: BTreeMap<String, Option<String>>,
    /// Whether the server may run with other values than the file holds, because a reload failed.
    unread: bool,
}

impl ServerWide {
    /// Records the present lines of the settings of `asked` in the journal, each with all values
    /// that it will be given. Nothing is changed.
    ///
    /// # Errors
    /// The server does not show its files, or the journal cannot be written.
    pub fn record(
        server: &ExternalServer,
        dsn: &Secret,
        asked: &BTreeMap<String, BTreeSet<String>>,
        journal: &Journal,
    ) -> Result<Self, ServerWideError> {
        let mut client = server.control()?;
        let held = auto_conf(&mut client)?;
        let recorded = |(name, set): (&String, &BTreeSet<String>)| RecordedSetting {
            name: name.clone(),
            was: held.get(name).cloned(),
            set: set.clone(),
        };
        let settings: Vec<RecordedSetting> = asked.iter().map(recorded).collect();
        let recorded = RecordedSettings {
            // A DSN that cannot be parsed has led to no connection.
            dsn: without_password(dsn.reveal()).unwrap_or_default(),
            system_identifier: system_identifier(&mut client)?,
            settings,
        };
        let names: Vec<&str> = asked.keys().map(String::as_str).collect();
        let name = server_name(dsn.reveal()).unwrap_or_default();
        // A name for messages, not a path of this host.
        let path = PathBuf::from(format!("{} of server {name}", names.join(", ")));
        let entry = journal.record(&OwnedResource::ServerSettings {
            path,
            recorded: Box::new(recorded.clone()),
        })?;
        let current = recorded.settings.iter().map(|s| (s.name.clone(), s.was.clone())).collect();
        Ok(Self {
            server: server.clone(),
            journal: journal.clone(),
            entry,
            recorded,
            current,
            unread: false,
        })
    }

    /// Returns the settings and their server, for messages.
    pub fn name(&self) -> String {
        self.entry.made.path().display().to_string()
    }

    /// Whether the setting `name`, in lower case, is among the recorded ones.
    pub fn holds(&self, name: &str) -> bool {
        self.current.contains_key(name)
    }

    /// Sets `wanted` (by name in lower case), and puts every other recorded setting back. Returns
    /// once the server has reloaded its files and runs with these values.
    ///
    /// # Errors
    /// The server refuses a value, or runs with another.
    pub fn apply(&mut self, wanted: &BTreeMap<String, String>) -> Result<(), ServerWideError> {
        let mut client = self.server.control()?;
        for RecordedSetting { name, was, .. } in &self.recorded.settings {
            let target = wanted.get(name).or(was.as_ref());
            if self.current.get(name).and_then(Option::as_ref) != target {
                self.unread = true;
                alter(&mut client, name, target.map(String::as_str))?;
                self.current.insert(name.clone(), target.cloned());
            }
        }
        if self.unread {
            let mut fresh = reload(&mut client, || self.server.control())?;
            verify(&mut fresh, wanted)?;
            self.unread = false;
        }
        Ok(())
    }

    /// Puts every setting back and strikes the journal's entry. Values that somebody else has set
    /// since stay, and are returned, one line each.
    ///
    /// # Errors
    /// The server does not take it; then the journal still names it.
    pub fn put_back(self) -> Result<Vec<String>, ServerWideError> {
        let left = put_back(&self.recorded, || self.server.control())?;
        self.journal.done(&self.entry.id)?;
        Ok(left)
    }
}

/// Puts the settings of `recorded` back over connections of `connect`. Values that somebody else
/// has set since stay, and are returned.
fn put_back(
    recorded: &RecordedSettings,
    connect: impl Fn() -> Result<Client, ControlError>,
) -> Result<Vec<String>, ServerWideError> {
    let mut client = connect()?;
    let held = auto_conf(&mut client)?;
    let mut left = Vec::new();
    for RecordedSetting { name, was, set } in &recorded.settings {
        match held.get(name) {
            now if now == was.as_ref() => {}
            Some(now) if !set.contains(now) => {
                left.push(format!("{name} is `{now}` now, which pgdyno did not set"));
            }
            // The line is gone because somebody reset the setting. Putting it back would do or undo
            // that.
            None => left.push(format!("{name} was reset by somebody else")),
            Some(_) => alter(&mut client, name, was.as_deref())?,
        }
    }
    // Always reloads, since the killed process may have put the file back without a reload.
    reload(&mut client, connect)?;
    Ok(left)
}

/// Puts the settings of `recorded` back on the recorded server, to which the environment or
/// `.pgpass` may have the password.
pub(crate) fn put_back_by_dsn(recorded: &RecordedSettings) -> Result<Vec<String>, ServerWideError> {
    let server = ExternalServer::connect(&Secret::new(recorded.dsn.clone()))
        .map_err(|e| ServerWideError::Unreachable(Box::new(e)))?;
    if system_identifier(&mut server.control()?)? != recorded.system_identifier {
        return Ok(vec!["another server is there now".to_owned()]);
    }
    put_back(recorded, || server.control())
}

/// Puts back settings of the external server that dead processes left changed, by the journal.
/// Returns one line for each entry.
///
/// # Errors
/// The journal, or the server.
pub fn put_back_leftovers(
    server: &ExternalServer,
    journal: &Journal,
) -> Result<Vec<String>, ServerWideError> {
    let mut told = Vec::new();
    for entry in journal.entries()?.into_iter().filter(|entry| is_gone(&entry.owner)) {
        let OwnedResource::ServerSettings { path, recorded } = &entry.made else { continue };
        // No setting was changed on a server without a system identifier, since that is read first.
        if !system_identifier(&mut server.control()?)
            .is_ok_and(|id| id == recorded.system_identifier)
        {
            continue;
        }
        let left = put_back(recorded, || server.control())?;
        journal.done(&entry.id)?;
        told.push(format!("put {} back as it was before a pgdyno that was killed", path.display()));
        told.extend(left);
    }
    Ok(told)
}

/// Returns the settings in `postgresql.auto.conf`, by name in lower case.
fn auto_conf(client: &mut Client) -> Result<BTreeMap<String, String>, ControlError> {
    let sql = "SELECT pg_catalog.lower(name), setting FROM pg_catalog.pg_file_settings \
               WHERE sourcefile LIKE '%/postgresql.auto.conf' AND name IS NOT NULL ORDER BY seqno";
    let setting =
        |row: &Row| Ok((row.try_get(0)?, row.try_get::<_, Option<String>>(1)?.unwrap_or_default()));
    client
        .query(sql, &[])
        .and_then(|rows| rows.iter().map(setting).collect())
        .map_err(|e| ControlError::query("read pg_file_settings", &e))
}

fn system_identifier(client: &mut Client) -> Result<String, ControlError> {
    let sql = "SELECT system_identifier::text FROM pg_catalog.pg_control_system()";
    client
        .query_one(sql, &[])
        .and_then(|row| row.try_get(0))
        .map_err(|e| ControlError::query("read pg_control_system()", &e))
}

/// Sets `name` to `value` in `postgresql.auto.conf`, or removes its line.
fn alter(client: &mut Client, name: &str, value: Option<&str>) -> Result<(), ControlError> {
    let name = escape_identifier(name);
    // ALTER SYSTEM flushes the file whatever the session's settings for commits.
    let sql = match value {
        Some(value) => format!("ALTER SYSTEM SET {name} = {}", escape_literal(value)),
        None => format!("ALTER SYSTEM RESET {name}"),
    };
    client
        .batch_execute(&sql)
        .map_err(|e| ControlError::query("change a setting with ALTER SYSTEM", &e))
}

/// Reloads the server's files, and returns a connection that began after that.
fn reload(
    client: &mut Client,
    connect: impl Fn() -> Result<Client, ControlError>,
) -> Result<Client, ServerWideError> {
    let failed =
        |e: tokio_postgres::Error| ControlError::query("reload the server's configuration", &e);
    let before: String = client
        .query_one("SELECT pg_catalog.clock_timestamp()::text", &[])
        .and_then(|row| row.try_get(0))
        .map_err(failed)?;
    client.batch_execute("SELECT pg_catalog.pg_reload_conf()").map_err(failed)?;
    let until = Instant::now() + RELOAD_LIMIT;
    loop {
        // A new session has its settings, and the time at which they were loaded, from the
        // postmaster.
        let mut fresh = connect()?;
        let sql = "SELECT pg_catalog.pg_conf_load_time() >= $1::text::timestamptz";
        let row = fresh.query_one(sql, &[&before]);
        if row.and_then(|row| row.try_get(0)).map_err(failed)? {
            return Ok(fresh);
        }
        if Instant::now() > until {
            let why = format!("it did not read its files within {} s", RELOAD_LIMIT.as_secs());
            return Err(ControlError::Query {
                what: "reload the server's configuration",
                why,
                sqlstate: None,
            }
            .into());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Checks that the server runs with `wanted`. An option of its command line would outweigh the
/// file.
fn verify(client: &mut Client, wanted: &BTreeMap<String, String>) -> Result<(), SettingsError> {
    let names: Vec<&String> = wanted.keys().collect();
    let sql = "SELECT pg_catalog.lower(name), setting, unit, vartype, source, \
               source = 'configuration file' \
               AND coalesce(sourcefile LIKE '%/postgresql.auto.conf', true) \
               FROM pg_catalog.pg_settings WHERE pg_catalog.lower(name) = ANY($1)";
    let problem = |row: &Row| -> Result<Option<SettingProblem>, tokio_postgres::Error> {
        let (name, setting): (String, String) = (row.try_get(0)?, row.try_get(1)?);
        let (unit, vartype): (Option<String>, String) = (row.try_get(2)?, row.try_get(3)?);
        let (source, is_ours): (String, bool) = (row.try_get(4)?, row.try_get(5)?);
        let Some(value) = wanted.get(&name).cloned() else { return Ok(None) };
        if is_ours && same_value(&value, &setting, unit.as_deref(), &vartype) != Some(false) {
            return Ok(None);
        }
        let unit = unit.map(|unit| format!(" in units of {unit}")).unwrap_or_default();
        let why = format!("it runs with `{setting}`{unit} (source: {source})");
        Ok(Some(SettingProblem { name, value, why, help: None }))
    };
    let problems: Vec<SettingProblem> = client
        .query(sql, &[&names])
        .and_then(|rows| rows.iter().filter_map(|row| problem(row).transpose()).collect())
        .map_err(|e| ControlError::query("read the settings back", &e))?;
    if problems.is_empty() { Ok(()) } else { Err(SettingsError::NotObtained(problems)) }
}
