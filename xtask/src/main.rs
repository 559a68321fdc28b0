//! Checks of the source tree, as commands and as tests.
//!
//! - `cargo xtask dependencies` prints which crate depends on which, and fails where
//!   [`dependencies::ALLOWED`] does not allow it.
//! - `cargo xtask circles [CRATE…]` prints the circles of files inside crates, with one use for
//!   each pair of files, and fails if there are any.
//! - `cargo xtask counts [CRATE…]` prints lines of code and of tests, long files, long functions
//!   and circles of each crate.
//!
//! The tests hold the first two for the tree as it is, that each test which `docs/security.md`
//! names exists, that `exec` alone starts programs, that a crate's integration tests are one
//! program, and the width of lines and the first words of documentation.

mod circles;
mod counts;
mod dependencies;
mod error;
#[cfg(test)]
mod programs;
#[cfg(test)]
mod prose;
#[cfg(test)]
mod security;
mod source;
#[cfg(test)]
mod test_programs;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use error::Error;
use source::CrateSource;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (command, crates) = match arguments.split_first() {
        Some((command, crates)) => (command.as_str(), crates),
        None => ("", [].as_slice()),
    };
    let result = match command {
        "dependencies" if crates.is_empty() => print_dependencies(),
        "circles" => print_circles(crates),
        "counts" => print_counts(crates),
        _ => {
            print_error("usage: cargo xtask dependencies | circles [CRATE…] | counts [CRATE…]");
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(status) => status,
        Err(error) => {
            let source = std::error::Error::source(&error);
            let cause = source.map(|source| format!(": {source}")).unwrap_or_default();
            print_error(&format!("error: {error}{cause}"));
            ExitCode::FAILURE
        }
    }
}

fn print_dependencies() -> Result<ExitCode, Error> {
    let graph = dependencies::graph(&root())?;
    for (from, to) in &graph {
        let names: Vec<String> = to.iter().map(ToString::to_string).collect();
        print_line(format!("{from} -> {}", names.join(", ")).trim_end());
    }
    let violations = dependencies::violations(&graph);
    for violation in &violations {
        print_error(&format!("error: {violation}"));
    }
    Ok(if violations.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn print_circles(crates: &[String]) -> Result<ExitCode, Error> {
    let mut found = false;
    for folder in chosen(crates)? {
        for circle in circles::circles(&CrateSource::read(&folder)?) {
            found = true;
            print_line(&format!("{}: {circle}", name_of(&folder)));
        }
    }
    Ok(if found { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn print_counts(crates: &[String]) -> Result<ExitCode, Error> {
    let counts: Result<Vec<_>, _> =
        chosen(crates)?.iter().map(|folder| counts::Counts::of_crate(folder)).collect();
    print_line(counts::render(&counts?).trim_end());
    Ok(ExitCode::SUCCESS)
}

fn print_line(line: &str) {
    #[allow(clippy::print_stdout)]
    {
        println!("{line}");
    }
}

fn print_error(message: &str) {
    #[allow(clippy::print_stderr)]
    {
        eprintln!("{message}");
    }
}

/// Returns the workspace's folder: the nearest one around the current folder that has `crates/`.
fn root() -> PathBuf {
    let here = std::env::current_dir().unwrap_or_default();
    let around = here.ancestors().find(|folder| folder.join("crates").is_dir());
    around.map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join(".."), Path::to_owned)
}

fn name_of(folder: &Path) -> String {
    folder.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Returns the folders of the crates that are named, or of all.
fn chosen(crates: &[String]) -> Result<Vec<PathBuf>, Error> {
    let mut folders = crate_folders()?;
    folders.retain(|folder| crates.is_empty() || crates.contains(&name_of(folder)));
    Ok(folders)
}

/// Returns the folders of the workspace's crates, by name; `xtask` is the last.
fn crate_folders() -> Result<Vec<PathBuf>, Error> {
    let path = root().join("crates");
    let failed = |source| Error::Read { path: path.clone(), source };
    let mut folders = Vec::new();
    for entry in std::fs::read_dir(&path).map_err(failed)? {
        folders.push(entry.map_err(failed)?.path());
    }
    folders.retain(|folder| folder.join("Cargo.toml").is_file());
    folders.sort();
    folders.push(root().join("xtask"));
    Ok(folders)
}
