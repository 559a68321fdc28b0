//! Control connections: pgdyno's own, beside the load.

use std::error::Error as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pgdyno_model::target::{Address, ChannelBinding, SessionAttrs, SslMode, Target};
use pgdyno_tls::{Connector, TlsError};
use pgdyno_wire::auth::AuthError;
use pgdyno_wire::inspect::Refusal;
use postgres::SimpleQueryMessage;
use postgres::error::{DbError, SqlState};
use postgres_protocol::escape::escape_identifier;
use tokio_postgres::{Config, config};

use super::client::{Client, ConnectFailure};
use super::transport::{Encryption, OpenError, Reason};

/// How long connecting may take, to the first `ReadyForQuery`, unless the target says.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// The path of control sessions: PostgreSQL's own names, then the session's own temporary tables.
/// Nobody else can put anything there.
pub const SEARCH_PATH: &str = "pg_catalog, pg_temp";

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
    /// The server wants a proof of identity that is not given.
    #[error("cannot authenticate to {address} as {user}: {why}")]
    Authentication {
        /// Where.
        address: String,
        /// As whom.
        user: String,
        /// Why not.
        why: String,
        /// What to do.
        help: Option<&'static str>,
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
    /// A pooler stands before the server and does not pass settings of the session on.
    #[error(
        "{address} does not pass the session's settings on to the server, as a pooler does not"
    )]
    Pooled {
        /// Where.
        address: String,
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
            Self::Authentication { help, .. } => return help.map(str::to_owned),
            Self::NotWanted { .. } => {
                return Some("name other hosts too, or another target_session_attrs".into());
            }
            Self::Pooled { .. } => {
                return Some("connect to the server itself, past the pooler".into());
            }
            Self::NoneServes { errors } => return errors.iter().find_map(Self::help),
            Self::Query { .. } => return None,
        };
        match sqlstate.as_deref() {
            Some("28P01" | "28000") => {
                Some("check user and password, and the server's pg_hba.conf".into())
            }
            Some("3D000") => {
                Some("make the database first (`createdb`), or name another one".into())
            }
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
            Self::NoPassword { .. }
            | Self::Tls { .. }
            | Self::Authentication { .. }
            | Self::NotWanted { .. }
            | Self::Pooled { .. }
            | Self::NoneServes { .. } => None,
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

    /// Whether no other of several servers is to be asked: this one answered, and libpq goes on
    /// only from one that cannot take connections now.
    pub(crate) fn ends_search(&self) -> bool {
        if self.needs_password() || matches!(self, Self::Authentication { .. }) {
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

/// Connects to `target`; names mean PostgreSQL's own from the start-up packet on ([`SEARCH_PATH`]),
/// whatever the target's settings, the role or the database say. Sees to it that the session is of
/// the kind that the target wants.
///
/// # Errors
/// [`ControlError::Connect`], [`ControlError::Tls`], [`ControlError::NotWanted`],
/// [`ControlError::Pooled`].
pub fn connect(target: &Target) -> Result<Client, ControlError> {
    connect_with_path(target, SEARCH_PATH)
}

/// Connects as [`connect`] does, for SQL of a workload's author: unqualified names mean
/// PostgreSQL's own, then those of `schema`. Only for a schema that nobody else may write to
/// ([`super::schema::writers`]).
///
/// # Errors
/// As [`connect`].
pub fn connect_to_schema(target: &Target, schema: &str) -> Result<Client, ControlError> {
    connect_with_path(target, &path_of_schema(schema))
}

/// Connects to a server of pgdyno's own, which no pooler stands before: unqualified names mean
/// PostgreSQL's own, then those of `public`.
///
/// # Errors
/// [`ControlError::Connect`].
pub fn connect_to_own(target: &Target) -> Result<Client, ControlError> {
    open(target, Some(&path_of_schema("public")), None)
}

/// Has the server judge the settings of `target`, as the load's own sessions ask for them.
///
/// # Errors
/// As [`connect`].
pub fn try_settings(target: &Target) -> Result<(), ControlError> {
    open(target, None, None).map(drop)
}

/// The schemas that unqualified names mean in a session of the user's own at `target`, in order;
/// new tables go into the first.
///
/// # Errors
/// As [`connect`], and [`ControlError::Query`].
pub fn schemas_of_user(target: &Target) -> Result<Vec<String>, ControlError> {
    // The one control session that has the user's path: two functions, qualified, and no operator.
    const ASKED: &str = "SELECT pg_catalog.unnest(pg_catalog.current_schemas(false))";
    let mut client = open(target, None, None)?;
    let answers = client
        .simple_query(ASKED)
        .map_err(|e| ControlError::query("ask for the search_path", &e))?;
    Ok(answers.iter().filter_map(first_value).map(str::to_owned).collect())
}

/// The path by which unqualified names mean PostgreSQL's own, then those of `schema`, where new
/// ones go: `pg_catalog` comes first where it is not named.
#[must_use]
pub fn path_of_schema(schema: &str) -> String {
    format!("{}, pg_temp", escape_identifier(schema))
}

fn connect_with_path(target: &Target, path: &str) -> Result<Client, ControlError> {
    let pooled = || ControlError::Pooled { address: target.address.to_string() };
    let opened = open(target, Some(path), None);
    let mut client = opened.map_err(|e| if refuses_parameter(&e) { pooled() } else { e })?;
    if !holds_path(&mut client)? {
        return Err(pooled());
    }
    check_kind(target, &mut client)?;
    Ok(client)
}

/// Whether the path that a session has is the one of its start-up packet. A pooler may have dropped
/// that one silently.
pub(super) fn holds_path(client: &mut Client) -> Result<bool, ControlError> {
    const ASKED: &str =
        "SELECT source FROM pg_catalog.pg_settings WHERE name OPERATOR(pg_catalog.=) 'search_path'";
    let answers = client
        .simple_query(ASKED)
        .map_err(|e| ControlError::query("ask for the search_path", &e))?;
    Ok(answers.iter().find_map(first_value) == Some("client"))
}

/// Whether a connection failed since somebody does not take a start-up parameter: a server of
/// PostgreSQL takes `options`.
pub(super) fn refuses_parameter(error: &ControlError) -> bool {
    let ControlError::Connect { sqlstate: Some(code), why, .. } = error else { return false };
    matches!(code.as_str(), "08P01" | "0A000")
        && (why.contains("parameter") || why.contains("options"))
}

fn first_value(answer: &SimpleQueryMessage) -> Option<&str> {
    match answer {
        SimpleQueryMessage::Row(row) => row.get(0),
        _ => None,
    }
}

/// Connects; with `path` where it is given, else with that of the target's settings, the role or
/// the database.
pub(super) fn open(
    target: &Target,
    path: Option<&str>,
    notices: Option<&NoticeHandler>,
) -> Result<Client, ControlError> {
    let mode = match target.address {
        Address::Unix { .. } => SslMode::Disable,
        Address::Tcp { .. } => target.tls.mode,
    };
    connect_by(target, path, mode, notices)
}

/// Connects with encryption where `mode` asks for it, falling back as libpq does.
fn connect_by(
    target: &Target,
    path: Option<&str>,
    mode: SslMode,
    notices: Option<&NoticeHandler>,
) -> Result<Client, ControlError> {
    let began = Instant::now();
    let limit = target.connect_timeout.unwrap_or(CONNECT_TIMEOUT);
    let attempt = |encryption: &Encryption| {
        let left = limit.saturating_sub(began.elapsed());
        Client::connect(target, config(target, path), encryption, notices.cloned(), left)
    };
    if mode == SslMode::Disable {
        return attempt(&Encryption::No).map_err(|failure| failure.into_error(target, limit));
    }
    let tls = |cause| ControlError::Tls { address: target.address.to_string(), cause };
    let connector = Connector::shared(&target.tls).map_err(tls)?;
    let (first, second) = match mode {
        SslMode::Allow => (Encryption::No, Some(Encryption::Must(connector))),
        SslMode::Prefer => (Encryption::IfTaken(connector), Some(Encryption::No)),
        _ => (Encryption::Must(connector), None),
    };
    let failure = match attempt(&first) {
        Ok(client) => return Ok(client),
        Err(failure) => failure,
    };
    let error = failure.may_depend_on_encryption(mode).then_some(second).flatten();
    match error.map(|second| attempt(&second)) {
        Some(Ok(client)) => Ok(client),
        Some(Err(_)) | None => Err(failure.into_error(target, limit)),
    }
}

impl ConnectFailure {
    /// Whether the other kind of connection could fare better.
    fn may_depend_on_encryption(&self, mode: SslMode) -> bool {
        match self {
            Self::Open(OpenError::Tls(_) | OpenError::KnowsNoTls) => true,
            Self::Open(OpenError::Io(_) | OpenError::NoTls) | Self::GivenUp(_) => false,
            // Class 28: what pg_hba.conf says may differ for the other kind of connection.
            Self::Session(error, is_encrypted) => {
                (*is_encrypted || mode == SslMode::Allow)
                    && error.code().is_some_and(|code| code.code().starts_with("28"))
            }
        }
    }

    fn into_error(self, target: &Target, limit: Duration) -> ControlError {
        let address = target.address.to_string();
        let connect = |why: String| ControlError::Connect {
            address: target.address.to_string(),
            user: target.user.clone(),
            database: target.database.clone(),
            why,
            sqlstate: None,
        };
        match self {
            Self::Open(OpenError::Tls(cause)) => ControlError::Tls { address, cause },
            Self::Open(OpenError::Io(error)) => connect(error.to_string()),
            Self::Open(OpenError::NoTls) => connect("the server does not take TLS".into()),
            Self::Open(OpenError::KnowsNoTls) => {
                connect("what answers does not know of TLS, as PostgreSQL does".into())
            }
            Self::GivenUp(Reason::Interrupted) => connect("interrupted by a signal".into()),
            Self::GivenUp(Reason::Late(_)) => connect(format!("no session within {limit:?}")),
            Self::Session(error, _) => refused(target, &error),
        }
    }
}

fn config(target: &Target, path: Option<&str>) -> Config {
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
    let setting = |name: &str, value: &str| {
        format!("-c {name}={}", value.replace('\\', "\\\\").replace(' ', "\\ "))
    };
    let settings = target.settings.iter().filter(|(name, _)| name != "application_name");
    let of_target = settings.map(|(name, value)| match name.as_str() {
        "options" => value.clone(),
        _ => setting(name, value),
    });
    // Of several values the last counts.
    let options: Vec<String> =
        of_target.chain(path.map(|path| setting("search_path", path))).collect();
    if !options.is_empty() {
        config.options(options.join(" "));
    }
    config
}

/// Checks that the session is of the kind that `target` wants, if it wants one. Behind a pooler its
/// path may be anybody's.
pub(super) fn check_kind(target: &Target, client: &mut Client) -> Result<(), ControlError> {
    if !target.session_attrs.asks() {
        return Ok(());
    }
    const ASKED: &str = "SELECT pg_catalog.pg_is_in_recovery()::pg_catalog.text, \
        pg_catalog.current_setting('transaction_read_only')";
    let answers = client
        .simple_query(ASKED)
        .map_err(|e| ControlError::query("ask what the server is", &e))?;
    let row = answers.iter().find_map(|answer| match answer {
        postgres::SimpleQueryMessage::Row(row) => Some(row),
        _ => None,
    });
    let says = |column| {
        row.and_then(|row| row.get(column)).is_some_and(|text| matches!(text, "true" | "on"))
    };
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

fn refused(target: &Target, error: &postgres::Error) -> ControlError {
    // The client library has no other sign of it than these words.
    if target.password.is_none()
        && error.source().is_some_and(|cause| cause.to_string() == "password missing")
    {
        return ControlError::NoPassword {
            address: target.address.to_string(),
            user: target.user.clone(),
        };
    }
    if let Some(cause) = authentication_error(error) {
        return ControlError::Authentication {
            address: target.address.to_string(),
            user: target.user.clone(),
            why: cause.to_string(),
            help: cause.help(),
        };
    }
    ControlError::Connect {
        address: target.address.to_string(),
        user: target.user.clone(),
        database: target.database.clone(),
        why: said(error),
        sqlstate: error.code().map(|c| c.code().to_owned()),
    }
}

/// What the gate says of a failure, if it was the gate that refused.
fn authentication_error(error: &postgres::Error) -> Option<&AuthError> {
    let io: &std::io::Error = error.source()?.downcast_ref()?;
    match io.get_ref()?.downcast_ref()? {
        Refusal::Authentication(cause) => Some(cause),
        Refusal::Wire(_) => None,
    }
}

impl ControlError {
    /// Whether the server answered that it is there and not ready yet.
    pub(crate) fn is_starting_up(&self) -> bool {
        self.sqlstate() == Some(SqlState::CANNOT_CONNECT_NOW.code())
    }

    /// Whether it was the server that refused.
    pub(crate) fn is_from_server(&self) -> bool {
        self.sqlstate().is_some()
    }
}
