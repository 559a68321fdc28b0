//! The client of a control session: blocking calls with bounds.
//!
//! The client library knows neither signals nor bounds on what a server may send, so it reads and
//! writes through [`Guarded`]. A call that is given up breaks the session, after a request to the
//! server to cancel its statement.

use std::future::{Future, poll_fn};
use std::io::{self, Cursor, Write};
use std::ops::{Deref, DerefMut};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use futures_util::SinkExt as _;
use pgdyno_model::target::{Address, Target};
use pgdyno_wire::auth::{AuthError, AuthPolicy};
use pgdyno_wire::inspect::Inspector;
use tokio::runtime::Runtime;
use tokio_postgres::config::{Config, SslMode, SslNegotiation};
use tokio_postgres::error::DbError;
use tokio_postgres::types::ToSql;
use tokio_postgres::{
    AsyncMessage, Connection, CopyInSink, Error, Row, SimpleQueryMessage, Statement, ToStatement,
};

use super::cancel::{CLOSE_LIMIT, CancelToken};
use super::error::{error_text, server_error};
use super::transport::{Encrypted, Guarded, Outcome, Reason, runtime, within};
use super::watcher::{Watch, Watcher};
use crate::error::ConnectError;
use crate::handshake::{Encryption, FailedAttempt, Handshake, with_encryption};
use crate::limit::Limit;
use crate::{interruption, socket};

/// How often a waiting call checks for a signal.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// How many bytes of a COPY are sent together.
const COPY_BUFFER: usize = 64 * 1024;

/// A function that receives the server's notices and warnings as they come.
pub type NoticeHandler = Arc<dyn Fn(&DbError) + Send + Sync>;

