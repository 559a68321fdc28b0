//! Uses a server that pgdyno does not own. One schema is pgdyno's; everything else is left as it
//! is, or put back as it was.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use crate::error::{FixedSettingReason, LabError};
use pgdyno_connect::control::wait::wait_of;
use pgdyno_connect::control::{self, Client, error_text};
use pgdyno_exec::journal::{Entry, Journal, OwnedResource};
use pgdyno_model::experiment::Postgres;
use pgdyno_model::facts::ServerFacts;
use pgdyno_model::progress::Activity;
use pgdyno_model::target::{Secret, Target};
use pgdyno_postgres::external::{server_name, without_password};
use pgdyno_postgres::schema::{MARK, RecordedSchema};
use pgdyno_postgres::server_wide::put_back_leftovers;
use pgdyno_postgres::{ExternalServer, ServerWide, schema};
use pgdyno_provision::sql::SqlError;
use postgres_protocol::escape::{escape_identifier, escape_literal};

use pgdyno_provision::{BenchError, Context};

/// The schema for the workload's tables, unless the experiment names one.
const SCHEMA: &str = "pgdyno";
/// Contexts of the settings that a session can set for itself.
const SESSION_CONTEXTS: [&str; 4] = ["user", "superuser", "backend", "superuser-backend"];

/// Time that a server may take to come back when the run's traces are removed.
const RETURN_LIMIT: Duration = Duration::from_secs(30);
/// Interval between two attempts to reach the server meanwhile.
const RETURN_TICK: Duration = Duration::from_millis(200);

/// Values of settings as the server reads them, in the unit of `pg_settings`, by the name and value
/// that treatments give.
pub(super) type ReadValues = BTreeMap<(String, String), String>;

/// A schema on an external server. It holds one data set.
pub(super) struct ExternalSchema {
    server: ExternalServer,
    dsn: Secret,
    schema: String,
    /// Whether the experiment names the schema, so that an existing one may be used.
    named: bool,
    journal: Journal,
    /// The journal's entry. Everything that this run makes in the database bears its id.
    entry: Option<Entry>,
    /// Settings that are changed for the whole server, if any are.
    server_wide: Option<ServerWide>,
    /// Holds the advisory lock that tells other pgdynos to keep off.
    keeper: Option<Client>,
}

impl ExternalSchema {
    /// Connects as `dsn` says. The `number`-th data set, from 1, gets the schema of that number.
    pub(super) fn connect(
        dsn: &Secret,
        schema: Option<&str>,
        number: u32,
        journal: &Journal,
    ) -> Result<Self, BenchError> {
        let base = schema.unwrap_or(SCHEMA);
        Ok(Self {
            server: ExternalServer::connect(dsn)?,
            dsn: dsn.clone(),
            schema: if number == 1 { base.to_owned() } else { format!("{base}_{number}") },
            named: schema.is_some(),
            journal: journal.clone(),
            entry: None,
            server_wide: None,
            keeper: None,
        })
    }

    fn wrong(&self, found: impl Into<String>) -> BenchError {
        LabError::Schema { schema: self.schema.clone(), found: found.into() }.into()
    }

    /// Returns the error of a schema that cannot be used: a statement failed with `error`.
    fn failed(&self, error: tokio_postgres::Error) -> BenchError {
        match wait_of(&error) {
            Some(_) => {
                SqlError::new(format!("use schema `{}` of the server", self.schema), error).into()
            }
            None => self.wrong(error_text(&error)),
        }
    }

    /// Returns the schema's name, for SQL that names its tables.
    pub(super) fn schema(&self) -> &str {
        &self.schema
    }

    /// Returns the mark of everything that this run makes in the database.
    pub(super) fn mark(&self) -> Option<String> {
        self.entry.as_ref().map(|entry| schema::mark(&entry.id))
    }

