//! The only place that prints: results to standard output, all else to standard error.
//!
//! A write to standard output that fails does not end the command: what it stores, and files that
//! it writes, do not depend on it. The first failure is kept, and [`exit_status`] is asked once at
//! the end.
//!
//! Whatever is printed passes [`Visible`] or the functions below, so that nothing that a server, a
//! file's name or a store holds is obeyed by a terminal.

use std::fmt;
use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};

use pgdyno_text::printable::{escape_line, escape_text};

use crate::error::{CommandError, render_chain};

/// Exit status where the reader of standard output went away: what a shell says of a program that
/// SIGPIPE ended, pgbench among them. SIGPIPE itself stays ignored: it would end a run that has
/// something to take down.
pub(crate) const READER_GONE: u8 = 141;

/// Why standard output did not take all that was printed: the first failure.
static LOST: Mutex<Option<io::Error>> = Mutex::new(None);

/// Whether progress and hints are left out (`--quiet`).
static QUIET: AtomicBool = AtomicBool::new(false);

/// Standard output. The first write that fails is kept for [`exit_status`].
pub(crate) struct StandardOutput;

impl StandardOutput {
    /// # Errors
    /// It was closed when the process started: Rust opened `/dev/null` in its place.
    fn open() -> io::Result<io::Stdout> {
        match pgdyno_stdio::standard_output_was_closed() {
            true => Err(Self::keep(rustix::io::Errno::BADF.into())),
            false => Ok(io::stdout()),
        }
    }

    fn keep(error: io::Error) -> io::Error {
        // A signal came: the write is tried again.
        if error.kind() != io::ErrorKind::Interrupted {
            let kept = error
                .raw_os_error()
                .map_or_else(|| error.kind().into(), io::Error::from_raw_os_error);
            lost().get_or_insert(kept);
        }
        error
    }
}

impl Write for StandardOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Self::open()?.write(bytes).map_err(Self::keep)
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stdout().flush().map_err(Self::keep)
    }
}

/// Writes text to `inner` with control characters written out; ordinary text passes byte for byte.
///
/// A carriage return at the end of one write stays: `pgbench -i` shows its progress so. Whatever
/// else is said ends with a newline.
pub(crate) struct Visible<W> {
    inner: W,
    /// The beginning of a character whose other bytes are still to come.
    partial: Vec<u8>,
}

impl<W: Write> Visible<W> {
    pub(crate) fn new(inner: W) -> Self {
        Self { inner, partial: Vec::new() }
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut whole = std::mem::take(&mut self.partial);
        whole.extend_from_slice(bytes);
        let mut rest = whole.as_slice();
        loop {
            let error = match std::str::from_utf8(rest) {
                Ok(text) => return self.text(text),
                Err(error) => error,
            };
            let (valid, others) = rest.split_at(error.valid_up_to());
            self.text(&String::from_utf8_lossy(valid))?;
            let Some(wrong) = error.error_len() else {
                self.partial = others.to_vec();
                return Ok(());
            };
            let (wrong, others) = others.split_at(wrong);
            wrong.iter().try_for_each(|byte| write!(self.inner, "\\x{byte:02x}"))?;
            rest = others;
        }
    }

    fn text(&mut self, text: &str) -> io::Result<()> {
        let (text, end) = match text.strip_suffix('\r') {
            Some(text) => (text, "\r"),
            None => (text, ""),
        };
        self.inner.write_all(escape_text(text).as_bytes())?;
        self.inner.write_all(end.as_bytes())
    }
}