/// Values for the parameters of a statement.
pub(super) type Parameters<'a> = &'a [&'a (dyn ToSql + Sync)];

/// A session with a server.
pub struct Client {
    // Dropped before `link`, which then sends Terminate.
    client: tokio_postgres::Client,
    link: Link,
}

/// The connection and the runtime that carry a session.
struct Link {
    runtime: Option<Runtime>,
    connection: Option<Connection<Guarded, Guarded>>,
    outcome: Outcome,
    notices: Option<NoticeHandler>,
    statement_limit: Option<Duration>,
    /// How statements without a limit are watched.
    watch: Option<Watch>,
    cancel: CancelToken,
}

/// Polls until `poll` is ready. Sets the reason in `outcome` at a signal, when `limit` is over, and
/// when `watcher` says so.
async fn guard<T>(
    began: Instant,
    limit: Option<Duration>,
    mut watcher: Option<Watcher<'_>>,
    outcome: &Outcome,
    mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>,
) -> T {
    let mut tick = pin!(tokio::time::sleep(Duration::ZERO));
    poll_fn(|context| {
        while tick.as_mut().poll(context).is_ready() {
            tick.as_mut().reset(tokio::time::Instant::now() + POLL_INTERVAL);
            if interruption::ends(began) {
                outcome.set(Reason::Interrupted);
            } else if let Some(limit) = limit.filter(|limit| began.elapsed() > *limit) {
                outcome.set(Reason::Late(limit));
            } else if let Some(reason) = watcher.as_mut().and_then(Watcher::look) {
                outcome.set(reason);
            }
        }
        poll(context)
    })
    .await
}

impl Client {
    /// Opens a session for `target` with `config`, up to the first `ReadyForQuery` within `limit`.
    pub(super) fn connect(
        target: &Target,
        config: &Config,
        notices: Option<&NoticeHandler>,
        limit: Duration,
    ) -> Result<Self, ConnectError> {
        let began = Instant::now();
        let is_stopped = || interruption::ends(began);
        let limit = Limit::new(limit, &is_stopped);
        with_encryption(target, |encryption| {
            Self::attempt(target, config.clone(), encryption, notices.cloned(), limit)
        })
    }

    fn attempt(
        target: &Target,
        mut config: Config,
        encryption: Encryption<'_>,
        notices: Option<NoticeHandler>,
        limit: Limit<'_>,
    ) -> Result<Self, FailedAttempt> {
        let lost = |cause| ConnectError::Lost { address: target.address.clone(), cause };
        let runtime = runtime().map_err(|e| FailedAttempt::before_tls(lost(e)))?;
        let socket = socket::open(target, limit).map_err(FailedAttempt::before_tls)?;
        let mut handshake = Handshake::new(target, socket, limit);
        let negotiated = handshake.negotiate_encryption(encryption);
        let is_encrypted = handshake.is_encrypted();
        let failed = |error| FailedAttempt { error, is_encrypted };
        negotiated.map_err(failed)?;
        let stream = handshake.into_session().map_err(failed)?.stream;
        if matches!(target.address, Address::Tcp { .. }) {
            let kept = rustix::net::sockopt::set_socket_keepalive(&stream, true);
            kept.map_err(|e| failed(lost(e.into())))?;
        }
        config.ssl_mode(if is_encrypted { SslMode::Require } else { SslMode::Disable });
        config.ssl_negotiation(SslNegotiation::Direct);
        let gate = AuthPolicy::new(target.require_auth.clone(), !stream.is_public());
        let (outcome, began, left) = (Outcome::default(), Instant::now(), limit.left());
        let connected = runtime.block_on(async {
            let guarded = Guarded::new(stream, Inspector::new(gate), outcome.clone());
            let mut connecting = pin!(config.connect_raw(guarded.map_err(lost)?, Encrypted));
            guard(began, Some(left), None, &outcome, |context| match outcome.reason() {
                Some(Reason::Interrupted) => {
                    Poll::Ready(Err(ConnectError::Interrupted { address: target.address.clone() }))
                }
                Some(Reason::Late(_) | Reason::Waits(_)) => {
                    Poll::Ready(Err(limit.timeout(&target.address, "start-up")))
                }
                None => connecting
                    .as_mut()
                    .poll(context)
                    .map_err(|error| connect_error(target, &error, &outcome)),
            })
            .await
        });
        match connected {
            Ok((client, connection)) => {
                let cancel = CancelToken::new(client.cancel_token(), target.clone(), is_encrypted);
                let link = Link {
                    runtime: Some(runtime),
                    connection: Some(connection),
                    outcome,
                    notices,
                    statement_limit: None,
                    watch: None,
                    cancel,
                };
                Ok(Self { client, link })
            }
            Err(error) => {
                runtime.shutdown_background();
                Err(failed(error))
            }
        }
    }

    /// Gives up statements that take longer than `limit`. By default there is no limit.
    pub fn set_statement_limit(&mut self, limit: Option<Duration>) {
        self.link.statement_limit = limit;
    }

    /// Has what statements without a limit wait for be asked by `watch`; by nobody at first.
    pub(super) fn watch(&mut self, watch: Option<Watch>) {
        self.link.watch = watch;
    }

    /// Sets whether statements are given up once the server has answered nobody for a minute, in a
    /// patient process too ([`super::wait::be_patient`]).
    pub(super) fn end_silence(&mut self, ends_silence: bool) {
        if let Some(watch) = &mut self.link.watch {
            watch.ends_silence = ends_silence;
        }
    }

    /// Returns the server's version, as it announced it when the session began: `15.4 (Debian …)`.
    pub(super) fn announced_version(&self) -> Option<&str> {
        self.link.connection.as_ref()?.parameter("server_version")
    }

    /// Returns a token by which another thread can cancel this session's statement.
    pub fn cancel_token(&self) -> CancelToken {
        self.link.cancel.clone()
    }

    /// Whether the session is over.
    pub fn is_closed(&self) -> bool {
        self.client.is_closed()
    }

    /// Executes a statement and returns its rows.
    ///
    /// # Errors
    /// The server's or the connection's, or the call was given up.
    pub fn query(
        &mut self,
        query: &(impl ToStatement + ?Sized),
        params: Parameters<'_>,
    ) -> Result<Vec<Row>, Error> {
        self.link.block_on(self.client.query(query, params))
    }

    /// Executes a statement that returns one row.
    ///
    /// # Errors
    /// As [`Client::query`]; also if there is not exactly one row.
    pub fn query_one(
        &mut self,
        query: &(impl ToStatement + ?Sized),
        params: Parameters<'_>,
    ) -> Result<Row, Error> {
        self.link.block_on(self.client.query_one(query, params))
    }

    /// Executes a statement that returns at most one row.
    ///
    /// # Errors
    /// As [`Client::query`]; also if there are several rows.
    pub fn query_opt(
        &mut self,
        query: &(impl ToStatement + ?Sized),
        params: Parameters<'_>,
    ) -> Result<Option<Row>, Error> {
        self.link.block_on(self.client.query_opt(query, params))
    }

    /// Executes a statement and returns how many rows it changed.
    ///
    /// # Errors
    /// As [`Client::query`].
    pub fn execute(
        &mut self,
        query: &(impl ToStatement + ?Sized),
        params: Parameters<'_>,
    ) -> Result<u64, Error> {
        self.link.block_on(self.client.execute(query, params))
    }

    /// Executes statements without parameters and discards their results.
    ///
    /// # Errors
    /// As [`Client::query`].
    pub fn batch_execute(&mut self, query: &str) -> Result<(), Error> {
        self.link.block_on(self.client.batch_execute(query))
    }

    /// Executes statements without parameters and returns their results as text.
    ///
    /// # Errors
    /// As [`Client::query`].
    pub fn simple_query(&mut self, query: &str) -> Result<Vec<SimpleQueryMessage>, Error> {
        self.link.block_on(self.client.simple_query(query))
    }

    /// Prepares a statement.
    ///
    /// # Errors
    /// As [`Client::query`].
    pub fn prepare(&mut self, query: &str) -> Result<Statement, Error> {
        self.link.block_on(self.client.prepare(query))
    }

    /// Begins a COPY to the server.
    ///
    /// # Errors
    /// As [`Client::query`].
    pub fn copy_in(&mut self, query: &str) -> Result<CopyInWriter<'_>, Error> {
        let sink = self.link.block_on(self.client.copy_in(query))?;
        Ok(CopyInWriter { link: &mut self.link, sink: Box::pin(sink), buffer: Vec::new() })
    }

    /// Begins a transaction, which is rolled back on drop unless it was committed.
    ///
    /// # Errors
    /// As [`Client::query`].
    pub fn transaction(&mut self) -> Result<Transaction<'_>, Error> {
        self.batch_execute("BEGIN")?;
        Ok(Transaction { client: self, done: false })
    }
}