    /// Drops what a killed pgdyno left according to the journal. Then makes the schema, or finds
    /// the one that the experiment names. Returns notes for the user.
    pub(super) fn claim_schema(&mut self) -> Result<Vec<String>, BenchError> {
        const LOCK: &str = "SELECT pg_catalog.pg_try_advisory_lock(pg_catalog.hashtext($1))";
        const COMMENT: &str = "SELECT pg_catalog.obj_description(oid, 'pg_namespace') \
            FROM pg_catalog.pg_namespace WHERE nspname = $1";
        let mut keeper = self.server.control()?;
        let wrong = |e: tokio_postgres::Error| self.failed(e);
        let key = format!("pgdyno schema {}", self.schema);
        let locked: bool = keeper.query_one(LOCK, &[&key]).map_err(wrong)?.get(0);
        if !locked {
            return Err(self.wrong("another pgdyno is using it at this moment"));
        }
        let notes = schema::drop_leftovers(&mut keeper, &self.dsn, &self.schema, &self.journal)?;
        let comment: Option<Option<String>> =
            keeper.query_opt(COMMENT, &[&self.schema]).map_err(wrong)?.map(|row| row.get(0));
        match comment {
            Some(_) if self.named => {
                let writers = schema::writers(&mut keeper, &self.schema).map_err(wrong)?;
                if !writers.is_empty() {
                    return Err(self.wrong(open_to(&writers)));
                }
                self.record_in_journal()?;
            }
            Some(_) if !notes.is_empty() => {
                return Err(self
                    .wrong(format!("an earlier pgdyno could not drop it: {}", notes.join("; "))));
            }
            Some(Some(comment)) if comment.starts_with(MARK) => {
                let found = "a pgdyno made it that this machine's journal does not know: drop it, \
                             once nobody needs it";
                return Err(self.wrong(found));
            }
            Some(_) => return Err(self.wrong("it is there, and pgdyno did not make it")),
            None => self.make(&mut keeper)?,
        }
        self.keeper = Some(keeper);
        Ok(notes)
    }

    /// Records in the journal that this run makes things here. Returns their mark.
    fn record_in_journal(&mut self) -> Result<String, BenchError> {
        let dsn = without_password(self.dsn.reveal()).unwrap_or_default();
        let server = server_name(self.dsn.reveal()).unwrap_or_default();
        // Not a path of this machine: what messages call it.
        let path = PathBuf::from(format!("schema {} of server {server}", self.schema));
        let recorded = Box::new(RecordedSchema { dsn, schema: self.schema.clone() });
        let entry = self.journal.record(&OwnedResource::ServerSchema { path, recorded })?;
        let mark = schema::mark(&entry.id);
        self.entry = Some(entry);
        Ok(mark)
    }

    fn make(&mut self, client: &mut Client) -> Result<(), BenchError> {
        let mark = escape_literal(&self.record_in_journal()?);
        let schema = escape_identifier(&self.schema);
        let sql = format!(
            "BEGIN; SET LOCAL synchronous_commit = local; CREATE SCHEMA {schema}; \
             COMMENT ON SCHEMA {schema} IS {mark}; COMMIT"
        );
        client.batch_execute(&sql).map_err(|e| self.failed(e))
    }

    /// Finds how each setting of `treatments` can be changed, and tries all of them before anything
    /// is measured. Server-wide settings are then put back until a trial asks for them. Returns
    /// notes for the user, and each value as the server reads it.
    pub(super) fn check_settings(
        &mut self,
        treatments: &[&BTreeMap<String, String>],
        postgres: &Postgres,
        dsn: &Secret,
        journal: &Journal,
    ) -> Result<(Vec<String>, ReadValues), BenchError> {
        let notes = put_back_leftovers(&self.server, journal)?;
        let mut server_wide: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        let contexts = self.contexts()?;
        for (name, value) in treatments.iter().copied().flatten() {
            let fixed = |reason| LabError::FixedSetting { name: name.clone(), reason };
            let lower = name.to_ascii_lowercase();
            match contexts.get(&lower).map(String::as_str) {
                Some(context) if SESSION_CONTEXTS.contains(&context) => {}
                Some("sighup") if postgres.alter_system => {
                    server_wide.entry(lower).or_default().insert(value.clone());
                }
                Some("sighup") => return Err(fixed(FixedSettingReason::NotAllowed).into()),
                Some("postmaster") => return Err(fixed(FixedSettingReason::TakesRestart).into()),
                Some(context) => {
                    return Err(fixed(FixedSettingReason::Context(context.to_owned())).into());
                }
                None => return Err(fixed(FixedSettingReason::Unknown).into()),
            }
        }
        if !server_wide.is_empty() {
            self.server_wide = Some(ServerWide::record(&self.server, dsn, &server_wide, journal)?);
        }
        let mut read = ReadValues::new();
        for settings in treatments {
            self.apply(settings)?;
            self.read_back(settings, &mut read)?;
        }
        self.reset_settings()?;
        Ok((notes, read))
    }

