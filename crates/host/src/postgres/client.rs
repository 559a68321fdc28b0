//! A session for control: blocking calls that end when a signal comes, and take no more than an
//! honest server sends.
//!
//! The client library knows neither signals nor bounds, so its connection runs on [`Guarded`]
//! bytes. A call that is given up breaks the session, after a request to the server to cancel what
//! it was at.

use std::future::{Future, poll_fn};
use std::io::{self, Cursor, Write};
use std::ops::{Deref, DerefMut};
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use futures_util::SinkExt as _;
use pgdyno_model::target::Target;
use pgdyno_wire::auth::Gate;
use pgdyno_wire::inspect::Inspector;
use postgres::error::DbError;
use postgres::types::ToSql;
use postgres::{Error, Row, SimpleQueryMessage, Statement, ToStatement};
use tokio::runtime::Runtime;
use tokio_postgres::config::{Config, SslMode, SslNegotiation};
use tokio_postgres::{AsyncMessage, Connection, CopyInSink};

use super::control::NoticeHandler;
use super::transport::{Encrypted, Encryption, GivenUp, Guarded, OpenError, Reason, open, within};
use crate::interruption;

/// How often a call that waits looks for a signal.
const LOOK: Duration = Duration::from_millis(50);

/// How long a cancel request or a goodbye may take.
const FAREWELL: Duration = Duration::from_millis(300);

/// Bytes of a COPY that are sent together.
const COPY_BUFFER: usize = 64 * 1024;

/// Why there is no session.
#[derive(Debug)]
pub(super) enum ConnectFailure {
    Open(OpenError),
    /// The server refused, or broke the protocol; whether over an encrypted connection.
    Session(Error, bool),
    GivenUp(Reason),
}

/// A session with a server.
pub struct Client {
    // First, so that the connection learns of the end before it is dropped.
    client: tokio_postgres::Client,
    link: Link,
}

/// What carries a session.
struct Link {
    runtime: Option<Runtime>,
    connection: Option<Connection<Guarded, Guarded>>,
    given_up: GivenUp,
    notices: Option<NoticeHandler>,
    statement_limit: Option<Duration>,
    cancel: CancelToken,
}

/// What a request to cancel a session's statement needs.
#[derive(Clone)]
pub struct CancelToken {
    token: tokio_postgres::CancelToken,
    target: Target,
    is_encrypted: bool,
}

impl CancelToken {
    /// Asks the server to cancel what the session is doing, and waits for no answer.
    ///
    /// # Errors
    /// No connection, or it takes no bytes.
    pub fn cancel_query(&self) -> io::Result<()> {
        let runtime = runtime()?;
        let sent = runtime.block_on(within(FAREWELL, self.send()));
        runtime.shutdown_background();
        sent.unwrap_or_else(|| Err(Reason::Late(FAREWELL).into()))
    }

    async fn send(&self) -> io::Result<()> {
        let encryption = match self.is_encrypted {
            true => Encryption::Must(
                pgdyno_tls::Connector::shared(&self.target.tls).map_err(io::Error::other)?,
            ),
            false => Encryption::No,
        };
        let socket = open(&self.target, &encryption).await.map_err(|e| match e {
            OpenError::Io(e) => e,
            OpenError::Tls(e) => io::Error::other(e),
            OpenError::NoTls | OpenError::KnowsNoTls => io::ErrorKind::Unsupported.into(),
        })?;
        let inspector = Inspector::new(Gate::default());
        let stream = Guarded { socket, inspector, given_up: GivenUp::default() };
        self.token.cancel_query_raw(stream, Encrypted).await.map_err(io::Error::other)
    }
}

fn runtime() -> io::Result<Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()
}

/// Waits for `poll` until it is ready, or `given_up` because of a signal or because `limit` is
/// over.
async fn watched<T>(
    began: Instant,
    limit: Option<Duration>,
    given_up: &GivenUp,
    mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>,
) -> T {
    let mut look = pin!(tokio::time::sleep(Duration::ZERO));
    poll_fn(|context| {
        while look.as_mut().poll(context).is_ready() {
            look.as_mut().reset(tokio::time::Instant::now() + LOOK);
            if interruption::ends(began) {
                given_up.set(Reason::Interrupted);
            } else if let Some(limit) = limit.filter(|limit| began.elapsed() > *limit) {
                given_up.set(Reason::Late(limit));
            }
        }
        poll(context)
    })
    .await
}

