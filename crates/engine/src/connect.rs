//! Connecting: sockets, start-up and authentication, all within a time limit. Then the socket no longer blocks.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use pgdyno_model::target::{Address, Target};
use pgdyno_wire::auth::{AuthError, Exchange, Progress};
use pgdyno_wire::backend::BackendKey;
use pgdyno_wire::{Message, WireError, frontend};
use rustix::fd::{AsFd, BorrowedFd};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use thiserror::Error;

use crate::client::ServerError;

/// How long a connection may take from the first packet to the first `ReadyForQuery`.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The longest message taken before a connection is ready (bytes): an honest one is far below.
const LONGEST_START_UP_MESSAGE: usize = 64 * 1024;

/// A socket to a server.
#[derive(Debug)]
pub enum Stream {
    /// A Unix socket.
    Unix(UnixStream),
    /// TCP.
    Tcp(TcpStream),
}

/// A session, ready for its first command, its socket not blocking.
#[derive(Debug)]
pub struct Connection {
    /// The socket.
    pub stream: Stream,
    /// What a cancel request names: the backend's process id and its secret; none if the server gave none.
    pub key: Option<(u32, Vec<u8>)>,
}

/// Why there is no connection.
#[derive(Debug, Error)]
pub enum ConnectError {
    /// The host's name means nothing.
    #[error("cannot find host {host}: {cause}")]
    Resolve {
        /// The name.
        host: String,
        /// What the resolver said.
        cause: io::Error,
    },
    /// No socket could be had.
    #[error("cannot connect to {address}: {cause}")]
    Refused {
        /// Where to.
        address: Address,
        /// What the system said.
        cause: io::Error,
    },
    /// The time limit passed.
    #[error("cannot connect to {address}: no answer to {step} within {limit:?}")]
    Timeout {
        /// Where to.
        address: Address,
        /// What was under way.
        step: &'static str,
        /// The limit.
        limit: Duration,
    },
    /// The server said no.
    #[error("{address} refuses user {user} on database {database}: {error}")]
    Server {
        /// Where to.
        address: Address,
        /// The role.
        user: String,
        /// The database.
        database: String,
        /// What the server said.
        error: Box<ServerError>,
    },
    /// The server wants a proof that cannot be given.
    #[error("cannot authenticate to {address} as {user}: {cause}")]
    Authentication {
        /// Where to.
        address: Address,
        /// The role.
        user: String,
        /// Why not.
        cause: AuthError,
    },
    /// The connection broke during start-up.
    #[error("lost the connection to {address} during start-up: {cause}")]
    Lost {
        /// Where to.
        address: Address,
        /// What the system said.
        cause: io::Error,
    },
    /// What answered does not speak the protocol, or start-up parameters cannot be sent.
    #[error("cannot speak PostgreSQL's protocol with {address}: {cause}")]
    Protocol {
        /// Where to.
        address: Address,
        /// What is wrong.
        cause: WireError,
    },
    /// A message that has no place in start-up.
    #[error("cannot speak PostgreSQL's protocol with {address}: message `{}` during start-up", tag.escape_ascii())]
    Unexpected {
        /// Where to.
        address: Address,
        /// Its type byte.
        tag: u8,
    },
}

impl ConnectError {
    /// What can be done about it.
    #[must_use]
    pub fn help(&self) -> Option<String> {
        match self {
            Self::Resolve { .. } => Some("check the host's name".to_owned()),
            Self::Refused { cause, address } => match cause.kind() {
                io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => Some(match address {
                    Address::Unix { .. } => {
                        "is the server running, with this socket directory and port?".to_owned()
                    }
                    Address::Tcp { .. } => {
                        "is the server running, and does it listen on this host and port?".to_owned()
                    }
                }),
                io::ErrorKind::PermissionDenied => Some("check the permissions of the socket".to_owned()),
                _ => None,
            },
            Self::Server { error, database, .. } => match error.code.as_str() {
                "28P01" => Some("check the user and the password".to_owned()),
                "28000" => Some("check the user, and the server's pg_hba.conf".to_owned()),
                "3D000" => Some(format!("create database {database}, or name another")),
                "53300" => Some("use fewer clients, or raise max_connections".to_owned()),
                _ => None,
            },
            Self::Authentication { cause: AuthError::NoPassword { .. }, .. } => {
                Some("give a password".to_owned())
            }
            Self::Authentication { .. } | Self::Timeout { .. } | Self::Lost { .. } => None,
            Self::Protocol { .. } | Self::Unexpected { .. } => {
                Some("check that a PostgreSQL server listens there".to_owned())
            }
        }
    }

