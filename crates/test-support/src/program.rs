//! Programs that a test writes and then runs.

use std::io::Write as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
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

/// Fills the folder `programs`, which is created if it is missing, with links to the programs in
/// `installed`. `postgres` is a script with `text` in its place. Any account may run them.
pub fn wrap_postgres(installed: &Path, programs: &Path, text: &str) {
    write_program(&programs.join("postgres"), text);
    std::fs::set_permissions(programs, std::fs::Permissions::from_mode(0o755)).unwrap();
    for entry in std::fs::read_dir(installed).unwrap() {
        let entry = entry.unwrap();
        if entry.file_name() != "postgres" {
            symlink(entry.path(), programs.join(entry.file_name())).unwrap();
        }
    }
}
