//! Connecting: sockets, encryption, start-up and authentication, all within a time limit. Then the
//! socket no longer blocks.

mod error;
mod handshake;
mod stream;

use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use pgdyno_model::target::{Address, Servers, SslMode, Target};
use pgdyno_tls::Connector;
use pgdyno_wire::frontend;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
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
    /// What a cancel request names: the backend's process id and its secret; none if the server
    /// gave none.
    pub key: Option<(u32, Vec<u8>)>,
}

/// How long a wait goes on before its limit and the stop flag are looked at.
const LOOK: Duration = Duration::from_millis(100);

/// A flag that nobody sets.
static NEVER: AtomicBool = AtomicBool::new(false);

/// A time limit, from when it was set, and a flag that ends it early.
#[derive(Clone, Copy)]
struct Limit<'a> {
    end: Instant,
    span: Duration,
    stop: &'a AtomicBool,
}

impl<'a> Limit<'a> {
    fn new(span: Duration, stop: &'a AtomicBool) -> Self {
        Self { end: Instant::now() + span, span, stop }
    }

    /// How long one wait may take, at most; an error where none may.
    fn next_wait(self, address: &Address, step: &'static str) -> Result<Duration, ConnectError> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(ConnectError::Interrupted { address: address.clone() });
        }
        match self.left() {
            Duration::ZERO => Err(timeout(address, self, step)),
            left => Ok(left.clamp(Duration::from_millis(1), LOOK)),
        }
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

/// Connects to one of `servers`, within `limit` each, or within the time that they themselves
/// allow, and until `stop` is set; `below` as [`Servers::find`] has it. Also the one that it was.
///
/// # Errors
/// As [`connect`]; of several servers [`ConnectError::NoneServes`].
pub fn connect_any(
    servers: &Servers,
    limit: Duration,
    stop: &AtomicBool,
    below: impl FnMut(usize) -> usize,
) -> Result<(Connection, Target), ConnectError> {
    let connect = |target: &Target| connect_until(target, limit, stop);
    let found = servers.find(below, connect, ConnectError::ends_search);
    found.map_err(|mut errors| match errors.len() {
        1 => errors.remove(0),
        _ => ConnectError::NoneServes { errors },
    })
}

/// Connects to `target` within `limit`, or within the time that the target itself allows.
///
/// # Errors
/// No server there, a server that refuses or is not trusted, a proof of identity that cannot be
/// given, or the time limit.
pub fn connect(target: &Target, limit: Duration) -> Result<Connection, ConnectError> {
    connect_until(target, limit, &NEVER)
}

fn connect_until(
    target: &Target,
    limit: Duration,
    stop: &AtomicBool,
) -> Result<Connection, ConnectError> {
    let limit = Limit::new(target.connect_timeout.unwrap_or(limit), stop);
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
            attempt(target, limit, Encryption::Must(&connector)).map_err(|failed| {
                match failed.error {
                    ConnectError::NoTls { .. } => plain.error,
                    error => error,
                }
            })
        }),
        SslMode::Prefer => {
            attempt(target, limit, Encryption::IfTaken(&connector)).or_else(|failed| {
                // A server that answers the request for TLS with an error knows of no such thing.
                let knows_no_tls =
                    matches!(failed.error, ConnectError::Unexpected { tag: b'E', .. });
                if !(knows_no_tls || failed.encrypted && failed.may_depend_on_encryption()) {
                    return Err(failed.error);
                }
                // Should that fail too, what stood in the way of the better one is worth more.
                attempt(target, limit, Encryption::No).map_err(|_| failed.error)
            })
        }
        _ => attempt(target, limit, Encryption::Must(&connector)).map_err(|failed| failed.error),
    }
}

impl Failed {
    /// Whether the other kind of connection could fare better.
    fn may_depend_on_encryption(&self) -> bool {
        match &self.error {
            // Class 28: what pg_hba.conf says may differ.
            ConnectError::Server { error, .. } => error.code.starts_with("28"),
            ConnectError::Tls { .. }
            | ConnectError::Lost { .. }
            | ConnectError::Authentication { .. } => true,
            _ => false,
        }
    }
}

fn attempt(
    target: &Target,
    limit: Limit<'_>,
    encryption: Encryption<'_>,
) -> Result<Connection, Failed> {
    let stream = open(&target.address, target.host_address, limit)
        .map_err(|error| Failed { error, encrypted: false })?;
    let mut handshake = Handshake::new(target, stream, limit);
    let done = handshake.perform(encryption);
    done.map_err(|error| Failed { error, encrypted: handshake.is_encrypted() })?;
    handshake.into_connection().map_err(|error| Failed { error, encrypted: false })
}

