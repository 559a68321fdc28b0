//! The time limit of one attempt to connect.

use std::time::{Duration, Instant};

use pgdyno_model::target::Address;

use super::error::ConnectError;

/// How long a wait lasts before the limit and the stop condition are checked again.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// A time limit, counted from its creation, and a condition that ends the attempt early.
#[derive(Clone, Copy)]
pub(crate) struct Limit<'a> {
    end: Instant,
    span: Duration,
    is_stopped: &'a dyn Fn() -> bool,
}

impl<'a> Limit<'a> {
    /// Creates a limit of `span` from now on.
    pub(crate) fn new(span: Duration, is_stopped: &'a dyn Fn() -> bool) -> Self {
        Self { end: Instant::now() + span, span, is_stopped }
    }

    /// Returns how long the next wait for `step` may last.
    ///
    /// # Errors
    /// [`ConnectError::Interrupted`], [`ConnectError::Timeout`].
    pub(crate) fn next_wait(
        self,
        address: &Address,
        step: &'static str,
    ) -> Result<Duration, ConnectError> {
        if (self.is_stopped)() {
            return Err(ConnectError::Interrupted { address: address.clone() });
        }
        match self.left() {
            Duration::ZERO => Err(self.timeout(address, step)),
            left => Ok(left.clamp(Duration::from_millis(1), POLL_INTERVAL)),
        }
    }

    /// Returns how much time is left.
    pub(crate) fn left(self) -> Duration {
        self.end.saturating_duration_since(Instant::now())
    }

    /// Returns the error of a limit that is over.
    pub(crate) fn timeout(self, address: &Address, step: &'static str) -> ConnectError {
        ConnectError::Timeout { address: address.clone(), step, limit: self.span }
    }
}
