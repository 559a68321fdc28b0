//! A server that pgdyno does not own: one schema is pgdyno's, everything else is left as it is, or put back as it was.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use pgdyno_host::Journal;
use pgdyno_host::postgres::control::said;
use pgdyno_host::postgres::server_wide::put_back_leftovers;
use pgdyno_host::postgres::{Given, ServerWide};
use pgdyno_model::experiment::Postgres;
use pgdyno_model::facts::ServerFacts;
use pgdyno_model::target::{Secret, Target};
use postgres::Client;
use postgres_protocol::escape::escape_identifier;

use super::server::execute;
use crate::LabError;

/// The beginning of the comment by which pgdyno knows a schema of its own.
const COMMENT: &str = "made by pgdyno";
/// The schema for the workload's tables, unless the file names one.
const SCHEMA: &str = "pgdyno";
/// Settings with these contexts can be set by one session for itself.
const SESSION_CONTEXTS: [&str; 4] = ["user", "superuser", "backend", "superuser-backend"];

/// What to do about a setting that only a restart changes.
const RESTART: &str = "leave it out, or compare two servers that were started with different values: `postgres.dsn` as a factor";

/// A given server, and the schema on it that holds one data set.
pub(super) struct GivenServer {
    given: Given,
    schema: String,
    /// Whether the file named the schema, so that an existing one may be used.
    named: bool,
    /// Whether we made the schema.
    made: bool,
    /// Tables that were in the schema before the load, when it was not ours.
    before: BTreeSet<String>,
    /// Tables that we made in a schema that is not ours.
    tables: BTreeSet<String>,
    /// Settings that are changed for the whole server, if any are.
    server_wide: Option<ServerWide>,
    /// Holds the advisory lock that tells other pgdynos to keep off.
    keeper: Option<Client>,
}

impl GivenServer {
    /// Connects as `dsn` says; the `number`-th data set gets the schema of that number.
    pub(super) fn connect(dsn: &Secret, schema: Option<&str>, number: u32) -> Result<Self, LabError> {
        let base = schema.unwrap_or(SCHEMA);
        Ok(Self {
            given: Given::connect(dsn)?,
            schema: if number == 1 { base.to_owned() } else { format!("{base}_{number}") },
            named: schema.is_some(),
            made: false,
            before: BTreeSet::new(),
            tables: BTreeSet::new(),
            server_wide: None,
            keeper: None,
        })
    }

    fn wrong(&self, found: impl Into<String>) -> LabError {
        LabError::Schema { schema: self.schema.clone(), found: found.into() }
    }

    /// Makes the schema ours: makes it, or clears what a killed pgdyno left in it. Notes are worth showing.
    pub(super) fn claim(&mut self) -> Result<Vec<String>, LabError> {
        let mut keeper = self.given.control()?;
        let wrong = |e: postgres::Error| LabError::Schema { schema: self.schema.clone(), found: said(&e) };
        let key = format!("pgdyno schema {}", self.schema);
        let locked: bool =
            keeper.query_one("SELECT pg_try_advisory_lock(hashtext($1))", &[&key]).map_err(wrong)?.get(0);
        if !locked {
            return Err(self.wrong("another pgdyno is using it at this moment"));
        }
        let comment: Option<Option<String>> = keeper
            .query_opt(
                "SELECT obj_description(oid, 'pg_namespace') FROM pg_namespace WHERE nspname = $1",
                &[&self.schema],
            )
            .map_err(wrong)?
            .map(|row| row.get(0));
        let mut notes = Vec::new();
        match comment {
            Some(Some(comment)) if comment.starts_with(COMMENT) => {
                notes.push(format!("dropping schema {}, left behind by an earlier pgdyno", self.schema));
                keeper
                    .batch_execute(&format!("DROP SCHEMA {} CASCADE", escape_identifier(&self.schema)))
                    .map_err(wrong)?;
                self.make(&mut keeper)?;
            }
            Some(_) if self.named => {}
            Some(_) => return Err(self.wrong("it is there, and pgdyno did not make it")),
            None => self.make(&mut keeper)?,
        }
        self.keeper = Some(keeper);
        Ok(notes)
    }

    fn make(&mut self, client: &mut Client) -> Result<(), LabError> {
        let schema = escape_identifier(&self.schema);
        let sql = format!("BEGIN; CREATE SCHEMA {schema}; COMMENT ON SCHEMA {schema} IS '{COMMENT}'; COMMIT");
        client.batch_execute(&sql).map_err(|e| self.wrong(said(&e)))?;
        self.made = true;
        Ok(())
    }

    /// Remembers what is in a schema that is not ours.
    pub(super) fn before_load(&mut self) -> Result<(), LabError> {
        self.before = self.tables_there()?;
        Ok(())
    }

    /// Notes which tables the load added, whether it succeeded or not.
    pub(super) fn after_load(&mut self) -> Result<(), LabError> {
        self.tables = self.tables_there()?.difference(&self.before).cloned().collect();
        Ok(())
    }

    fn tables_there(&self) -> Result<BTreeSet<String>, LabError> {
        let rows = self
            .given
            .control()?
            .query("SELECT tablename::text FROM pg_tables WHERE schemaname = $1", &[&self.schema])
            .map_err(|e| self.wrong(said(&e)))?;
        Ok(rows.iter().map(|row| row.get(0)).collect())
    }

