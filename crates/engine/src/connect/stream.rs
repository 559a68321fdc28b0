//! A socket to a server, encrypted or not.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use pgdyno_tls::rustls::ClientConnection;
use rustix::fd::{AsFd, BorrowedFd};
use rustix::net::{RecvFlags, SendFlags, recv, send};

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
    /// Reads as [`Read::read`] does. A read of less than was asked for has taken all that arrived.
    pub(crate) fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            // Right to the kernel: the C library's calls also look whether the thread is to be
            // cancelled.
            Self::Unix(s) => Ok(recv(s, into, RecvFlags::empty())?.0),
            Self::Tcp(s) => Ok(recv(s, into, RecvFlags::empty())?.0),
            Self::Tls(s) => s.read(into),
        }
    }

    /// Writes as [`Write::write`] does. After `WouldBlock` the same bytes have to be given again,
    /// and more may follow them.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Unix(s) => Ok(send(s, bytes, SendFlags::NOSIGNAL)?),
            Self::Tcp(s) => Ok(send(s, bytes, SendFlags::NOSIGNAL)?),
            Self::Tls(s) => s.write(bytes),
        }
    }

    /// Says that nothing more will be sent.
    pub(crate) fn shutdown(&mut self) {
        // A connection that is already gone needs no goodbye.
        let _ = match self {
            Self::Unix(s) => s.shutdown(Shutdown::Write),
            Self::Tcp(s) => s.shutdown(Shutdown::Write),
            Self::Tls(s) => s.shutdown(),
        };
    }

    pub(super) fn set_nonblocking(&mut self) -> io::Result<()> {
        match self {
            Self::Unix(s) => s.set_nonblocking(true),
            Self::Tcp(s) => s.set_nonblocking(true),
            Self::Tls(s) => {
                s.blocking = false;
                s.socket.set_nonblocking(true)
            }
        }
    }

    /// Makes reads wait, at most for `limit`; an encrypted one cannot be told to.
    pub(crate) fn set_blocking(&mut self, limit: Option<Duration>) -> io::Result<()> {
        match self {
            Self::Unix(s) => {
                s.set_nonblocking(false)?;
                s.set_read_timeout(limit)
            }
            Self::Tcp(s) => {
                s.set_nonblocking(false)?;
                s.set_read_timeout(limit)
            }
            Self::Tls(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Whether its bytes are the socket's own.
    pub(crate) fn is_plain(&self) -> bool {
        !matches!(self, Self::Tls(_))
    }

    pub(super) fn set_limit(&self, limit: Duration) -> io::Result<()> {
        // Zero would mean none.
        let limit = Some(limit.max(Duration::from_millis(1)));
        let tcp =
            |s: &TcpStream| s.set_read_timeout(limit).and_then(|()| s.set_write_timeout(limit));
        match self {
            Self::Unix(s) => s.set_read_timeout(limit).and_then(|()| s.set_write_timeout(limit)),
            Self::Tcp(s) => tcp(s),
            Self::Tls(s) => tcp(&s.socket),
        }
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Unix(s) => s.as_fd(),
            Self::Tcp(s) => s.as_fd(),
            Self::Tls(s) => s.socket.as_fd(),
        }
    }
}

/// TLS over TCP.
#[derive(Debug)]
pub struct TlsStream {
    socket: TcpStream,
    tls: ClientConnection,
    /// Whether a read may wait for the rest of a record.
    blocking: bool,
    /// Bytes at the beginning of what the caller will give again that are encrypted already.
    taken: usize,
}

/// A socket that remembers whether the last read emptied it.
struct Drained<'a> {
    socket: &'a mut TcpStream,
    empty: bool,
}

impl Read for Drained<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.socket.read(into)?;
        self.empty = read < into.len();
        Ok(read)
    }
}

impl TlsStream {
    /// A connection over `socket`, before its first byte; it blocks.
    pub(super) fn new(socket: TcpStream, tls: ClientConnection) -> Self {
        Self { socket, tls, blocking: true, taken: 0 }
    }

    /// One step of the handshake: sends what is to be sent, or waits for what the server says.
    /// False: it is over.
    pub(super) fn shake(&mut self) -> io::Result<bool> {
        if self.tls.wants_write() {
            self.tls.write_tls(&mut self.socket)?;
            return Ok(true);
        }
        if !self.tls.is_handshaking() {
            return Ok(false);
        }
        if self.tls.read_tls(&mut self.socket)? == 0 {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the server closed it"));
        }
        self.process()?;
        Ok(true)
    }

    /// The server's own certificate (DER).
    pub(super) fn server_certificate(&self) -> Option<&[u8]> {
        self.tls.peer_certificates().and_then(|chain| chain.first()).map(AsRef::as_ref)
    }

