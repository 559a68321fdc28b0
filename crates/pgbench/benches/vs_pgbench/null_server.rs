//! A server that answers at once: what a load generator can do when nobody holds it up. One thread,
//! epoll, one row for every Execute or Query.

use std::io::{ErrorKind, Read as _, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;

use pgdyno_model::target::{Address, Target};
use rustix::event::epoll;

const PORT: u16 = 5432;

/// The server; it ends with the process.
pub(crate) struct NullServer {
    folder: tempfile::TempDir,
}

impl NullServer {
    pub(crate) fn start() -> std::io::Result<Self> {
        let folder = tempfile::Builder::new().prefix("pgdyno-null").tempdir()?;
        let listener = UnixListener::bind(folder.path().join(format!(".s.PGSQL.{PORT}")))?;
        listener.set_nonblocking(true)?;
        std::thread::Builder::new().name("null-server".into()).spawn(move || serve(&listener))?;
        Ok(Self { folder })
    }

    pub(crate) fn target(&self) -> Target {
        let directory: PathBuf = self.folder.path().to_owned();
        Target::new(Address::Unix { directory, port: PORT }, "postgres", "postgres")
    }
}

struct Peer {
    stream: UnixStream,
    received: Vec<u8>,
    started: bool,
}

fn serve(listener: &UnixListener) -> std::io::Result<()> {
    let poll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    epoll::add(&poll, listener, epoll::EventData::new_u64(0), epoll::EventFlags::IN)?;
    // By user data; 0 is the listener's.
    let mut peers: Vec<Option<Peer>> = vec![None];
    let mut events = Vec::with_capacity(1024);
    let mut out = Vec::new();
    let mut scratch = vec![0; 16 * 1024];
    loop {
        events.clear();
        epoll::wait(&poll, rustix::buffer::spare_capacity(&mut events), None)?;
        for event in &events {
            let id = event.data.u64();
            if id == 0 {
                while let Ok((stream, _)) = listener.accept() {
                    stream.set_nonblocking(true)?;
                    let data = epoll::EventData::new_u64(peers.len() as u64);
                    epoll::add(
                        &poll,
                        &stream,
                        data,
                        epoll::EventFlags::IN | epoll::EventFlags::ET,
                    )?;
                    peers.push(Some(Peer { stream, received: Vec::new(), started: false }));
                }
                continue;
            }
            let Some(place) = usize::try_from(id).ok().and_then(|id| peers.get_mut(id)) else {
                continue;
            };
            if place.as_mut().is_some_and(|peer| !peer.turn(&mut scratch, &mut out)) {
                // Closing the socket takes it out of the epoll set.
                *place = None;
            }
        }
    }
}

impl Peer {
    /// Answers what has come; false when the peer is gone.
    fn turn(&mut self, scratch: &mut [u8], out: &mut Vec<u8>) -> bool {
        loop {
            match self.stream.read(scratch) {
                Ok(0) => return false,
                Ok(n) => {
                    if !self.take(&scratch[..n], out) {
                        return false;
                    }
                    // A short read drained the socket: the next byte is a new edge.
                    if n < scratch.len() {
                        return true;
                    }
                }
                Err(e) if e.kind() == ErrorKind::WouldBlock => return true,
                Err(_) => return false,
            }
        }
    }

    /// Answers `bytes` and what was left of those before; false when the peer is done.
    fn take(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> bool {
        out.clear();
        let mut torn = std::mem::take(&mut self.received);
        let all = if torn.is_empty() {
            bytes
        } else {
            torn.extend_from_slice(bytes);
            &torn
        };
        let mut at = 0;
        loop {
            let rest = &all[at..];
            let head = usize::from(self.started);
            let Some(length) = rest.get(head..head + 4) else { break };
            let length =
                head + u32::from_be_bytes([length[0], length[1], length[2], length[3]]) as usize;
            if rest.len() < length {
                break;
            }
            if self.started {
                if rest[0] == b'X' {
                    return false;
                }
                answer(rest[0], out);
            } else if rest[4..8] == 80_877_103_u32.to_be_bytes()
                || rest[4..8] == 80_877_104_u32.to_be_bytes()
            {
                // SSLRequest, GSSENCRequest: no.
                out.push(b'N');
            } else {
                self.started = true;
                message(out, b'R', &0_u32.to_be_bytes());
                for (name, value) in [
                    ("server_version", "15.0"),
                    ("client_encoding", "UTF8"),
                    ("standard_conforming_strings", "on"),
                ] {
                    message(out, b'S', format!("{name}\0{value}\0").as_bytes());
                }
                message(out, b'K', &[0; 8]);
                message(out, b'Z', b"I");
            }
            at += length;
        }
        self.received.extend_from_slice(&all[at..]);
        self.stream.write_all(out).is_ok()
    }
}

pub(crate) fn message(out: &mut Vec<u8>, kind: u8, body: &[u8]) {
    out.push(kind);
    let length = u32::try_from(body.len() + 4).unwrap_or(u32::MAX);
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(body);
}

fn row_description(out: &mut Vec<u8>) {
    let mut body = vec![0, 1];
    body.extend_from_slice(b"abalance\0");
    body.extend_from_slice(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 23, 0, 4, 255, 255, 255, 255, 0, 0]);
    message(out, b'T', &body);
}

fn row(out: &mut Vec<u8>) {
    out.extend_from_slice(b"D\0\0\0\x0b\0\x01\0\0\0\x010C\0\0\0\x0dSELECT 1\0");
}

fn answer(kind: u8, out: &mut Vec<u8>) {
    match kind {
        b'P' => message(out, b'1', &[]),
        b'B' => out.extend_from_slice(b"2\0\0\0\x04"),
        b'D' => row_description(out),
        b'E' => row(out),
        b'S' => out.extend_from_slice(b"Z\0\0\0\x05I"),
        b'Q' => {
            row_description(out);
            row(out);
            message(out, b'Z', b"I");
        }
        _ => {}
    }
}
