//! TLS over a TCP socket that blocks or does not.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};

use rustls::ClientConnection;

/// TLS over TCP.
#[derive(Debug)]
pub struct TlsStream {
    socket: TcpStream,
    tls: ClientConnection,
    /// Whether a read may wait for the rest of a TLS record.
    blocking: bool,
    /// Bytes that are encrypted already, and that the next write begins with again (count).
    taken: usize,
    /// Why TLS broke, until [`TlsStream::take_error`].
    error: Option<rustls::Error>,
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
    /// Creates a connection over `socket`, which blocks. Call [`TlsStream::continue_handshake`]
    /// until it returns false.
    pub(super) fn new(socket: TcpStream, tls: ClientConnection) -> Self {
        Self { socket, tls, blocking: true, taken: 0, error: None }
    }

    /// Returns the socket below TLS.
    pub(super) fn socket(&self) -> &TcpStream {
        &self.socket
    }

    /// Makes reads and writes fail with `WouldBlock` where they would wait.
    pub(super) fn set_nonblocking(&mut self) -> io::Result<()> {
        self.blocking = false;
        self.socket.set_nonblocking(true)
    }

    /// Takes the TLS error that made the last call fail.
    pub(super) fn take_error(&mut self) -> Option<rustls::Error> {
        self.error.take()
    }

    /// Does one step of the handshake: sends pending bytes, or else waits for the server's. Returns
    /// false once the handshake is complete.
    pub(super) fn continue_handshake(&mut self) -> io::Result<bool> {
        if self.tls.wants_write() {
            self.tls.write_tls(&mut self.socket)?;
            return Ok(true);
        }
        if !self.tls.is_handshaking() {
            return Ok(false);
        }
        if self.tls.read_tls(&mut self.socket)? == 0 {
            return Err(closed_by_server());
        }
        self.process()?;
        Ok(true)
    }

    /// Returns the server's own certificate (DER).
    pub(super) fn server_certificate(&self) -> Option<&[u8]> {
        self.tls.peer_certificates().and_then(|chain| chain.first()).map(AsRef::as_ref)
    }

    fn process(&mut self) -> io::Result<()> {
        let processed = self.tls.process_new_packets();
        // There may be an alert or the answer to a change of keys to send. What the socket does not
        // take now goes before the next bytes.
        let flushed = if self.tls.wants_write() { self.flush() } else { Ok(()) };
        if let Err(e) = processed {
            let error = io::Error::new(io::ErrorKind::InvalidData, e.to_string());
            self.error = Some(e);
            return Err(error);
        }
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

    pub(super) fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let mut read = 0;
        let mut empty = false;
        loop {
            match self.tls.reader().read(&mut into[read..]) {
                // The end of the stream, or a full buffer.
                Ok(0) => return Ok(read),
                Ok(n) => {
                    read += n;
                    if read == into.len() {
                        return Ok(read);
                    }
                    continue;
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                // PostgreSQL closes the socket without `close_notify`.
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

    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.flush()?;
        if self.taken > 0 {
            return Ok(std::mem::take(&mut self.taken));
        }
        let taken = self.tls.writer().write(bytes)?;
        if let Err(e) = self.flush() {
            // The caller learns of these bytes once the socket took them, and so knows to wait.
            self.taken = taken;
            return Err(e);
        }
        Ok(taken)
    }

    pub(super) fn shutdown(&mut self) -> io::Result<()> {
        self.tls.send_close_notify();
        let _ = self.flush();
        self.socket.shutdown(Shutdown::Write)
    }
}

/// Returns the error of a socket whose other end is closed too early.
pub(super) fn closed_by_server() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "the server closed it")
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::sync::Arc;

    use pgdyno_model::target::{SslMode, Tls};
    use rustls::crypto::ring;
    use rustls::pki_types::PrivateKeyDer;
    use rustls::{ServerConfig, ServerConnection, StreamOwned};

    use super::*;
    use crate::tls::Connector;

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
        while client.continue_handshake().unwrap() {}
        client.set_nonblocking().unwrap();
        (client, server.join().unwrap())
    }

    #[test]
    fn bytes_held_up_by_a_full_socket_arrive_complete_and_once() {
        let (mut client, mut server) = pair();
        let bytes: Vec<u8> = (0..2_000_000u32).map(|n| (n ^ (n >> 8)) as u8).collect();
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
        let length = expected.len();
        let reader = std::thread::spawn(move || {
            let mut got = Vec::new();
            let mut part = vec![0; 50_000];
            while got.len() < length {
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
