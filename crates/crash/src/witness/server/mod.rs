//! The witness itself: takes down what clients do, each deed on its disk before it answers.
//!
//! It reads from its standard input and answers on its standard output; `ssh` has let in who speaks
//! there. What came together is flushed together. It ends with its input, at a signal, or when it
//! has heard nothing for [`PATIENCE`]: of a machine without power nobody hears that it hung up.

use std::fs::{self, DirBuilder, File};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use super::error::WitnessError;
use pgdyno_exec::files::sync_directory;
use pgdyno_exec::trust;
use pgdyno_generators::protocol::frame::{self, FrameError};
use pgdyno_model::ledger::Token;
use serde::{Deserialize, Serialize};
use std::error::Error;

use super::connection::{
    Answer, Ask, Deed, LONGEST_NAME, LOOK, MOST_RECORDS, PATIENCE, Record, Standing, harmless,
};
use pgdyno_provision::BenchError;

/// Records in an answer, and deeds that are flushed together.
const RECORDS_AT_ONCE: usize = 1000;
/// The longest line of a session's file (bytes).
const LONGEST_LINE: u64 = 64 << 10;
/// The end of a session's file.
const CLOSED: &str = "closed: ";

/// Witnesses for the pgdyno that writes `from` and reads `to`, until that is gone or silent, or
/// `stop`; keeps what it hears in `directory`.
///
/// # Errors
/// It cannot write to the directory, or others than root and the caller could; who speaks is no
/// pgdyno, or is silent.
pub fn serve(
    directory: &Path,
    from: impl Read + Send + 'static,
    to: impl Write + Send + 'static,
    stop: &AtomicBool,
) -> Result<(), BenchError> {
    serve_for(PATIENCE, directory, from, to, stop)
}

/// As [`serve`], for a pgdyno that may be silent for so long.
fn serve_for(
    patience: Duration,
    directory: &Path,
    from: impl Read + Send + 'static,
    to: impl Write + Send + 'static,
    stop: &AtomicBool,
) -> Result<(), BenchError> {
    let unusable = |source: Box<dyn Error + Send + Sync>| WitnessError::Directory {
        directory: directory.to_owned(),
        source,
    };
    let made = DirBuilder::new().recursive(true).mode(0o700).create(directory);
    made.map_err(|e| unusable(e.into()))?;
    let found = directory.canonicalize().map_err(|e| unusable(e.into()))?;
    trust::check(&found).map_err(|e| unusable(e.into()))?;
    let (tell, heard) = channel();
    // Not joined: neither a pipe that brings nothing nor one that takes nothing can be told to end.
    thread::spawn(move || {
        let mut book = Book { directory: found, open: None };
        let ended = book.converse(from, to, &|| drop(tell.send(Ok(()))));
        // The last word: nobody holds `tell` after it.
        if ended.is_err() {
            let _ = tell.send(ended);
        }
    });
    let mut last = Instant::now();
    while !stop.load(Ordering::Relaxed) {
        match heard.recv_timeout(LOOK) {
            Ok(Ok(())) => last = Instant::now(),
            Ok(Err(e)) => return Err(WitnessError::Ledger(e).into()),
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) if last.elapsed() >= patience => {
                let directory = directory.to_owned();
                return Err(WitnessError::Silent { patience, directory }.into());
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
    Ok(())
}

/// The session that is written to.
struct Open {
    id: String,
    file: File,
    opened: Instant,
    records: usize,
    /// Lines that are not in the file yet, and how many.
    lines: Vec<u8>,
    told: usize,
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
    open: Option<Open>,
}

impl Book {
    /// Answers until the other side is gone; `heard` is called at each of its words.
    fn converse(
        &mut self,
        from: impl Read,
        mut to: impl Write,
        heard: &dyn Fn(),
    ) -> Result<(), FrameError> {
        let mut from = BufReader::new(from);
        let ended = loop {
            let ask = match frame::read(&mut from) {
                Ok(Some(ask)) => ask,
                Ok(None) | Err(FrameError::Io(_)) => break Ok(()),
                Err(e) => break Err(e),
            };
            heard();
            let mut answers = Vec::new();
            let answer = match ask {
                Ask::Stay => Ok(None),
                Ask::Tell(token, deed) => self.tell(token, deed).map(|()| None),
                ask => {
                    answers = self.flush();
                    self.answer(ask).map(Some)
                }
            };
            if from.buffer().is_empty() || answer.is_err() || self.told() >= RECORDS_AT_ONCE {
                answers.extend(self.flush());
            }
            answers.extend(answer.unwrap_or_else(|e| Some(Answer::Refused(e.to_string()))));
            // A side that takes no answers is found to be gone at the next read.
            let _ = answers.iter().try_for_each(|answer| frame::write(&mut to, answer));
        };
        // All that the connection brought is kept.
        self.flush();
        ended
    }

    /// How many deeds wait for a flush.
    fn told(&self) -> usize {
        self.open.as_ref().map_or(0, |open| open.told)
    }

    /// Has the disk keep the deeds that were told, and returns their answers.
    fn flush(&mut self) -> Vec<Answer> {
        let Some(open) = self.open.as_mut().filter(|open| open.told > 0) else { return Vec::new() };
        let told = std::mem::take(&mut open.told);
        let kept = open.file.write_all(&open.lines).and_then(|()| open.file.sync_data());
        open.lines.clear();
        let Err(e) = kept else { return (0..told).map(|_| Answer::Done).collect() };
        // Nothing is to stand behind a line that may be cut short.
        self.open = None;
        (0..told).map(|_| Answer::Refused(e.to_string())).collect()
    }

    fn tell(&mut self, token: Token, deed: Deed) -> io::Result<()> {
        let Some(open) = &mut self.open else { return Err(io::Error::other("no session is open")) };
        if open.records >= MOST_RECORDS {
            return Err(io::Error::other(format!("a session has at most {MOST_RECORDS} records")));
        }
        open.records += 1;
        let at_ms = u64::try_from(open.opened.elapsed().as_millis()).unwrap_or(u64::MAX);
        serde_json::to_writer(&mut open.lines, &Record { token, deed, at_ms })?;
        open.lines.push(b'\n');
        open.told += 1;
        Ok(())
    }

    fn answer(&mut self, ask: Ask) -> io::Result<Answer> {
        match ask {
            Ask::Begin(id, machine) => self.begin(id, machine).map(|()| Answer::Done),
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
                self.open.take_if(|open| open.id == session);
                Ok(Answer::Done)
            }
            Ask::Tell(..) | Ask::Stay => Err(io::Error::other("that is not answered by itself")),
        }
    }

    fn begin(&mut self, id: String, machine: String) -> io::Result<()> {
        let path = self.path(&id)?;
        if machine.is_empty() || machine.len() > LONGEST_NAME {
            return Err(io::Error::other("that is no machine's name"));
        }
        let mut file = File::options().append(true).create_new(true).mode(0o600).open(&path)?;
        let mut line = serde_json::to_vec(&Header { id: id.clone(), machine })?;
        line.push(b'\n');
        file.write_all(&line)?;
        file.sync_all()?;
        sync_directory(&self.directory)?;
        let opened = Instant::now();
        self.open = Some(Open { id, file, opened, records: 0, lines: Vec::new(), told: 0 });
        Ok(())
    }

    fn standing(&self, session: &str) -> io::Result<Standing> {
        let path = self.path(session)?;
        if !path.is_file() {
            return Ok(Standing::Unknown);
        }
        Ok(if is_closed(&path)? { Standing::Closed } else { Standing::Open })
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
