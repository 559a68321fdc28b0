//! Errors that a client meets, and why it gives up.

use pgdyno_wire::ServerError;

use crate::sqlstate;

/// pgbench's message for an expression without a value.
pub(super) const EVALUATION: &str = "evaluation of meta-command failed";

/// An error of the server, with the step and statement that met it.
#[derive(Debug)]
pub(super) struct StatementError {
    pub(super) step: usize,
    pub(super) statement: Option<usize>,
    pub(super) error: Box<ServerError>,
}

/// Why a client gives up: SQLSTATE, reason for reports, and pgbench's message.
pub(super) struct Abort {
    pub(super) code: String,
    pub(super) reason: String,
    /// pgbench's message; empty where `causes` say everything.
    pub(super) message: String,
    /// Whether the server reported the error.
    pub(super) is_from_server: bool,
    /// Messages that pgbench logs before `message`.
    pub(super) causes: Vec<String>,
}

impl Abort {
    /// Creates the abort for an error that the engine found.
    pub(super) fn internal(code: &str, reason: &str) -> Self {
        Self {
            code: code.to_owned(),
            reason: format!("{reason} (SQLSTATE {code})"),
            message: reason.to_owned(),
            is_from_server: false,
            causes: Vec::new(),
        }
    }

    /// Creates the abort for a ledger that cannot be written: an unrecorded transaction must not be
    /// sent.
    #[cold]
    pub(super) fn ledger(error: &std::io::Error) -> Self {
        Self::internal(sqlstate::IO_ERROR, &format!("the ledger cannot be kept: {error}"))
    }

    /// Creates the abort for an error of the server about `what`; `words` is libpq's text.
    pub(super) fn from_server(what: &str, error: &ServerError, words: String) -> Self {
        Self {
            reason: format!("{what}: {error}"),
            code: error.code.clone(),
            message: words,
            is_from_server: true,
            causes: Vec::new(),
        }
    }

    /// Marks the error as reported by the server.
    pub(super) fn blamed_on_server(mut self) -> Self {
        self.is_from_server = true;
        self
    }

    pub(super) fn with_message(mut self, message: &str) -> Self {
        message.clone_into(&mut self.message);
        self
    }

    pub(super) fn with_cause(mut self, cause: String) -> Self {
        self.causes.push(cause);
        self
    }
}
