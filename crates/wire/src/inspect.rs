//! Bounds for the messages of a server, for a client library that knows no bounds.
//!
//! Pass all bytes to [`Inspector::inspect`] before the library reads them, in pieces of any size.
//! During start-up the inspector also checks authentication requests, so that the library answers
//! none that [`AuthPolicy`] refuses.
//!
//! ```
//! use pgdyno_wire::auth::AuthPolicy;
//! use pgdyno_wire::inspect::Inspector;
//!
//! let mut inspector = Inspector::new(AuthPolicy::default());
//! inspector.inspect(b"R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I")?;
//! assert!(inspector.inspect(b"D\x7f\xff\xff\xff").is_err(), "a row of 2 GB");
//! # Ok::<(), pgdyno_wire::inspect::InspectError>(())
//! ```

use thiserror::Error;

use crate::auth::{AuthError, AuthPolicy};
use crate::backend::tag;
use crate::frame::HEADER;
use crate::{Frame, Header, Message, ServerError, WireError};

/// Longest message before the first `ReadyForQuery`, and longest setting after it (bytes).
pub const MAX_STARTUP_MESSAGE_BYTES: usize = 64 * 1024;

/// Messages before the first `ReadyForQuery` at most; PostgreSQL sends about twenty.
pub const MAX_STARTUP_MESSAGES: u32 = 1000;

/// Longest message of a session (bytes).
pub const MAX_MESSAGE_BYTES: usize = 64 * 1024 * 1024;

/// Longest reply of a session (bytes).
pub const MAX_REPLY_BYTES: u64 = 1 << 30;

/// Notices, settings and notifications in a row at most.
pub const MAX_UNSOLICITED: u32 = 10_000;

/// Bytes of notices, settings and notifications in a row, and of settings in a session, at most.
pub const MAX_UNSOLICITED_BYTES: u64 = 16 * 1024 * 1024;

/// Why nothing more is read from a server.
#[derive(Debug, Error)]
pub enum InspectError {
    /// The bytes break the protocol or exceed a bound.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// The policy refuses an authentication request.
    #[error(transparent)]
    Authentication(#[from] AuthError),
}

/// Follows the messages of a server through one session.
#[derive(Debug, Default)]
pub struct Inspector {
    policy: AuthPolicy,
    /// Whether the first `ReadyForQuery` has come.
    is_ready: bool,
    head: [u8; HEADER],
    /// Bytes of `head` that have come (count).
    have: usize,
    /// Bytes of the current message still to come (count).
    left: usize,
    /// Whether the inspector reads the current message, too.
    is_read: bool,
    /// Body of the current message, as far as it has come.
    body: Vec<u8>,
    /// The process that serves the session.
    backend: Option<u32>,
    /// The error with which the server ends the session.
    last_words: Option<Box<ServerError>>,
    /// Messages since the start (count).
    messages: u32,
    /// Notices, settings and notifications in a row.
    unsolicited: u32,
    unsolicited_bytes: u64,
    /// Settings of the session (bytes).
    settings: u64,
    /// Length of the current reply (bytes).
    reply: u64,
}

impl Inspector {
    /// Creates an inspector for a new session.
    pub fn new(policy: AuthPolicy) -> Self {
        Self { policy, ..Self::default() }
    }

    /// Returns the id of the process that serves the session, once the server has told it. A pooler
    /// tells a number of its own.
    pub fn backend(&self) -> Option<u32> {
        self.backend
    }

    /// Returns the error with which the server ended the session, if it said one.
    pub fn last_words(&self) -> Option<&ServerError> {
        self.last_words.as_deref()
    }

    /// Checks `bytes`, which follow the bytes of earlier calls.
    ///
    /// # Errors
    /// An impossible length, an exceeded bound, or an authentication request that the policy
    /// refuses. The caller must then drop `bytes`.
    pub fn inspect(&mut self, mut bytes: &[u8]) -> Result<(), InspectError> {
        while !bytes.is_empty() {
            if self.have < HEADER {
                let drawn = (HEADER - self.have).min(bytes.len());
                self.head[self.have..self.have + drawn].copy_from_slice(&bytes[..drawn]);
                self.have += drawn;
                bytes = &bytes[drawn..];
                let Some(header) = Header::read(&self.head[..self.have])? else { break };
                self.begin(header)?;
                self.left = header.body;
            } else {
                let (passed, rest) = bytes.split_at(self.left.min(bytes.len()));
                if self.is_read {
                    self.body.extend_from_slice(passed);
                }
                self.left -= passed.len();
                bytes = rest;
            }
            if self.left == 0 {
                self.end()?;
                self.have = 0;
            }
        }
        Ok(())
    }

    /// Checks the head of a message.
    fn begin(&mut self, header: Header) -> Result<(), WireError> {
        let Header { tag, body } = header;
        let is_unsolicited =
            matches!(tag, tag::NOTICE_RESPONSE | tag::PARAMETER_STATUS | tag::NOTIFICATION);
        let is_long = !self.is_ready || tag == tag::PARAMETER_STATUS;
        let max = if is_long { MAX_STARTUP_MESSAGE_BYTES } else { MAX_MESSAGE_BYTES };
        if body > max {
            return Err(WireError::TooLong { tag, length: body as u64, max });
        }
        self.is_read = match tag {
            tag::AUTHENTICATION | tag::BACKEND_KEY_DATA => !self.is_ready,
            tag::ERROR_RESPONSE => body <= MAX_STARTUP_MESSAGE_BYTES,
            _ => false,
        };
        if !self.is_ready {
            self.messages += 1;
            if self.messages > MAX_STARTUP_MESSAGES {
                return Err(WireError::TooMany { tag, max: MAX_STARTUP_MESSAGES });
            }
        } else if tag == tag::AUTHENTICATION {
            return Err(WireError::Unsolicited { tag });
        }
        if is_unsolicited {
            self.unsolicited += 1;
            self.unsolicited_bytes += header.len() as u64;
        } else {
            (self.unsolicited, self.unsolicited_bytes) = (0, 0);
        }
        if tag == tag::PARAMETER_STATUS {
            self.settings += header.len() as u64;
        }
        if self.unsolicited > MAX_UNSOLICITED {
            return Err(WireError::TooMany { tag, max: MAX_UNSOLICITED });
        }
        if self.unsolicited_bytes.max(self.settings) > MAX_UNSOLICITED_BYTES {
            return Err(WireError::ReplyTooLong { max: MAX_UNSOLICITED_BYTES });
        }
        self.reply += header.len() as u64;
        if self.reply > MAX_REPLY_BYTES {
            return Err(WireError::ReplyTooLong { max: MAX_REPLY_BYTES });
        }
        Ok(())
    }

    /// Handles the end of a message.
    fn end(&mut self) -> Result<(), InspectError> {
        if self.head[0] == tag::READY_FOR_QUERY {
            self.is_ready = true;
            self.reply = 0;
        }
        if !std::mem::take(&mut self.is_read) {
            return Ok(());
        }
        let body = std::mem::take(&mut self.body);
        match Message::read(Frame { tag: self.head[0], body: &body })? {
            Message::Authentication(said) => self.policy.check(&said)?,
            Message::BackendKeyData(key) => self.backend = Some(key.process),
            Message::ErrorResponse(fields) => {
                let error = ServerError::from_fields(fields);
                if matches!(error.severity.as_str(), "FATAL" | "PANIC") {
                    self.last_words = Some(Box::new(error));
                }
            }
            _ => {}
        }
        Ok(())
    }
}
