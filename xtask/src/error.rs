//! Why a check could not be made.

use std::path::PathBuf;

/// A check that could not be made: a file that cannot be read or understood.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// A file or folder could not be read.
    #[error("cannot read {path}")]
    Read { path: PathBuf, source: std::io::Error },
    /// A manifest is not TOML.
    #[error("cannot parse the manifest {path}")]
    Manifest { path: PathBuf, source: toml::de::Error },
    /// A source file is not Rust.
    #[error("cannot parse {path}, line {line}")]
    Source { path: PathBuf, line: usize, source: syn::Error },
    /// A `mod` declaration names no file.
    #[error("cannot find the module `{module}` that {declared_in} declares")]
    NoModule { module: String, declared_in: PathBuf },
}
