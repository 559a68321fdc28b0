//! Who may come in: each connection in a thread of its own, the door in another.

use std::io::{self, Read};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::stream::{Reader, Writer, shake_hands};
use super::tls::{self, Server};
use super::token::Token;
use super::{Answer, Greeting, HANDSHAKE};
use crate::protocol::frame;

/// The longest greeting (bytes).
const GREETING: u64 = 4096;
/// Connections that may be unproven at one time, beside one for each worker.
const UNPROVEN: usize = 64;
/// Pause where the system has no descriptor or memory for another connection.
const PAUSE: Duration = Duration::from_millis(100);

/// Outcome of a connection.
pub(super) enum Arrival {
    /// A worker that proved itself.
    Accepted { host: String, reader: Reader, writer: Writer },
    /// A connection that was refused, and why.
    Refused { from: SocketAddr, why: String },
}

/// State shared by the threads of all connections.
struct Desk {
    server: Server,
    token: Token,
    /// Workers to accept (count).
    asked: usize,
    /// Workers accepted so far (count).
    came: Mutex<usize>,
    /// Connections that have not proved themselves (count).
    unproven: AtomicUsize,
    is_closed: AtomicBool,
    arrivals: Sender<Arrival>,
}

/// The open door; it is closed with this value.
pub(super) struct Door {
    listener: Arc<TcpListener>,
    desk: Arc<Desk>,
    thread: Option<JoinHandle<()>>,
}

impl Door {
    /// Accepts `asked` workers that have `token`, and refuses all others.
    pub(super) fn open(
        listener: TcpListener,
        server: Server,
        token: Token,
        asked: usize,
        arrivals: Sender<Arrival>,
    ) -> io::Result<Self> {
        let (unproven, is_closed) = (AtomicUsize::new(0), AtomicBool::new(false));
        let came = Mutex::new(0);
        let desk = Desk { server, token, asked, came, unproven, is_closed, arrivals };
        let (listener, desk) = (Arc::new(listener), Arc::new(desk));
        let (listening, serving) = (Arc::clone(&listener), Arc::clone(&desk));
        let thread = std::thread::Builder::new()
            .name("door".into())
            .spawn(move || accept(&listening, &serving))?;
        Ok(Self { listener, desk, thread: Some(thread) })
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        self.desk.is_closed.store(true, Ordering::Relaxed);
        // Wakes the thread.
        let _ = rustix::net::shutdown(&self.listener, rustix::net::Shutdown::Both);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn accept(listener: &TcpListener, desk: &Arc<Desk>) {
    loop {
        let accepted = listener.accept();
        if desk.is_closed.load(Ordering::Relaxed) {
            return;
        }
        let Ok((socket, from)) = accepted else {
            std::thread::sleep(PAUSE);
            continue;
        };
        if desk.unproven.fetch_add(1, Ordering::Relaxed) >= UNPROVEN + desk.asked {
            desk.unproven.fetch_sub(1, Ordering::Relaxed);
            continue;
        }
        let theirs = Arc::clone(desk);
        let spawned = std::thread::Builder::new().name("arrival".into()).spawn(move || {
            let arrival = theirs.admit(socket).unwrap_or_else(|why| Arrival::Refused { from, why });
            theirs.unproven.fetch_sub(1, Ordering::Relaxed);
            let _ = theirs.arrivals.send(arrival);
        });
        if spawned.is_err() {
            desk.unproven.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl Desk {
    /// Lets a worker in, or says why not.
    fn admit(&self, socket: TcpStream) -> Result<Arrival, String> {
        let until = Instant::now() + HANDSHAKE;
        let shaken = self
            .server
            .connection()
            .map_err(io::Error::other)
            .and_then(|tls| shake_hands(socket, tls, until, tls::channel));
        let (mut reader, mut writer, channel) =
            shaken.map_err(|error| format!("no TLS: {error}"))?;
        let greeting = frame::read::<Greeting>(&mut (&mut reader).take(GREETING));
        let refusal = match &greeting {
            Ok(Some(greeting)) if !self.token.is_proof(&greeting.proof, &channel) => {
                "its token is not the one of this run"
            }
            Ok(Some(_)) => match self.count() {
                true => "",
                false => "all workers have come",
            },
            Ok(None) | Err(_) => "it showed no token",
        };
        let Some(greeting) = greeting.ok().flatten().filter(|_| refusal.is_empty()) else {
            let _ = frame::write(&mut writer, &Answer::Refused(refusal.to_owned()));
            return Err(refusal.to_owned());
        };
        // One that is gone already is noticed by whoever waits with it.
        let _ = frame::write(&mut writer, &Answer::Accepted);
        let _ = reader.set_deadline(None);
        Ok(Arrival::Accepted { host: printable(&greeting.host), reader, writer })
    }

    /// Counts another worker, if one is wanted.
    fn count(&self) -> bool {
        let Ok(mut came) = self.came.lock() else { return false };
        let is_wanted = *came < self.asked;
        *came += usize::from(is_wanted);
        is_wanted
    }
}

/// A host's name as it may be shown.
fn printable(host: &str) -> String {
    let is_plain = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
    let plain: String = host.chars().filter(is_plain).take(63).collect();
    if plain.is_empty() { "worker".to_owned() } else { plain }
}
