//! Programs that launchers start, and what they complain of.

use std::ffi::OsString;
use std::io::{self, Read};
use std::path::PathBuf;
use std::process::{Child, ExitStatus};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::error::Fault;

/// Starts a program with pipes for its standard input, output and errors. Whoever may start
/// programs provides it.
pub type StartProgram = fn(&[OsString]) -> io::Result<Child>;

/// The most of a program's complaints that is kept (bytes).
const COMPLAINTS: usize = 64 << 10;
/// Pause between two looks at a process that ends.
const PAUSE: Duration = Duration::from_millis(5);
/// Time that the last complaints of a program that ended have to arrive. A background process of
/// `ssh` may hold the pipe for hours.
const LAST_WORDS: Duration = Duration::from_millis(200);

/// A program whose complaints are read.
#[derive(Debug)]
pub struct Launched {
    /// The program.
    pub child: Child,
    complaints: Arc<Mutex<Vec<u8>>>,
    reader: Option<JoinHandle<()>>,
}

impl Launched {
    /// Starts `words`.
    pub(crate) fn start(words: &[OsString], start: StartProgram) -> Result<Self, Fault> {
        let program = words.first().map(|word| word.to_string_lossy()).unwrap_or_default();
        let mut child = start(words)
            .map_err(|error| Fault::Launch(format!("cannot run {program}: {error}")))?;
        let complaints: Arc<Mutex<Vec<u8>>> = Arc::default();
        let kept = Arc::clone(&complaints);
        let reader = child.stderr.take().map(|from| std::thread::spawn(move || read(from, &kept)));
        Ok(Self { child, complaints, reader })
    }

    /// Waits until `limit` for the program to end. Returns its status; none: it runs.
    pub(crate) fn wait_until(&mut self, limit: Instant) -> Option<ExitStatus> {
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) => return Some(status),
                Ok(None) if Instant::now() < limit => std::thread::sleep(PAUSE),
                _ => return None,
            }
        }
    }

    /// Waits until `limit` for the program to end, then kills it. Returns its status.
    pub fn end(&mut self, limit: Instant) -> Option<ExitStatus> {
        self.wait_until(limit).or_else(|| {
            let _ = self.child.kill();
            self.child.wait().ok()
        })
    }

    /// Says how the program ended: its first error, its last complaint, or its status. It must have
    /// ended.
    pub fn how(&self, status: Option<ExitStatus>) -> String {
        let limit = Instant::now() + LAST_WORDS;
        while self.reader.as_ref().is_some_and(|reader| !reader.is_finished())
            && Instant::now() < limit
        {
            std::thread::sleep(Duration::from_millis(1));
        }
        let last = self.complaints.lock().map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        let last = last.unwrap_or_default();
        let first_error = last.lines().find(|line| line.contains("error: "));
        match first_error.or_else(|| last.lines().rev().find(|line| !line.trim().is_empty())) {
            Some(line) => line.trim().to_owned(),
            None => status.map_or_else(|| "without a word".to_owned(), |s| s.to_string()),
        }
    }

    /// Waits for its end; returns what it printed, or how it failed.
    pub(crate) fn output(mut self) -> Result<String, Fault> {
        let mut text = String::new();
        let read = self.child.stdout.take().map(|mut from| from.read_to_string(&mut text));
        let status = self.child.wait().map_err(|error| Fault::Launch(error.to_string()))?;
        match (status.success(), read) {
            (true, None | Some(Ok(_))) => Ok(text),
            _ => Err(Fault::Launch(self.how(Some(status)))),
        }
    }
}

/// Reads what a program complains of; the rest of a long complaint is thrown away.
fn read(mut from: impl Read, kept: &Mutex<Vec<u8>>) {
    let mut piece = [0; 4096];
    while let Ok(read @ 1..) = from.read(&mut piece) {
        if let Ok(mut kept) = kept.lock() {
            let room = COMPLAINTS.saturating_sub(kept.len());
            kept.extend_from_slice(&piece[..read.min(room)]);
        }
    }
}

/// Returns this program's file.
pub(super) fn this_program() -> Result<PathBuf, Fault> {
    std::env::current_exe()
        .map_err(|error| Fault::Launch(format!("cannot find this program's file: {error}")))
}