    /// The SQLSTATE, where the server gave one.
    #[must_use]
    pub fn sqlstate(&self) -> Option<&str> {
        match self {
            Self::Server { error, .. } => Some(&error.code),
            _ => None,
        }
    }
}

impl Stream {
    /// Reads as [`Read::read`] does.
    pub(crate) fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Unix(s) => s.read(into),
            Self::Tcp(s) => s.read(into),
        }
    }

    /// Writes as [`Write::write`] does.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Unix(s) => s.write(bytes),
            Self::Tcp(s) => s.write(bytes),
        }
    }

    /// Says that nothing more will be sent.
    pub(crate) fn shutdown(&self) {
        // A connection that is already gone needs no goodbye.
        let _ = match self {
            Self::Unix(s) => s.shutdown(std::net::Shutdown::Write),
            Self::Tcp(s) => s.shutdown(std::net::Shutdown::Write),
        };
    }

    fn set_nonblocking(&self) -> io::Result<()> {
        match self {
            Self::Unix(s) => s.set_nonblocking(true),
            Self::Tcp(s) => s.set_nonblocking(true),
        }
    }

    fn set_limit(&self, limit: Duration) -> io::Result<()> {
        // Zero would mean none.
        let limit = Some(limit.max(Duration::from_millis(1)));
        match self {
            Self::Unix(s) => s.set_read_timeout(limit).and_then(|()| s.set_write_timeout(limit)),
            Self::Tcp(s) => s.set_read_timeout(limit).and_then(|()| s.set_write_timeout(limit)),
        }
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Unix(s) => s.as_fd(),
            Self::Tcp(s) => s.as_fd(),
        }
    }
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

/// Connects to `target` within `limit`.
///
/// # Errors
/// No server there, a server that refuses, a proof of identity that cannot be given, or the time limit.
pub fn connect(target: &Target, limit: Duration) -> Result<Connection, ConnectError> {
    let limit = Limit::new(limit);
    let mut handshake =
        Handshake { target, stream: open(&target.address, limit)?, limit, received: Vec::new() };
    let mut out = Vec::new();
    let identity = [
        ("user", target.user.as_str()),
        ("database", target.database.as_str()),
        ("client_encoding", "UTF8"),
        ("application_name", "pgdyno"),
    ];
    let settings = target.settings.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    // A setting of the target's takes the place of ours.
    let ours = identity.into_iter().filter(|(name, _)| !target.settings.iter().any(|(n, _)| n == name));
    frontend::startup(&mut out, ours.chain(settings)).map_err(|e| handshake.protocol(e))?;
    handshake.send(&out)?;
    handshake.authenticate()?;
    let key = handshake.until_ready()?;
    let stream = handshake.stream;
    stream
        .set_nonblocking()
        .map_err(|cause| ConnectError::Lost { address: target.address.clone(), cause })?;
    Ok(Connection { stream, key })
}

/// Asks the server at `address` to cancel what the session of `key` is doing; waits for no answer, and at most `limit`.
///
/// # Errors
/// No connection, or it takes no bytes.
pub fn cancel(address: &Address, key: &(u32, Vec<u8>), limit: Duration) -> Result<(), ConnectError> {
    let limit = Limit::new(limit);
    let mut stream = open(address, limit)?;
    let mut out = Vec::new();
    frontend::cancel_request(&mut out, key.0, &key.1)
        .map_err(|cause| ConnectError::Protocol { address: address.clone(), cause })?;
    stream
        .set_limit(limit.left())
        .and_then(|()| stream.write(&out))
        .map_err(|cause| ConnectError::Lost { address: address.clone(), cause })?;
    Ok(())
}

fn open(address: &Address, limit: Limit) -> Result<Stream, ConnectError> {
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
            let addresses = (host.as_str(), *port)
                .to_socket_addrs()
                .map_err(|cause| ConnectError::Resolve { host: host.clone(), cause })?;
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

struct Handshake<'a> {
    target: &'a Target,
    stream: Stream,
    limit: Limit,
    received: Vec<u8>,
}

