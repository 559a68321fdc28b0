//! Where a server listens and as whom to connect.

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use strum::{Display, EnumString, IntoStaticStr};

use crate::names::names;
pub use crate::require_auth::{AuthMethod, RequireAuth, RequireAuthError};

/// A password. Its `Debug` shows nothing, and it has no `Serialize`: it reaches neither store nor
/// log.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Takes `text` into keeping.
    pub fn new(text: String) -> Self {
        Self(text)
    }

    /// The password itself, for authentication only.
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names say it")]
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
        port: u16,
    },
}

impl Address {
    /// The socket's path, for a Unix socket.
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

/// Whether a connection is encrypted, and how far the server's certificate is trusted; libpq's
/// `sslmode`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[derive(Display, EnumString, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum SslMode {
    /// Never encrypted.
    #[default]
    Disable,
    /// Encrypted if the server refuses otherwise.
    Allow,
    /// Encrypted if the server can.
    Prefer,
    /// Encrypted or not at all; the certificate is checked only where root certificates are given.
    Require,
    /// As require, and the certificate is signed by a root certificate that is trusted.
    VerifyCa,
    /// As verify-ca, and the certificate is made out to the host that was asked for.
    VerifyFull,
}

impl SslMode {
    /// Every mode, from the weakest to the strongest.
    pub const ALL: [Self; 6] =
        [Self::Disable, Self::Allow, Self::Prefer, Self::Require, Self::VerifyCa, Self::VerifyFull];
}

names!(SslMode, named);

/// Whether SCRAM is tied to the TLS connection it runs in; libpq's `channel_binding`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ChannelBinding {
    /// Never.
    Disable,
    /// Where the server offers it.
    #[default]
    Prefer,
    /// Or there is no connection.
    Require,
}

/// Who may have signed the server's certificate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RootCert {
    /// The certificates of this PEM file.
    File(PathBuf),
    /// Whom this system trusts.
    System,
}

/// How a connection is encrypted. The default is: not at all.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tls {
    /// Whether, and how far the server is trusted.
    pub mode: SslMode,
    /// Whom to trust; without it certificates cannot be checked, and the verifying modes fail.
    pub root: Option<RootCert>,
    /// The client's own certificate chain (PEM), where the server asks for one.
    pub cert: Option<PathBuf>,
    /// The key of that certificate (PEM, not encrypted).
    pub key: Option<PathBuf>,
    /// Whether SCRAM is tied to the connection.
    pub channel_binding: ChannelBinding,
}

/// Kind of session that is wanted; libpq's `target_session_attrs`.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, EnumString, IntoStaticStr, Serialize, Deserialize,
)]
#[strum(serialize_all = "kebab-case")]
pub enum SessionAttrs {
    /// Any.
    #[default]
    Any,
    /// One that may write.
    ReadWrite,
    /// One that may not.
    ReadOnly,
    /// On a server that is not in recovery.
    Primary,
    /// On a server that is in recovery.
    Standby,
    /// On a server in recovery if one of those named is, else any.
    PreferStandby,
}

names!(SessionAttrs, named);

impl SessionAttrs {
    /// Whether a session fits, on a server that is in recovery or not, and read-only or not.
    pub fn accepts(self, in_recovery: bool, read_only: bool) -> bool {
        match self {
            Self::Any | Self::PreferStandby => true,
            Self::ReadWrite => !read_only && !in_recovery,
            Self::ReadOnly => read_only || in_recovery,
            Self::Primary => !in_recovery,
            Self::Standby => in_recovery,
        }
    }

    /// Whether the server must be asked for its state.
    pub fn asks(self) -> bool {
        !matches!(self, Self::Any | Self::PreferStandby)
    }
}

