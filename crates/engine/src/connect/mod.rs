//! Connecting: sockets, encryption, start-up and authentication, all within a time limit. Then the socket no longer
//! blocks.

mod error;
mod handshake;
mod stream;

use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use pgdyno_model::target::{Address, Servers, SslMode, Target};
use pgdyno_tls::Connector;
use pgdyno_wire::frontend;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

pub use error::ConnectError;
pub use stream::{Stream, TlsStream};

use handshake::Handshake;

/// How long a connection may take from the first packet to the first `ReadyForQuery`.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// A session, ready for its first command, its socket not blocking.
#[derive(Debug)]
pub struct Connection {
    /// The socket.
    pub stream: Stream,
    /// What a cancel request names: the backend's process id and its secret; none if the server gave none.
    pub key: Option<(u32, Vec<u8>)>,
}

/// A time limit, from when it was set.
#[derive(Clone, Copy)]
struct Limit {
    end: Instant,
    span: Duration,
}

impl Limit {
    fn new(span: Duration) -> Self {
        Self { end: Instant::now() + span, span }
    }

    fn left(self) -> Duration {
        self.end.saturating_duration_since(Instant::now())
    }
}

/// How one attempt goes about encryption.
#[derive(Clone, Copy)]
enum Encryption<'a> {
    /// Without.
    No,
    /// Only if the server takes it.
    IfTaken(&'a Connector),
    /// Or not at all.
    Must(&'a Connector),
}

/// An attempt that failed.
struct Failed {
    error: ConnectError,
    /// Whether TLS was being spoken when it did.
    encrypted: bool,
}

/// Connects to one of `servers`, within `limit` each, or within the time that they themselves allow; `below` as
/// [`Servers::find`] has it. Also the one that it was.
///
/// # Errors
/// As [`connect`]; of several servers [`ConnectError::NoneServes`].
pub fn connect_any(
    servers: &Servers,
    limit: Duration,
    below: impl FnMut(usize) -> usize,
) -> Result<(Connection, Target), ConnectError> {
    let found = servers.find(below, |target| connect(target, limit), ConnectError::ends_search);
    found.map_err(|mut errors| match errors.len() {
        1 => errors.remove(0),
        _ => ConnectError::NoneServes { errors },
    })
}

/// Connects to `target` within `limit`, or within the time that the target itself allows.
///
/// # Errors
/// No server there, a server that refuses or is not trusted, a proof of identity that cannot be given, or the time limit.
pub fn connect(target: &Target, limit: Duration) -> Result<Connection, ConnectError> {
    let limit = Limit::new(target.connect_timeout.unwrap_or(limit));
    let mode = match target.address {
        Address::Unix { .. } => SslMode::Disable,
        Address::Tcp { .. } => target.tls.mode,
    };
    if mode == SslMode::Disable {
        return attempt(target, limit, Encryption::No).map_err(|failed| failed.error);
    }
    let connector = Connector::shared(&target.tls)
        .map_err(|cause| ConnectError::Tls { address: target.address.clone(), cause })?;
    match mode {
        SslMode::Allow => attempt(target, limit, Encryption::No).or_else(|plain| {
            if !plain.may_depend_on_encryption() {
                return Err(plain.error);
            }
            attempt(target, limit, Encryption::Must(&connector)).map_err(|failed| match failed.error {
                ConnectError::NoTls { .. } => plain.error,
                error => error,
            })
        }),
        SslMode::Prefer => attempt(target, limit, Encryption::IfTaken(&connector)).or_else(|failed| {
            // A server that answers the request for TLS with an error knows of no such thing.
            let knows_no_tls = matches!(failed.error, ConnectError::Unexpected { tag: b'E', .. });
            if !(knows_no_tls || failed.encrypted && failed.may_depend_on_encryption()) {
                return Err(failed.error);
            }
            // Should that fail too, what stood in the way of the better one is worth more.
            attempt(target, limit, Encryption::No).map_err(|_| failed.error)
        }),
        _ => attempt(target, limit, Encryption::Must(&connector)).map_err(|failed| failed.error),
    }
}

impl Failed {
    /// Whether the other kind of connection could fare better.
    fn may_depend_on_encryption(&self) -> bool {
        match &self.error {
            // Class 28: what pg_hba.conf says may differ.
            ConnectError::Server { error, .. } => error.code.starts_with("28"),
            ConnectError::Tls { .. } | ConnectError::Lost { .. } | ConnectError::Authentication { .. } => {
                true
            }
            _ => false,
        }
    }
}

fn attempt(target: &Target, limit: Limit, encryption: Encryption<'_>) -> Result<Connection, Failed> {
    let stream = open(&target.address, target.host_address, limit)
        .map_err(|error| Failed { error, encrypted: false })?;
    let mut handshake = Handshake::new(target, stream, limit);
    let done = handshake.perform(encryption);
    done.map_err(|error| Failed { error, encrypted: handshake.is_encrypted() })?;
    handshake.into_connection().map_err(|error| Failed { error, encrypted: false })
}

/// Asks the server of `target` to cancel what the session of `key` is doing, over a connection that is encrypted as the
/// session's is; waits for no answer, and at most `limit`.
///
/// # Errors
/// No connection, or it takes no bytes.
pub fn cancel(target: &Target, key: &(u32, Vec<u8>), limit: Duration) -> Result<(), ConnectError> {
    let limit = Limit::new(limit);
    let connector = match (&target.address, target.tls.mode) {
        (Address::Unix { .. }, _) | (_, SslMode::Disable | SslMode::Allow) => None,
        (Address::Tcp { .. }, _) => Some(
            Connector::shared(&target.tls)
                .map_err(|cause| ConnectError::Tls { address: target.address.clone(), cause })?,
        ),
    };
    let mut handshake = Handshake::new(target, open(&target.address, target.host_address, limit)?, limit);
    handshake.agree_on(match &connector {
        None => Encryption::No,
        Some(connector) if target.tls.mode == SslMode::Prefer => Encryption::IfTaken(connector),
        Some(connector) => Encryption::Must(connector),
    })?;
    let mut out = Vec::new();
    frontend::cancel_request(&mut out, key.0, &key.1)
        .map_err(|cause| ConnectError::Protocol { address: target.address.clone(), cause })?;
    handshake.send(&out)
}

/// A socket to `address`, or to `ip` where it is given in place of the host's name.
fn open(address: &Address, ip: Option<IpAddr>, limit: Limit) -> Result<Stream, ConnectError> {
    let refused = |cause| ConnectError::Refused { address: address.clone(), cause };
    match address {
        Address::Unix { .. } => {
            let Some(path) = address.socket_path() else { unreachable!("a Unix address has a path") };
            open_unix(&path, limit).map(Stream::Unix).map_err(|cause| match cause.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                    timeout(address, limit, "the connection request")
                }
                _ => refused(cause),
            })
        }
        Address::Tcp { host, port } => {
            let addresses: Vec<SocketAddr> = match ip {
                Some(ip) => vec![(ip, *port).into()],
                None => (host.as_str(), *port)
                    .to_socket_addrs()
                    .map_err(|cause| ConnectError::Resolve { host: host.clone(), cause })?
                    .collect(),
            };
            let mut failure = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
            for candidate in addresses {
                match open_tcp(candidate, limit) {
                    Ok(stream) => return Ok(Stream::Tcp(stream)),
                    Err(e) => failure = e,
                }
            }
            Err(match failure.kind() {
                io::ErrorKind::TimedOut => timeout(address, limit, "the connection request"),
                _ => refused(failure),
            })
        }
    }
}

fn open_tcp(address: SocketAddr, limit: Limit) -> io::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&address, limit.left().max(Duration::from_millis(1)))?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// Connects without blocking, for a server with a full queue would keep us waiting without limit.
fn open_unix(path: &Path, limit: Limit) -> io::Result<UnixStream> {
    let address = SocketAddrUnix::new(path)?;
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    loop {
        let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        match rustix::net::connect(&socket, &address) {
            Ok(()) => {
                let stream = UnixStream::from(socket);
                stream.set_nonblocking(false)?;
                return Ok(stream);
            }
            // The server's queue is full.
            Err(rustix::io::Errno::AGAIN) if !limit.left().is_zero() => {
                std::thread::sleep(Duration::from_millis(2));
            }
            Err(rustix::io::Errno::INTR) => {}
            Err(e) => return Err(e.into()),
        }
    }
}

fn timeout(address: &Address, limit: Limit, step: &'static str) -> ConnectError {
    ConnectError::Timeout { address: address.clone(), step, limit: limit.span }
}
