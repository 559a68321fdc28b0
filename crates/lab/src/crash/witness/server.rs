//! The witness itself: takes down what clients do, each deed on its disk before it answers.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use super::{Answer, Ask, Header, Record, receive, send};
use crate::LabError;

/// How long a stop may go unnoticed.
const WATCH: Duration = Duration::from_millis(50);
/// The end of a session's file.
const CLOSED: &str = "closed: ";

/// Witnesses on `listen` until `stop`, keeping what it hears in `directory`; `told` hears of sessions, and first of the address.
///
/// # Errors
/// It cannot listen there, or cannot write there.
pub fn serve(
    listen: SocketAddr,
    directory: &Path,
    stop: &AtomicBool,
    told: &dyn Fn(&str),
) -> Result<(), LabError> {
    let failed = |what: &str| {
        let what = what.to_owned();
        move |e: io::Error| LabError::Witness { what, found: e.to_string() }
    };
    fs::create_dir_all(directory).map_err(failed(&format!("keep anything in {}", directory.display())))?;
    let listener = TcpListener::bind(listen).map_err(failed(&format!("listen on {listen}")))?;
    listener.set_nonblocking(true).map_err(failed("listen"))?;
    let address = listener.local_addr().map_err(failed("listen"))?;
    told(&format!("witness on {address}, keeps its ledgers in {}", directory.display()));
    if !address.ip().is_loopback() {
        told("whoever reaches this address can write to it: use a private network");
    }
    let book = Arc::new(Book { directory: directory.to_owned(), open: Mutex::default() });
    while !stop.load(Ordering::Relaxed) {
        match listener.accept() {
            Ok((stream, from)) => {
                let book = Arc::clone(&book);
                // Ends with its connection.
                let serving = std::thread::Builder::new().name(format!("witness-{from}"));
                if let Err(e) = serving.spawn(move || converse(stream, &book)) {
                    told(&format!("cannot serve {from}: {e}"));
                }
            }
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => std::thread::sleep(WATCH),
            Err(e) => return Err(failed("take a connection")(e)),
        }
    }
    Ok(())
}

fn converse(stream: TcpStream, book: &Book) {
    // A connection on which that fails serves slowly.
    let _ = stream.set_nonblocking(false);
    let _ = stream.set_nodelay(true);
    let mut stream = BufReader::new(stream);
    while let Ok(Some(ask)) = receive::<Ask>(&mut stream) {
        let answer = book.answer(ask).unwrap_or_else(|e| Answer::Refused(e.to_string()));
        if send(stream.get_mut(), &answer).is_err() {
            return;
        }
    }
}

type Open = Option<(String, Arc<File>, Instant)>;

/// All sessions' files.
struct Book {
    directory: PathBuf,
    /// The session that is written to: its name, its file, and when it was opened.
    open: Mutex<Open>,
}

impl Book {
    fn answer(&self, ask: Ask) -> io::Result<Answer> {
        match ask {
            Ask::Begin(header) => {
                let path = self.path(&header.id)?;
                let mut file = File::options().append(true).create_new(true).mode(0o600).open(&path)?;
                let mut line = serde_json::to_vec(&header)?;
                line.push(b'\n');
                file.write_all(&line)?;
                file.sync_all()?;
                File::open(&self.directory)?.sync_all()?;
                *self.lock()? = Some((header.id.clone(), Arc::new(file), Instant::now()));
                Ok(Answer::Done)
            }
            Ask::Tell(session, token, deed) => {
                let (file, since) = match &*self.lock()? {
                    Some((id, file, since)) if *id == session => (Arc::clone(file), *since),
                    _ => {
                        return Err(io::Error::other(format!(
                            "session {session} is not the one that began last"
                        )));
                    }
                };
                let at_ms = u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX);
                let mut line = serde_json::to_vec(&Record { token, deed, at_ms })?;
                line.push(b'\n');
                // One write to a file opened for appending: lines of several clients do not mix.
                (&*file).write_all(&line)?;
                file.sync_data()?;
                Ok(Answer::Done)
            }
            Ask::Open(machine) => {
                let mut found = None;
                for entry in fs::read_dir(&self.directory)?.flatten() {
                    let Ok((header, _, closed)) = read(&entry.path()) else { continue };
                    if header.machine == machine && !closed {
                        found = Some(Box::new(header));
                    }
                }
                Ok(Answer::Session(found))
            }
            Ask::History(session) => Ok(Answer::History(read(&self.path(&session)?)?.1)),
            Ask::Close(session, why) => {
                let mut file = File::options().append(true).open(self.path(&session)?)?;
                writeln!(file, "{CLOSED}{}", why.replace('\n', " "))?;
                file.sync_all()?;
                Ok(Answer::Done)
            }
        }
    }

    fn lock(&self) -> io::Result<MutexGuard<'_, Open>> {
        self.open.lock().map_err(|_| io::Error::other("another connection's thread panicked"))
    }

    /// The file of session `id`, whose name comes from outside.
    fn path(&self, id: &str) -> io::Result<PathBuf> {
        let harmless = |c: char| c.is_ascii_alphanumeric() || c == '-';
        if id.is_empty() || id.len() > 80 || !id.chars().all(harmless) {
            return Err(io::Error::other("that is no session's name"));
        }
        Ok(self.directory.join(format!("{id}.witness")))
    }
}

/// A session's file: its header, its records, whether it is closed.
fn read(path: &Path) -> io::Result<(Header, Vec<Record>, bool)> {
    let mut lines = BufReader::new(File::open(path)?).lines();
    let head = lines.next().ok_or_else(|| io::Error::other("an empty file"))??;
    let header = serde_json::from_str(&head)?;
    let (mut records, mut closed) = (Vec::new(), false);
    for line in lines {
        let line = line?;
        if line.starts_with(CLOSED) {
            closed = true;
        } else if let Ok(record) = serde_json::from_str(&line) {
            // A line cut short was never answered.
            records.push(record);
        }
    }
    Ok((header, records, closed))
}
