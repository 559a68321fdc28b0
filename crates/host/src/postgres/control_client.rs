//! A control session whose names resolve in PostgreSQL's own catalogue, behind a pooler too.
//!
//! Whoever owns a database decides what an unqualified name means in it:
//! `ALTER DATABASE … SET search_path` and a function or an operator of the owner's are enough to
//! run code with the rights of whoever connects. So a control session has its own `search_path`
//! from the start-up packet on. A pooler such as PgBouncer refuses that parameter, or drops it, and
//! may hand each transaction to another session: there the path is set first in every transaction.

use pgdyno_model::target::Target;
use postgres::types::ToSql;
use postgres::{Error, Row, SimpleQueryMessage};

use super::client::{CancelToken, Client, CopyInWriter, Transaction};
use super::control::{self, ControlError, NoticeHandler, SEARCH_PATH, path_of_schema};

/// Values of a statement's parameters.
type Parameters<'a> = &'a [&'a (dyn ToSql + Sync)];

/// A control session on a server or on a pooler before one.
pub struct ControlClient {
    client: Client,
    /// Whether the session itself holds the path; else every transaction sets it.
    holds_path: bool,
    in_block: bool,
}

impl ControlClient {
    /// Connects to `target`; `notices` takes the session's notices.
    ///
    /// # Errors
    /// As [`control::connect`], but that a pooler is no error.
    pub fn connect(target: &Target, notices: Option<&NoticeHandler>) -> Result<Self, ControlError> {
        let direct = control::open(target, Some(SEARCH_PATH), notices);
        let (mut client, holds_path) = match direct {
            Ok(mut client) => {
                let holds_path = control::holds_path(&mut client)?;
                (client, holds_path)
            }
            Err(e) if control::refuses_parameter(&e) => {
                (control::open(target, None, notices)?, false)
            }
            Err(e) => return Err(e),
        };
        control::check_kind(target, &mut client)?;
        Ok(Self { client, holds_path, in_block: false })
    }

    /// Whether a pooler stands between, so that nothing lasts longer than a transaction.
    #[must_use]
    pub fn is_pooled(&self) -> bool {
        !self.holds_path
    }

    /// Whether the session is over.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.client.is_closed()
    }

    /// Asks `sql` and returns its rows.
    ///
    /// # Errors
    /// The server's.
    pub fn query(&mut self, sql: &str, parameters: Parameters<'_>) -> Result<Vec<Row>, Error> {
        self.within(|client| client.query(sql, parameters))
    }

    /// Asks `sql` and returns its one row.
    ///
    /// # Errors
    /// The server's; also any other number of rows.
    pub fn query_one(&mut self, sql: &str, parameters: Parameters<'_>) -> Result<Row, Error> {
        self.within(|client| client.query_one(sql, parameters))
    }

    /// Asks `sql` and returns its row, if there is one.
    ///
    /// # Errors
    /// The server's; also more than one row.
    pub fn query_opt(
        &mut self,
        sql: &str,
        parameters: Parameters<'_>,
    ) -> Result<Option<Row>, Error> {
        self.within(|client| client.query_opt(sql, parameters))
    }

    /// Asks `sql`, one or several statements, and returns values as text.
    ///
    /// # Errors
    /// The server's.
    pub fn simple_query(&mut self, sql: &str) -> Result<Vec<SimpleQueryMessage>, Error> {
        self.within(|client| client.simple_query(sql))
    }

    /// Executes the statements of `sql` in one transaction.
    ///
    /// # Errors
    /// The server's.
    pub fn batch_execute(&mut self, sql: &str) -> Result<(), Error> {
        self.within(|client| client.batch_execute(sql))
    }

    /// Executes a statement that PostgreSQL allows in no transaction, such as VACUUM.
    ///
    /// Behind a pooler it has whatever path the session has: each name in it has to be qualified,
    /// and it may hold no expression.
    ///
    /// # Errors
    /// The server's.
    pub fn execute_alone(&mut self, qualified: &str) -> Result<(), Error> {
        self.client.batch_execute(qualified)
    }

    /// Executes SQL of a workload's author, whose unqualified names mean those of `schema`.
    ///
    /// # Errors
    /// The server's.
    pub fn execute_in_schema(&mut self, schema: &str, sql: &str) -> Result<(), Error> {
        if sql.trim().is_empty() {
            return Ok(());
        }
        let path = path_of_schema(schema);
        if self.is_pooled() {
            let mut transaction = self.client.transaction()?;
            transaction.batch_execute(&format!("SET LOCAL search_path = {path}"))?;
            transaction.batch_execute(sql)?;
            return transaction.commit();
        }
        self.client.batch_execute(&format!("SET search_path = {path}"))?;
        let executed = self.client.batch_execute(sql);
        let back = self.client.batch_execute(&format!("SET search_path = {SEARCH_PATH}"));
        executed.and(back)
    }

    /// Begins a transaction that lasts until [`ControlClient::commit`], or until the session's end.
    ///
    /// # Errors
    /// The server's.
    pub fn begin(&mut self) -> Result<(), Error> {
        self.client.batch_execute("BEGIN")?;
        self.in_block = true;
        if self.is_pooled() { self.client.batch_execute(&set_path()) } else { Ok(()) }
    }

    /// Commits it.
    ///
    /// # Errors
    /// The server's.
    pub fn commit(&mut self) -> Result<(), Error> {
        self.in_block = false;
        self.client.batch_execute("COMMIT")
    }

    /// Begins a transaction that is rolled back unless it is committed.
    ///
    /// # Errors
    /// The server's.
    pub fn transaction(&mut self) -> Result<Transaction<'_>, Error> {
        let is_pooled = self.is_pooled();
        let mut transaction = self.client.transaction()?;
        if is_pooled {
            transaction.batch_execute(&set_path())?;
        }
        Ok(transaction)
    }

    /// Streams rows into `COPY … FROM STDIN`, within [`ControlClient::begin`] and
    /// [`ControlClient::commit`].
    ///
    /// # Errors
    /// The server's.
    pub fn copy_in(&mut self, sql: &str) -> Result<CopyInWriter<'_>, Error> {
        self.client.copy_in(sql)
    }

    /// What ends the statement that runs.
    #[must_use]
    pub fn cancel_token(&self) -> CancelToken {
        self.client.cancel_token()
    }

    /// Does `what` with the path set.
    fn within<T>(
        &mut self,
        what: impl FnOnce(&mut Client) -> Result<T, Error>,
    ) -> Result<T, Error> {
        if self.holds_path || self.in_block {
            return what(&mut self.client);
        }
        self.client.batch_execute(&format!("BEGIN; {}", set_path()))?;
        let done = what(&mut self.client);
        let ended = self.client.batch_execute(if done.is_ok() { "COMMIT" } else { "ROLLBACK" });
        let done = done?;
        ended.map(|()| done)
    }
}

/// SQL that sets the path for the rest of a transaction, whatever the path before it.
fn set_path() -> String {
    format!("SELECT pg_catalog.set_config('search_path', '{SEARCH_PATH}', true)")
}
