//! Messages of clients while a load runs.

use std::sync::Arc;

/// Kind of a client's message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientLogKind {
    /// An error that ends the client.
    Error,
    /// An error that does not end the client, or what the client does next.
    News,
    /// A value that a script passed to the function `debug`.
    Value,
    /// A notice or warning of the server, rendered as libpq does.
    Notice,
}

/// Takes clients' messages as things happen.
pub type ClientLog = Arc<dyn Fn(ClientLogKind, &str) + Send + Sync>;