    fn process(&mut self) -> io::Result<()> {
        let processed = self.tls.process_new_packets();
        // An alert that says why it ends, or an answer to a change of keys; what does not go now
        // goes before the next bytes do.
        let flushed = if self.tls.wants_write() { self.flush() } else { Ok(()) };
        processed.map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e))?;
        match flushed {
            Err(e) if e.kind() != io::ErrorKind::WouldBlock => Err(e),
            _ => Ok(()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        while self.tls.wants_write() {
            match self.tls.write_tls(&mut self.socket) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Err(e) if e.kind() != io::ErrorKind::Interrupted => return Err(e),
                _ => {}
            }
        }
        Ok(())
    }

    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let mut read = 0;
        let mut empty = false;
        loop {
            match self.tls.reader().read(&mut into[read..]) {
                // Nothing more will come, or there is no room for more.
                Ok(0) => return Ok(read),
                Ok(n) => {
                    read += n;
                    if read == into.len() {
                        return Ok(read);
                    }
                    continue;
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                // The connection ended without a goodbye, as PostgreSQL ends it.
                Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => return Ok(read),
                Err(e) => return Err(e),
            }
            if empty && (read > 0 || !self.blocking) {
                return if read > 0 { Ok(read) } else { Err(io::ErrorKind::WouldBlock.into()) };
            }
            let mut drained = Drained { socket: &mut self.socket, empty: false };
            match self.tls.read_tls(&mut drained) {
                Ok(_) => {
                    empty = drained.empty;
                    self.process()?;
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) if e.kind() == io::ErrorKind::WouldBlock && read > 0 => return Ok(read),
                Err(e) => return Err(e),
            }
        }
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.flush()?;
        if self.taken > 0 {
            return Ok(std::mem::take(&mut self.taken));
        }
        let taken = self.tls.writer().write(bytes)?;
        if let Err(e) = self.flush() {
            // They are only said to be written once they are: the caller then knows to wait.
            self.taken = taken;
            return Err(e);
        }
        Ok(taken)
    }

    fn shutdown(&mut self) -> io::Result<()> {
        self.tls.send_close_notify();
        let _ = self.flush();
        self.socket.shutdown(Shutdown::Write)
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::sync::Arc;

    use pgdyno_model::target::{SslMode, Tls};
    use pgdyno_tls::Connector;
    use pgdyno_tls::rustls::crypto::ring;
    use pgdyno_tls::rustls::pki_types::PrivateKeyDer;
    use pgdyno_tls::rustls::{ServerConfig, ServerConnection, StreamOwned};

    use super::*;

    /// A client's stream that does not block, and the other end of it.
    fn pair() -> (TlsStream, StreamOwned<ServerConnection, TcpStream>) {
        let key = rcgen::KeyPair::generate().unwrap();
        let cert = rcgen::CertificateParams::default().self_signed(&key).unwrap();
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![cert.der().clone()], key)
            .unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let socket = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        rustix::net::sockopt::set_socket_send_buffer_size(&socket, 8192).unwrap();
        let server = std::thread::spawn(move || {
            let (mut socket, _) = listener.accept().unwrap();
            let mut tls = ServerConnection::new(Arc::new(config)).unwrap();
            while tls.is_handshaking() {
                tls.complete_io(&mut socket).unwrap();
            }
            StreamOwned::new(tls, socket)
        });
        let connector = Connector::new(&Tls { mode: SslMode::Require, ..Tls::default() }).unwrap();
        let mut client = TlsStream::new(socket, connector.connection("localhost").unwrap());
        while client.shake().unwrap() {}
        client.blocking = false;
        client.socket.set_nonblocking(true).unwrap();
        (client, server.join().unwrap())
    }

    #[test]
    fn what_a_full_socket_holds_up_arrives_whole_and_once() {
        let (mut client, mut server) = pair();
        let bytes: Vec<u8> = (0..8_000_000u32).map(|n| (n ^ (n >> 8)) as u8).collect();
        let expected = bytes.clone();
        let mut out = bytes;
        let mut waited = 0;
        // As a reactor does: what is not taken stays first in line, and is given again.
        while !out.is_empty() {
            match client.write(&out) {
                Ok(n) => drop(out.drain(..n)),
                Err(e) => {
                    assert_eq!(e.kind(), io::ErrorKind::WouldBlock);
                    waited += 1;
                    if waited == 1 {
                        // Nobody reads yet: the second attempt is just as vain.
                        assert_eq!(
                            client.write(&out).unwrap_err().kind(),
                            io::ErrorKind::WouldBlock
                        );
                        break;
                    }
                }
            }
        }
        assert_eq!(waited, 1, "the socket was never full");
        let reader = std::thread::spawn(move || {
            let mut got = Vec::new();
            let mut part = vec![0; 50_000];
            while got.len() < 8_000_000 {
                let n = server.read(&mut part).unwrap();
                assert_ne!(n, 0);
                got.extend_from_slice(&part[..n]);
            }
            (got, server)
        });
        while !out.is_empty() {
            match client.write(&out) {
                Ok(n) => drop(out.drain(..n)),
                Err(e) => {
                    assert_eq!(e.kind(), io::ErrorKind::WouldBlock);
                    std::thread::yield_now();
                }
            }
        }
        let (got, mut server) = reader.join().unwrap();
        assert!(got == expected);

        // And back, with a goodbye after it: a short read has taken all that came.
        server.write_all(&expected[..100_000]).unwrap();
        server.conn.send_close_notify();
        server.flush().unwrap();
        let mut got = Vec::new();
        let mut into = vec![0; 30_000];
        loop {
            match client.read(&mut into) {
                Ok(0) => break,
                Ok(n) => got.extend_from_slice(&into[..n]),
                Err(e) => assert_eq!(e.kind(), io::ErrorKind::WouldBlock),
            }
        }
        assert!(got == expected[..100_000]);
    }
}
