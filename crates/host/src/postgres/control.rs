//! Control connections: pgdyno's own, beside the load.

use std::error::Error as _;
use std::sync::Arc;
use std::time::Duration;

use pgdyno_model::target::{Address, ChannelBinding, SessionAttrs, SslMode, Target};
use pgdyno_tls::{Connector, TlsError, rustls};
use postgres::error::{DbError, SqlState};
use postgres::{Client, Config, NoTls, config};

use super::tls::MakeTls;

/// How long connecting may take, unless the target says.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// A control connection or one of its statements failed.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// No connection.
    #[error("cannot connect to {address} as {user}, database {database}: {why}")]
    Connect {
        /// Where.
        address: String,
        /// As whom.
        user: String,
        /// To which database.
        database: String,
        /// What the server or the system said.
        why: String,
        /// The server's SQLSTATE, where it was the server that refused.
        sqlstate: Option<String>,
    },
    /// The server asks for a password, and there is none.
    #[error("cannot connect to {address} as {user}: it asks for a password, and none is given")]
    NoPassword {
        /// Where.
        address: String,
        /// As whom.
        user: String,
    },
    /// Encryption that is asked for cannot be had, or the server is not trusted.
    #[error("cannot connect to {address} by TLS: {cause}")]
    Tls {
        /// Where.
        address: String,
        /// Why not.
        cause: TlsError,
    },
    /// The session is not of the kind that is wanted.
    #[error("{address} is {found}, and target_session_attrs={} is wanted", wanted.name())]
    NotWanted {
        /// Where.
        address: String,
        /// What is wanted.
        wanted: SessionAttrs,
        /// What the server says of itself.
        found: &'static str,
    },
    /// None of several servers.
    #[error("none of {} servers serves: {}", errors.len(), errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    NoneServes {
        /// What became of each.
        errors: Vec<ControlError>,
    },
    /// A statement failed.
    #[error("cannot {what}: {why}")]
    Query {
        /// What it was for.
        what: &'static str,
        /// What the server said.
        why: String,
        /// The server's SQLSTATE, where it was the server that refused.
        sqlstate: Option<String>,
    },
}

impl ControlError {
    /// What to do.
    #[must_use]
    pub fn help(&self) -> Option<String> {
        let (sqlstate, why) = match self {
            Self::Connect { sqlstate, why, .. } => (sqlstate, why),
            Self::NoPassword { .. } => {
                return Some("give it by PGPASSWORD, `.pgpass` or the connection string".into());
            }
            Self::Tls { cause, .. } => return cause.help(),
            Self::NotWanted { .. } => {
                return Some("name other hosts too, or another target_session_attrs".into());
            }
            Self::NoneServes { errors } => return errors.iter().find_map(Self::help),
            Self::Query { .. } => return None,
        };
        match sqlstate.as_deref() {
            Some("28P01" | "28000") => Some("check user and password, and the server's pg_hba.conf".into()),
            Some("3D000") => Some("make the database first (`createdb`), or name another one".into()),
            Some("53300") => Some("raise max_connections, or lower the number of clients".into()),
            Some(_) => None,
            None if why.contains("refused") || why.contains("No such file") => {
                Some("is the server running, and does it listen there?".into())
            }
            None => None,
        }
    }

    /// The SQLSTATE, where it was the server that refused.
    #[must_use]
    pub fn sqlstate(&self) -> Option<&str> {
        match self {
            Self::Connect { sqlstate, .. } | Self::Query { sqlstate, .. } => sqlstate.as_deref(),
            Self::NoPassword { .. } | Self::Tls { .. } | Self::NotWanted { .. } | Self::NoneServes { .. } => {
                None
            }
        }
    }

    /// Whether a password would help.
    #[must_use]
    pub fn needs_password(&self) -> bool {
        match self {
            Self::NoPassword { .. } => true,
            Self::NoneServes { errors } => errors.iter().any(Self::needs_password),
            _ => false,
        }
    }

