//! A socket to a server, encrypted or not.

use std::io;
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rustix::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use rustix::io::ioctl_fionbio;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{RecvFlags, SendFlags, recv, send};

use super::tls_stream::TlsStream;

/// A socket to a server.
#[derive(Debug)]
pub enum Stream {
    /// A Unix socket.
    Unix(UnixStream),
    /// TCP.
    Tcp(TcpStream),
    /// TLS over TCP.
    Tls(Box<TlsStream>),
}

impl Stream {
    /// Reads as [`std::io::Read::read`] does. A short read has taken all bytes that arrived.
    ///
    /// # Errors
    /// The system's, or an [`io::Error`] of kind `InvalidData` if TLS broke.
    #[inline]
    pub fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            // System calls of rustix: the C library's also check for thread cancellation.
            Self::Unix(s) => Ok(recv(s, into, RecvFlags::empty())?.0),
            Self::Tcp(s) => Ok(recv(s, into, RecvFlags::empty())?.0),
            Self::Tls(s) => s.read(into),
        }
    }

    /// Writes as [`std::io::Write::write`] does. After `WouldBlock` the next call must begin with
    /// the same bytes; more may follow them.
    ///
    /// # Errors
    /// The system's.
    #[inline]
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Unix(s) => Ok(send(s, bytes, SendFlags::NOSIGNAL)?),
            Self::Tcp(s) => Ok(send(s, bytes, SendFlags::NOSIGNAL)?),
            Self::Tls(s) => s.write(bytes),
        }
    }

    /// Ends the sending direction, which tells the server that nothing more comes.
    pub fn shutdown(&mut self) {
        // A connection that is already gone needs no goodbye.
        let _ = match self {
            Self::Unix(s) => s.shutdown(Shutdown::Write),
            Self::Tcp(s) => s.shutdown(Shutdown::Write),
            Self::Tls(s) => s.shutdown(),
        };
    }

    /// Makes reads and writes fail with `WouldBlock` where they would wait.
    pub(crate) fn set_nonblocking(&mut self) -> io::Result<()> {
        match self {
            Self::Tls(s) => s.set_nonblocking(),
            Self::Unix(_) | Self::Tcp(_) => Ok(ioctl_fionbio(&*self, true)?),
        }
    }

    /// Makes reads block, at most for `limit`.
    ///
    /// # Errors
    /// `Unsupported` for TLS; else the system's.
    pub fn set_blocking(&mut self, limit: Option<Duration>) -> io::Result<()> {
        if !self.is_plain() {
            return Err(io::ErrorKind::Unsupported.into());
        }
        ioctl_fionbio(&*self, false)?;
        Ok(set_socket_timeout(&*self, Timeout::Recv, limit)?)
    }

    /// Whether the socket carries the protocol's bytes as they are, without TLS.
    #[inline]
    pub fn is_plain(&self) -> bool {
        !matches!(self, Self::Tls(_))
    }

    /// Takes the TLS error that made the last read or write fail.
    pub(crate) fn take_tls_error(&mut self) -> Option<rustls::Error> {
        match self {
            Self::Tls(s) => s.take_error(),
            Self::Unix(_) | Self::Tcp(_) => None,
        }
    }

    /// Whether others on the network can read what is sent.
    pub(crate) fn is_public(&self) -> bool {
        matches!(self, Self::Tcp(_))
    }

    /// Limits how long each read and write may block.
    pub(crate) fn set_limit(&self, limit: Duration) -> io::Result<()> {
        // Zero would mean none.
        let limit = Some(limit.max(Duration::from_millis(1)));
        set_socket_timeout(self, Timeout::Recv, limit)?;
        Ok(set_socket_timeout(self, Timeout::Send, limit)?)
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Unix(s) => s.as_fd(),
            Self::Tcp(s) => s.as_fd(),
            Self::Tls(s) => s.socket().as_fd(),
        }
    }
}

impl AsRawFd for Stream {
    fn as_raw_fd(&self) -> RawFd {
        self.as_fd().as_raw_fd()
    }
}
