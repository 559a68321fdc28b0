//! A server that answers at once: what a load generator can do when nobody holds it up. One thread, epoll, one row for
//! every Execute or Query.

use std::collections::HashMap;
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
    let mut peers: HashMap<u64, Peer> = HashMap::new();
    let mut next = 1;
    let mut events = Vec::with_capacity(1024);
    let mut out = Vec::new();
    loop {
        events.clear();
        epoll::wait(&poll, rustix::buffer::spare_capacity(&mut events), None)?;
        for event in &events {
            let id = event.data.u64();
            if id == 0 {
                while let Ok((stream, _)) = listener.accept() {
                    stream.set_nonblocking(true)?;
                    epoll::add(&poll, &stream, epoll::EventData::new_u64(next), epoll::EventFlags::IN)?;
                    peers.insert(next, Peer { stream, received: Vec::new(), started: false });
                    next += 1;
                }
                continue;
            }
            let gone = peers.get_mut(&id).is_some_and(|peer| !peer.turn(&mut out));
            if gone {
                // Closing the socket takes it out of the epoll set.
                peers.remove(&id);
            }
        }
    }
}

impl Peer {
    /// Answers what has come; false when the peer is gone.
    fn turn(&mut self, out: &mut Vec<u8>) -> bool {
        let mut chunk = [0; 16384];
        match self.stream.read(&mut chunk) {
            Ok(0) => return false,
            Ok(n) => self.received.extend_from_slice(&chunk[..n]),
            Err(e) if e.kind() == ErrorKind::WouldBlock => return true,
            Err(_) => return false,
        }
        out.clear();
        let mut at = 0;
        loop {
            let rest = &self.received[at..];
            let head = usize::from(self.started);
            let Some(length) = rest.get(head..head + 4) else { break };
            let length = head + u32::from_be_bytes([length[0], length[1], length[2], length[3]]) as usize;
            if rest.len() < length {
                break;
            }
            if self.started {
                if rest[0] == b'X' {
                    return false;
                }
                answer(rest[0], out);
            } else if rest[4..8] == 80_877_103_u32.to_be_bytes() || rest[4..8] == 80_877_104_u32.to_be_bytes()
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
        self.received.drain(..at);
        self.stream.write_all(out).is_ok()
    }
}

fn message(out: &mut Vec<u8>, kind: u8, body: &[u8]) {
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
    message(out, b'D', &[0, 1, 0, 0, 0, 1, b'0']);
    message(out, b'C', b"SELECT 1\0");
}

fn answer(kind: u8, out: &mut Vec<u8>) {
    match kind {
        b'P' => message(out, b'1', &[]),
        b'B' => message(out, b'2', &[]),
        b'D' => row_description(out),
        b'E' => row(out),
        b'S' => message(out, b'Z', b"I"),
        b'Q' => {
            row_description(out);
            row(out);
            message(out, b'Z', b"I");
        }
        _ => {}
    }
}
