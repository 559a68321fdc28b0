//! The witness itself: takes down what clients do, each deed on its disk before it answers.
//!
//! Clients that do not prove to know the secret get a few seconds and nothing else; the oldest of
//! many of them gives way. Those that do are bounded too: the length of a message, the time it
//! takes, idle time, connections, sessions, records.

use std::collections::VecDeque;
use std::fs::{self, DirBuilder, File};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use pgdyno_exec::trust;
use pgdyno_model::target::Secret;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::{Deserialize, Serialize};

use super::channel::Channel;
use super::connection::{Answer, Ask, LONGEST_NAME, MOST_RECORDS, Record, Standing, harmless};
use super::secret;
use crate::LabError;

/// How long a stop may go unnoticed.
const WATCH: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
/// How long it waits where a connection cannot be accepted.
const PAUSE: Duration = Duration::from_millis(50);
/// How long a client may say nothing: of a machine without power nobody hears that it hung up.
const IDLE: Duration = Duration::from_secs(10 * 60);
/// The most connections that have not proved to know the secret.
const MOST_UNPROVED: usize = 64;
/// The most connections that have.
const MOST_SERVED: usize = 512;
/// The most sessions in a directory.
const MOST_SESSIONS: usize = 1000;
/// Records in an answer: they fit into a message.
const RECORDS_AT_ONCE: usize = 200;
/// The longest line of a session's file (bytes).
const LONGEST_LINE: u64 = 64 << 10;
/// The end of a session's file.
const CLOSED: &str = "closed: ";

/// Witnesses on `listen` until `stop`, keeping what it hears in `directory`; `told` hears of
/// sessions, and first of the address. Where no `secret` is given it makes one, and tells how the
/// other side is started with it.
///
/// # Errors
/// It cannot listen there, or cannot write there; others than root and the caller could.
pub fn serve(
    listen: SocketAddr,
    directory: &Path,
    secret: Option<Secret>,
    stop: &AtomicBool,
    told: &dyn Fn(&str),
) -> Result<(), LabError> {
    let failed = |what: &str| {
        let what = what.to_owned();
        move |e: io::Error| LabError::witness(&what, e)
    };
    let keep = format!("keep anything in {}", directory.display());
    DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(failed(&keep))?;
    let directory = directory.canonicalize().map_err(failed(&keep))?;
    trust::check(&directory).map_err(|e| failed(&keep)(io::Error::other(e)))?;
    let listener = TcpListener::bind(listen).map_err(failed(&format!("listen on {listen}")))?;
    listener.set_nonblocking(true).map_err(failed("listen"))?;
    let address = listener.local_addr().map_err(failed("listen"))?;
    told(&format!("witness on {address}, keeps its ledgers in {}", directory.display()));
    let secret = match secret {
        Some(secret) => secret,
        None => {
            let secret = secret::generate().map_err(failed("make a secret"))?;
            told(&format!(
                "on the machine under test: {}={} pgdyno crash --fault plug --witness {address} --storage DIR",
                secret::VARIABLE,
                secret.reveal()
            ));
            secret
        }
    };
    let book = Arc::new(Book { directory, secret, open: Mutex::default(), door: Door::default() });
    while !stop.load(Ordering::Relaxed) {
        match listener.accept() {
            Ok((stream, from)) => {
                let Ok(entered) = book.door.enter(&stream) else { continue };
                let book = Arc::clone(&book);
                // Ends with its connection.
                let serving = std::thread::Builder::new().name(format!("witness-{from}"));
                if let Err(e) = serving.spawn(move || converse(stream, entered, &book)) {
                    told(&format!("cannot serve {from}: {e}"));
                }
            }
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                let _ = poll(&mut [PollFd::new(&listener, PollFlags::IN)], Some(&WATCH));
            }
            // One that hung up at once, or no descriptors left for now.
            Err(_) => std::thread::sleep(PAUSE),
        }
    }
    Ok(())
}

