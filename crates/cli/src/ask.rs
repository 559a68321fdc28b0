//! Questions on a terminal. They go to standard error, answers are lines of standard input.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::error::CommandError;
use crate::new_error::NewError;
use crate::output::{print_stderr, report_error};

/// How long a signal may wait until it is noticed.
const PATIENCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// The terminal, and the flag that the first signal sets.
pub(crate) struct Answers<'a> {
    stop: &'a AtomicBool,
}

impl<'a> Answers<'a> {
    pub(crate) fn new(stop: &'a AtomicBool) -> Self {
        Self { stop }
    }

    /// Prints a line.
    pub(crate) fn say(&self, line: &str) {
        print_stderr(line);
    }

    /// Asks `question` until `read` takes the answer, whose blanks at both ends are gone. What is
    /// wrong with an answer is printed.
    pub(crate) fn until_right<T>(
        &self,
        question: &str,
        read: impl Fn(&str) -> Result<T, CommandError>,
    ) -> Result<T, CommandError> {
        loop {
            match read(self.ask(question)?.trim()) {
                Ok(answer) => return Ok(answer),
                Err(error) => report_error(&error),
            };
        }
    }

    /// Asks `question`, and returns the line that is the answer.
    pub(crate) fn ask(&self, question: &str) -> Result<String, NewError> {
        // A terminal that takes no question gives no answer either.
        let _ = write!(io::stderr(), "{question} ");
        self.wait()?;
        let mut line = String::new();
        match io::stdin().read_line(&mut line) {
            Ok(0) => Err(NewError::EndOfInput),
            Ok(_) => Ok(line),
            Err(error) => Err(NewError::Read(error)),
        }
    }

    /// Waits until a line can be read. A signal does not end a read, so none begins before.
    fn wait(&self) -> Result<(), NewError> {
        let stdin = io::stdin();
        loop {
            if self.stop.load(Ordering::Relaxed) {
                return Err(NewError::Interrupted);
            }
            match poll(&mut [PollFd::new(&stdin, PollFlags::IN)], Some(&PATIENCE)) {
                Ok(0) | Err(Errno::INTR) => {}
                Ok(_) => return Ok(()),
                Err(error) => return Err(NewError::Read(error.into())),
            }
        }
    }
}