    /// Finds how each setting of `treatments` can be changed, and tries all of them: before anything is measured. What holds for the
    /// whole server is put back until a trial asks for it. Notes are worth showing.
    pub(super) fn check_settings(
        &mut self,
        treatments: &[&BTreeMap<String, String>],
        postgres: &Postgres,
        dsn: &Secret,
        journal: &Journal,
    ) -> Result<Vec<String>, LabError> {
        let notes = put_back_leftovers(&self.given, journal)?;
        let mut server_wide: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        let contexts = self.contexts()?;
        for (name, value) in treatments.iter().copied().flatten() {
            let refuse = |found: &str, help: Option<&str>| {
                let (found, help) = (found.to_owned(), help.map(str::to_owned));
                Err(LabError::NotOfASession { name: name.clone(), found, help })
            };
            let lower = name.to_ascii_lowercase();
            match contexts.get(&lower).map(String::as_str) {
                Some(context) if SESSION_CONTEXTS.contains(&context) => {}
                Some("sighup") if postgres.alter_system => {
                    server_wide.entry(lower).or_default().insert(value.clone());
                }
                Some("sighup") => {
                    return refuse(
                        "its context is `sighup`, so that it can only be changed for the whole server",
                        Some(
                            "`alter_system = true` in `[postgres]` lets pgdyno do that with ALTER SYSTEM and a reload, \
                             and put it back",
                        ),
                    );
                }
                Some("postmaster") => {
                    return refuse("changing it for the whole server takes a restart", Some(RESTART));
                }
                Some(context) => {
                    return refuse(&format!("its context is `{context}`: it cannot be changed"), None);
                }
                None => return refuse("the server has no such setting", None),
            }
        }
        if !server_wide.is_empty() {
            self.server_wide = Some(ServerWide::record(&self.given, dsn, &server_wide, journal)?);
        }
        for settings in treatments {
            self.apply(settings)?;
        }
        self.rest()?;
        Ok(notes)
    }

    /// Every setting's context, by its name in lower case.
    fn contexts(&self) -> Result<BTreeMap<String, String>, LabError> {
        let rows =
            self.given.control()?.query("SELECT lower(name), context FROM pg_catalog.pg_settings", &[]);
        let doing = || "read the settings of a server that pgdyno does not own".to_owned();
        let rows = rows.map_err(|e| LabError::Sql { doing: doing(), found: said(&e) })?;
        Ok(rows.iter().map(|row| (row.get(0), row.get(1))).collect())
    }

    /// Makes `settings` hold: those of the whole server now, the others for sessions that [`GivenServer::target`] leads to. The
    /// server itself judges the values.
    pub(super) fn apply(&mut self, settings: &BTreeMap<String, String>) -> Result<(), LabError> {
        if let Some(server_wide) = &mut self.server_wide {
            let lower = settings.iter().map(|(name, value)| (name.to_ascii_lowercase(), value.clone()));
            let wanted = lower.filter(|(name, _)| server_wide.holds(name)).collect();
            server_wide.apply(&wanted)?;
        }
        pgdyno_host::postgres::control::connect(&self.target(settings))?;
        Ok(())
    }

    /// Has the whole server's settings be as they were, until a trial asks for others.
    pub(super) fn rest(&mut self) -> Result<(), LabError> {
        match &mut self.server_wide {
            Some(server_wide) => Ok(server_wide.apply(&BTreeMap::new())?),
            None => Ok(()),
        }
    }

    /// Where load is offered: the schema first, and `settings` for the session.
    pub(super) fn target(&self, settings: &BTreeMap<String, String>) -> Target {
        let mut target = self.given.target();
        target.settings.retain(|(name, _)| name != "search_path" && !settings.contains_key(name));
        target.settings.push(("search_path".into(), escape_identifier(&self.schema)));
        let is_session = |name: &str| {
            !self.server_wide.as_ref().is_some_and(|wide| wide.holds(&name.to_ascii_lowercase()))
        };
        let own = settings.iter().filter(|(name, _)| is_session(name));
        target.settings.extend(own.map(|(name, value)| (name.clone(), value.clone())));
        target
    }

    pub(super) fn control(&self) -> Result<Client, LabError> {
        Ok(pgdyno_host::postgres::control::connect(&self.target(&BTreeMap::new()))?)
    }

    pub(super) fn data_directory(&self) -> Option<PathBuf> {
        self.given.data_directory()
    }

    pub(super) fn facts(&self) -> Result<ServerFacts, LabError> {
        Ok(self.given.facts()?)
    }

    /// Puts back what was changed and drops what we made. Notes are worth showing.
    pub(super) fn release(mut self) -> Result<Vec<String>, LabError> {
        let put_back = self.put_back();
        self.drop_ours()?;
        put_back
    }

    fn put_back(&mut self) -> Result<Vec<String>, LabError> {
        self.server_wide.take().map_or(Ok(Vec::new()), |server_wide| Ok(server_wide.put_back()?))
    }

    fn drop_ours(&mut self) -> Result<(), LabError> {
        let Some(mut keeper) = self.keeper.take() else { return Ok(()) };
        let schema = escape_identifier(&self.schema);
        if self.made {
            self.made = false;
            return execute(&mut keeper, "drop our schema", &format!("DROP SCHEMA {schema} CASCADE"));
        }
        // A partition goes with its table.
        for table in std::mem::take(&mut self.tables) {
            execute(
                &mut keeper,
                "drop our table",
                &format!("DROP TABLE IF EXISTS {schema}.{}", escape_identifier(&table)),
            )?;
        }
        Ok(())
    }
}

impl Drop for GivenServer {
    fn drop(&mut self) {
        // After an error or a panic; told or not, the next start knows the settings by the journal, and the schema by its comment.
        let _ = self.put_back();
        let _ = self.drop_ours();
    }
}