impl Client {
    /// Opens a session as `config` says, from the first packet to the first `ReadyForQuery` by
    /// `end`.
    pub(super) fn connect(
        target: &Target,
        mut config: Config,
        encryption: &Encryption,
        notices: Option<NoticeHandler>,
        limit: Duration,
    ) -> Result<Self, ConnectFailure> {
        let began = Instant::now();
        let runtime = runtime().map_err(|e| ConnectFailure::Open(e.into()))?;
        let given_up = GivenUp::default();
        let connected = runtime.block_on(async {
            let mut connecting = pin!(async {
                let socket = open(target, encryption).await.map_err(ConnectFailure::Open)?;
                let is_encrypted = socket.is_encrypted();
                config.ssl_mode(if is_encrypted { SslMode::Require } else { SslMode::Disable });
                config.ssl_negotiation(SslNegotiation::Direct);
                let gate = Gate::new(target.require_auth.clone(), !socket.is_public());
                let given_up = given_up.clone();
                let stream = Guarded { socket, inspector: Inspector::new(gate), given_up };
                let connected = config.connect_raw(stream, Encrypted).await;
                let (client, connection) =
                    connected.map_err(|e| ConnectFailure::Session(e, is_encrypted))?;
                Ok((client, connection, is_encrypted))
            });
            watched(began, Some(limit), &given_up, |context| match given_up.reason() {
                Some(reason) => Poll::Ready(Err(ConnectFailure::GivenUp(reason))),
                None => connecting.as_mut().poll(context),
            })
            .await
        });
        match connected {
            Ok((client, connection, is_encrypted)) => {
                let token = client.cancel_token();
                let cancel = CancelToken { token, target: target.clone(), is_encrypted };
                let link = Link {
                    runtime: Some(runtime),
                    connection: Some(connection),
                    given_up,
                    notices,
                    statement_limit: None,
                    cancel,
                };
                Ok(Self { client, link })
            }
            Err(failure) => {
                // A host's name may still be looked up; nobody waits for that.
                runtime.shutdown_background();
                Err(failure)
            }
        }
    }

    /// Gives up statements that take longer; by default none are.
    pub fn set_statement_limit(&mut self, limit: Option<Duration>) {
        self.link.statement_limit = limit;
    }

    /// What cancels this session's statements from another thread.
    #[must_use]
    pub fn cancel_token(&self) -> CancelToken {
        self.link.cancel.clone()
    }

    /// Whether the session is over.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.client.is_closed()
    }

    /// Executes a statement and returns its rows.
    ///
    /// # Errors
    /// The server's, the connection's, or that it was given up.
    pub fn query<T>(&mut self, query: &T, params: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>, Error>
    where
        T: ?Sized + ToStatement,
    {
        self.link.block_on(self.client.query(query, params))
    }

    /// Executes a statement that returns one row.
    ///
    /// # Errors
    /// As [`Client::query`]; another number of rows.
    pub fn query_one<T>(&mut self, query: &T, params: &[&(dyn ToSql + Sync)]) -> Result<Row, Error>
    where
        T: ?Sized + ToStatement,
    {
        self.link.block_on(self.client.query_one(query, params))
    }

    /// Executes a statement that returns one row at most.
    ///
    /// # Errors
    /// As [`Client::query`]; several rows.
    pub fn query_opt<T>(
        &mut self,
        query: &T,
        params: &[&(dyn ToSql + Sync)],
    ) -> Result<Option<Row>, Error>
    where
        T: ?Sized + ToStatement,
    {
        self.link.block_on(self.client.query_opt(query, params))
    }

    /// Executes a statement and returns the number of rows that it changed.
    ///
    /// # Errors
    /// As [`Client::query`].
    pub fn execute<T>(&mut self, query: &T, params: &[&(dyn ToSql + Sync)]) -> Result<u64, Error>
    where
        T: ?Sized + ToStatement,
    {
        self.link.block_on(self.client.execute(query, params))
    }

    /// Executes statements without parameters, and drops their results.
    ///
    /// # Errors
    /// As [`Client::query`].
    pub fn batch_execute(&mut self, query: &str) -> Result<(), Error> {
        self.link.block_on(self.client.batch_execute(query))
    }

    /// Executes statements without parameters; their results are text.
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
    pub fn copy_in<T>(&mut self, query: &T) -> Result<CopyInWriter<'_>, Error>
    where
        T: ?Sized + ToStatement,
    {
        let sink = self.link.block_on(self.client.copy_in(query))?;
        Ok(CopyInWriter { link: &mut self.link, sink: Box::pin(sink), buffer: Vec::new() })
    }

    /// Begins a transaction, which is rolled back unless it is committed.
    ///
    /// # Errors
    /// As [`Client::query`].
    pub fn transaction(&mut self) -> Result<Transaction<'_>, Error> {
        self.batch_execute("BEGIN")?;
        Ok(Transaction { client: self, done: false })
    }
}

