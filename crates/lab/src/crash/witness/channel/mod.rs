//! Messages between two sides that share a secret, over TCP: authenticated, numbered, bounded; not
//! encrypted.
//!
//! 1. The witness sends a greeting and a random number.
//! 2. The client sends another, and a code over both by the secret.
//! 3. The witness does likewise.
//!
//! So neither learns anything from the other that it can use later. Codes are HMAC-SHA-256. Each
//! direction has a key of its own, derived from secret and numbers. Each message's code covers its
//! place in the order: what is changed, replayed, left out or put elsewhere has the wrong code.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use hmac::{Hmac, KeyInit, Mac};
use pgdyno_connect::interruption;
use pgdyno_model::target::Secret;
use sha2::Sha256;
use thiserror::Error;

/// How long the other side may take for an answer, or for a message that it has begun.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);
/// Time between checks of the stop flag.
const LOOK: Duration = Duration::from_millis(100);
/// How long both may take to prove that they share the secret.
const HANDSHAKE: Duration = Duration::from_secs(if cfg!(test) { 2 } else { 5 });
/// The longest message (bytes).
const LONGEST: u32 = 64 << 10;

const GREETING: &[u8; 16] = b"pgdyno-witness-2";
const ACCEPTED: u8 = 1;
const REFUSED: u8 = 0;

/// A fault of the other side.
#[derive(Debug, Error)]
pub(super) enum ChannelError {
    #[error("what answers there is no witness of this version")]
    NoWitness,
    #[error("the secret is not the one of the other side")]
    Secret,
    #[error(
        "message {0} does not bear the code of the secret: it was changed, replayed or is out of order"
    )]
    Code(u64),
    #[error("a message of {0} bytes was announced, and the longest is {LONGEST}")]
    TooLong(u32),
    #[error("a message ended before it was whole")]
    Cut,
    #[error("nothing came for {} s", .0.as_secs())]
    Silent(Duration),
    #[error("interrupted by a signal")]
    Ended,
}

impl From<ChannelError> for io::Error {
    fn from(error: ChannelError) -> Self {
        let kind = match error {
            ChannelError::NoWitness | ChannelError::TooLong(_) => io::ErrorKind::InvalidData,
            ChannelError::Secret | ChannelError::Code(_) => io::ErrorKind::PermissionDenied,
            ChannelError::Cut => io::ErrorKind::UnexpectedEof,
            ChannelError::Silent(_) => io::ErrorKind::TimedOut,
            ChannelError::Ended => io::ErrorKind::Other,
        };
        Self::new(kind, error)
    }
}

/// A connection whose other side knows the secret.
pub(super) struct Channel {
    stream: TcpStream,
    sending: Direction,
    receiving: Direction,
}

/// The codes of one direction.
struct Direction {
    key: [u8; 32],
    /// Messages so far.
    count: u64,
}

impl Direction {
    fn code(&self, length: [u8; 4], message: &[u8]) -> Hmac<Sha256> {
        code(&self.key, &[&self.count.to_be_bytes(), &length, message])
    }
}

/// The two random numbers of a connection, and the secret.
struct Handshake<'a> {
    secret: &'a Secret,
    witness: [u8; 32],
    client: [u8; 32],
}

impl Handshake<'_> {
    fn code(&self, purpose: &str) -> Hmac<Sha256> {
        code(self.secret.reveal().as_bytes(), &[purpose.as_bytes(), &self.witness, &self.client])
    }

    fn key(&self, purpose: &str) -> Direction {
        Direction { key: self.code(purpose).finalize().into_bytes().into(), count: 0 }
    }
}

fn code(key: &[u8], parts: &[&[u8]]) -> Hmac<Sha256> {
    // HMAC takes keys of any length.
    let mut code =
        Hmac::<Sha256>::new_from_slice(key).unwrap_or_else(|_| unreachable!("any key will do"));
    parts.iter().for_each(|part| code.update(part));
    code
}

fn random() -> io::Result<[u8; 32]> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(bytes)
}

