//! What clients tell of themselves while a load runs.

use std::sync::Arc;

/// What a client's words are about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientLogKind {
    /// What ends the client.
    Error,
    /// An error that does not, or what the client does next.
    News,
    /// A value that the scripts' function `debug` is applied to.
    Value,
    /// A notice or a warning of the server's, in libpq's words.
    Notice,
}

/// Takes a client's words as things happen.
pub type ClientLog = Arc<dyn Fn(ClientLogKind, &str) + Send + Sync>;