/// How to connect: address, role, database and start-up parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Where the server listens.
    pub address: Address,
    /// IP address of the server, if specified beside the host's name: the name is then for
    /// certificates only.
    pub host_address: Option<IpAddr>,
    /// The role.
    pub user: String,
    /// Password of the role, if the server asks for one.
    pub password: Option<Secret>,
    /// The database.
    pub database: String,
    /// Settings for the session, sent in the start-up packet (`search_path`, `synchronous_commit`,
    /// …); the packet's own parameters `options` and `application_name` too.
    pub settings: Vec<(String, String)>,
    /// Encryption of the connection. Unix sockets are never encrypted.
    pub tls: Tls,
    /// Kind of session that is wanted.
    pub session_attrs: SessionAttrs,
    /// Authentication methods that the server may ask for.
    pub require_auth: RequireAuth,
    /// Time limit for connecting, up to the first `ReadyForQuery`; none: no limit of its own.
    pub connect_timeout: Option<Duration>,
}

impl Target {
    /// Whether the server runs on this machine, as far as its address tells.
    pub fn is_here(&self) -> bool {
        match &self.address {
            Address::Unix { .. } => true,
            Address::Tcp { host, .. } => {
                host == "localhost"
                    || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
            }
        }
    }

    /// Creates a target of an unencrypted connection, without a password and with defaults for the
    /// session.
    pub fn new(address: Address, user: impl Into<String>, database: impl Into<String>) -> Self {
        Self {
            address,
            host_address: None,
            user: user.into(),
            password: None,
            database: database.into(),
            settings: Vec::new(),
            tls: Tls::default(),
            session_attrs: SessionAttrs::Any,
            require_auth: RequireAuth::default(),
            connect_timeout: None,
        }
    }
}

/// How a connection chooses among several servers; libpq's `load_balance_hosts`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum LoadBalanceHosts {
    /// They are tried in the order in which they are named.
    #[default]
    Disable,
    /// Each connection tries them in an order of its own, drawn at random.
    Random,
}

/// Servers of which any will do: a connection goes to the first that takes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Servers {
    /// One or more servers, in the order of their naming, all for the same kind of session.
    pub targets: Vec<Target>,
    /// How a connection chooses among them.
    pub load_balance_hosts: LoadBalanceHosts,
}

impl From<Target> for Servers {
    fn from(target: Target) -> Self {
        Self { targets: vec![target], load_balance_hosts: LoadBalanceHosts::Disable }
    }
}

impl Servers {
    /// Tries the servers with `connect`, one after the other, and returns the first session with
    /// its target. `below(n)` draws a number below n if the order is random. An error that `ends`
    /// the search is the last.
    ///
    /// # Errors
    /// Returns the error of each attempt if no server takes the session.
    pub fn find<C, E>(
        &self,
        mut below: impl FnMut(usize) -> usize,
        mut connect: impl FnMut(&Target) -> Result<C, E>,
        ends: impl Fn(&E) -> bool,
    ) -> Result<(C, Target), Vec<E>> {
        let mut order: Vec<&Target> = self.targets.iter().collect();
        if self.load_balance_hosts == LoadBalanceHosts::Random {
            for last in (1..order.len()).rev() {
                order.swap(last, below(last + 1));
            }
        }
        let prefers_standby =
            order.iter().any(|target| target.session_attrs == SessionAttrs::PreferStandby);
        // Where standbys are only preferred, all are asked twice.
        let passes: &[Option<SessionAttrs>] = if prefers_standby {
            &[Some(SessionAttrs::Standby), Some(SessionAttrs::Any)]
        } else {
            &[None]
        };
        let mut errors = Vec::new();
        for attrs in passes {
            errors.clear();
            for target in &order {
                let asked = Target {
                    session_attrs: attrs.unwrap_or(target.session_attrs),
                    ..(*target).clone()
                };
                match connect(&asked) {
                    Ok(session) => return Ok((session, asked)),
                    Err(error) => {
                        let is_last = ends(&error);
                        errors.push(error);
                        if is_last {
                            return Err(errors);
                        }
                    }
                }
            }
        }
        Err(errors)
    }
}
