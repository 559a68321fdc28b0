//! A server of threads that plays every kind of bad peer.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::park;

/// Behaviour of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Answers every query with one row.
    Honest,
    /// Answers `SELECT 1` and refuses every other query, as a server without PostgreSQL's
    /// catalogues.
    KnowsNoCatalog,
    /// Accepts and says nothing.
    Silent,
    /// Accepts the request for TLS and says nothing more.
    StallsInTls,
    /// Says nothing after a demand for SCRAM.
    StallsInAuthentication,
    /// Says nothing before the first ReadyForQuery.
    StallsBeforeReady,
    /// Says nothing to a query.
    StallsInQuery,
    /// Sends half of the first message of a reply.
    SendsHalfAMessage,
    /// Sends settings without end before the first ReadyForQuery.
    EndlessSettings,
    /// Sends notices without end in place of a reply.
    EndlessNotices,
    /// Begins a message of a gigabyte before the first ReadyForQuery.
    GiantMessage,
    /// Demands the password in clear text.
    WantsPassword,
    /// Answers each query with one reply and four times ReadyForQuery.
    FiveReady,
    /// Answers each query with five replies.
    FiveReplies,
    /// Follows each reply with copy data.
    CopyData,
}

/// The server. Its threads end with the test's process.
pub(crate) struct FakeServer {
    pub(crate) port: u16,
    /// Receives a value for each connection that reached the point where its mode shows.
    arrived: Receiver<()>,
    /// Bytes that came in answer to a demand for the password.
    pub(crate) secrets: Arc<Mutex<Vec<u8>>>,
}

fn message(tag: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![tag];
    bytes.extend(u32::try_from(body.len() + 4).unwrap().to_be_bytes());
    bytes.extend_from_slice(body);
    bytes
}

impl FakeServer {
    /// A server whose first `honest` connections are honest, and all later ones play `mode`.
    pub(crate) fn start(honest: usize, mode: Mode) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (sender, arrived) = channel();
        let secrets = Arc::new(Mutex::new(Vec::new()));
        let recorded = Arc::clone(&secrets);
        let counted = Arc::new(AtomicUsize::new(0));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                stream.set_nodelay(true).unwrap();
                let peer = Peer {
                    stream,
                    arrived: sender.clone(),
                    secrets: Arc::clone(&recorded),
                    counted: Arc::clone(&counted),
                };
                std::thread::spawn(move || {
                    // A client that hangs up ends its connection's thread.
                    let _ = peer.play(honest, mode);
                });
            }
        });
        Self { port, arrived, secrets }
    }

    /// Waits until a connection has come to where its mode is played.
    pub(crate) fn await_arrival(&self) {
        self.arrived.recv_timeout(std::time::Duration::from_secs(60)).unwrap();
    }
}

struct Peer {
    stream: TcpStream,
    arrived: Sender<()>,
    secrets: Arc<Mutex<Vec<u8>>>,
    counted: Arc<AtomicUsize>,
}

impl Peer {
    fn stall(&self) -> ! {
        self.arrive();
        loop {
            park();
        }
    }

    fn arrive(&self) {
        // The test may be over.
        let _ = self.arrived.send(());
    }

    fn flood(&mut self, part: &[u8]) -> std::io::Result<()> {
        self.arrive();
        loop {
            self.stream.write_all(part)?;
        }
    }

    fn packet(&mut self) -> std::io::Result<Vec<u8>> {
        let mut length = [0; 4];
        self.stream.read_exact(&mut length)?;
        let mut body = vec![0; u32::from_be_bytes(length) as usize - 4];
        self.stream.read_exact(&mut body)?;
        Ok(body)
    }

