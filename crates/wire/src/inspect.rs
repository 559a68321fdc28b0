//! Bounds for what a server sends to a client library that knows none.
//!
//! [`Inspector::inspect`] sees all bytes before the library does, in pieces of any size. Through
//! the start-up it also judges demands for proof of identity, so that none is answered that
//! [`AuthPolicy`] refuses.

use thiserror::Error;

use crate::auth::{AuthError, AuthPolicy};
use crate::backend::tag;
use crate::frame::HEADER;
use crate::{Frame, Header, Message, WireError};

/// The longest message before the first `ReadyForQuery`, and the longest setting after it (bytes):
/// honest ones are far below.
pub const MAX_STARTUP_MESSAGE_BYTES: usize = 64 * 1024;

/// The most messages before the first `ReadyForQuery` (count): an honest server sends about twenty.
pub const MAX_STARTUP_MESSAGES: u32 = 1000;

/// The longest message of a session (bytes).
pub const MAX_MESSAGE_BYTES: usize = 64 * 1024 * 1024;

/// The longest reply of a session (bytes).
pub const MAX_REPLY_BYTES: u64 = 1 << 30;

/// The most notices, settings and notifications in a row (count).
pub const MAX_UNSOLICITED: u32 = 10_000;

/// The most bytes of notices, settings and notifications in a row, and of settings in a session.
pub const MAX_UNSOLICITED_BYTES: u64 = 16 * 1024 * 1024;

// facade: removed at integration
#[doc(hidden)]
pub use {
    InspectError as Refusal, MAX_STARTUP_MESSAGE_BYTES as LONGEST_START_UP_MESSAGE,
    MAX_STARTUP_MESSAGES as MOST_START_UP_MESSAGES,
};

/// Why nothing more is taken from a server.
#[derive(Debug, Error)]
pub enum InspectError {
    /// What it sends is no protocol, or too much.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// What it demands is not given.
    #[error(transparent)]
    Authentication(#[from] AuthError),
}

/// Follows a server's messages through one session.
#[derive(Debug)]
pub struct Inspector {
    policy: AuthPolicy,
    /// Whether the first `ReadyForQuery` came.
    is_ready: bool,
    head: [u8; HEADER],
    /// Bytes of `head` that came (count).
    have: usize,
    /// Bytes of the present message still to come (count).
    left: usize,
    /// The body of a demand for proof, as far as it came.
    demand: Vec<u8>,
    /// Messages of the start-up (count).
    messages: u32,
    /// Notices, settings and notifications in a row.
    unsolicited: u32,
    unsolicited_bytes: u64,
    /// Settings of the session (bytes).
    settings: u64,
    /// The present reply (bytes).
    reply: u64,
}

impl Inspector {
    /// For a new session, whose server's demands `policy` judges.
    #[must_use]
    pub fn new(policy: AuthPolicy) -> Self {
        Self {
            policy,
            is_ready: false,
            head: [0; HEADER],
            have: 0,
            left: 0,
            demand: Vec::new(),
            messages: 0,
            unsolicited: 0,
            unsolicited_bytes: 0,
            settings: 0,
            reply: 0,
        }
    }

    /// Takes note of `bytes`, which follow those before.
    ///
    /// # Errors
    /// A length that cannot be, more than an honest server sends, or a demand that the policy
    /// refuses. None of `bytes` may then be acted on.
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
                if self.head[0] == tag::AUTHENTICATION {
                    self.demand.extend_from_slice(passed);
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

    /// A message begins.
    fn begin(&mut self, header: Header) -> Result<(), WireError> {
        let Header { tag, body } = header;
        let is_unsolicited =
            matches!(tag, tag::NOTICE_RESPONSE | tag::PARAMETER_STATUS | tag::NOTIFICATION);
        let is_long = !self.is_ready || tag == tag::PARAMETER_STATUS;
        let max = if is_long { MAX_STARTUP_MESSAGE_BYTES } else { MAX_MESSAGE_BYTES };
        if body > max {
            return Err(WireError::TooLong { tag, length: body as u64, max });
        }
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

    /// A message is complete.
    fn end(&mut self) -> Result<(), InspectError> {
        match self.head[0] {
            tag::AUTHENTICATION => {
                let demand = std::mem::take(&mut self.demand);
                if let Message::Authentication(said) =
                    Message::read(Frame { tag: tag::AUTHENTICATION, body: &demand })?
                {
                    self.policy.check(&said)?;
                }
            }
            tag::READY_FOR_QUERY => {
                self.is_ready = true;
                self.reply = 0;
            }
            _ => {}
        }
        Ok(())
    }
}
