//! A program on a pseudo-terminal, and what its user sees.

use std::fs::File;
use std::io::Write as _;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use super::{Ended, ended};

/// How long a test waits for something to be seen.
const PATIENCE: Duration = Duration::from_secs(120);

/// Columns and rows of a terminal.
pub type Size = (u16, u16);

/// A program on a pseudo-terminal.
pub struct Terminal {
    ours: File,
    pub child: Child,
    /// All that was written and not drained by [`Terminal::await_text`].
    pub seen: String,
    screen: avt::Terminal,
    /// The beginning of a character whose other bytes are still to come.
    partial: Vec<u8>,
}

impl Terminal {
    /// Starts `command` with standard input and standard error on a terminal; standard output goes
    /// there too unless `stdout` names another place.
    pub fn start(mut command: Command, (columns, rows): Size, stdout: Option<Stdio>) -> Self {
        let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&ours).unwrap();
        unlockpt(&ours).unwrap();
        let size = Winsize { ws_col: columns, ws_row: rows, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&ours, size).unwrap();
        let name = ptsname(&ours, Vec::new()).unwrap();
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let theirs: OwnedFd = rustix::fs::open(name, flags, Mode::empty()).unwrap();
        let stdout = stdout.unwrap_or_else(|| theirs.try_clone().unwrap().into());
        command.stdin(theirs.try_clone().unwrap()).stderr(theirs).stdout(stdout);
        let screen = avt::Terminal::new(columns.into(), rows.into()).unwrap();
        let child = command.spawn().unwrap();
        Self { ours: ours.into(), child, seen: String::new(), screen, partial: Vec::new() }
    }

    /// Hangs up, as a closed window does. Returns how the program ended.
    pub fn hang_up(mut self) -> std::process::ExitStatus {
        drop(self.ours);
        self.child.wait().unwrap()
    }

    /// Returns the rows that the user sees, without those that are blank at the end.
    pub fn rows(&self) -> Vec<String> {
        let rows = self.screen.screen().text();
        let mut rows: Vec<String> = rows.iter().map(|row| row.trim_end().to_owned()).collect();
        while rows.last().is_some_and(String::is_empty) {
            rows.pop();
        }
        rows
    }

    /// Changes the size of the terminal.
    pub fn resize(&mut self, (columns, rows): Size) {
        let size = Winsize { ws_col: columns, ws_row: rows, ws_xpixel: 0, ws_ypixel: 0 };
        self.screen.resize(columns.into(), rows.into());
        tcsetwinsize(&self.ours, size).unwrap();
    }

    /// Reads until the rows that the user sees are as `wanted` has them, and returns them.
    pub fn await_rows(
        &mut self,
        what: &str,
        mut wanted: impl FnMut(&[String]) -> bool,
    ) -> Vec<String> {
        let end = Instant::now() + PATIENCE;
        loop {
            let rows = self.rows();
            if wanted(&rows) {
                return rows;
            }
            assert!(Instant::now() < end && self.read(), "no {what} in:\n{}", rows.join("\n"));
        }
    }

    /// Reads until `text` was printed. What came before it counts no more.
    pub fn await_text(&mut self, text: &str) {
        let end = Instant::now() + PATIENCE;
        loop {
            if let Some(at) = self.seen.find(text) {
                self.seen.drain(..at + text.len());
                return;
            }
            assert!(Instant::now() < end && self.read(), "no `{text}` in: {}", self.seen);
        }
    }

    /// Waits for `question`, then types `answer`.
    pub fn answer(&mut self, question: &str, answer: &str) {
        self.await_text(question);
        self.ours.write_all(answer.as_bytes()).unwrap();
    }

    /// Reads what is there, after at most a second. Returns false once the other side is closed.
    fn read(&mut self) -> bool {
        let second = Timespec { tv_sec: 1, tv_nsec: 0 };
        if poll(&mut [PollFd::new(&self.ours, PollFlags::IN)], Some(&second)).unwrap() == 0 {
            return true;
        }
        let mut bytes = [0; 4096];
        match rustix::io::read(&self.ours, &mut bytes) {
            Ok(read) if read > 0 => {
                self.partial.extend_from_slice(&bytes[..read]);
                let whole = match std::str::from_utf8(&self.partial) {
                    Ok(_) => self.partial.len(),
                    Err(error) => error.valid_up_to(),
                };
                let text: Vec<u8> = self.partial.drain(..whole).collect();
                let text = String::from_utf8(text).unwrap();
                self.screen.feed(&text);
                self.seen.push_str(&text);
                true
            }
            _ => false,
        }
    }

    /// Reads until the program ends. `err` is what was written on the terminal.
    pub fn end(mut self) -> (Ended, Vec<String>) {
        let end = Instant::now() + PATIENCE;
        while self.read() {
            assert!(Instant::now() < end, "it does not end: {}", self.seen);
        }
        let rows = self.rows();
        let ended = ended(self.child.wait_with_output().unwrap());
        (Ended { err: self.seen, ..ended }, rows)
    }
}
