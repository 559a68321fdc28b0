//! Whom to connect to, and the connection for setup.

use pgdyno_host::conninfo::{self, ConnectOptions, ConninfoError};
use pgdyno_host::postgres::{ControlError, control};
use pgdyno_model::target::Target;
use postgres::Client;

use super::options::Connect;
use super::refused::Refused;

/// What follows when there is no first connection.
const NO_SETUP: &str = "could not create connection for setup";

/// Connects for setup: to the first server that serves of those that options and environment name. Also what is worth
/// telling.
pub(super) fn connect(connect: &Connect) -> Result<(Target, Client, Vec<String>), Refused> {
    let options = ConnectOptions {
        dsn_or_dbname: connect.database.clone(),
        host: connect.host.clone(),
        port: connect.port.clone(),
        user: connect.user.clone(),
        password: None,
        fallback_application_name: Some("pgbench".to_owned()),
    };
    let resolved = conninfo::resolve(&options).map_err(|e| unresolved(&e, connect))?;
    let target = resolved.select().map_err(|e| refused(&e))?;
    let client = control::connect(&target).map_err(|e| refused(&e))?;
    Ok((target, client, resolved.notes))
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