/// Asks the server of `target` to cancel what the session of `key` is doing, over a connection that
/// is encrypted as the session's is; waits for no answer, and at most `limit`.
///
/// # Errors
/// No connection, or it takes no bytes.
pub fn cancel(target: &Target, key: &(u32, Vec<u8>), limit: Duration) -> Result<(), ConnectError> {
    let limit = Limit::new(limit, &NEVER);
    let connector = match (&target.address, target.tls.mode) {
        (Address::Unix { .. }, _) | (_, SslMode::Disable | SslMode::Allow) => None,
        (Address::Tcp { .. }, _) => Some(
            Connector::shared(&target.tls)
                .map_err(|cause| ConnectError::Tls { address: target.address.clone(), cause })?,
        ),
    };
    let mut handshake =
        Handshake::new(target, open(&target.address, target.host_address, limit)?, limit);
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
fn open(address: &Address, ip: Option<IpAddr>, limit: Limit<'_>) -> Result<Stream, ConnectError> {
    let (host, port) = match address {
        Address::Unix { .. } => {
            let Some(path) = address.socket_path() else {
                unreachable!("a Unix address has a path")
            };
            return open_unix(address, &path, limit).map(Stream::Unix);
        }
        Address::Tcp { host, port } => (host, *port),
    };
    let addresses = match ip {
        Some(ip) => vec![(ip, port).into()],
        None => look_up(address, host, port, limit)?,
    };
    let cause = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
    let mut failure = ConnectError::Refused { address: address.clone(), cause };
    for candidate in addresses {
        match open_tcp(address, candidate, limit) {
            Ok(stream) => return Ok(Stream::Tcp(stream)),
            Err(e) => failure = e,
        }
    }
    Err(failure)
}

/// The addresses of `host`. A resolver that does not answer is left behind.
fn look_up(
    address: &Address,
    host: &str,
    port: u16,
    limit: Limit<'_>,
) -> Result<Vec<SocketAddr>, ConnectError> {
    if let Ok(ip) = host.parse::<IpAddr>() {
        return Ok(vec![(ip, port).into()]);
    }
    let failed = |cause| ConnectError::Resolve { host: host.to_owned(), cause };
    let (sender, found) = mpsc::channel();
    let name = host.to_owned();
    let look_up = move || {
        // Nobody may wait for it any more.
        let _ = sender.send((name.as_str(), port).to_socket_addrs().map(Iterator::collect));
    };
    std::thread::Builder::new().name("look-up".into()).spawn(look_up).map_err(failed)?;
    loop {
        match found.recv_timeout(limit.next_wait(address, "the look-up of its name")?) {
            Ok(found) => return found.map_err(failed),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Err(failed(io::ErrorKind::Other.into())),
        }
    }
}

/// Connects without blocking, so that the limit and the stop flag are looked at.
fn open_tcp(
    address: &Address,
    ip: SocketAddr,
    limit: Limit<'_>,
) -> Result<TcpStream, ConnectError> {
    let refused = |cause: io::Error| ConnectError::Refused { address: address.clone(), cause };
    let family = if ip.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = rustix::net::socket_with(family, SocketType::STREAM, flags, None)
        .map_err(|e| refused(e.into()))?;
    match rustix::net::connect(&socket, &ip) {
        Ok(()) | Err(Errno::INPROGRESS | Errno::INTR) => {}
        Err(e) => return Err(refused(e.into())),
    }
    loop {
        let wait = limit.next_wait(address, "the connection request")?;
        let wait = Timespec { tv_sec: 0, tv_nsec: wait.subsec_nanos().into() };
        match poll(&mut [PollFd::new(&socket, PollFlags::OUT)], Some(&wait)) {
            Ok(0) | Err(Errno::INTR) => {}
            Ok(_) => break,
            Err(e) => return Err(refused(e.into())),
        }
    }
    let ended = rustix::net::sockopt::socket_error(&socket).and_then(|error| error);
    ended.map_err(|e| refused(e.into()))?;
    let stream = TcpStream::from(socket);
    stream.set_nonblocking(false).and_then(|()| stream.set_nodelay(true)).map_err(refused)?;
    Ok(stream)
}

/// Connects without blocking, for a server with a full queue would keep us waiting without limit.
fn open_unix(address: &Address, path: &Path, limit: Limit<'_>) -> Result<UnixStream, ConnectError> {
    let refused = |cause: io::Error| ConnectError::Refused { address: address.clone(), cause };
    let socket_address = SocketAddrUnix::new(path).map_err(|e| refused(e.into()))?;
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    loop {
        let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)
            .map_err(|e| refused(e.into()))?;
        match rustix::net::connect(&socket, &socket_address) {
            Ok(()) => {
                let stream = UnixStream::from(socket);
                stream.set_nonblocking(false).map_err(refused)?;
                return Ok(stream);
            }
            // The server's queue is full.
            Err(Errno::AGAIN) => {
                limit.next_wait(address, "the connection request")?;
                std::thread::sleep(Duration::from_millis(2));
            }
            Err(Errno::INTR) => {}
            Err(e) => return Err(refused(e.into())),
        }
    }
}

fn timeout(address: &Address, limit: Limit<'_>, step: &'static str) -> ConnectError {
    ConnectError::Timeout { address: address.clone(), step, limit: limit.span }
}
