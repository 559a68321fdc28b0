//! Settings that hold for a whole server that pgdyno does not own: changed with `ALTER SYSTEM` and
//! a reload, and put back.
//!
//! Call [`ServerWide::record`] first: it reads what `postgresql.auto.conf` holds of the settings
//! and journals that, before anything is changed. Then [`ServerWide::apply`] for each trial, and
//! [`ServerWide::put_back`] at the end. What a killed process did not put back, the next sweep does
//! where the server lets it in without a stored password, and [`put_back_leftovers`] when a later
//! run reaches the server.
//!
//! `postgresql.auto.conf` is the one file that SQL can change. A value there that is neither the
//! recorded one nor one of pgdyno's is somebody else's, and is left.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use pgdyno_connect::control::Client;
use pgdyno_model::target::Secret;
use postgres_protocol::escape::{escape_identifier, escape_literal};

use super::external::{ExternalServer, ExternalServerError, server_name, without_password};
use super::settings::{SettingProblem, SettingsError, same_value};
use pgdyno_connect::control::ControlError;
use pgdyno_exec::journal::{Entry, Journal, JournalError, Made, RecordedSetting, RecordedSettings};
use pgdyno_exec::process::is_alive;

/// How long the server may take to read its files again.
const RELOAD_LIMIT: Duration = Duration::from_secs(10);

/// A failure to change settings of a whole server, or to put them back.
#[derive(Debug, thiserror::Error)]
pub enum ServerWideError {
    /// The server.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// The recorded server takes no connection.
    #[error(
        "{0} (no password is stored; give it in PGPASSWORD or .pgpass, or run on that server again)"
    )]
    Unreachable(Box<ExternalServerError>),
    /// The journal; nothing was changed.
    #[error(transparent)]
    Journal(#[from] JournalError),
}

impl ServerWideError {
    /// What to do.
    #[must_use]
    pub fn help(&self) -> Option<String> {
        match self {
            Self::Settings(SettingsError::Control(ControlError::Query { sqlstate, .. }))
                if sqlstate.as_deref() == Some("42501") =>
            {
                Some("connect as a superuser: changing a server's settings takes ALTER SYSTEM, pg_reload_conf() and pg_file_settings".into())
            }
            Self::Settings(e) => e.help(),
            Self::Unreachable(e) => e.help(),
            Self::Journal(e) => e.help(),
        }
    }
}

impl From<ControlError> for ServerWideError {
    fn from(error: ControlError) -> Self {
        Self::Settings(error.into())
    }
}

/// Settings of one external server that are changed between trials.
#[derive(Debug)]
pub struct ServerWide {
    server: ExternalServer,
    journal: Journal,
    entry: Entry,
    recorded: RecordedSettings,
    /// What `postgresql.auto.conf` holds now.
    current: BTreeMap<String, Option<String>>,
    /// Whether the server may run with other values than the file holds: it has not read it, or not
    /// as was asked.
    unread: bool,
}

impl ServerWide {
    /// Writes down how the settings of `asked` are now; with each come all values that it will be
    /// given. Nothing is changed.
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
            // What cannot be read has led to no connection.
            dsn: without_password(dsn.reveal()).unwrap_or_default(),
            system_identifier: system_identifier(&mut client)?,
            settings,
        };
        let names: Vec<&str> = asked.keys().map(String::as_str).collect();
        let name = server_name(dsn.reveal()).unwrap_or_default();
        // Not a path of this machine: what messages call it.
        let path = PathBuf::from(format!("{} of server {name}", names.join(", ")));
        let entry =
            journal.record(&Made::ServerSettings { path, recorded: Box::new(recorded.clone()) })?;
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

    /// Whether the setting of this name, in lower case, is one of those.
    #[must_use]
    pub fn holds(&self, name: &str) -> bool {
        self.current.contains_key(name)
    }

    /// Makes `wanted` (by name in lower case) hold, and every other recorded setting be as it was.
    /// Returns when the server has read its files again and runs with these values.
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

    /// Puts every setting back as it was and strikes it out of the journal. What somebody else has
    /// set since is left and told.
    ///
    /// # Errors
    /// The server does not take it; then the journal still names it.
    pub fn put_back(self) -> Result<Vec<String>, ServerWideError> {
        let left = put_back(&self.recorded, || self.server.control())?;
        self.journal.done(&self.entry.id)?;
        Ok(left)
    }
}

/// Puts all of `recorded` back over connections that `connect` makes; what somebody else has set
/// since is left and told.
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
            // Its line is gone: somebody has reset it, which is what putting it back would do,
            // or undo.
            None => left.push(format!("{name} was reset by somebody else")),
            Some(_) => alter(&mut client, name, was.as_deref())?,
        }
    }
    // In any case: whoever was killed may have put the file back and not had it read.
    reload(&mut client, connect)?;
    Ok(left)
}

