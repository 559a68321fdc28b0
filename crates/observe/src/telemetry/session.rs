//! A probe's connection to the server, which is made anew where it was lost.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use pgdyno_connect::control;
use pgdyno_connect::control::Client;
use pgdyno_model::target::Target;
use postgres_protocol::escape::escape_identifier;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Row, Statement};

use super::cost::ObserverCost;
use super::probe::ProbeError;

/// How long a statement may take (seconds): longer than the server itself lets it run.
const STATEMENT_LIMIT: Duration = Duration::from_secs(15);
/// Least time between two attempts to connect anew.
const PAUSE: Duration = Duration::from_millis(500);

/// A connection that several probes may share.
#[derive(Clone)]
pub(super) struct TelemetrySession(Arc<Mutex<Connection>>);

/// A query that is prepared once on each connection.
pub(super) struct Query {
    text: String,
    /// The statement, and the number of its connection.
    prepared: Option<(u64, Statement)>,
}

impl Query {
    /// Returns the statement on the connection `number`, which `client` has.
    fn on(&mut self, client: &mut Client, number: u64) -> Result<Statement, tokio_postgres::Error> {
        if let Some((of, statement)) = &self.prepared
            && *of == number
        {
            return Ok(statement.clone());
        }
        let statement = client.prepare(&self.text)?;
        self.prepared = Some((number, statement.clone()));
        Ok(statement)
    }
}

struct Connection {
    target: Target,
    cost: Arc<ObserverCost>,
    state: State,
    /// The pid of the last connection's backend.
    backend: i32,
    /// How many connections there were before the present one (count).
    number: u64,
}

enum State {
    Open(Box<Client>),
    /// The next attempt to connect is due, or under way in a thread of its own, so that a server
    /// that does not answer holds up no other probe.
    Lost {
        why: ProbeError,
        due: Instant,
        attempt: Option<Attempt>,
    },
}

type Attempt = JoinHandle<Result<(Client, i32), ProbeError>>;

fn connect(target: &Target) -> Result<(Client, i32), ProbeError> {
    let mut client = control::connect(target)?;
    // A server that hangs, or a table that is locked, must not hold up the other probes for good;
    // nor may watching start parallel workers.
    let ready = "SET statement_timeout = '10s'; SET lock_timeout = '200ms'; \
        SET max_parallel_workers_per_gather = 0";
    client.set_statement_limit(Some(STATEMENT_LIMIT));
    client.batch_execute(ready)?;
    let pid = client.query_one("SELECT pg_catalog.pg_backend_pid()", &[])?.try_get(0)?;
    Ok((client, pid))
}

impl Connection {
    /// Returns the client and the number of its connection.
    ///
    /// # Errors
    /// [`ProbeError::Lost`]: there is none now. A new one is on its way.
    fn client(&mut self) -> Result<(&mut Client, u64), ProbeError> {
        if let State::Lost { why, due, attempt } = &mut self.state {
            match attempt.take_if(|attempt| attempt.is_finished()).map(JoinHandle::join) {
                Some(Ok(Ok((client, pid)))) => {
                    self.cost.replace_backend(self.backend, pid);
                    (self.backend, self.number) = (pid, self.number + 1);
                    self.state = State::Open(Box::new(client));
                }
                Some(Ok(Err(again))) => {
                    (*why, *due) = (again, Instant::now() + PAUSE);
                }
                Some(Err(_)) => *due = Instant::now() + PAUSE,
                None if attempt.is_none() && *due <= Instant::now() => {
                    let target = self.target.clone();
                    let thread = std::thread::Builder::new().name("telemetry again".into());
                    *attempt = thread.spawn(move || connect(&target)).ok();
                }
                None => {}
            }
        }
        match &mut self.state {
            State::Open(client) => Ok((client, self.number)),
            State::Lost { why, .. } => Err(ProbeError::Lost(Box::new(why.clone()))),
        }
    }

