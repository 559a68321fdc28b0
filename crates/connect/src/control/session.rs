//! A control session that keeps [`SEARCH_PATH`] behind a pooler too.
//!
//! A pooler such as PgBouncer refuses the path of the start-up packet, or drops it, and may give
//! each transaction another session. Behind one, every transaction sets the path first.

use pgdyno_model::target::Target;
use tokio_postgres::{Error, Row, SimpleQueryMessage};

use super::cancel::CancelToken;
use super::client::{Client, CopyInWriter, NoticeHandler, Parameters, Transaction};
use super::config::SEARCH_PATH;
use super::error::ControlError;
use super::open::{check_kind, holds_path, open, path_of_schema, refuses_parameter};

/// A control session on a server, or on a pooler in front of one.
pub struct ControlClient {
    client: Client,
    /// Whether the session keeps the path. Otherwise every transaction sets it.
    holds_path: bool,
    in_block: bool,
}

impl ControlClient {
    /// Connects to `target`. `notices` receives the session's notices.
    ///
    /// # Errors
    /// [`ControlError::Connect`], [`ControlError::Query`]. A pooler is not an error.
    pub fn connect(target: &Target, notices: Option<&NoticeHandler>) -> Result<Self, ControlError> {
        let direct = open(target, Some(SEARCH_PATH), notices);
        let (client, holds_path) = match direct {
            Ok(mut client) => {
                let holds_path = holds_path(&mut client)?;
                (client, holds_path)
            }
            Err(e) if refuses_parameter(&e) => (open(target, None, notices)?, false),
            Err(e) => return Err(e),
        };
        Self::checked(target, client, holds_path)
    }

    /// Connects to `target` without a question, unless the kind of server is one. For servers that
    /// may lack PostgreSQL's catalogues. Every transaction sets the path, as behind a pooler.
    ///
    /// # Errors
    /// [`ControlError::Connect`], [`ControlError::Query`].
    pub fn connect_unasked(
        target: &Target,
        notices: Option<&NoticeHandler>,
    ) -> Result<Self, ControlError> {
        Self::checked(target, open(target, None, notices)?, false)
    }

    fn checked(
        target: &Target,
        mut client: Client,
        holds_path: bool,
    ) -> Result<Self, ControlError> {
        check_kind(target, &mut client)?;
        if !holds_path {
            // A pooler's key is no process of the server's.
            client.watch(None);
        }
        Ok(Self { client, holds_path, in_block: false })
    }

    /// Returns the server's version, as it announced it when the session began: `15.4 (Debian …)`.
    pub fn announced_version(&self) -> Option<&str> {
        self.client.announced_version()
    }

    /// Sets whether statements are given up once the server has answered nobody for a minute, in a
    /// patient process too ([`super::wait::be_patient`]). Sessions behind a pooler are not watched.
    pub fn end_silence(&mut self, ends_silence: bool) {
        self.client.end_silence(ends_silence);
    }

    /// Whether the session is behind a pooler, so that settings last for one transaction only.
    pub fn is_pooled(&self) -> bool {
        !self.holds_path
    }

    /// Whether the session is over.
    pub fn is_closed(&self) -> bool {
        self.client.is_closed()
    }

    /// Executes `sql` and returns its rows.
    ///
    /// # Errors
    /// The server's.
    pub fn query(&mut self, sql: &str, parameters: Parameters<'_>) -> Result<Vec<Row>, Error> {
        self.within(|client| client.query(sql, parameters))
    }

    /// Executes `sql` and returns its only row.
    ///
    /// # Errors
    /// The server's; also if there is not exactly one row.
    pub fn query_one(&mut self, sql: &str, parameters: Parameters<'_>) -> Result<Row, Error> {
        self.within(|client| client.query_one(sql, parameters))
    }

    /// Executes `sql` and returns its row, if there is one.
    ///
    /// # Errors
    /// The server's; also if there are several rows.
    pub fn query_opt(
        &mut self,
        sql: &str,
        parameters: Parameters<'_>,
    ) -> Result<Option<Row>, Error> {
        self.within(|client| client.query_opt(sql, parameters))
    }

    /// Executes the statements of `sql` and returns their values as text.
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
    /// Behind a pooler the session's path is unknown. Qualify each name, and use no expressions.
    ///
    /// # Errors
    /// The server's.
    pub fn execute_alone(&mut self, qualified: &str) -> Result<(), Error> {
        self.client.batch_execute(qualified)
    }

    /// Executes SQL of a workload's author, whose unqualified names mean objects of `schema`.
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

    /// Begins a transaction that lasts until [`ControlClient::commit`] or the session's end.
    ///
    /// # Errors
    /// The server's.
    pub fn begin(&mut self) -> Result<(), Error> {
        self.client.batch_execute("BEGIN")?;
        self.in_block = true;
        if self.is_pooled() { self.client.batch_execute(&set_path()) } else { Ok(()) }
    }

    /// Commits the transaction of [`ControlClient::begin`].
    ///
    /// # Errors
    /// The server's.
    pub fn commit(&mut self) -> Result<(), Error> {
        self.in_block = false;
        self.client.batch_execute("COMMIT")
    }

    /// Begins a transaction, which is rolled back on drop unless it was committed.
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

    /// Begins the `COPY … FROM STDIN` of `sql`. Call it between [`ControlClient::begin`] and
    /// [`ControlClient::commit`].
    ///
    /// # Errors
    /// The server's.
    pub fn copy_in(&mut self, sql: &str) -> Result<CopyInWriter<'_>, Error> {
        self.client.copy_in(sql)
    }

    /// Returns a token by which another thread can cancel the running statement.
    pub fn cancel_token(&self) -> CancelToken {
        self.client.cancel_token()
    }

    /// Calls `call` with the path set.
    fn within<T>(
        &mut self,
        call: impl FnOnce(&mut Client) -> Result<T, Error>,
    ) -> Result<T, Error> {
        if self.holds_path || self.in_block {
            return call(&mut self.client);
        }
        self.client.batch_execute(&format!("BEGIN; {}", set_path()))?;
        let done = call(&mut self.client);
        let ended = self.client.batch_execute(if done.is_ok() { "COMMIT" } else { "ROLLBACK" });
        let done = done?;
        ended.map(|()| done)
    }
}

/// Returns SQL that sets the path for the rest of a transaction, whatever the path was before.
fn set_path() -> String {
    format!("SELECT pg_catalog.set_config('search_path', '{SEARCH_PATH}', true)")
}
