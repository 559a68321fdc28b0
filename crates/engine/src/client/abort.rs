//! Errors that a client meets, and why it gives up.

use pgdyno_wire::ServerError;

use crate::sqlstate;

/// What pgbench says of an expression without a value.
pub(super) const EVALUATION: &str = "evaluation of meta-command failed";

/// An error of the server's, and the step and statement that met it.
#[derive(Debug)]
pub(super) struct StatementError {
    pub(super) step: usize,
    pub(super) statement: Option<usize>,
    pub(super) error: Box<ServerError>,
}

/// Why a client gives up: an SQLSTATE, words for people that name it too, and those that pgbench
/// would use.
pub(super) struct Abort {
    pub(super) code: String,
    pub(super) reason: String,
    /// Empty where `cause` says it all.
    pub(super) message: String,
    /// Whether the server said it.
    pub(super) is_from_server: bool,
    /// What pgbench says of it beforehand.
    pub(super) causes: Vec<String>,
}

impl Abort {
    /// For what the engine itself finds wrong.
    pub(super) fn internal(code: &str, reason: &str) -> Self {
        Self {
            code: code.to_owned(),
            reason: format!("{reason} (SQLSTATE {code})"),
            message: reason.to_owned(),
            is_from_server: false,
            causes: Vec::new(),
        }
    }

    /// For a ledger that cannot be kept: what is not written down must not happen.
    #[cold]
    pub(super) fn ledger(error: &std::io::Error) -> Self {
        Self::internal(sqlstate::IO_ERROR, &format!("the ledger cannot be kept: {error}"))
    }

    /// For `error` of the server's, about `what`; in libpq's `words`.
    pub(super) fn from_server(what: &str, error: &ServerError, words: String) -> Self {
        Self {
            reason: format!("{what}: {error}"),
            code: error.code.clone(),
            message: words,
            is_from_server: true,
            causes: Vec::new(),
        }
    }

    /// The same, its words said by the server.
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
