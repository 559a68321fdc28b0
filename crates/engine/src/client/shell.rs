//! `\shell` and `\setshell`: a command line for `/bin/sh`, waited for. The thread's other clients wait too.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::process::{Command, Stdio};

/// Runs `line`; what it writes goes where this process's output goes.
pub(super) fn run(line: &[u8]) -> Result<(), String> {
    let status = Command::new("/bin/sh").arg("-c").arg(OsStr::from_bytes(line)).stdin(Stdio::null()).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        // pgbench's words, for a command that fails too.
        Ok(_) | Err(_) => Err(format!("{}: could not launch shell command", program(line))),
    }
}

/// Runs `line` and reads the integer that it writes first.
pub(super) fn integer(line: &[u8]) -> Result<i64, String> {
    let mut command = Command::new("/bin/sh");
    command.arg("-c").arg(OsStr::from_bytes(line)).stdin(Stdio::null()).stderr(Stdio::inherit());
    let output =
        command.output().map_err(|_| format!("{}: could not launch shell command", program(line)))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let first = text.lines().next().unwrap_or_default();
    if first.is_empty() {
        return Err(format!("{}: could not read result of shell command", program(line)));
    }
    let end = if text.contains('\n') { "\n" } else { "" };
    let program = program(line);
    first
        .trim()
        .parse()
        .map_err(|_| format!("{program}: shell command must return an integer (not \"{first}{end}\")"))
}

/// What `line` runs, for errors.
fn program(line: &[u8]) -> String {
    let first = line.split(|b| *b == b' ').next().unwrap_or_default();
    String::from_utf8_lossy(first).into_owned()
}
