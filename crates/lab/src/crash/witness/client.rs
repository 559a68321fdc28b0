//! A witness as the machine under test reaches it.

use pgdyno_model::target::Secret;

use super::connection::{Answer, Ask, Connection, Standing, unexpected};
use crate::LabError;

/// The witness of a session: where it listens, and what it shares with this machine.
#[derive(Clone, Debug)]
pub struct Witness {
    /// `HOST:PORT`.
    pub address: String,
    /// See [`super::shared_secret`].
    pub secret: Secret,
}

impl Witness {
    pub(super) fn connect(&self) -> Result<Connection, LabError> {
        Connection::to(&self.address, &self.secret).map_err(|e| self.failed("reach", &e))
    }

    pub(super) fn failed(&self, what: &str, e: &std::io::Error) -> LabError {
        LabError::Witness {
            what: format!("{what} the witness at {}", self.address),
            found: e.to_string(),
        }
    }

    pub(super) fn standing(
        &self,
        connection: &mut Connection,
        session: &str,
    ) -> Result<Standing, LabError> {
        match connection
            .ask(&Ask::Session(session.to_owned()))
            .map_err(|e| self.failed("ask", &e))?
        {
            Answer::Session(standing) => Ok(standing),
            _ => Err(self.failed("ask", &unexpected())),
        }
    }

    /// On a connection of its own: the one before may have been idle for as long as the load took.
    pub(super) fn close(&self, session: &str, why: &str) -> Result<(), LabError> {
        let closing = Ask::Close(session.to_owned(), why.to_owned());
        self.connect()?.done(&closing).map_err(|e| self.failed("tell", &e))
    }
}