/// Connections whose other side has not proved anything, the oldest first, and how many have.
#[derive(Default)]
struct Door {
    unproved: Mutex<VecDeque<(u64, TcpStream)>>,
    entered: Mutex<u64>,
    served: AtomicUsize,
}

impl Door {
    /// Counts `stream` in; where there are too many the oldest is hung up on.
    fn enter(&self, stream: &TcpStream) -> io::Result<u64> {
        let copy = stream.try_clone()?;
        let mut entered = self.entered.lock().unwrap_or_else(PoisonError::into_inner);
        *entered += 1;
        let mut unproved = self.unproved.lock().unwrap_or_else(PoisonError::into_inner);
        if unproved.len() >= MOST_UNPROVED
            && let Some((_, oldest)) = unproved.pop_front()
        {
            let _ = oldest.shutdown(Shutdown::Both);
        }
        unproved.push_back((*entered, copy));
        Ok(*entered)
    }

    /// The connection `number` has proved itself, or is over.
    fn leave(&self, number: u64) {
        self.unproved
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .retain(|(other, _)| *other != number);
    }
}

fn converse(stream: TcpStream, entered: u64, book: &Book) {
    let channel = Channel::accept(stream, &book.secret);
    book.door.leave(entered);
    let Ok(mut channel) = channel else { return };
    let others = book.door.served.fetch_add(1, Ordering::Relaxed);
    while let Ok(Some(message)) = channel.receive(IDLE) {
        let answer = match serde_json::from_slice(&message) {
            _ if others >= MOST_SERVED => {
                Answer::Refused(format!("it serves {MOST_SERVED} connections"))
            }
            Ok(ask) => book.answer(ask).unwrap_or_else(|e| Answer::Refused(e.to_string())),
            Err(e) => Answer::Refused(format!("it does not understand that: {e}")),
        };
        let sent = serde_json::to_vec(&answer)
            .map_err(io::Error::from)
            .and_then(|text| channel.send(&text));
        if sent.is_err() || others >= MOST_SERVED {
            break;
        }
    }
    book.door.served.fetch_sub(1, Ordering::Relaxed);
}

/// The session that is written to.
struct Open {
    id: String,
    file: File,
    opened: Instant,
    records: AtomicUsize,
}

/// The first line of a session's file.
#[derive(Debug, Serialize, Deserialize)]
struct Header {
    id: String,
    machine: String,
}

/// All sessions' files.
struct Book {
    directory: PathBuf,
    secret: Secret,
    open: Mutex<Option<Arc<Open>>>,
    door: Door,
}

impl Book {
    fn answer(&self, ask: Ask) -> io::Result<Answer> {
        match ask {
            Ask::Begin(id, machine) => self.begin(id, machine).map(|()| Answer::Done),
            Ask::Tell(session, token, deed) => {
                let open = match &*self.lock() {
                    Some(open) if open.id == session => Arc::clone(open),
                    _ => {
                        return Err(io::Error::other(
                            "that session is not the one that began last",
                        ));
                    }
                };
                if open.records.fetch_add(1, Ordering::Relaxed) >= MOST_RECORDS {
                    return Err(io::Error::other(format!(
                        "a session has at most {MOST_RECORDS} records"
                    )));
                }
                let at_ms = u64::try_from(open.opened.elapsed().as_millis()).unwrap_or(u64::MAX);
                let mut line = serde_json::to_vec(&Record { token, deed, at_ms })?;
                line.push(b'\n');
                // One write to a file opened for appending: lines of several clients do not mix.
                (&open.file).write_all(&line)?;
                open.file.sync_data()?;
                Ok(Answer::Done)
            }
            Ask::Open(machine) => {
                let mut found = None;
                for entry in fs::read_dir(&self.directory)?.flatten() {
                    let Ok(header) = header(&entry.path()) else { continue };
                    if header.machine == machine && self.standing(&header.id)? == Standing::Open {
                        found = Some(header.id);
                    }
                }
                Ok(Answer::Open(found))
            }
            Ask::Session(session) => self.standing(&session).map(Answer::Session),
            Ask::History(session, from) => {
                let (records, next) = records(&self.path(&session)?, from)?;
                Ok(Answer::History(records, next))
            }
            Ask::Close(session, why) => {
                let mut file = File::options().append(true).open(self.path(&session)?)?;
                // On a line of its own, also after one that was cut short.
                writeln!(file, "\n{CLOSED}{}", harmless(&why))?;
                file.sync_all()?;
                self.lock().take_if(|open| open.id == session);
                Ok(Answer::Done)
            }
        }
    }

