//! The text of an experiment and where it came from.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// An experiment's text and where it came from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Source {
    /// The recipe's name, or the file's stem.
    pub name: String,
    /// The name that errors give the file: its path, or `recipe NAME`.
    pub shown: String,
    /// The TOML.
    pub text: String,
    /// The folder that relative paths start from.
    pub base: PathBuf,
}

impl Source {
    /// Returns `path`; a relative one starts from the file's folder.
    pub(super) fn absolute(&self, path: PathBuf) -> PathBuf {
        if path.is_absolute() { path } else { self.base.join(path) }
    }
}
