//! Checks of the source tree, as tests.
//!
//! - `dependencies`: crates depend on each other as planned.
//! - `programs`: `exec` alone starts programs.
//! - `prose`: width of lines, first words of documentation.
//! - `security`: each test that `docs/security.md` names exists.
//! - `size`: no crate holds more than a reader can know.
//! - `test_programs`: a crate's integration tests are one program.
#![cfg(test)]

mod dependencies;
mod programs;
mod prose;
mod security;
mod size;
mod test_programs;

use std::path::{Path, PathBuf};

/// Returns the workspace's folder.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Returns the folders of the workspace's crates, by name; `xtask` is the last.
fn crate_folders() -> Vec<PathBuf> {
    let entries = std::fs::read_dir(root().join("crates")).unwrap();
    let mut folders: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    folders.retain(|folder| folder.join("Cargo.toml").is_file());
    folders.sort();
    folders.push(root().join("xtask"));
    folders
}

/// Returns all Rust files below `folder`, sorted by path.
fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                files.push(path);
            }
        }
    }
    files.sort();
    files
}