    fn begin(&self, id: String, machine: String) -> io::Result<()> {
        let path = self.path(&id)?;
        if machine.is_empty() || machine.len() > LONGEST_NAME {
            return Err(io::Error::other("that is no machine's name"));
        }
        if fs::read_dir(&self.directory)?.count() >= MOST_SESSIONS {
            return Err(io::Error::other(format!(
                "its directory holds {MOST_SESSIONS} sessions already"
            )));
        }
        let mut file = File::options().append(true).create_new(true).mode(0o600).open(&path)?;
        let mut line = serde_json::to_vec(&Header { id: id.clone(), machine })?;
        line.push(b'\n');
        file.write_all(&line)?;
        file.sync_all()?;
        File::open(&self.directory)?.sync_all()?;
        let open = Open { id, file, opened: Instant::now(), records: AtomicUsize::new(0) };
        *self.lock() = Some(Arc::new(open));
        Ok(())
    }

    fn standing(&self, session: &str) -> io::Result<Standing> {
        let path = self.path(session)?;
        if !path.is_file() {
            return Ok(Standing::Unknown);
        }
        Ok(if is_closed(&path)? { Standing::Closed } else { Standing::Open })
    }

    fn lock(&self) -> MutexGuard<'_, Option<Arc<Open>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The file of session `id`, whose name comes from outside.
    fn path(&self, id: &str) -> io::Result<PathBuf> {
        let harmless = |c: char| c.is_ascii_alphanumeric() || c == '-';
        if id.is_empty() || id.len() > LONGEST_NAME || !id.chars().all(harmless) {
            return Err(io::Error::other("that is no session's name"));
        }
        Ok(self.directory.join(format!("{id}.witness")))
    }
}

fn header(path: &Path) -> io::Result<Header> {
    let mut line = String::new();
    BufReader::new(File::open(path)?.take(LONGEST_LINE)).read_line(&mut line)?;
    Ok(serde_json::from_str(&line)?)
}

/// Whether the file ends with the word that closes it.
fn is_closed(path: &Path) -> io::Result<bool> {
    /// More than the longest reason takes.
    const END: u64 = 4096;
    let mut file = File::open(path)?;
    let size = file.seek(SeekFrom::End(0))?;
    file.seek(SeekFrom::Start(size.saturating_sub(END)))?;
    let mut end = Vec::new();
    file.take(END).read_to_end(&mut end)?;
    Ok(String::from_utf8_lossy(&end).lines().any(|line| line.starts_with(CLOSED)))
}

/// Some records of a session's file from the byte `from` on, and where the next ones begin; none
/// after the last.
fn records(path: &Path, from: u64) -> io::Result<(Vec<Record>, Option<u64>)> {
    let mut file = BufReader::new(File::open(path)?);
    let mut at = file.seek(SeekFrom::Start(from))?;
    let mut records = Vec::new();
    let mut line = Vec::new();
    while records.len() < RECORDS_AT_ONCE {
        line.clear();
        let read = (&mut file).take(LONGEST_LINE).read_until(b'\n', &mut line)?;
        if read == 0 {
            return Ok((records, None));
        }
        at += u64::try_from(read).unwrap_or_default();
        // The header, the word that closes it, and a line cut short, which was never answered, are
        // no records.
        records.extend(serde_json::from_slice::<Record>(&line));
    }
    Ok((records, Some(at)))
}

#[cfg(test)]
mod tests;