impl Handshake<'_> {
    fn address(&self) -> Address {
        self.target.address.clone()
    }

    fn protocol(&self, cause: WireError) -> ConnectError {
        ConnectError::Protocol { address: self.address(), cause }
    }

    fn broken(&self, cause: io::Error, step: &'static str) -> ConnectError {
        match cause.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                timeout(&self.target.address, self.limit, step)
            }
            _ => ConnectError::Lost { address: self.address(), cause },
        }
    }

    fn send(&mut self, mut bytes: &[u8]) -> Result<(), ConnectError> {
        while !bytes.is_empty() {
            self.stream.set_limit(self.limit.left()).map_err(|e| self.broken(e, "start-up"))?;
            match self.stream.write(bytes) {
                Ok(n) => bytes = &bytes[n..],
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(self.broken(e, "start-up")),
            }
        }
        Ok(())
    }

    /// Awaits the next message and gives it to `take`.
    fn next<T>(
        &mut self,
        step: &'static str,
        take: impl FnOnce(&Target, u8, Message<'_>) -> Result<T, ConnectError>,
    ) -> Result<T, ConnectError> {
        loop {
            if let Some(header) = pgdyno_wire::Header::read(&self.received).map_err(|e| self.protocol(e))?
                && header.body > LONGEST_START_UP_MESSAGE
            {
                return Err(self.protocol(WireError::TooLong {
                    tag: header.tag,
                    length: header.body as u64,
                    max: LONGEST_START_UP_MESSAGE,
                }));
            }
            if let Some(frame) = pgdyno_wire::next_frame(&self.received).map_err(|e| self.protocol(e))? {
                let length = frame.len();
                let message = Message::read(frame).map_err(|e| self.protocol(e))?;
                let taken = match message {
                    Message::ErrorResponse(fields) => Err(ConnectError::Server {
                        address: self.address(),
                        user: self.target.user.clone(),
                        database: self.target.database.clone(),
                        error: Box::new(ServerError::of(fields)),
                    }),
                    other => take(self.target, frame.tag, other),
                };
                self.received.drain(..length);
                return taken;
            }
            if self.limit.left().is_zero() {
                return Err(timeout(&self.target.address, self.limit, step));
            }
            self.stream.set_limit(self.limit.left()).map_err(|e| self.broken(e, step))?;
            let mut scratch = [0; 4096];
            match self.stream.read(&mut scratch) {
                Ok(0) => {
                    let cause = io::Error::new(io::ErrorKind::UnexpectedEof, "the server closed it");
                    return Err(self.broken(cause, step));
                }
                Ok(n) => self.received.extend_from_slice(&scratch[..n]),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(self.broken(e, step)),
            }
        }
    }

    fn authenticate(&mut self) -> Result<(), ConnectError> {
        let target = self.target;
        let password = target.password.as_ref().map(pgdyno_model::target::Secret::reveal);
        let mut exchange = Exchange::new(&target.user, password);
        loop {
            let mut answer = Vec::new();
            let progress = self.next("authentication", |target, tag, message| match message {
                Message::Authentication(said) => {
                    exchange.answer(said, &mut answer).map_err(|cause| ConnectError::Authentication {
                        address: target.address.clone(),
                        user: target.user.clone(),
                        cause,
                    })
                }
                Message::NegotiateVersion | Message::NoticeResponse(_) => Ok(Progress::Continues),
                _ => Err(ConnectError::Unexpected { address: target.address.clone(), tag }),
            })?;
            self.send(&answer)?;
            if progress == Progress::Accepted {
                return Ok(());
            }
        }
    }

    fn until_ready(&mut self) -> Result<Option<(u32, Vec<u8>)>, ConnectError> {
        let mut key = None;
        loop {
            let ready = self.next("start-up", |target, tag, message| match message {
                Message::ReadyForQuery(_) => Ok(true),
                Message::BackendKeyData(BackendKey { process, secret }) => {
                    key = Some((process, secret.to_vec()));
                    Ok(false)
                }
                Message::ParameterStatus { .. } | Message::NoticeResponse(_) | Message::NegotiateVersion => {
                    Ok(false)
                }
                _ => Err(ConnectError::Unexpected { address: target.address.clone(), tag }),
            })?;
            if ready {
                // Nothing is owed to us before we ask: what could follow are notices, and they are not read.
                return Ok(key);
            }
        }
    }
}
