//! Opens control sessions, and checks their path and their kind.

use pgdyno_model::target::Target;
use postgres_protocol::escape::escape_identifier;
use tokio_postgres::SimpleQueryMessage;

use super::client::{Client, NoticeHandler};
use super::config::{CONNECT_TIMEOUT, SEARCH_PATH, config};
use super::error::ControlError;
use super::questions::questions;
use super::watcher::Watch;
use crate::error::{ConnectError, ServerKind};

/// Connects to `target` with [`SEARCH_PATH`], and checks that the session is of the kind that the
/// target wants.
///
/// The path holds from the start-up packet on, whatever the target's settings, the role or the
/// database say.
///
/// # Errors
/// [`ControlError::Connect`], [`ControlError::Pooled`].
pub fn connect(target: &Target) -> Result<Client, ControlError> {
    connect_with_path(target, SEARCH_PATH)
}

/// Connects as [`connect`] does, for SQL of a workload's author: unqualified names mean
/// PostgreSQL's own, then those of `schema`.
///
/// Check first that nobody else may write to `schema`.
///
/// # Errors
/// As [`connect`].
pub fn connect_to_schema(target: &Target, schema: &str) -> Result<Client, ControlError> {
    connect_with_path(target, &path_of_schema(schema))
}

/// Connects to a server that pgdyno made, which has no pooler in front: unqualified names mean
/// PostgreSQL's own, then those of `public`.
///
/// # Errors
/// [`ControlError::Connect`].
pub fn connect_to_own(target: &Target) -> Result<Client, ControlError> {
    open_watched(target, Some(&path_of_schema("public")), None, true)
}

/// Tries the settings of `target` in a session, as sessions for load do.
///
/// # Errors
/// As [`connect`].
pub fn try_settings(target: &Target) -> Result<(), ControlError> {
    open(target, None, None).map(drop)
}

/// Returns the schemas that unqualified names mean in a session with the user's own path, in
/// order. New tables go into the first.
///
/// # Errors
/// As [`connect`], and [`ControlError::Query`].
pub fn schemas_of_user(target: &Target) -> Result<Vec<String>, ControlError> {
    // The only control session with the user's path, hence qualified names and no operator.
    const ASKED: &str = "SELECT pg_catalog.unnest(pg_catalog.current_schemas(false))";
    let mut client = open(target, None, None)?;
    let answers = ask(&mut client, "ask for the search_path", ASKED)?;
    Ok(answers.iter().filter_map(first_value).map(str::to_owned).collect())
}

/// Returns a path by which unqualified names mean PostgreSQL's own, then those of `schema`, where
/// new objects go.
///
/// PostgreSQL searches `pg_catalog` first where a path does not name it.
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

/// Whether the session has the path of its start-up packet, which a pooler may drop silently.
pub(super) fn holds_path(client: &mut Client) -> Result<bool, ControlError> {
    const ASKED: &str =
        "SELECT source FROM pg_catalog.pg_settings WHERE name OPERATOR(pg_catalog.=) 'search_path'";
    let answers = ask(client, "ask for the search_path", ASKED)?;
    Ok(answers.iter().find_map(first_value) == Some("client"))
}

/// Whether a connection failed because a pooler refuses a start-up parameter. PostgreSQL itself
/// takes `options`.
pub(super) fn refuses_parameter(error: &ControlError) -> bool {
    let ControlError::Connect(ConnectError::Server { error, .. }) = error else { return false };
    matches!(error.code.as_str(), "08P01" | "0A000")
        && (error.message.contains("parameter") || error.message.contains("options"))
}

/// Executes the question `sql`, which is to do `what`.
fn ask(
    client: &mut Client,
    what: &'static str,
    sql: &str,
) -> Result<Vec<SimpleQueryMessage>, ControlError> {
    client.simple_query(sql).map_err(|e| ControlError::query(what, &e))
}

fn first_value(answer: &SimpleQueryMessage) -> Option<&str> {
    match answer {
        SimpleQueryMessage::Row(row) => row.get(0),
        _ => None,
    }
}

/// Opens a session with the search path `path`, or else with the path of the target's settings, of
/// the role or of the database.
pub(super) fn open(
    target: &Target,
    path: Option<&str>,
    notices: Option<&NoticeHandler>,
) -> Result<Client, ControlError> {
    open_watched(target, path, notices, false)
}

/// Opens a session as [`open`] does, to a server with nothing in front of it if it `is_direct`.
fn open_watched(
    target: &Target,
    path: Option<&str>,
    notices: Option<&NoticeHandler>,
    is_direct: bool,
) -> Result<Client, ControlError> {
    let limit = target.connect_timeout.unwrap_or(CONNECT_TIMEOUT);
    let mut client = Client::connect(target, &config(target, path), notices, limit)?;
    client.watch(Some(Watch { ask: questions(target), is_direct, ends_silence: false }));
    Ok(client)
}

/// Checks that the session is of the kind that `target` wants.
pub(super) fn check_kind(target: &Target, client: &mut Client) -> Result<(), ControlError> {
    const DOING: &str = "ask what kind of server it is";
    if !target.session_attrs.asks() {
        return Ok(());
    }
    let answers = ask(client, DOING, ServerKind::QUERY)?;
    let row = answers.iter().find_map(|answer| match answer {
        SimpleQueryMessage::Row(row) => Some(row),
        _ => None,
    });
    let is_on = |column| {
        let text = row.and_then(|row| row.try_get(column).ok().flatten());
        text.map(|text| matches!(text, "true" | "on"))
    };
    let (Some(in_recovery), Some(read_only)) = (is_on(0), is_on(1)) else {
        let why = "the answer of the server has another shape".to_owned();
        return Err(ControlError::Query { what: DOING, why, sqlstate: None });
    };
    Ok(ServerKind::new(in_recovery, read_only).check(target)?)
}
