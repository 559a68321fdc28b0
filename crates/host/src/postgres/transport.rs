//! The bytes of a control connection: a socket, encrypted or not, behind an [`Inspector`].

use std::future::{Future, Ready, ready};
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready as poll_ready};

use pgdyno_model::target::{Address, Target};
use pgdyno_tls::{Connector, TlsError, end_point};
use pgdyno_wire::inspect::Inspector;
use postgres::tls::{ChannelBinding, TlsConnect, TlsStream};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::TlsConnector;

/// PostgreSQL's request for TLS.
const SSL_REQUEST: [u8; 8] = [0, 0, 0, 8, 4, 210, 22, 47];

/// A socket to a server.
pub(super) enum Socket {
    Unix(UnixStream),
    Tcp(TcpStream),
    Tls(Box<tokio_rustls::client::TlsStream<TcpStream>>),
}

/// How one attempt goes about encryption.
#[derive(Clone)]
pub(super) enum Encryption {
    /// Without.
    No,
    /// Only if the server takes it.
    IfTaken(Connector),
    /// Or not at all.
    Must(Connector),
}

/// Why there is no socket.
#[derive(Debug)]
pub(super) enum OpenError {
    Io(io::Error),
    Tls(TlsError),
    /// The server does not take TLS.
    NoTls,
    /// What answers to the request for TLS does not know it.
    KnowsNoTls,
}

impl From<io::Error> for OpenError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Connects a socket to the server of `target`, encrypted as `encryption` says.
pub(super) async fn open(target: &Target, encryption: &Encryption) -> Result<Socket, OpenError> {
    let (host, port) = match &target.address {
        Address::Unix { .. } => {
            let path = target.address.socket_path().unwrap_or_default();
            return Ok(Socket::Unix(UnixStream::connect(path).await?));
        }
        Address::Tcp { host, port } => (host.as_str(), *port),
    };
    let addresses: Vec<SocketAddr> = match target.host_address {
        Some(ip) => vec![(ip, port).into()],
        None => tokio::net::lookup_host((host, port)).await?.collect(),
    };
    let mut failure = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
    for address in addresses {
        match TcpStream::connect(address).await {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                rustix::net::sockopt::set_socket_keepalive(&stream, true)
                    .map_err(io::Error::from)?;
                return encrypt(stream, host, encryption).await;
            }
            Err(e) => failure = e,
        }
    }
    Err(failure.into())
}

async fn encrypt(
    mut stream: TcpStream,
    host: &str,
    encryption: &Encryption,
) -> Result<Socket, OpenError> {
    let connector = match encryption {
        Encryption::No => return Ok(Socket::Tcp(stream)),
        Encryption::IfTaken(connector) | Encryption::Must(connector) => connector,
    };
    stream.write_all(&SSL_REQUEST).await?;
    // One byte, no more: what follows it is TLS already, or nobody's business.
    match (stream.read_u8().await?, encryption) {
        (b'S', _) => {}
        (b'N', Encryption::IfTaken(_)) => return Ok(Socket::Tcp(stream)),
        (b'N', _) => return Err(OpenError::NoTls),
        _ => return Err(OpenError::KnowsNoTls),
    }
    let name = connector.server_name(host).map_err(OpenError::Tls)?;
    let shaken = TlsConnector::from(connector.config()).connect(name, stream).await;
    match shaken {
        Ok(stream) => Ok(Socket::Tls(Box::new(stream))),
        Err(e) => match e.get_ref().and_then(|inner| inner.downcast_ref()) {
            Some(tls) => Err(OpenError::Tls(TlsError::handshake(tls))),
            None => Err(OpenError::Io(e)),
        },
    }
}

impl Socket {
    /// Whether others can read what is sent.
    pub(super) fn is_public(&self) -> bool {
        matches!(self, Self::Tcp(_))
    }

    pub(super) fn is_encrypted(&self) -> bool {
        matches!(self, Self::Tls(_))
    }
}

/// Calls the same method of whichever socket it is.
macro_rules! either {
    ($self:expr, $method:ident($($argument:expr),*)) => {
        match $self {
            Socket::Unix(s) => Pin::new(s).$method($($argument),*),
            Socket::Tcp(s) => Pin::new(s).$method($($argument),*),
            Socket::Tls(s) => Pin::new(s.as_mut()).$method($($argument),*),
        }
    };
}

/// Why a connection is given up that was good; set from outside.
#[derive(Clone, Debug, Default)]
pub(super) struct GivenUp(Arc<OnceLock<Reason>>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    Interrupted,
    /// The server did not answer in time.
    Late(std::time::Duration),
}

impl GivenUp {
    pub(super) fn set(&self, reason: Reason) {
        let _ = self.0.set(reason);
    }

    pub(super) fn reason(&self) -> Option<Reason> {
        self.0.get().copied()
    }

    fn check(&self) -> io::Result<()> {
        self.reason().map_or(Ok(()), |reason| Err(reason.into()))
    }
}

impl From<Reason> for io::Error {
    fn from(reason: Reason) -> Self {
        match reason {
            // Not of the kind Interrupted: that would be tried again.
            Reason::Interrupted => Self::other("interrupted by a signal"),
            Reason::Late(limit) => {
                Self::new(io::ErrorKind::TimedOut, format!("no answer within {limit:?}"))
            }
        }
    }
}

/// A socket whose bytes are inspected, and which can be given up.
pub(super) struct Guarded {
    pub(super) socket: Socket,
    pub(super) inspector: Inspector,
    pub(super) given_up: GivenUp,
}

impl AsyncRead for Guarded {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.given_up.check()?;
        let before = into.filled().len();
        let this = &mut *self;
        poll_ready!(either!(&mut this.socket, poll_read(context, into)))?;
        this.inspector.inspect(&into.filled()[before..]).map_err(io::Error::other)?;
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Guarded {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.given_up.check()?;
        either!(&mut self.socket, poll_write(context, bytes))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.given_up.check()?;
        either!(&mut self.socket, poll_flush(context))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        either!(&mut self.socket, poll_shutdown(context))
    }
}

impl TlsStream for Guarded {
    fn channel_binding(&self) -> ChannelBinding {
        let Socket::Tls(stream) = &self.socket else { return ChannelBinding::none() };
        let (_, tls) = stream.get_ref();
        let certificate = tls.peer_certificates().and_then(|chain| chain.first());
        certificate
            .and_then(|der| end_point(der))
            .map_or_else(ChannelBinding::none, ChannelBinding::tls_server_end_point)
    }
}

/// Stands where the client library would begin TLS: it has been spoken already.
pub(super) struct Encrypted;

impl TlsConnect<Guarded> for Encrypted {
    type Stream = Guarded;
    type Error = io::Error;
    type Future = Ready<io::Result<Guarded>>;

    fn connect(self, stream: Guarded) -> Self::Future {
        ready(Ok(stream))
    }
}

/// Finishes `future` within `limit`; none where it takes longer.
pub(super) async fn within<F: Future>(limit: std::time::Duration, future: F) -> Option<F::Output> {
    tokio::time::timeout(limit, future).await.ok()
}