/// Puts all of `recorded` back at the place that the DSN without password leads to: the environment
/// and `.pgpass` may have one.
pub(crate) fn put_back_by_dsn(recorded: &RecordedSettings) -> Result<Vec<String>, ServerWideError> {
    let server = ExternalServer::connect(&Secret::new(recorded.dsn.clone()))
        .map_err(|e| ServerWideError::Unreachable(Box::new(e)))?;
    if system_identifier(&mut server.control()?)? != recorded.system_identifier {
        return Ok(vec!["another server is there now".to_owned()]);
    }
    put_back(recorded, || server.control())
}

/// Puts back what dead processes left changed on the server of `given`, by the journal; a line for
/// each.
///
/// # Errors
/// The journal, or the server.
pub fn put_back_leftovers(
    server: &ExternalServer,
    journal: &Journal,
) -> Result<Vec<String>, ServerWideError> {
    let mut told = Vec::new();
    for entry in journal.entries()?.into_iter().filter(|entry| !is_alive(&entry.owner)) {
        let Made::ServerSettings { path, recorded } = &entry.made else { continue };
        // A server that does not tell who it is had no settings changed: that was asked first.
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

/// What `postgresql.auto.conf` sets, by name in lower case.
fn auto_conf(client: &mut Client) -> Result<BTreeMap<String, String>, ControlError> {
    let sql = "SELECT pg_catalog.lower(name), setting FROM pg_catalog.pg_file_settings \
               WHERE sourcefile LIKE '%/postgresql.auto.conf' AND name IS NOT NULL ORDER BY seqno";
    let rows =
        client.query(sql, &[]).map_err(|e| ControlError::query("read pg_file_settings", &e))?;
    Ok(rows
        .iter()
        .map(|row| (row.get(0), row.get::<_, Option<String>>(1).unwrap_or_default()))
        .collect())
}

fn system_identifier(client: &mut Client) -> Result<String, ControlError> {
    let sql = "SELECT system_identifier::text FROM pg_catalog.pg_control_system()";
    let row = client
        .query_one(sql, &[])
        .map_err(|e| ControlError::query("read pg_control_system()", &e))?;
    Ok(row.get(0))
}

/// Gives `name` that value in `postgresql.auto.conf`; none: no line of its own.
fn alter(client: &mut Client, name: &str, value: Option<&str>) -> Result<(), ControlError> {
    let name = escape_identifier(name);
    // Waits until the change is on disk by itself, whatever the session says of commits.
    let sql = match value {
        Some(value) => format!("ALTER SYSTEM SET {name} = {}", escape_literal(value)),
        None => format!("ALTER SYSTEM RESET {name}"),
    };
    client
        .batch_execute(&sql)
        .map_err(|e| ControlError::query("change a setting with ALTER SYSTEM", &e))
}

/// Has the server read its files again; a connection that began after it did.
fn reload(
    client: &mut Client,
    connect: impl Fn() -> Result<Client, ControlError>,
) -> Result<Client, ServerWideError> {
    let failed = |e: postgres::Error| ControlError::query("reload the server's configuration", &e);
    let before: String =
        client.query_one("SELECT pg_catalog.clock_timestamp()::text", &[]).map_err(failed)?.get(0);
    client.batch_execute("SELECT pg_catalog.pg_reload_conf()").map_err(failed)?;
    let until = Instant::now() + RELOAD_LIMIT;
    loop {
        // A new session has its settings from the postmaster, and with them the time at which it
        // read them.
        let mut fresh = connect()?;
        let sql = "SELECT pg_catalog.pg_conf_load_time() >= $1::text::timestamptz";
        if fresh.query_one(sql, &[&before]).map_err(failed)?.get(0) {
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

/// Whether a server that has read its files runs with `wanted`: a command line's option would count
/// more.
fn verify(client: &mut Client, wanted: &BTreeMap<String, String>) -> Result<(), SettingsError> {
    let names: Vec<&String> = wanted.keys().collect();
    let sql = "SELECT pg_catalog.lower(name), setting, unit, vartype, source, \
               source = 'configuration file' AND coalesce(sourcefile LIKE '%/postgresql.auto.conf', true) \
               FROM pg_catalog.pg_settings WHERE pg_catalog.lower(name) = ANY($1)";
    let rows = client
        .query(sql, &[&names])
        .map_err(|e| ControlError::query("read the settings back", &e))?;
    let mut problems = Vec::new();
    for row in rows {
        let (name, setting, unit): (String, String, Option<String>) =
            (row.get(0), row.get(1), row.get(2));
        let (vartype, source, is_ours): (String, String, bool) =
            (row.get(3), row.get(4), row.get(5));
        let Some(value) = wanted.get(&name) else { continue };
        if !is_ours || same_value(value, &setting, unit.as_deref(), &vartype) == Some(false) {
            let unit = unit.map(|unit| format!(" in units of {unit}")).unwrap_or_default();
            let why = format!("it runs with `{setting}`{unit} (source: {source})");
            problems.push(SettingProblem { name, value: value.clone(), why, help: None });
        }
    }
    if problems.is_empty() { Ok(()) } else { Err(SettingsError::NotObtained(problems)) }
}
