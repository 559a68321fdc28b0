//! Programs that storage needs: where they are looked for, and what they print.

use std::ffi::{OsStr, OsString};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::step::{StepError, said};

/// `PATH` and the folders of root's programs, which `su` and some containers leave out of it.
#[must_use]
pub fn search_path() -> OsString {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> =
        std::env::split_paths(&path).filter(|p| p.is_absolute()).collect();
    for folder in ["/usr/local/sbin", "/usr/sbin", "/sbin"].map(PathBuf::from) {
        if !folders.contains(&folder) {
            folders.push(folder);
        }
    }
    std::env::join_paths(folders).unwrap_or(path)
}

/// Where the program `name` lies; none when it is not installed.
#[must_use]
pub fn locate(name: &str) -> Option<PathBuf> {
    let executable = |p: &PathBuf| {
        p.metadata().is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
    };
    std::env::split_paths(&search_path()).map(|folder| folder.join(name)).find(executable)
}

/// Runs a program to its end and gives its standard output; for questions, and for what prints the
/// name it chose.
///
/// # Errors
/// [`StepError`]: it cannot be run, or its exit status is not 0; its messages are quoted.
pub fn output<S: AsRef<OsStr>>(program: &str, args: &[S]) -> Result<String, StepError> {
    let path = Path::new(program);
    let output = Command::new(path)
        .args(args)
        .current_dir("/")
        .env("PATH", search_path())
        .env("LC_ALL", "C")
        // A Ctrl-C at the terminal is pgdyno's alone.
        .process_group(0)
        .stdin(Stdio::null())
        .output()
        .map_err(|source| StepError::Spawn {
            program: path.to_owned(),
            as_account: None,
            source,
        })?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let all = [output.stdout, output.stderr].concat();
    let output_text = said(&all);
    Err(StepError::Failed { program: path.to_owned(), status: output.status, output: output_text })
}
