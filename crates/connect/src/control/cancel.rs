//! Requests to cancel the statement of a control session.

use std::io;
use std::time::Duration;

use pgdyno_model::target::Target;
use pgdyno_wire::auth::AuthPolicy;
use pgdyno_wire::inspect::Inspector;
use tokio::runtime::Runtime;

use super::transport::{Encrypted, Guarded, Outcome, Reason, runtime, within};
use crate::handshake::{Encryption, Handshake};
use crate::limit::Limit;
use crate::socket;
use crate::tls::Connector;

/// How long a cancel request or the end of a session may take.
pub(super) const CLOSE_LIMIT: Duration = Duration::from_millis(300);

/// Cancels a session's statement from another thread.
#[derive(Clone)]
pub struct CancelToken {
    token: tokio_postgres::CancelToken,
    target: Target,
    is_encrypted: bool,
}

impl CancelToken {
    pub(super) fn new(
        token: tokio_postgres::CancelToken,
        target: Target,
        is_encrypted: bool,
    ) -> Self {
        Self { token, target, is_encrypted }
    }

    /// Asks the server to cancel the session's statement, without waiting for an answer.
    ///
    /// # Errors
    /// There is no connection, or the request cannot be sent.
    pub fn cancel_query(&self) -> io::Result<()> {
        let runtime = runtime()?;
        let sent = self.send(&runtime);
        runtime.shutdown_background();
        sent
    }

    pub(super) fn send(&self, runtime: &Runtime) -> io::Result<()> {
        let limit = Limit::new(CLOSE_LIMIT, &|| false);
        let connector = match self.is_encrypted {
            true => Some(Connector::shared(&self.target.tls).map_err(io::Error::other)?),
            false => None,
        };
        let encryption = connector.as_ref().map_or(Encryption::No, Encryption::Must);
        let socket = socket::open(&self.target, limit).map_err(io::Error::other)?;
        let mut handshake = Handshake::new(&self.target, socket, limit);
        handshake.negotiate_encryption(encryption).map_err(io::Error::other)?;
        let stream = handshake.into_session().map_err(io::Error::other)?.stream;
        let sent = runtime.block_on(within(limit.left(), async {
            let stream =
                Guarded::new(stream, Inspector::new(AuthPolicy::default()), Outcome::default())?;
            let sent = self.token.cancel_query_raw(stream, Encrypted).await;
            sent.map_err(io::Error::other)
        }));
        sent.unwrap_or_else(|| Err(Reason::Late(CLOSE_LIMIT).into()))
    }
}
