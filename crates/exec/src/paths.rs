//! Where pgdyno keeps things: the XDG base directories.

use std::path::{Path, PathBuf};

use crate::trust;

/// Returns `$XDG_CACHE_HOME/pgdyno`, where fetched archives and builds lie.
///
/// Programs are run from there: check it with [`trust::check`] first.
pub fn cache_dir() -> PathBuf {
    base("XDG_CACHE_HOME", ".cache").join("pgdyno")
}

/// Returns `$XDG_DATA_HOME/pgdyno`, where the results store lies.
pub fn data_dir() -> PathBuf {
    base("XDG_DATA_HOME", ".local/share").join("pgdyno")
}

/// Returns `$XDG_STATE_HOME/pgdyno`, where the journal lies.
pub fn state_dir() -> PathBuf {
    base("XDG_STATE_HOME", ".local/state").join("pgdyno")
}

/// Where clusters lie if nothing else is said: for root a place that the server's account can
/// reach.
pub fn default_storage_dir() -> PathBuf {
    if rustix::process::geteuid().is_root() {
        PathBuf::from("/var/lib/pgdyno")
    } else {
        data_dir().join("clusters")
    }
}

/// Where private socket directories are made: a socket's path must stay below 108 bytes. A runtime
/// directory that another account can change is passed over.
pub fn socket_base() -> PathBuf {
    if rustix::process::geteuid().is_root() && Path::new("/run").is_dir() {
        return PathBuf::from("/run");
    }
    match std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from) {
        Some(dir)
            if dir.is_dir()
                && dir.as_os_str().len() <= 60
                && !rustix::process::geteuid().is_root()
                && trust::check(&dir).is_ok() =>
        {
            dir
        }
        _ => PathBuf::from("/tmp"),
    }
}

/// Returns the directory that `variable` names, as far as it is absolute (the XDG rule), else
/// `fallback` below the home.
fn base(variable: &str, fallback: &str) -> PathBuf {
    std::env::var_os(variable).map(PathBuf::from).filter(|p| p.is_absolute()).unwrap_or_else(|| {
        std::env::home_dir().unwrap_or_else(|| PathBuf::from("/")).join(fallback)
    })
}
