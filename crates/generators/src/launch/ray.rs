//! Workers and hosts of a lab as actors of a Ray cluster, which a script in Python starts.

use std::ffi::OsString;
use std::path::PathBuf;

use super::starter::{Request, Starter};

pub(super) const STARTER: Starter = Starter {
    name: "ray",
    words,
    missing: "name a Python that has Ray with PGDYNO_RAY_PYTHON",
    ended: "see what is free with `ray status`, or ask for fewer workers or event loops",
};

/// Names the Python to use.
const VARIABLE: &str = "PGDYNO_RAY_PYTHON";
const SCRIPT: &str = include_str!("../../../../examples/ray/pgdyno.py");

fn words(request: &Request, program: PathBuf) -> Vec<OsString> {
    let mut words = python("workers");
    words.extend([request.workers.to_string(), request.cpus.to_string()].map(OsString::from));
    words.extend(request.words(program));
    words
}

/// Returns the words that run the command `command` of `program` on the node `host`.
pub(super) fn words_on(host: &str, command: &str, program: PathBuf) -> Vec<OsString> {
    let mut words = python("host");
    words.extend([host.into(), program.into(), command.into()]);
    words
}

/// Returns the words that begin with the Python to use and end with what the script is to do.
fn python(what: &str) -> Vec<OsString> {
    let python = std::env::var_os(VARIABLE).filter(|python| !python.is_empty());
    let mut words = vec![python.unwrap_or_else(|| "python3".into())];
    words.extend(["-c", SCRIPT, what].map(OsString::from));
    words
}