    /// Does `work` with the client.
    fn with<T>(
        &mut self,
        work: impl FnOnce(&mut Client, u64) -> Result<T, tokio_postgres::Error>,
    ) -> Result<T, ProbeError> {
        let (client, number) = self.client()?;
        let error = match work(client, number) {
            Ok(done) => return Ok(done),
            Err(error) => error,
        };
        let ends = [SqlState::ADMIN_SHUTDOWN, SqlState::CRASH_SHUTDOWN];
        let is_over = client.is_closed()
            || error.is_closed()
            || error.code().is_some_and(|code| ends.contains(code));
        if !is_over {
            return Err(error.into());
        }
        let why = ProbeError::from(error);
        self.state = State::Lost { why: why.clone(), due: Instant::now(), attempt: None };
        Err(ProbeError::Lost(Box::new(why)))
    }
}

impl TelemetrySession {
    /// Connects, and has what the backend costs counted among what watching costs.
    pub(super) fn open(target: &Target, cost: &Arc<ObserverCost>) -> Result<Self, ProbeError> {
        let (client, backend) = connect(target)?;
        cost.add_backend(backend);
        let (target, cost) = (target.clone(), Arc::clone(cost));
        let state = State::Open(Box::new(client));
        let connection = Connection { target, cost, state, backend, number: 0 };
        Ok(Self(Arc::new(Mutex::new(connection))))
    }

    fn lock(&self) -> MutexGuard<'_, Connection> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the rows of `query`.
    ///
    /// # Errors
    /// [`ProbeError::Lost`]: the connection is lost, and made anew meanwhile.
    /// [`ProbeError::Query`]: the server refuses the query.
    pub(super) fn rows(
        &self,
        query: &mut Query,
        values: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, ProbeError> {
        self.lock().with(|client, number| {
            let statement = query.on(client, number)?;
            client.query(&statement, values)
        })
    }

    /// Returns the rows of a query that is asked once.
    pub(super) fn rows_once(
        &self,
        query: &str,
        values: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, ProbeError> {
        self.lock().with(|client, _| client.query(query, values))
    }

    /// Returns the one row of a query that is asked once.
    pub(super) fn row_once(
        &self,
        query: &str,
        values: &[&(dyn ToSql + Sync)],
    ) -> Result<Row, ProbeError> {
        self.lock().with(|client, _| client.query_one(query, values))
    }

    /// Prepares `query`: one that this server does not know is refused now.
    pub(super) fn prepare(&self, query: impl Into<String>) -> Result<Query, ProbeError> {
        let mut query = Query { text: query.into(), prepared: None };
        self.lock().with(|client, number| query.on(client, number))?;
        Ok(query)
    }

    /// Whether the server has a view of that name.
    pub(super) fn has_relation(&self, name: &str) -> Result<bool, ProbeError> {
        let row = self.row_once("SELECT pg_catalog.to_regclass($1) IS NOT NULL", &[&name]);
        Ok(row?.try_get(0)?)
    }

    /// The schema of an extension that is there; on a server of pgdyno's own it is created if need
    /// be.
    pub(super) fn extension(&self, name: &str, create: bool) -> Result<Option<String>, ProbeError> {
        if create {
            let create = format!(
                "SET client_min_messages = 'error'; \
                 CREATE EXTENSION IF NOT EXISTS {name} SCHEMA public"
            );
            self.lock().with(|client, _| client.batch_execute(&create))?;
        }
        let rows = self.rows_once(
            "SELECT n.nspname::text FROM pg_catalog.pg_extension e \
             JOIN pg_catalog.pg_namespace n ON n.oid = e.extnamespace \
             WHERE e.extname = $1",
            &[&name],
        )?;
        let schema: Option<String> = rows.first().map(|row| row.try_get(0)).transpose()?;
        Ok(schema.map(|schema| escape_identifier(&schema)))
    }
}
