//! Why there is no connection.

use std::io;
use std::time::Duration;

use pgdyno_model::target::{Address, SessionAttrs, SslMode};
use pgdyno_tls::TlsError;
use pgdyno_wire::auth::AuthError;
use pgdyno_wire::{ServerError, WireError};
use thiserror::Error;

/// Why there is no connection.
#[derive(Debug, Error)]
pub enum ConnectError {
    /// The host's name means nothing.
    #[error("cannot find host {host}: {cause}")]
    Resolve {
        /// The name.
        host: String,
        /// What the resolver said.
        cause: io::Error,
    },
    /// No socket could be had.
    #[error("cannot connect to {address}: {cause}")]
    Refused {
        /// Where to.
        address: Address,
        /// What the system said.
        cause: io::Error,
    },
    /// The time limit passed.
    #[error("cannot connect to {address}: no answer to {step} within {limit:?}")]
    Timeout {
        /// Where to.
        address: Address,
        /// What was under way.
        step: &'static str,
        /// The limit.
        limit: Duration,
    },
    /// The load was stopped meanwhile.
    #[error("cannot connect to {address}: interrupted")]
    Interrupted {
        /// Where to.
        address: Address,
    },
    /// The server said no.
    #[error("{address} refuses user {user} on database {database}: {error}")]
    Server {
        /// Where to.
        address: Address,
        /// The role.
        user: String,
        /// The database.
        database: String,
        /// What the server said.
        error: Box<ServerError>,
    },
    /// The server wants a proof that cannot be given.
    #[error("cannot authenticate to {address} as {user}: {cause}")]
    Authentication {
        /// Where to.
        address: Address,
        /// The role.
        user: String,
        /// Why not.
        cause: AuthError,
    },
    /// The connection broke during start-up.
    #[error("lost the connection to {address} during start-up: {cause}")]
    Lost {
        /// Where to.
        address: Address,
        /// What the system said.
        cause: io::Error,
    },
    /// What answered does not speak the protocol, or start-up parameters cannot be sent.
    #[error("cannot speak PostgreSQL's protocol with {address}: {cause}")]
    Protocol {
        /// Where to.
        address: Address,
        /// What is wrong.
        cause: WireError,
    },
    /// Encryption that is asked for cannot be had, or the server is not trusted.
    #[error("cannot connect to {address} by TLS: {cause}")]
    Tls {
        /// Where to.
        address: Address,
        /// Why not.
        cause: TlsError,
    },
    /// The server does not encrypt.
    #[error("{address} does not take TLS, which sslmode={mode} asks for")]
    NoTls {
        /// Where to.
        address: Address,
        /// What was asked for.
        mode: SslMode,
    },
    /// The session is not of the kind that is wanted.
    #[error("{address} is {found}, and target_session_attrs={} is wanted", wanted.name())]
    NotWanted {
        /// Where to.
        address: Address,
        /// What is wanted.
        wanted: SessionAttrs,
        /// What the server says of itself.
        found: &'static str,
    },
    /// None of several servers.
    #[error("none of {} servers serves: {}", errors.len(), errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    NoneServes {
        /// What became of each.
        errors: Vec<ConnectError>,
    },
    /// A message that has no place in start-up.
    #[error("cannot speak PostgreSQL's protocol with {address}: message `{}` during start-up", tag.escape_ascii())]
    Unexpected {
        /// Where to.
        address: Address,
        /// Its type byte.
        tag: u8,
    },
}

impl ConnectError {
    /// What can be done about it.
    #[must_use]
    pub fn help(&self) -> Option<String> {
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
            Self::Authentication { cause, .. } => cause.help().map(str::to_owned),
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

    /// Whether no other of several servers is to be asked: this one answered, and libpq goes on
    /// only from one that cannot take connections now.
    pub(super) fn ends_search(&self) -> bool {
        match self {
            Self::Server { error, .. } => error.code != "57P03",
            Self::Authentication { .. } | Self::Interrupted { .. } => true,
            _ => false,
        }
    }

    /// The SQLSTATE, where the server gave one.
    #[must_use]
    pub fn sqlstate(&self) -> Option<&str> {
        match self {
            Self::Server { error, .. } => Some(&error.code),
            _ => None,
        }
    }
}
