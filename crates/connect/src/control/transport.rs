//! The bytes of a control connection: a [`Stream`] for the client library, behind an
//! [`Inspector`].

use std::future::{Future, Ready, ready};
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::task::{Context, Poll, ready as poll_ready};
use std::time::{Duration, Instant};

use pgdyno_wire::auth::AuthError;
use pgdyno_wire::inspect::{InspectError, Inspector};
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::tls::{ChannelBinding, TlsConnect, TlsStream};

use super::wait::Waiting;
use crate::stream::Stream;
use crate::tls::end_point;

/// Why a connection that worked was given up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    Interrupted,
    /// The server did not answer within this time.
    Late(Duration),
    /// The statement waits for somebody else.
    Waits(Waiting),
}

impl From<Reason> for io::Error {
    fn from(reason: Reason) -> Self {
        match reason {
            // Not of kind Interrupted, since callers repeat such calls.
            Reason::Interrupted => Self::other("interrupted by a signal"),
            Reason::Late(limit) => {
                Self::new(io::ErrorKind::TimedOut, format!("no answer within {limit:?}"))
            }
            Reason::Waits(waiting) => Self::new(io::ErrorKind::TimedOut, waiting),
        }
    }
}

/// How a connection ended, shared with whoever waits for it: given up from outside, or refused by
/// the inspector.
#[derive(Clone, Debug, Default)]
pub(super) struct Outcome(Arc<Ending>);

#[derive(Debug, Default)]
struct Ending {
    reason: OnceLock<Reason>,
    backend: OnceLock<u32>,
    refusal: Mutex<Option<AuthError>>,
}

impl Outcome {
    /// Gives the connection up. Only the first reason counts.
    pub(super) fn set(&self, reason: Reason) {
        let _ = self.0.reason.set(reason);
    }

    /// Returns why the connection was given up, if it was.
    pub(super) fn reason(&self) -> Option<Reason> {
        self.0.reason.get().cloned()
    }

    /// Returns the id of the process that serves the session, or what a pooler gives for one.
    pub(super) fn backend(&self) -> Option<u32> {
        self.0.backend.get().copied()
    }

    /// Takes the demand of the server that the inspector refused.
    pub(super) fn take_refusal(&self) -> Option<AuthError> {
        self.0.refusal.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn refuse(&self, cause: AuthError) {
        *self.0.refusal.lock().unwrap_or_else(PoisonError::into_inner) = Some(cause);
    }

    fn check(&self) -> io::Result<()> {
        self.reason().map_or(Ok(()), |reason| Err(reason.into()))
    }
}

/// How long a server that takes no more bytes may take to say why.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// A socket whose incoming bytes are inspected, and which can be given up.
pub(super) struct Guarded {
    stream: AsyncFd<Stream>,
    inspector: Inspector,
    outcome: Outcome,
    /// Since when the server takes no more bytes.
    deaf_since: Option<Instant>,
}

impl Guarded {
    /// Wraps `stream`, which must not block. Call it within a runtime.
    #[expect(
        deprecated,
        reason = "its replacement is unsafe; a `Stream` owns its descriptor and never changes it"
    )]
    pub(super) fn new(stream: Stream, inspector: Inspector, outcome: Outcome) -> io::Result<Self> {
        Ok(Self { stream: AsyncFd::new(stream)?, inspector, outcome, deaf_since: None })
    }

    fn poll_receive(
        &mut self,
        context: &mut Context<'_>,
        into: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        // TLS may hold bytes that make no socket ready, so that reading comes before waiting.
        match self.stream.get_mut().read(into) {
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
            done => return Poll::Ready(done),
        }
        loop {
            let mut guard = poll_ready!(self.stream.poll_read_ready_mut(context))?;
            if let Ok(done) = guard.try_io(|stream| stream.get_mut().read(into)) {
                return Poll::Ready(done);
            }
        }
    }
}

impl AsyncRead for Guarded {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.outcome.check()?;
        let received = poll_ready!(self.poll_receive(context, into.initialize_unfilled()));
        let this = &mut *self;
        if !received.as_ref().is_ok_and(|count| *count > 0)
            && let Some(words) = this.inspector.last_words()
        {
            return Poll::Ready(Err(io::Error::other(words.to_string())));
        }
        let count = received?;
        let bytes = &into.initialize_unfilled()[..count];
        this.inspector.inspect(bytes).map_err(|refusal| match refusal {
            InspectError::Wire(cause) => io::Error::other(cause),
            InspectError::Authentication(cause) => {
                let error = io::Error::other(cause.to_string());
                this.outcome.refuse(cause);
                error
            }
        })?;
        if let Some(backend) = this.inspector.backend() {
            let _ = this.outcome.0.backend.set(backend);
        }
        into.advance(count);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Guarded {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.outcome.check()?;
        loop {
            let mut guard = poll_ready!(self.stream.poll_write_ready_mut(context))?;
            let Ok(done) = guard.try_io(|stream| stream.get_mut().write(bytes)) else { continue };
            let is_deaf = done.as_ref().is_err_and(|e| {
                matches!(e.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset)
            });
            // Its last words may be still to be read. Whoever waits asks again soon.
            if is_deaf && self.deaf_since.get_or_insert_with(Instant::now).elapsed() < LAST_WORDS {
                return Poll::Pending;
            }
            return Poll::Ready(done);
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        // A write is complete only once the socket took its bytes.
        Poll::Ready(self.outcome.check())
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream.get_mut().shutdown();
        Poll::Ready(Ok(()))
    }
}

impl TlsStream for Guarded {
    fn channel_binding(&self) -> ChannelBinding {
        let certificate = match self.stream.get_ref() {
            Stream::Tls(tls) => tls.server_certificate(),
            Stream::Unix(_) | Stream::Tcp(_) => None,
        };
        certificate
            .and_then(end_point)
            .map_or_else(ChannelBinding::none, ChannelBinding::tls_server_end_point)
    }
}

/// Takes the place of the client library's TLS, which is already in the stream.
pub(super) struct Encrypted;

impl TlsConnect<Guarded> for Encrypted {
    type Stream = Guarded;
    type Error = io::Error;
    type Future = Ready<io::Result<Guarded>>;

    fn connect(self, stream: Guarded) -> Self::Future {
        ready(Ok(stream))
    }
}

/// Finishes `future` within `limit`. Returns none if that takes longer.
pub(super) async fn within<F: Future>(limit: Duration, future: F) -> Option<F::Output> {
    tokio::time::timeout(limit, future).await.ok()
}

/// Returns a runtime for one session, which runs on the thread that waits.
pub(super) fn runtime() -> io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()
}
