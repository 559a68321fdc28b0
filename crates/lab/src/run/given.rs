//! A server that pgdyno does not own: one schema is pgdyno's, everything else is left as it is.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use pgdyno_host::postgres::Given;
use pgdyno_host::postgres::control::said;
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

    /// Whether every one of `settings` can hold for a session of ours alone, with the value asked.
    pub(super) fn check(&self, settings: &BTreeMap<String, String>) -> Result<(), LabError> {
        let mut client = self.given.control()?;
        for name in settings.keys() {
            let doing = format!("set {name} for our sessions on a server that pgdyno does not own");
            let wrong = |found: String| LabError::Sql { doing: doing.clone(), found };
            let row = client
                .query_opt("SELECT context FROM pg_settings WHERE lower(name) = lower($1)", &[name])
                .map_err(|e| wrong(said(&e)))?;
            let context: String = row.ok_or_else(|| wrong("the server has no such setting".into()))?.get(0);
            if !SESSION_CONTEXTS.contains(&context.as_str()) {
                return Err(wrong(format!(
                    "its context is `{context}`, so that it can only be changed for the whole server"
                )));
            }
        }
        // The server itself judges the values, as the load's connections will ask for them.
        pgdyno_host::postgres::control::connect(&self.target(settings))?;
        Ok(())
    }

    /// Where load is offered: the schema first, and `settings` for the session.
    pub(super) fn target(&self, settings: &BTreeMap<String, String>) -> Target {
        let mut target = self.given.target();
        target.settings.retain(|(name, _)| name != "search_path" && !settings.contains_key(name));
        target.settings.push(("search_path".into(), escape_identifier(&self.schema)));
        target.settings.extend(settings.iter().map(|(name, value)| (name.clone(), value.clone())));
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

    /// Drops what we made.
    pub(super) fn release(mut self) -> Result<(), LabError> {
        self.drop_ours()
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
        // After an error or a panic; told or not, the next start knows the schema by its comment.
        let _ = self.drop_ours();
    }
}
