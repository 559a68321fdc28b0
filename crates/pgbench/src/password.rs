//! Asking for a password at the terminal.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};

use pgdyno_model::target::Secret;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

use crate::usage_error::{Stopped, UsageError};

/// How often the stop flag is looked at while nothing is typed.
const WATCH: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// Turns off the terminal's echo until it is dropped.
struct Silent<'a> {
    terminal: &'a File,
    before: Termios,
}

impl<'a> Silent<'a> {
    fn new(terminal: &'a File) -> io::Result<Self> {
        let before = tcgetattr(terminal)?;
        let mut silent = before.clone();
        silent.local_modes.remove(LocalModes::ECHO);
        // Input typed before the question is no answer to it.
        tcsetattr(terminal, OptionalActions::Flush, &silent)?;
        Ok(Self { terminal, before })
    }
}

impl Drop for Silent<'_> {
    fn drop(&mut self) {
        // Best effort: a terminal that is gone needs no echo.
        let _ = tcsetattr(self.terminal, OptionalActions::Flush, &self.before);
        // The end of the line that was typed was not shown either.
        let mut terminal = self.terminal;
        let _ = terminal.write_all(b"\n");
    }
}

/// Asks for a password at this process's terminal, as libpq words it.
///
/// Returns none if there is no terminal, or the answer is empty.
pub(crate) fn ask(stop: &AtomicBool) -> Result<Option<Secret>, Stopped> {
    let Ok(terminal) = OpenOptions::new().read(true).write(true).open("/dev/tty") else {
        return Ok(None);
    };
    let refused = |e: io::Error| {
        UsageError::new(format!("could not read the password from the terminal: {e}"))
    };
    let silent = Silent::new(&terminal).map_err(refused)?;
    (&terminal).write_all(b"Password: ").map_err(refused)?;
    // A blocking read would resume after a signal, and Ctrl-C would have no effect.
    loop {
        if stop.load(Ordering::Relaxed) {
            return Err(Stopped::Interrupted);
        }
        match poll(&mut [PollFd::new(&terminal, PollFlags::IN)], Some(&WATCH)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => {}
            Ok(_) => break,
            Err(e) => return Err(refused(e.into()).into()),
        }
    }
    // The terminal gives whole lines only.
    let mut line = String::new();
    BufReader::new(&terminal).read_line(&mut line).map_err(refused)?;
    drop(silent);
    let password = line.trim_end_matches(['\n', '\r']);
    Ok((!password.is_empty()).then(|| Secret::new(password.to_owned())))
}