    fn play(mut self, honest: usize, mode: Mode) -> std::io::Result<()> {
        if mode == Mode::Silent && honest == 0 {
            self.stall();
        }
        let mut first = self.packet()?;
        let asks_for_tls = first == 80_877_103_u32.to_be_bytes();
        if asks_for_tls {
            if mode == Mode::StallsInTls && honest <= self.counted.load(Ordering::SeqCst) {
                self.stream.write_all(b"S")?;
                self.stall();
            }
            self.stream.write_all(b"N")?;
            first = self.packet()?;
        }
        if first[..4] == 80_877_102_u32.to_be_bytes() {
            return Ok(());
        }
        let number = self.counted.fetch_add(1, Ordering::SeqCst);
        let mode = if number < honest { Mode::Honest } else { mode };
        self.start_up(mode)?;
        let mut tag = [0];
        while self.stream.read_exact(&mut tag).is_ok() {
            let body = self.packet()?;
            self.answer(tag[0], &body, mode)?;
        }
        Ok(())
    }

    fn start_up(&mut self, mode: Mode) -> std::io::Result<()> {
        match mode {
            Mode::Silent => self.stall(),
            Mode::StallsInAuthentication => {
                self.stream.write_all(&message(b'R', b"\0\0\0\x0aSCRAM-SHA-256\0\0"))?;
                self.stall();
            }
            Mode::WantsPassword => {
                self.stream.write_all(&message(b'R', &[0, 0, 0, 3]))?;
                self.arrive();
                let mut tag = [0];
                self.stream.read_exact(&mut tag)?;
                let secret = self.packet()?;
                self.secrets.lock().unwrap().extend(secret);
            }
            Mode::GiantMessage => self.stream.write_all(b"S\x3f\xff\xff\xf0")?,
            _ => {}
        }
        self.stream.write_all(&message(b'R', &[0; 4]))?;
        if mode == Mode::EndlessSettings {
            return self.flood(&message(b'S', b"name\0value\0").repeat(1000));
        }
        let told =
            [message(b'S', b"server_version\x0015.4\0"), message(b'K', &[0, 0, 0, 1, 1, 2, 3, 4])];
        self.stream.write_all(&told.concat())?;
        if mode == Mode::StallsBeforeReady {
            self.stall();
        }
        self.stream.write_all(&message(b'Z', b"I"))
    }

    fn answer(&mut self, tag: u8, body: &[u8], mode: Mode) -> std::io::Result<()> {
        let described = b"\0\x01a\0\0\0\0\0\0\0\0\0\0\x19\xff\xff\xff\xff\xff\xff\0\0";
        let row = message(b'D', b"\0\x01\0\0\0\x06150000");
        let complete = [row, message(b'C', b"SELECT 1\0")].concat();
        let reply = match tag {
            b'Q' => [message(b'T', described), complete].concat(),
            b'P' => return self.stream.write_all(&message(b'1', b"")),
            b'B' => return self.stream.write_all(&message(b'2', b"")),
            b'E' => return self.stream.write_all(&complete),
            b'S' => Vec::new(),
            _ => return Ok(()),
        };
        let ready = message(b'Z', b"I");
        match mode {
            Mode::StallsInQuery => self.stall(),
            Mode::SendsHalfAMessage => {
                self.stream.write_all(b"T\0\0")?;
                self.stall();
            }
            Mode::EndlessNotices => {
                let fields = b"SNOTICE\0VNOTICE\0C00000\0Mhello\0\0";
                return self.flood(&message(b'N', fields).repeat(1000));
            }
            _ => {}
        }
        let lie = match mode {
            Mode::FiveReady => ready.repeat(4),
            Mode::FiveReplies => [message(b'C', b"SELECT 1\0"), ready.clone()].concat().repeat(4),
            Mode::CopyData => message(b'd', b"x"),
            _ => Vec::new(),
        };
        if mode == Mode::KnowsNoCatalog && !body.starts_with(b"SELECT 1;") {
            let refused = message(b'E', b"SERROR\0VERROR\0C42P01\0Mno such relation\0\0");
            return self.stream.write_all(&[refused, ready].concat());
        }
        self.stream.write_all(&[reply, ready, lie].concat())
    }
}
