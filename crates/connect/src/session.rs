//! Sessions for load: from a target to a socket that is ready for its first command.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use pgdyno_model::target::{Address, Servers, SslMode, Target};
use pgdyno_wire::frontend;

use super::error::ConnectError;
use super::handshake::{Connection, Encryption, FailedAttempt, Handshake, with_encryption};
use super::limit::Limit;
use super::socket::open;
use super::tls::Connector;

/// How long a connection may take from the first packet to the first `ReadyForQuery`, unless the
/// target says.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Connects to one of `servers`, and returns the session and the target that took it.
///
/// Each attempt may take `limit`, or the target's own `connect_timeout`. All end once `stop` is
/// set. `random_below(n)` draws a number below n, as [`Servers::find`] needs it.
///
/// # Errors
/// As [`connect`]; [`ConnectError::NoneServes`] if there are several servers.
pub fn connect_any(
    servers: &Servers,
    limit: Duration,
    stop: &AtomicBool,
    random_below: impl FnMut(usize) -> usize,
) -> Result<(Connection, Target), ConnectError> {
    let connect = |target: &Target| connect_until(target, limit, &|| stop.load(Ordering::Relaxed));
    let found = servers.find(random_below, connect, ConnectError::ends_search);
    found.map_err(|mut errors| match errors.len() {
        1 => errors.remove(0),
        _ => ConnectError::NoneServes { errors },
    })
}

/// Connects to `target` within `limit`, or within the target's own `connect_timeout`.
///
/// # Errors
/// [`ConnectError`]: no server answers, the server refuses or is not trusted, authentication fails,
/// the session is not of the kind that the target wants, or the limit passed.
pub fn connect(target: &Target, limit: Duration) -> Result<Connection, ConnectError> {
    connect_until(target, limit, &|| false)
}

fn connect_until(
    target: &Target,
    limit: Duration,
    is_stopped: &dyn Fn() -> bool,
) -> Result<Connection, ConnectError> {
    let limit = Limit::new(target.connect_timeout.unwrap_or(limit), is_stopped);
    with_encryption(target, |encryption| {
        let stream = open(target, limit).map_err(FailedAttempt::before_tls)?;
        let mut handshake = Handshake::new(target, stream, limit);
        let done = handshake.execute(encryption);
        done.map_err(|error| FailedAttempt { error, is_encrypted: handshake.is_encrypted() })?;
        handshake.into_session().map_err(FailedAttempt::before_tls)
    })
}

/// Asks the server of `target` to cancel the statement of the session with `key`, and waits until
/// it has read that, as libpq does: then it closes the connection. The request is encrypted if the
/// session is.
///
/// # Errors
/// [`ConnectError`]: no connection within `limit`, or the request cannot be sent.
pub fn cancel(target: &Target, key: &(u32, Vec<u8>), limit: Duration) -> Result<(), ConnectError> {
    let limit = Limit::new(limit, &|| false);
    let connector = match (&target.address, target.tls.mode) {
        (Address::Unix { .. }, _) | (_, SslMode::Disable | SslMode::Allow) => None,
        (Address::Tcp { .. }, _) => Some(
            Connector::shared(&target.tls)
                .map_err(|cause| ConnectError::Tls { address: target.address.clone(), cause })?,
        ),
    };
    let mut handshake = Handshake::new(target, open(target, limit)?, limit);
    handshake.negotiate_encryption(match &connector {
        None => Encryption::No,
        Some(connector) if target.tls.mode == SslMode::Prefer => Encryption::IfTaken(connector),
        Some(connector) => Encryption::Must(connector),
    })?;
    let mut out = Vec::new();
    frontend::cancel_request(&mut out, key.0, &key.1)
        .map_err(|cause| ConnectError::Protocol { address: target.address.clone(), cause })?;
    handshake.send(&out)?;
    handshake.wait_closed();
    Ok(())
}
