//! Errors of connecting.

use std::io;
use std::time::Duration;

use pgdyno_model::target::{Address, SessionAttrs, SslMode, Target};
use pgdyno_model::{Advice, FailureKind};
use pgdyno_wire::auth::AuthError;
use pgdyno_wire::{ServerError, WireError};
use thiserror::Error;

use super::tls::TlsError;

/// Kind of sessions that a server offers, for `target_session_attrs`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::Display)]
pub enum ServerKind {
    /// A server in recovery.
    #[strum(to_string = "a standby")]
    Standby,
    /// A primary whose transactions are read-only by default.
    #[strum(to_string = "read-only")]
    ReadOnly,
    /// A primary that takes writes.
    #[strum(to_string = "a primary that takes writes")]
    ReadWrite,
}

impl ServerKind {
    /// Query for the two facts of [`ServerKind::new`]. Its names are qualified: behind a pooler the
    /// session's search path may be anybody's.
    pub(crate) const QUERY: &str = "SELECT pg_catalog.pg_is_in_recovery()::pg_catalog.text, \
        pg_catalog.current_setting('transaction_read_only')";

    /// Creates the kind from the two facts that servers report.
    pub fn new(is_in_recovery: bool, is_read_only: bool) -> Self {
        match (is_in_recovery, is_read_only) {
            (true, _) => Self::Standby,
            (false, true) => Self::ReadOnly,
            (false, false) => Self::ReadWrite,
        }
    }

    /// Checks that `target` wants sessions of this kind.
    ///
    /// # Errors
    /// [`ConnectError::NotWanted`].
    pub fn check(self, target: &Target) -> Result<(), ConnectError> {
        let wanted = target.session_attrs;
        if wanted.accepts(self == Self::Standby, self != Self::ReadWrite) {
            return Ok(());
        }
        Err(ConnectError::NotWanted { address: target.address.clone(), wanted, found: self })
    }
}

/// A connection cannot be made.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the names say it")]
pub enum ConnectError {
    /// The host's name cannot be resolved.
    #[error("cannot find host {host}: {cause}")]
    Resolve {
        host: String,
        /// The resolver's error.
        cause: io::Error,
    },
    /// No socket can be connected.
    #[error("cannot connect to {address}: {cause}")]
    Refused {
        address: Address,
        /// The system's error.
        cause: io::Error,
    },
    /// The time limit passed.
    #[error("cannot connect to {address}: no answer to {step} within {limit:?}")]
    Timeout {
        address: Address,
        /// The step that was under way.
        step: &'static str,
        limit: Duration,
    },
    /// The caller's stop flag was set, or this process was told to end.
    #[error("cannot connect to {address}: interrupted")]
    Interrupted { address: Address },
    /// The server refused the session.
    #[error("{address} refuses user {user} on database {database}: {error}")]
    Server {
        address: Address,
        user: String,
        database: String,
        /// The server's error.
        error: Box<ServerError>,
    },
    /// Authentication failed on this side.
    #[error("cannot authenticate to {address} as {user}: {cause}")]
    Authentication { address: Address, user: String, cause: AuthError },
    /// The connection broke during start-up.
    #[error("lost the connection to {address} during start-up: {cause}")]
    Lost {
        address: Address,
        /// The system's error.
        cause: io::Error,
    },
    /// The peer breaks the protocol, or the start-up parameters cannot be encoded.
    #[error("cannot speak PostgreSQL's protocol with {address}: {cause}")]
    Protocol { address: Address, cause: WireError },
    /// TLS failed, or the server is not trusted.
    #[error("cannot connect to {address} by TLS: {cause}")]
    Tls { address: Address, cause: TlsError },
    /// The server does not take TLS.
    #[error("{address} does not take TLS, which sslmode={mode} asks for")]
    NoTls {
        address: Address,
        /// The mode that demands TLS.
        mode: SslMode,
    },
    /// The session is not of the kind that the target wants.
    #[error("{address} is {found}, and target_session_attrs={} is wanted", wanted.name())]
    NotWanted {
        address: Address,
        /// The kind that the target wants.
        wanted: SessionAttrs,
        /// The kind of the server.
        found: ServerKind,
    },
    /// Each of several servers failed.
    #[error(
        "none of {} servers serves: {}",
        errors.len(), errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
    )]
    NoneServes {
        /// The errors, one a server.
        errors: Vec<ConnectError>,
    },
    /// A message of a type that may not occur during start-up.
    #[error(
        "cannot speak PostgreSQL's protocol with {address}: message `{}` during start-up",
        tag.escape_ascii()
    )]
    Unexpected {
        address: Address,
        /// The type byte.
        tag: u8,
    },
}

impl ConnectError {
    /// Whether the search among several servers ends with this error. libpq goes on to the next
    /// server unless this one answered and could take connections.
    pub(crate) fn ends_search(&self) -> bool {
        match self {
            Self::Server { error, .. } => error.code != "57P03",
            Self::Authentication { .. } | Self::Interrupted { .. } => true,
            _ => false,
        }
    }

    /// Returns the SQLSTATE, where the server refused.
    pub fn sqlstate(&self) -> Option<&str> {
        match self {
            Self::Server { error, .. } => Some(&error.code),
            _ => None,
        }
    }

    /// Whether the server asks for a password and there is none.
    pub fn needs_password(&self) -> bool {
        match self {
            Self::Authentication { cause: AuthError::NoPassword { .. }, .. } => true,
            Self::NoneServes { errors } => errors.iter().any(Self::needs_password),
            _ => false,
        }
    }
}

impl Advice for ConnectError {
    fn help(&self) -> Option<String> {
        match self {
            Self::Resolve { .. } => Some("check the host's name".to_owned()),
            Self::Refused { cause, address } => match cause.kind() {
                io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => Some(match address {
                    Address::Unix { .. } => {
                        "is the server running, with this socket directory and port?".to_owned()
                    }
                    Address::Tcp { .. } => {
                        "is the server running, and does it listen on this host and port?"
                            .to_owned()
                    }
                }),
                io::ErrorKind::PermissionDenied => {
                    Some("check the permissions of the socket".to_owned())
                }
                _ => None,
            },
            Self::Server { error, database, .. } => match error.code.as_str() {
                "28P01" => Some("check the user and the password".to_owned()),
                "28000" => Some("check the user, and the server's pg_hba.conf".to_owned()),
                "3D000" => Some(format!("create database {database}, or name another")),
                "53300" => Some("use fewer clients, or raise max_connections".to_owned()),
                _ => None,
            },
            Self::Authentication { cause: AuthError::NoPassword { .. }, .. } => {
                Some("give it by PGPASSWORD, `.pgpass` or the connection string".to_owned())
            }
            Self::Authentication { cause, .. } => cause.help(),
            Self::Tls { cause, .. } => cause.help(),
            Self::NoTls { .. } => {
                Some("switch TLS on at the server (`ssl = on`), or use a weaker sslmode".to_owned())
            }
            Self::NotWanted { .. } => {
                Some("name other hosts too, or another target_session_attrs".to_owned())
            }
            Self::NoneServes { errors } => errors.iter().find_map(Self::help),
            Self::Timeout { .. } | Self::Interrupted { .. } | Self::Lost { .. } => None,
            Self::Protocol { .. } | Self::Unexpected { .. } => {
                Some("check that a PostgreSQL server listens there".to_owned())
            }
        }
    }

    fn kind(&self) -> FailureKind {
        match self {
            Self::Interrupted { .. } => FailureKind::Interrupted,
            _ => FailureKind::Server,
        }
    }
}