    /// Whether no other of several servers is to be asked: this one answered, and libpq goes on only from one that cannot
    /// take connections now.
    pub(crate) fn ends_search(&self) -> bool {
        if self.needs_password() {
            return true;
        }
        let refused = self.sqlstate();
        refused.is_some_and(|code| code != SqlState::CANNOT_CONNECT_NOW.code())
    }

    pub(crate) fn query(what: &'static str, error: &postgres::Error) -> Self {
        Self::Query { what, why: said(error), sqlstate: error.code().map(|c| c.code().to_owned()) }
    }
}

/// What the server, or else the system, said; with the server's detail and hint.
#[must_use]
pub fn said(error: &postgres::Error) -> String {
    if let Some(db) = error.as_db_error() {
        let mut text = db.message().to_owned();
        for (label, more) in [("detail", db.detail()), ("hint", db.hint())] {
            if let Some(more) = more {
                text = format!("{text} ({label}: {more})");
            }
        }
        return text;
    }
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let inner_text = inner.to_string();
        if !text.contains(&inner_text) {
            text = format!("{text}: {inner_text}");
        }
        cause = inner.source();
    }
    text
}

/// Takes notices and warnings of the server as they come.
pub type NoticeHandler = Arc<dyn Fn(&DbError) + Send + Sync>;

/// Connects to `target`, and sees to it that the session is of the kind that it wants.
///
/// # Errors
/// [`ControlError::Connect`], [`ControlError::Tls`], [`ControlError::NotWanted`].
pub fn connect(target: &Target) -> Result<Client, ControlError> {
    connect_with(target, None)
}

/// Connects as [`connect`] does; `notices` takes the session's notices.
///
/// # Errors
/// As [`connect`].
pub fn connect_with(target: &Target, notices: Option<&NoticeHandler>) -> Result<Client, ControlError> {
    let mut config = config(target);
    if let Some(notices) = notices.cloned() {
        config.notice_callback(move |notice| notices(&notice));
    }
    let mut client = match (&target.address, target.tls.mode) {
        (Address::Unix { .. }, _) | (_, SslMode::Disable) => {
            config.ssl_mode(config::SslMode::Disable).connect(NoTls).map_err(|e| refused(target, &e))?
        }
        (Address::Tcp { .. }, mode) => connect_by_tls(target, &config, mode)?,
    };
    if target.session_attrs.asks() {
        check_kind(target, &mut client)?;
    }
    Ok(client)
}

/// Connects without encryption.
pub(crate) fn connect_or_why(target: &Target) -> Result<Client, postgres::Error> {
    config(target).ssl_mode(config::SslMode::Disable).connect(NoTls)
}

/// Connects with encryption where `mode` asks for it, falling back as libpq does.
fn connect_by_tls(target: &Target, config: &Config, mode: SslMode) -> Result<Client, ControlError> {
    let tls = |cause| ControlError::Tls { address: target.address.to_string(), cause };
    let connector = Connector::shared(&target.tls).map_err(tls)?;
    let attempt = |ssl_mode| config.clone().ssl_mode(ssl_mode).connect(MakeTls(connector.clone()));
    let (first, second) = match mode {
        SslMode::Disable => (config::SslMode::Disable, None),
        SslMode::Allow => (config::SslMode::Disable, Some(config::SslMode::Require)),
        SslMode::Prefer => (config::SslMode::Prefer, Some(config::SslMode::Disable)),
        SslMode::Require | SslMode::VerifyCa | SslMode::VerifyFull => (config::SslMode::Require, None),
    };
    let words = |error: &postgres::Error| match tls_error(error) {
        Some(cause) => tls(TlsError::handshake(cause)),
        None => refused(target, error),
    };
    let error = match attempt(first) {
        Ok(client) => return Ok(client),
        Err(error) => error,
    };
    // Class 28: what pg_hba.conf says may differ for the other kind of connection.
    let may_differ =
        error.code().is_some_and(|code| code.code().starts_with("28")) || tls_error(&error).is_some();
    match second.filter(|_| may_differ) {
        Some(second) => attempt(second).map_err(|_| words(&error)),
        None => Err(words(&error)),
    }
}

