//! Behaviour of clients around their scripts: retries, reconnections, logging.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use pgdyno_model::experiment::{LoadOptions, OnError, ReconnectLost};

use crate::client_log::ClientLog;

/// Retries, reconnections and logging of all clients of a load.
#[derive(Clone)]
pub struct ClientPolicy {
    /// Time from due within which a failed transaction is retried. With a rate, a transaction that
    /// is later than this before it begins is skipped.
    pub latency_limit: Option<Duration>,
    /// Tries of a transaction at most; 0 is without limit.
    pub max_tries: u32,
    /// Whether each transaction has its own connection.
    pub reconnect_each: bool,
    /// Errors that end a client.
    pub on_error: OnError,
    /// Whether a client replaces a lost connection, and how often.
    pub reconnect_lost: ReconnectLost,
    /// Takes clients' messages as things happen.
    pub client_log: Option<ClientLog>,
    /// Whether errors that end no client are logged.
    pub logs_failures: bool,
    /// Whether every step and reply is logged.
    pub logs_steps: bool,
    /// Set by a client that ends the whole load.
    pub stop: Arc<AtomicBool>,
}

impl Default for ClientPolicy {
    fn default() -> Self {
        Self::from_load(&LoadOptions::default())
    }
}

impl ClientPolicy {
    /// Takes what `options` say; nothing is logged.
    pub fn from_load(options: &LoadOptions) -> Self {
        Self {
            latency_limit: options.latency_limit.map(|limit| limit.0),
            max_tries: options.max_tries,
            reconnect_each: options.reconnect,
            on_error: options.on_error,
            reconnect_lost: options.reconnect_lost,
            client_log: None,
            logs_failures: false,
            logs_steps: false,
            stop: Arc::default(),
        }
    }
}
