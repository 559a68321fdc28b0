//! Programs that a test writes and then runs.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

/// Writes an executable file with `text`. Its folder is created if it is missing.
///
/// A shell writes it. A child that another thread starts has copies of this process's descriptors
/// until it is executed; if the file were open for writing in one of them, it could not be run
/// ("Text file busy").
pub fn write_program(path: &Path, text: &str) {
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", r#"mkdir -p "${1%/*}" && cat > "$1" && chmod 755 "$1""#, "sh"]).arg(path);
    let mut shell = shell.stdin(Stdio::piped()).spawn().unwrap();
    shell.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    assert!(shell.wait().unwrap().success(), "cannot write {}", path.display());
}