    /// Adds to `read` how the server reads `settings`, which are in force.
    fn read_back(
        &self,
        settings: &BTreeMap<String, String>,
        read: &mut ReadValues,
    ) -> Result<(), BenchError> {
        let sql = "SELECT setting FROM pg_catalog.pg_settings WHERE pg_catalog.lower(name) = $1";
        let doing = "read settings back from a server that pgdyno does not own";
        let asked = settings.iter().map(|(name, value)| (name.clone(), value.clone()));
        let unknown: Vec<_> = asked.filter(|asked| !read.contains_key(asked)).collect();
        if unknown.is_empty() {
            return Ok(());
        }
        let mut client = control::connect(&self.target(settings))?;
        for (name, value) in unknown {
            let rows = client
                .query(sql, &[&name.to_ascii_lowercase()])
                .map_err(|e| SqlError::new(doing, e))?;
            let found = rows.first().map(|row| row.get(0));
            read.extend(found.map(|found| ((name, value), found)));
        }
        Ok(())
    }

    /// Returns every setting's context, by the setting's name in lower case.
    fn contexts(&self) -> Result<BTreeMap<String, String>, BenchError> {
        let sql = "SELECT pg_catalog.lower(name), context FROM pg_catalog.pg_settings";
        let doing = "read the settings of a server that pgdyno does not own";
        let rows = self.server.control()?.query(sql, &[]).map_err(|e| SqlError::new(doing, e))?;
        Ok(rows.iter().map(|row| (row.get(0), row.get(1))).collect())
    }

    /// Applies `settings`: server-wide ones now, the others in sessions of
    /// [`ExternalSchema::target`]. The server itself judges the values.
    pub(super) fn apply(&mut self, settings: &BTreeMap<String, String>) -> Result<(), BenchError> {
        if let Some(server_wide) = &mut self.server_wide {
            let lower =
                settings.iter().map(|(name, value)| (name.to_ascii_lowercase(), value.clone()));
            let wanted = lower.filter(|(name, _)| server_wide.holds(name)).collect();
            server_wide.apply(&wanted)?;
        }
        Ok(control::try_settings(&self.target(settings))?)
    }

    /// Puts server-wide settings back, until a trial asks for others.
    pub(super) fn reset_settings(&mut self) -> Result<(), BenchError> {
        match &mut self.server_wide {
            Some(server_wide) => Ok(server_wide.apply(&BTreeMap::new())?),
            None => Ok(()),
        }
    }

    /// Returns the target of load: the schema is first in the search path, and `settings` hold for
    /// the session.
    pub(super) fn target(&self, settings: &BTreeMap<String, String>) -> Target {
        self.prepared(self.server.target(), settings)
    }

    /// Returns `target`, of this server or one beside it, with the schema first in its search path
    /// and `settings` for the session.
    pub(super) fn prepared(
        &self,
        mut target: Target,
        settings: &BTreeMap<String, String>,
    ) -> Target {
        target.settings.retain(|(name, _)| name != "search_path" && !settings.contains_key(name));
        target.settings.push(("search_path".into(), escape_identifier(&self.schema)));
        let is_session = |name: &str| {
            !self.server_wide.as_ref().is_some_and(|wide| wide.holds(&name.to_ascii_lowercase()))
        };
        let own = settings.iter().filter(|(name, _)| is_session(name));
        target.settings.extend(own.map(|(name, value)| (name.clone(), value.clone())));
        target
    }