/// What TLS says of a failure, if it was TLS that failed.
fn tls_error(error: &postgres::Error) -> Option<&rustls::Error> {
    let mut cause = error.source();
    while let Some(inner) = cause {
        if let Some(found) = inner.downcast_ref() {
            return Some(found);
        }
        let wrapped = inner.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        if let Some(found) = wrapped.and_then(|wrapped| wrapped.downcast_ref()) {
            return Some(found);
        }
        cause = inner.source();
    }
    None
}

fn config(target: &Target) -> Config {
    let mut config = Config::new();
    config
        .user(&target.user)
        .dbname(&target.database)
        .application_name("pgdyno control")
        .connect_timeout(target.connect_timeout.unwrap_or(CONNECT_TIMEOUT))
        .channel_binding(match target.tls.channel_binding {
            ChannelBinding::Disable => config::ChannelBinding::Disable,
            ChannelBinding::Prefer => config::ChannelBinding::Prefer,
            ChannelBinding::Require => config::ChannelBinding::Require,
        });
    match &target.address {
        Address::Unix { directory, port } => config.host_path(directory).port(*port),
        Address::Tcp { host, port } => config.host(host).port(*port),
    };
    if let Some(ip) = target.host_address {
        config.hostaddr(ip);
    }
    if let Some(password) = &target.password {
        config.password(password.reveal());
    }
    let options: Vec<String> = target
        .settings
        .iter()
        .filter(|(name, _)| name != "application_name")
        .map(|(name, value)| match name.as_str() {
            "options" => value.clone(),
            _ => format!("-c {name}={}", value.replace('\\', "\\\\").replace(' ', "\\ ")),
        })
        .collect();
    if !options.is_empty() {
        config.options(&options.join(" "));
    }
    config
}

fn check_kind(target: &Target, client: &mut Client) -> Result<(), ControlError> {
    const ASKED: &str = "SELECT pg_catalog.pg_is_in_recovery()::text, \
        pg_catalog.current_setting('transaction_read_only')";
    let answers =
        client.simple_query(ASKED).map_err(|e| ControlError::query("ask what the server is", &e))?;
    let row = answers.iter().find_map(|answer| match answer {
        postgres::SimpleQueryMessage::Row(row) => Some(row),
        _ => None,
    });
    let says = |column| row.and_then(|row| row.get(column)).is_some_and(|text| matches!(text, "true" | "on"));
    let (in_recovery, read_only) = (says(0), says(1));
    if target.session_attrs.accepts(in_recovery, read_only) {
        return Ok(());
    }
    Err(ControlError::NotWanted {
        address: target.address.to_string(),
        wanted: target.session_attrs,
        found: match (in_recovery, read_only) {
            (true, _) => "a standby",
            (false, true) => "read-only",
            (false, false) => "a primary that takes writes",
        },
    })
}

pub(crate) fn refused(target: &Target, error: &postgres::Error) -> ControlError {
    // The client library has no other sign of it than these words.
    if target.password.is_none()
        && error.source().is_some_and(|cause| cause.to_string() == "password missing")
    {
        return ControlError::NoPassword { address: target.address.to_string(), user: target.user.clone() };
    }
    ControlError::Connect {
        address: target.address.to_string(),
        user: target.user.clone(),
        database: target.database.clone(),
        why: said(error),
        sqlstate: error.code().map(|c| c.code().to_owned()),
    }
}

/// Whether the server answered that it is there and not ready yet.
pub(crate) fn is_starting_up(error: &postgres::Error) -> bool {
    error.code() == Some(&SqlState::CANNOT_CONNECT_NOW)
}
