//! Sockets to servers, opened within a time limit.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use pgdyno_model::target::{Address, Target};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

use super::error::ConnectError;
use super::limit::Limit;
use super::stream::Stream;

/// Connects a socket to the server of `target`. The socket blocks.
///
/// # Errors
/// [`ConnectError::Resolve`], [`ConnectError::Refused`], [`ConnectError::Timeout`],
/// [`ConnectError::Interrupted`].
pub(crate) fn open(target: &Target, limit: Limit<'_>) -> Result<Stream, ConnectError> {
    let address = &target.address;
    let (host, port) = match address {
        Address::Unix { .. } => {
            let Some(path) = address.socket_path() else {
                unreachable!("a Unix address has a path")
            };
            return open_unix(address, &path, limit).map(Stream::Unix);
        }
        Address::Tcp { host, port } => (host, *port),
    };
    let addresses = match target.host_address {
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

/// Looks up the addresses of `host` in a thread, which is left behind if the resolver does not
/// answer in time.
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
        // The receiver is gone if the limit passed first.
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

/// Connects without blocking, so that the limit and the stop condition are checked.
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

/// Connects without blocking, since a server with a full queue would block without limit.
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
