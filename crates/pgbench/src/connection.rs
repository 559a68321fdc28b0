//! Resolving the servers, and the connection for setup.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, channel};

use pgdyno_connect::conninfo::{ConnectOptions, ConninfoError};
use pgdyno_connect::control::{ControlClient, ControlError, NoticeHandler, server_error};
use pgdyno_connect::{ConnectError, conninfo, control};
use pgdyno_model::Advice;
use pgdyno_model::target::{Servers, Target};
use tokio_postgres::error::DbError;

use crate::password;
use crate::server_messages::without_number;
use crate::usage_error::{Stopped, UsageError};

/// The connection for setup.
pub(crate) struct Connected {
    /// All servers that options and environment name.
    pub(crate) servers: Servers,
    /// The session, on the first of them that serves.
    pub(crate) client: ControlClient,
    /// The server of that session.
    pub(crate) target: Target,
    /// Schemas of the user's search_path, in order; none where nothing is asked.
    pub(crate) schemas: Vec<String>,
    /// Notices that the server sent for the session's statements.
    pub(crate) notices: Notices,
}

/// Notices and warnings of a session, in libpq's words.
pub(crate) struct Notices {
    /// Takes them from the session.
    handler: NoticeHandler,
    arrived: Receiver<String>,
}

impl Notices {
    fn new() -> Self {
        let (sender, arrived) = channel();
        let handler: NoticeHandler = Arc::new(move |notice: &DbError| {
            // Nobody listens any more once the session is over.
            let _ = sender.send(server_error(notice).libpq_text(None));
        });
        Self { handler, arrived }
    }

    /// Opens a session on `target` whose notices arrive here.
    pub(crate) fn connect(&self, target: &Target) -> Result<ControlClient, ControlError> {
        ControlClient::connect(target, Some(&self.handler))
    }

    /// Writes the notices that have arrived.
    pub(crate) fn relay(&self, err: &mut dyn Write) {
        for words in self.arrived.try_iter() {
            let _ = writeln!(err, "{words}");
        }
    }
}

/// Connects for setup. If the server wants a password and none is given, asks for it once, at the
/// terminal.
///
/// `purpose` is that of the session: `initialization` or `setup`. Unless it `asks`, the server is
/// sent no statement. Notes on the options go to `err`, however the connection ends: a password
/// file that is not used may be why it fails.
pub(crate) fn connect(
    connect: &ConnectOptions,
    purpose: &str,
    asks: bool,
    err: &mut dyn Write,
    stop: &AtomicBool,
) -> Result<Connected, Stopped> {
    let failure = || format!("could not create connection for {purpose}");
    let options =
        ConnectOptions { fallback_application_name: Some("pgbench".to_owned()), ..connect.clone() };
    let mut resolved =
        conninfo::resolve(&options).map_err(|e| unresolved(&e, connect).then(failure()))?;
    tell(err, &resolved.notes);
    let notices = Notices::new();
    let open = |target: &Target| match asks {
        true => notices.connect(target),
        false => ControlClient::connect_unasked(target, Some(&notices.handler)),
    };
    let mut connected = resolved.connect_by(open);
    if connected.as_ref().is_err_and(ControlError::needs_password)
        && let Some(password) = password::ask(stop)?
    {
        for target in &mut resolved.servers.targets {
            target.password.get_or_insert_with(|| password.clone());
        }
        connected = resolved.connect_by(open);
    }
    let (client, target) = connected.map_err(|e| refused(&e).then(failure()))?;
    let schemas = match asks {
        true => control::schemas_of_user(&target).map_err(|e| refused(&e).then(failure()))?,
        false => Vec::new(),
    };
    Ok(Connected { servers: resolved.servers, client, target, schemas, notices })
}

/// Writes `notes` to `err`.
pub(crate) fn tell(err: &mut dyn Write, notes: &[String]) {
    for note in notes {
        let _ = writeln!(err, "pgbench: note: {note}");
    }
}

fn unresolved(error: &ConninfoError, connect: &ConnectOptions) -> UsageError {
    let what = match error {
        // In libpq's words, by which scripts know it.
        ConninfoError::Value { keyword: "port", shown, .. } if connect.port.is_some() => {
            let shown = shown.as_deref().unwrap_or_default();
            format!("invalid integer value \"{shown}\" for connection option \"port\"")
        }
        other => other.to_string(),
    };
    UsageError::new(what).help(error.help())
}

/// Creates the error of a connection that cannot be had, in libpq's words where it has some.
pub(crate) fn refused(error: &ControlError) -> UsageError {
    let what = match error {
        ControlError::Connect(ConnectError::Server { address, error, .. }) => {
            failed(&address.to_string(), &error.libpq_text(None))
        }
        ControlError::Connect(
            ConnectError::Refused { address, cause } | ConnectError::Lost { address, cause },
        ) => failed(&address.to_string(), without_number(&cause.to_string())),
        // libpq's words.
        ControlError::Connect(ConnectError::Authentication { address, .. })
            if error.needs_password() =>
        {
            failed(&address.to_string(), "fe_sendauth: no password supplied")
        }
        other => other.to_string(),
    };
    UsageError::new(what).help(error.help())
}

/// Returns libpq's message for a failed connection; `why` is the reason.
///
/// `address` is a socket's path or `host:port`.
pub(crate) fn failed(address: &str, why: &str) -> String {
    let place = match address.rsplit_once(':') {
        _ if address.starts_with('/') => format!("on socket \"{address}\""),
        Some((host, port)) => format!("at \"{host}\", port {port}"),
        None => format!("at \"{address}\""),
    };
    format!("connection to server {place} failed: {why}")
}