impl<W: Write> Write for Visible<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.put(bytes).map(|()| bytes.len())
    }

    /// Formats the message whole: a piece of it may end with a carriage return of a server's.
    fn write_fmt(&mut self, message: fmt::Arguments<'_>) -> io::Result<()> {
        self.put(message.to_string().as_bytes())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

fn lost() -> MutexGuard<'static, Option<io::Error>> {
    LOST.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Prints `text` and a newline to standard output.
pub(crate) fn print(text: &str) {
    // What fails is kept.
    let _ = writeln!(StandardOutput, "{}", escape_text(text.trim_end_matches('\n')));
}

/// Prints `text`, such as one with a file's name in it, as exactly one line to standard output.
pub(crate) fn print_line(text: &str) {
    print(&escape_line(text));
}

/// Prints the text of `--help` and `--version`, or what is wrong with the arguments. Returns the
/// exit status.
pub(crate) fn print_usage(usage: &clap::Error) -> u8 {
    // clap's own status for a mistake would be 2.
    let status = u8::from(usage.use_stderr());
    if status != 0 {
        // It repeats words of the command line, which may be files' names.
        let usage = usage.render().to_string();
        let has_lines = std::env::args_os().any(|word| word.as_encoded_bytes().contains(&b'\n'));
        let shown = if has_lines { indent_lines(&usage) } else { escape_text(&usage).into_owned() };
        let _ = write!(io::stderr(), "{shown}");
    } else if StandardOutput::open().is_ok()
        && let Err(error) = usage.print()
    {
        StandardOutput::keep(error);
    }
    status
}

/// Returns the exit status of the process for a command that ended with `status`.
///
/// If standard output did not take everything, a status of 0 becomes 1 after `report` was called,
/// or [`READER_GONE`] if the reader went away.
pub(crate) fn exit_status(status: u8, report: impl FnOnce(io::Error)) -> u8 {
    let _ = StandardOutput.flush();
    let Some(error) = lost().take() else { return status };
    let is_gone = error.kind() == io::ErrorKind::BrokenPipe;
    if !is_gone {
        report(error);
    }
    match status {
        0 if is_gone => READER_GONE,
        0 => 1,
        status => status,
    }
}

/// As [`exit_status`]; reports the error as pgdyno's other errors.
pub(crate) fn exit(status: u8) -> ExitCode {
    let report = |error: io::Error| {
        let error = CommandError::with_source("cannot write to standard output", error);
        report_error(&error.with_help(
            "free room there, or send it elsewhere; what was stored can be shown again",
        ));
    };
    ExitCode::from(exit_status(status, report))
}

/// Leaves out progress and hints from now on, for `--quiet`.
pub(crate) fn set_quiet(quiet: bool) {
    QUIET.store(quiet, Ordering::Relaxed);
}

/// Returns whether progress and hints are left out.
pub(crate) fn is_quiet() -> bool {
    QUIET.load(Ordering::Relaxed)
}

/// Prints a message to standard error: how a command ended, or what failed.
///
/// Only its first line begins at the margin: a newline in a file's name or a server's message
/// forges no line of pgdyno's own.
pub(crate) fn print_stderr(message: &str) {
    let _ = writeln!(io::stderr().lock(), "{}", indent_lines(message));
}

/// Escapes control characters of a message and indents its lines after the first.
pub(crate) fn indent_lines(message: &str) -> String {
    let mut out = String::with_capacity(message.len());
    for (n, line) in escape_text(message).split('\n').enumerate() {
        if n > 0 {
            let is_indented = line.is_empty() || line.starts_with([' ', '\t']);
            out.push_str(if is_indented { "\n" } else { "\n  " });
        }
        out.push_str(line);
    }
    out
}

/// Prints a hint to standard error, unless `--quiet` leaves it out.
pub(crate) fn hint(line: &str) {
    if !is_quiet() {
        print_stderr(line);
    }
}

/// Prints an error, its causes and its help to standard error. Returns the exit status 1.
pub(crate) fn report_error(error: &CommandError) -> u8 {
    print_stderr(&format!("error: {}", render_chain(error)));
    if let Some(help) = error.help() {
        print_stderr(&format!("help: {help}"));
    }
    1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(pieces: &[&[u8]]) -> Vec<u8> {
        let mut to = Visible::new(Vec::new());
        for piece in pieces {
            to.write_all(piece).unwrap();
        }
        to.inner
    }

    #[test]
    fn ordinary_text_passes_byte_for_byte_wherever_it_is_cut() {
        let text = "tps = 1.5\t日本語 é\n".as_bytes();
        for cut in 0..text.len() {
            assert_eq!(written(&[&text[..cut], &text[cut..]]), text);
        }
        assert_eq!(written(&[b"10 of 20 tuples\r"]), b"10 of 20 tuples\r");
    }

    #[test]
    fn what_a_terminal_would_obey_is_written_out() {
        assert_eq!(written(&[b"\x1b]0;x\x07\n"]), b"\\x1b]0;x\\x07\n");
        assert_eq!(written(&[b"a\x9bb", "\u{9b}\u{202e}".as_bytes()]), b"a\\x9bb\\x9b\\u{202e}");
        let mut to = Visible::new(Vec::new());
        to.write_all(b"ERROR: all is well\rERROR: x\r\n").unwrap();
        assert_eq!(to.inner, b"ERROR: all is well\\x0dERROR: x\\x0d\n");
    }

    #[test]
    fn a_message_has_one_line_at_the_margin() {
        assert_eq!(indent_lines("a\nerror: b\n  because: c"), "a\n  error: b\n  because: c");
    }
}
