//! A TLS connection in two halves, for a thread that reads and one that writes.
//!
//! TLS has one state for both directions. Neither half holds its lock while it waits for the
//! socket: otherwise two ends that both wait to write would wait for ever.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use rustls::Connection;

/// Time that the other end may take nothing, after which it counts as gone.
const STUCK: Duration = Duration::from_secs(10);

struct Shared {
    socket: TcpStream,
    tls: Mutex<Connection>,
    /// Held from encrypting bytes to sending them: they have an order.
    sending: Mutex<()>,
}

/// The half that reads.
pub(crate) struct Reader {
    shared: Arc<Shared>,
    /// Bytes from the socket, and those of them that TLS has not taken.
    bytes: Box<[u8]>,
    left: std::ops::Range<usize>,
    until: Option<Instant>,
}

/// The half that writes; TLS ends in order with it.
pub(crate) struct Writer(Arc<Shared>);

/// A socket that is given up at an instant.
struct Timed<'a> {
    socket: &'a TcpStream,
    until: Instant,
}

impl Timed<'_> {
    fn left(&self) -> io::Result<Option<Duration>> {
        match self.until.saturating_duration_since(Instant::now()) {
            Duration::ZERO => Err(ErrorKind::TimedOut.into()),
            left => Ok(Some(left)),
        }
    }
}

impl Read for Timed<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.socket.set_read_timeout(self.left()?)?;
        self.socket.read(into).map_err(|error| match error.kind() {
            ErrorKind::WouldBlock => ErrorKind::TimedOut.into(),
            _ => error,
        })
    }
}

impl Write for Timed<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.socket.set_write_timeout(self.left()?)?;
        self.socket.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Shakes hands over `socket` until `until`, after which nothing is read any more. Returns both
/// halves, and what `export` takes from the connection.
///
/// # Errors
/// The socket's, and those of TLS, which hold a [`rustls::Error`].
pub(super) fn shake_hands<T>(
    socket: TcpStream,
    mut tls: Connection,
    until: Instant,
    export: impl FnOnce(&Connection) -> Result<T, rustls::Error>,
) -> io::Result<(Reader, Writer, T)> {
    socket.set_nodelay(true)?;
    while tls.is_handshaking() || tls.wants_write() {
        if tls.complete_io(&mut Timed { socket: &socket, until })? == (0, 0) {
            return Err(ErrorKind::UnexpectedEof.into());
        }
    }
    let exported = export(&tls).map_err(io::Error::other)?;
    socket.set_write_timeout(Some(STUCK))?;
    let shared = Arc::new(Shared { socket, tls: Mutex::new(tls), sending: Mutex::new(()) });
    let bytes = vec![0; 32 << 10].into();
    let reader = Reader { shared: Arc::clone(&shared), bytes, left: 0..0, until: Some(until) };
    Ok((reader, Writer(shared), exported))
}

impl Shared {
    fn tls(&self) -> io::Result<MutexGuard<'_, Connection>> {
        self.tls.lock().map_err(|_| io::Error::other("another thread panicked"))
    }

    /// Does `act` with TLS, then sends what it has to send.
    fn send<T>(&self, act: impl FnOnce(&mut Connection) -> io::Result<T>) -> io::Result<T> {
        let _sending = self.sending.lock();
        let mut encrypted = Vec::new();
        let mut tls = self.tls()?;
        let done = act(&mut tls)?;
        while tls.wants_write() {
            tls.write_tls(&mut encrypted)?;
        }
        drop(tls);
        (&self.socket).write_all(&encrypted)?;
        Ok(done)
    }
}

impl Reader {
    /// From now on reading ends with an error at this instant.
    pub(super) fn set_deadline(&mut self, until: Option<Instant>) -> io::Result<()> {
        self.until = until;
        self.shared.socket.set_read_timeout(None)
    }
}

impl Read for Reader {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            let mut tls = self.shared.tls()?;
            match tls.reader().read(into) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                read => return read,
            }
            if !self.left.is_empty() {
                let taken = tls.read_tls(&mut &self.bytes[self.left.clone()])?;
                self.left.start += taken;
                tls.process_new_packets()
                    .map_err(|error| io::Error::new(ErrorKind::InvalidData, error))?;
                continue;
            }
            drop(tls);
            let mut socket = &self.shared.socket;
            let read = match self.until {
                Some(until) => Timed { socket, until }.read(&mut self.bytes),
                None => socket.read(&mut self.bytes),
            };
            match read {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Ok(0) => {
                    // TLS knows whether this was the end in order.
                    self.shared.tls()?.read_tls(&mut io::empty())?;
                }
                read => self.left = 0..read?,
            }
        }
    }
}

impl Write for Writer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.send(|tls| tls.writer().write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        let _ = self.0.send(|tls| {
            tls.send_close_notify();
            Ok(())
        });
        let _ = self.0.socket.shutdown(Shutdown::Write);
    }
}