impl Link {
    /// Waits for `future`, and for what the server says besides.
    fn block_on<T>(&mut self, future: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
        let Self { runtime, connection, given_up, notices, statement_limit, cancel } = self;
        let Some(runtime) = runtime else {
            unreachable!("only a session that is dropped has none")
        };
        let was_open = connection.is_some();
        let mut future = pin!(future);
        let result =
            runtime.block_on(watched(Instant::now(), *statement_limit, given_up, |context| {
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
            }));
        if was_open && connection.is_none() && given_up.reason().is_some() {
            // Best effort: where it fails, the statement ends by itself.
            let _ = runtime.block_on(within(FAREWELL, cancel.send()));
        }
        result
    }
}

/// Lets `connection` go on; ready when it is over, with the error that ended it.
fn poll_messages(
    connection: &mut Connection<Guarded, Guarded>,
    notices: Option<&NoticeHandler>,
    context: &mut Context<'_>,
) -> Poll<Option<Error>> {
    loop {
        match connection.poll_message(context) {
            Poll::Ready(Some(Ok(AsyncMessage::Notice(notice)))) => tell(notices, &notice),
            Poll::Ready(Some(Ok(_))) => {}
            Poll::Ready(Some(Err(error))) => return Poll::Ready(Some(error)),
            Poll::Ready(None) => return Poll::Ready(None),
            Poll::Pending => return Poll::Pending,
        }
    }
}

fn tell(notices: Option<&NoticeHandler>, notice: &DbError) {
    if let Some(notices) = notices {
        notices(notice);
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        let Some(runtime) = self.runtime.take() else { return };
        if let Some(connection) = &mut self.connection
            && self.given_up.reason().is_none()
        {
            // The client is gone: the connection says goodbye and ends.
            let notices = self.notices.as_ref();
            let farewell = poll_fn(|context| poll_messages(connection, notices, context));
            let _ = runtime.block_on(within(FAREWELL, farewell));
        }
        self.connection = None;
        runtime.shutdown_background();
    }
}

/// A transaction; dropped, it is rolled back.
pub struct Transaction<'a> {
    client: &'a mut Client,
    done: bool,
}

impl Transaction<'_> {
    /// Commits it.
    ///
    /// # Errors
    /// As [`Client::query`].
    pub fn commit(mut self) -> Result<(), Error> {
        self.done = true;
        self.client.batch_execute("COMMIT")
    }

    /// Rolls it back.
    ///
    /// # Errors
    /// As [`Client::query`].
    pub fn rollback(mut self) -> Result<(), Error> {
        self.done = true;
        self.client.batch_execute("ROLLBACK")
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
            // A session that is broken has rolled back already.
            let _ = self.client.batch_execute("ROLLBACK");
        }
    }
}

/// A COPY to the server. It ends with [`CopyInWriter::finish`]; dropped, it is aborted.
pub struct CopyInWriter<'a> {
    link: &'a mut Link,
    sink: Pin<Box<CopyInSink<Cursor<Vec<u8>>>>>,
    buffer: Vec<u8>,
}

impl CopyInWriter<'_> {
    /// Ends the COPY, and returns the number of rows.
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