    /// Opens a control connection.
    pub(super) fn control(&self) -> Result<Client, BenchError> {
        Ok(self.server.control()?)
    }

    /// Opens a control connection for SQL of the workload, whose names stand for those of the
    /// schema.
    pub(super) fn connect_to_data(&self) -> Result<Client, BenchError> {
        Ok(control::connect_to_schema(&self.server.target(), &self.schema)?)
    }

    pub(super) fn data_directory(&self) -> Option<PathBuf> {
        self.server.data_directory()
    }

    pub(super) fn data_directory_there(&self) -> Option<PathBuf> {
        self.server.data_directory_there()
    }

    pub(super) fn facts(&self) -> Result<ServerFacts, BenchError> {
        Ok(self.server.facts()?)
    }

    /// Puts back what the run changed and drops what it made. Waits for a server that takes no
    /// connections at the moment. Returns what stays, and what to do about it.
    pub(super) fn release(mut self, context: Context<'_>) -> Vec<String> {
        if self.server_wide.is_some() || self.entry.is_some() {
            self.wait_for_server(context);
        }
        let by_clean = |what: &str, done: &str, e: &dyn std::fmt::Display| {
            format!(
                "{what} is not {done}: {e}; once the server takes connections, \
                 `pgdyno clean` does it"
            )
        };
        let mut left = Vec::new();
        if let Some(server_wide) = self.server_wide.take() {
            let settings = server_wide.name();
            match server_wide.put_back() {
                Ok(others) => left.extend(others),
                Err(e) => left.push(by_clean(&settings, "put back", &e)),
            }
        }
        let schema = self.entry.as_ref().map(|entry| entry.made.path().display().to_string());
        match self.drop_ours() {
            Ok(stays) if stays.is_empty() => {}
            Ok(stays) => {
                left.extend(stays);
                let server = self.server.target().address;
                left.push(format!(
                    "pgdyno dropped nothing of others' on {server}: once that is gone or moved, \
                     `pgdyno clean` drops the rest"
                ));
            }
            Err(e) => {
                left.push(by_clean(&schema.unwrap_or_default(), "dropped", &e.message()));
            }
        }
        left
    }

    /// Waits for a server that takes no connections, such as one that is being restarted. Returns
    /// nothing: the next connection shows whether the server is back.
    fn wait_for_server(&self, context: Context<'_>) {
        let mut is_told = false;
        let _ = context.poll(RETURN_LIMIT, RETURN_TICK, || match self.server.control() {
            Err(e) if !e.is_refusal() => {
                if !std::mem::replace(&mut is_told, true) {
                    let server = self.server.target().address.to_string();
                    context.begin(Activity::AwaitingServer { server });
                }
                Ok(None)
            }
            _ => Ok(Some(())),
        });
    }

    /// Drops what bears this run's mark. Returns what stays. The journal keeps its entry until
    /// nothing stays.
    fn drop_ours(&mut self) -> Result<Vec<String>, BenchError> {
        let (Some(_keeper), Some(entry)) = (self.keeper.take(), self.entry.take()) else {
            return Ok(Vec::new());
        };
        let dropped = schema::drop_marked(&mut self.server.control()?, &entry.id)?;
        if dropped.left.is_empty() {
            self.journal.done(&entry.id)?;
        }
        Ok(dropped.left)
    }
}

/// Says why a superuser's session stays out of a schema that the roles `writers` may write to.
fn open_to(writers: &[String]) -> String {
    format!(
        "{} may put functions and triggers into it, which would run with the superuser's rights of \
         this connection",
        writers.join(", ")
    )
}

impl Drop for ExternalSchema {
    fn drop(&mut self) {
        // After an error or a panic; told or not, the next start knows the settings and the schema
        // by the journal.
        let _ = self.server_wide.take().map(ServerWide::put_back);
        let _ = self.drop_ours();
    }
}
