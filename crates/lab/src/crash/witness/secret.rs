//! The secret that a witness and its clients share: from a file or the environment, never from
//! arguments, which others see.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use pgdyno_exec::random::random_hex;
use pgdyno_model::target::Secret;
use thiserror::Error;

/// The variable that holds the secret where no file is named.
pub(super) const VARIABLE: &str = "PGDYNO_WITNESS_SECRET";
/// The shortest secret (bytes): who hears a connection begin can try secrets at leisure.
const SHORTEST: usize = 16;
/// The longest (bytes).
const LONGEST: usize = 1024;

/// A secret that cannot be used.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the names say it")]
pub enum SecretError {
    /// The file cannot be read.
    #[error("cannot read the secret in {}", path.display())]
    Io {
        /// Which.
        path: PathBuf,
        source: io::Error,
    },
    /// Others than its owner may read or write it, or it is somebody else's.
    #[error("will not use the secret in {}: others than its owner may read or write it (mode {mode:04o})", path.display())]
    Open {
        /// Which.
        path: PathBuf,
        /// The file's permissions.
        mode: u32,
    },
    /// The file belongs to another account.
    #[error("will not use the secret in {}: it belongs to another account (uid {uid})", path.display())]
    ForeignOwner {
        /// Which.
        path: PathBuf,
        /// The account's number.
        uid: u32,
    },
    /// Too short or too long.
    #[error(
        "will not use the secret in {place}: it has {length} bytes, and takes {SHORTEST} to {LONGEST}"
    )]
    Length {
        /// The file, or the variable.
        place: String,
        /// How many.
        length: usize,
    },
}

impl SecretError {
    /// The remedy.
    pub fn help(&self) -> Option<String> {
        match self {
            Self::Io { .. } => None,
            Self::Open { path, .. } => {
                Some(format!("`chmod 600 {}`, and choose another secret", path.display()))
            }
            Self::ForeignOwner { .. } => Some("name a file of your own".into()),
            Self::Length { .. } => Some("`openssl rand -hex 32` prints a good one".into()),
        }
    }
}

/// The secret in `file`, or else in the environment; none if neither is given.
///
/// # Errors
/// [`SecretError`].
pub fn shared_secret(file: Option<&Path>) -> Result<Option<Secret>, SecretError> {
    let (place, text) = match file {
        Some(path) => (path.display().to_string(), read(path)?),
        None => match std::env::var(VARIABLE) {
            Ok(text) => (format!("the environment variable {VARIABLE}"), text),
            Err(_) => return Ok(None),
        },
    };
    let text = text.trim_end_matches(['\r', '\n']).to_owned();
    if !(SHORTEST..=LONGEST).contains(&text.len()) {
        return Err(SecretError::Length { place, length: text.len() });
    }
    Ok(Some(Secret::new(text)))
}

fn read(path: &Path) -> Result<String, SecretError> {
    let failed = |source| SecretError::Io { path: path.to_owned(), source };
    let file = File::open(path).map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    let mode = metadata.permissions().mode() & 0o7777;
    if mode & 0o077 != 0 {
        return Err(SecretError::Open { path: path.to_owned(), mode });
    }
    let uid = metadata.uid();
    if ![0, rustix::process::geteuid().as_raw()].contains(&uid) {
        return Err(SecretError::ForeignOwner { path: path.to_owned(), uid });
    }
    let mut text = String::new();
    let most = u64::try_from(LONGEST).unwrap_or_default() + 3;
    file.take(most).read_to_string(&mut text).map_err(failed)?;
    Ok(text)
}

/// A new secret.
///
/// # Errors
/// The kernel gives no random numbers.
pub(super) fn generate() -> io::Result<Secret> {
    random_hex::<32>().map(Secret::new)
}