impl Channel {
    /// Connects to the witness at `address`, and has it prove that it knows `secret`.
    ///
    /// # Errors
    /// The other side cannot be reached; [`ChannelError`].
    pub(super) fn connect(address: &str, secret: &Secret) -> io::Result<Self> {
        let (began, address) = (Instant::now(), address.to_owned());
        let (found, stream) = mpsc::channel();
        // Neither looking a name up nor connecting can be told to end; nobody waits for this thread
        // then.
        thread::spawn(move || found.send(open(&address)));
        loop {
            match stream.recv_timeout(LOOK) {
                Ok(stream) => return Self::as_client(stream?, secret),
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(io::Error::other("its thread ended"));
                }
                Err(RecvTimeoutError::Timeout) if interruption::ends(began) => {
                    return Err(ChannelError::Ended.into());
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    fn as_client(mut stream: TcpStream, secret: &Secret) -> io::Result<Self> {
        prepare(&stream)?;
        let until = Instant::now() + HANDSHAKE;
        let mut greeting = [0; GREETING.len()];
        read_until(&mut stream, &mut greeting, until)?;
        if greeting != *GREETING {
            return Err(ChannelError::NoWitness.into());
        }
        let mut handshake = Handshake { secret, witness: [0; 32], client: random()? };
        read_until(&mut stream, &mut handshake.witness, until)?;
        stream.write_all(&handshake.client)?;
        stream.write_all(&handshake.code("client").finalize().into_bytes())?;
        let mut proof = [0; 33];
        read_until(&mut stream, &mut proof[..1], until)?;
        if proof[0] != ACCEPTED {
            return Err(ChannelError::Secret.into());
        }
        read_until(&mut stream, &mut proof[1..], until)?;
        handshake.code("witness").verify_slice(&proof[1..]).map_err(|_| ChannelError::Secret)?;
        let (sending, receiving) = (handshake.key("to witness"), handshake.key("to client"));
        Ok(Self { stream, sending, receiving })
    }

    /// Serves a client that proves to know `secret`.
    ///
    /// # Errors
    /// The other side is too slow; [`ChannelError`].
    pub(super) fn accept(mut stream: TcpStream, secret: &Secret) -> io::Result<Self> {
        prepare(&stream)?;
        let until = Instant::now() + HANDSHAKE;
        let mut handshake = Handshake { secret, witness: random()?, client: [0; 32] };
        stream.write_all(GREETING)?;
        stream.write_all(&handshake.witness)?;
        read_until(&mut stream, &mut handshake.client, until)?;
        let mut proof = [0; 32];
        read_until(&mut stream, &mut proof, until)?;
        if handshake.code("client").verify_slice(&proof).is_err() {
            stream.write_all(&[REFUSED])?;
            return Err(ChannelError::Secret.into());
        }
        stream.write_all(&[ACCEPTED])?;
        stream.write_all(&handshake.code("witness").finalize().into_bytes())?;
        let (sending, receiving) = (handshake.key("to client"), handshake.key("to witness"));
        Ok(Self { stream, sending, receiving })
    }

    /// Sends `message`.
    ///
    /// # Errors
    /// The message is too long, or the other side does not take it.
    pub(super) fn send(&mut self, message: &[u8]) -> io::Result<()> {
        let length = u32::try_from(message.len()).unwrap_or(u32::MAX);
        if length > LONGEST {
            return Err(ChannelError::TooLong(length).into());
        }
        let code = self.sending.code(length.to_be_bytes(), message);
        self.sending.count += 1;
        // In one piece, for one packet.
        let whole = [&length.to_be_bytes(), message, &code.finalize().into_bytes()].concat();
        self.stream.write_all(&whole)
    }

    /// The next message, which begins within `idle`; none if the other side has hung up.
    ///
    /// # Errors
    /// [`ChannelError`]; the connection is of no use any more then.
    pub(super) fn receive(&mut self, idle: Duration) -> io::Result<Option<Vec<u8>>> {
        let mut length = [0; 4];
        match read_until(&mut self.stream, &mut length[..1], Instant::now() + idle) {
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            begun => begun?,
        }
        let until = Instant::now() + PATIENCE;
        read_until(&mut self.stream, &mut length[1..], until)?;
        let announced = u32::from_be_bytes(length);
        if announced > LONGEST {
            return Err(ChannelError::TooLong(announced).into());
        }
        let mut message = vec![0; usize::try_from(announced).unwrap_or_default()];
        read_until(&mut self.stream, &mut message, until)?;
        let mut proof = [0; 32];
        read_until(&mut self.stream, &mut proof, until)?;
        let number = self.receiving.count;
        self.receiving
            .code(length, &message)
            .verify_slice(&proof)
            .map_err(|_| ChannelError::Code(number))?;
        self.receiving.count += 1;
        Ok(Some(message))
    }
}

/// Connects to the first address of a name that answers.
fn open(address: &str) -> io::Result<TcpStream> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for address in address.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, PATIENCE) {
            Ok(stream) => return Ok(stream),
            Err(e) => last = e,
        }
    }
    Err(last)
}

fn prepare(stream: &TcpStream) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_nodelay(true)?;
    stream.set_write_timeout(Some(PATIENCE))
}

/// Fills `buffer`, all of it before `until`, however slowly bytes come, unless this process is told
/// to end.
fn read_until(stream: &mut TcpStream, mut buffer: &mut [u8], until: Instant) -> io::Result<()> {
    let began = Instant::now();
    while !buffer.is_empty() {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ChannelError::Silent(began.elapsed()).into());
        }
        if interruption::ends(began) {
            return Err(ChannelError::Ended.into());
        }
        stream.set_read_timeout(Some(left.min(LOOK)))?;
        match stream.read(buffer) {
            Ok(0) => return Err(ChannelError::Cut.into()),
            Ok(read) => buffer = &mut buffer[read..],
            Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {}
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
