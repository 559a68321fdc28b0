//! Whom to connect to, and the connection for setup.

use std::sync::atomic::AtomicBool;

use pgdyno_host::conninfo::{self, ConnectOptions, ConninfoError};
use pgdyno_host::postgres::ControlError;
use pgdyno_model::target::{Servers, Target};
use postgres::Client;

use super::initialize::Ended;
use super::options::Connect;
use super::password;
use super::refused::Refused;

/// What follows when there is no first connection.
const NO_SETUP: &str = "could not create connection for setup";

/// The connection for setup.
pub(super) struct Connected {
    /// All servers that options and environment name.
    pub(super) servers: Servers,
    /// The session, on the first of them that serves.
    pub(super) client: Client,
    /// That one.
    pub(super) target: Target,
    /// What is worth telling.
    pub(super) notes: Vec<String>,
}

/// Connects for setup. Where a server asks for a password and none is given, the terminal is asked for one, once.
pub(super) fn connect(connect: &Connect, stop: &AtomicBool) -> Result<Connected, Ended> {
    let options = ConnectOptions {
        dsn_or_dbname: connect.database.clone(),
        host: connect.host.clone(),
        port: connect.port.clone(),
        user: connect.user.clone(),
        password: None,
        fallback_application_name: Some("pgbench".to_owned()),
    };
    let mut resolved = conninfo::resolve(&options).map_err(|e| unresolved(&e, connect))?;
    let mut connected = resolved.connect();
    if connected.as_ref().is_err_and(ControlError::needs_password)
        && let Some(password) = password::ask(stop)?
    {
        for target in &mut resolved.servers.targets {
            target.password.get_or_insert_with(|| password.clone());
        }
        connected = resolved.connect();
    }
    let (client, target) = connected.map_err(|e| refused(&e))?;
    Ok(Connected { servers: resolved.servers, client, target, notes: resolved.notes })
}

fn unresolved(error: &ConninfoError, connect: &Connect) -> Refused {
    let what = match error {
        // In libpq's words, by which scripts know it.
        ConninfoError::Value { keyword: "port", shown, .. } if connect.port.is_some() => {
            let shown = shown.as_deref().unwrap_or_default();
            format!("invalid integer value \"{shown}\" for connection option \"port\"")
        }
        other => other.to_string(),
    };
    with_help(Refused::new(what), error.help()).then(NO_SETUP)
}

fn refused(error: &ControlError) -> Refused {
    let what = match error {
        ControlError::Connect { address, why, sqlstate, .. } => {
            let at = if address.starts_with('/') { "on socket" } else { "at" };
            let fatal = if sqlstate.is_some() { "FATAL:  " } else { "" };
            format!("connection to server {at} \"{address}\" failed: {fatal}{why}")
        }
        // libpq's words.
        ControlError::NoPassword { address, .. } => {
            let at = if address.starts_with('/') { "on socket" } else { "at" };
            format!("connection to server {at} \"{address}\" failed: fe_sendauth: no password supplied")
        }
        other => other.to_string(),
    };
    with_help(Refused::new(what), error.help()).then(NO_SETUP)
}

fn with_help(refused: Refused, help: Option<String>) -> Refused {
    match help {
        Some(help) => refused.hint(help),
        None => refused,
    }
}
