//! Holds the size of crates: a crate that grows beyond it holds several concepts.

use std::path::{Path, PathBuf};

use crate::{crate_folders, rust_files};

/// Lines of the largest crate, without its tests, blank lines and comments.
const LINES: usize = 12_000;

#[test]
fn no_crate_is_larger_than_a_reader_can_know() {
    for folder in crate_folders() {
        let files = rust_files(&folder.join("src"));
        let is_test = |path: &&PathBuf| {
            path.components().any(|part| part.as_os_str() == "tests") || path.ends_with("tests.rs")
        };
        let lines: usize = files.iter().filter(|path| !is_test(path)).map(|path| count(path)).sum();
        let name = folder.display();
        assert!(lines > 0, "{name} has no sources");
        assert!(lines <= LINES, "{name} has {lines} lines, at most {LINES} fit: split it");
    }
}

/// Returns the number of lines of `path` that are neither blank nor a comment.
fn count(path: &Path) -> usize {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("//")).count()
}