impl Link {
    /// Waits for `future`, and handles the server's notices meanwhile.
    fn block_on<T>(&mut self, future: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
        let Self { runtime, connection, outcome, notices, statement_limit, watch, cancel } = self;
        let Some(runtime) = runtime else { unreachable!("only a dropped session has no runtime") };
        let was_open = connection.is_some();
        let mut future = pin!(future);
        let watch = watch.as_ref().filter(|_| statement_limit.is_none());
        let watcher = watch.zip(outcome.backend()).map(|(watch, pid)| Watcher::new(watch, pid));
        let result = runtime.block_on(guard(
            Instant::now(),
            *statement_limit,
            watcher,
            outcome,
            |context| {
                if let Some(open) = connection {
                    match poll_messages(open, notices.as_ref(), context) {
                        Poll::Ready(Some(error)) => {
                            *connection = None;
                            return Poll::Ready(Err(error));
                        }
                        Poll::Ready(None) => *connection = None,
                        Poll::Pending => {}
                    }
                }
                future.as_mut().poll(context)
            },
        ));
        if was_open && connection.is_none() && outcome.reason().is_some() {
            // Best effort: if the request fails, the statement ends by itself.
            let _ = cancel.send(runtime);
        }
        result
    }
}

/// Drives `connection`. Ready when it is over, with the error that ended it.
fn poll_messages(
    connection: &mut Connection<Guarded, Guarded>,
    notices: Option<&NoticeHandler>,
    context: &mut Context<'_>,
) -> Poll<Option<Error>> {
    loop {
        match connection.poll_message(context) {
            Poll::Ready(Some(Ok(AsyncMessage::Notice(notice)))) => {
                notices.into_iter().for_each(|notices| notices(&notice));
            }
            Poll::Ready(Some(Ok(_))) => {}
            Poll::Ready(Some(Err(error))) => return Poll::Ready(Some(error)),
            Poll::Ready(None) => return Poll::Ready(None),
            Poll::Pending => return Poll::Pending,
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        let Some(runtime) = self.runtime.take() else { return };
        if let Some(connection) = &mut self.connection
            && self.outcome.reason().is_none()
        {
            // The client was dropped, so the connection sends Terminate and ends.
            let notices = self.notices.as_ref();
            let ended = poll_fn(|context| poll_messages(connection, notices, context));
            let _ = runtime.block_on(within(CLOSE_LIMIT, ended));
        }
        self.connection = None;
        runtime.shutdown_background();
    }
}

/// Converts the client library's error of connecting.
fn connect_error(target: &Target, error: &Error, outcome: &Outcome) -> ConnectError {
    let (address, user) = (target.address.clone(), target.user.clone());
    if let Some(cause) = outcome.take_refusal() {
        return ConnectError::Authentication { address, user, cause };
    }
    if let Some(db) = error.as_db_error() {
        let (database, error) = (target.database.clone(), Box::new(server_error(db)));
        return ConnectError::Server { address, user, database, error };
    }
    // The client library has no other sign of a missing password than these words.
    let is_missing = |cause: &dyn std::error::Error| cause.to_string() == "password missing";
    if target.password.is_none() && std::error::Error::source(error).is_some_and(is_missing) {
        let cause = AuthError::NoPassword { method: "method not known" };
        return ConnectError::Authentication { address, user, cause };
    }
    ConnectError::Lost { address, cause: io::Error::other(error_text(error)) }
}

/// A transaction, which is rolled back on drop.
pub struct Transaction<'a> {
    client: &'a mut Client,
    done: bool,
}

