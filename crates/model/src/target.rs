//! Where a server listens and as whom to connect.

use std::fmt;
use std::path::PathBuf;

/// A password. Its `Debug` shows nothing, and it has no `Serialize`: it reaches neither store nor log.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Takes `text` into keeping.
    #[must_use]
    pub fn new(text: String) -> Self {
        Self(text)
    }

    /// The password itself, for authentication only.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A Unix socket: its directory and port, as libpq's `host=/directory port=…`.
    Unix {
        /// The directory that holds `.s.PGSQL.<port>`.
        directory: PathBuf,
        /// The port in the socket's name.
        port: u16,
    },
    /// TCP.
    Tcp {
        /// A host name or an IP address.
        host: String,
        /// The port.
        port: u16,
    },
}

impl Address {
    /// The socket's path, for a Unix socket.
    #[must_use]
    pub fn socket_path(&self) -> Option<PathBuf> {
        match self {
            Self::Unix { directory, port } => Some(directory.join(format!(".s.PGSQL.{port}"))),
            Self::Tcp { .. } => None,
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix { directory, port } => write!(f, "{}/.s.PGSQL.{port}", directory.display()),
            Self::Tcp { host, port } if host.contains(':') => write!(f, "[{host}]:{port}"),
            Self::Tcp { host, port } => write!(f, "{host}:{port}"),
        }
    }
}

/// How to connect: address, role, database and start-up parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Where the server listens.
    pub address: Address,
    /// The role.
    pub user: String,
    /// Its password, where the server asks for one.
    pub password: Option<Secret>,
    /// The database.
    pub database: String,
    /// Settings for the session, sent in the start-up packet (`search_path`, `synchronous_commit`, …).
    pub settings: Vec<(String, String)>,
}
