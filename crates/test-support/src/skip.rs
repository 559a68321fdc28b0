//! Skipped tests.

use std::io::{Write as _, stderr};

/// Says that the test named `test` is skipped, and why.
///
/// The test runner keeps what passing tests print through `eprintln!`; this is written past it.
pub fn skip(test: &str, why: &str) {
    let _ = writeln!(stderr(), "\nskipped: {test}: {why}");
}

/// Returns whether the process is root. Otherwise says that the test named `test` is skipped
/// because of `why`.
pub fn is_root(test: &str, why: &str) -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        skip(test, why);
    }
    is_root
}