impl Transaction<'_> {
    /// Commits the transaction.
    ///
    /// # Errors
    /// As [`Client::query`].
    pub fn commit(mut self) -> Result<(), Error> {
        self.done = true;
        self.client.batch_execute("COMMIT")
    }
}

impl Deref for Transaction<'_> {
    type Target = Client;

    fn deref(&self) -> &Client {
        self.client
    }
}

impl DerefMut for Transaction<'_> {
    fn deref_mut(&mut self) -> &mut Client {
        self.client
    }
}

impl Drop for Transaction<'_> {
    fn drop(&mut self) {
        if !self.done {
            // The server rolls back by itself if the session is broken.
            let _ = self.client.batch_execute("ROLLBACK");
        }
    }
}

/// A COPY to the server. [`CopyInWriter::finish`] completes it; a drop aborts it.
pub struct CopyInWriter<'a> {
    link: &'a mut Link,
    sink: Pin<Box<CopyInSink<Cursor<Vec<u8>>>>>,
    buffer: Vec<u8>,
}

impl CopyInWriter<'_> {
    /// Completes the COPY and returns the number of rows.
    ///
    /// # Errors
    /// As [`Client::query`].
    pub fn finish(mut self) -> Result<u64, Error> {
        self.send()?;
        self.link.block_on(self.sink.as_mut().finish())
    }

    fn send(&mut self) -> Result<(), Error> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let bytes = Cursor::new(std::mem::take(&mut self.buffer));
        self.link.block_on(self.sink.send(bytes))
    }
}

impl Write for CopyInWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.buffer.len() + bytes.len() > COPY_BUFFER {
            self.flush()?;
        }
        self.buffer.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.send().map_err(io::Error::other)
    }
}
