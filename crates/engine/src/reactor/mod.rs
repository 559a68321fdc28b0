//! Reactors: what carries a thread's bytes and tells its time.
//!
//! A [`Reactor`] owns connections, known by their index, and a clock. The event loop calls
//! [`Reactor::send`] to send, and [`Reactor::turn`] to wait: a turn hands everything that arrived
//! to a [`ReactorHandler`]. [`epoll`] and [`uring`] carry real bytes. In tests, `sim` simulates a
//! clock and a network.

mod alarm;
mod buffers;
pub(crate) mod choice;
pub mod epoll;
#[cfg(test)]
pub mod sim;
pub mod uring;

use std::io;
use std::time::Duration;

use pgdyno_connect::{ConnectError, Stream};
use rustix::event::Timespec;
use thiserror::Error;

use crate::schedule::Moment;

/// Makes the connection of an index.
pub type Connector = Box<dyn FnMut(usize) -> Result<Stream, ConnectError> + Send>;

/// Why a connection was not replaced.
#[derive(Debug, Error)]
pub enum ReconnectError {
    /// The reactor has no [`Connector`].
    #[error("connections are not renewed")]
    NoConnector,
    /// The connection could not be made.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// An operation on the old connection does not end.
    #[error("the kernel does not let go of the old connection")]
    StillInUse,
    /// The kernel refuses the new connection.
    #[error("{action}: {cause}")]
    Refused {
        /// The refused operation.
        action: &'static str,
        /// Error of the kernel.
        cause: io::Error,
    },
    /// No server listens on the simulated network.
    #[cfg(test)]
    #[error("nobody listens")]
    Unreachable,
}

/// State of a connection after its bytes are sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum AfterSend {
    /// It stays open.
    #[default]
    Open,
    /// It stays open, and [`ReactorHandler::refill`] is to be called once it has taken the bytes.
    Refill,
    /// It is closed.
    Close,
}

/// Acts on what a reactor brings.
pub trait ReactorHandler {
    /// Handles `bytes` that arrived on connection `link` at `now`.
    ///
    /// Bytes appended to `out` are sent at once.
    fn received(&mut self, link: usize, bytes: &[u8], now: Moment, out: &mut Vec<u8>) -> AfterSend;

    /// Appends more bytes for connection `link`, which has taken all others by `now`.
    ///
    /// Handlers that never ask for it need not have it.
    fn refill(&mut self, _link: usize, _now: Moment, _out: &mut Vec<u8>) -> AfterSend {
        AfterSend::Open
    }

    /// Handles the loss of connection `link`, which is closed already; `how` is the error.
    fn lost(&mut self, link: usize, how: &str, now: Moment);
}

/// Connections and clock of one event loop.
pub trait Reactor {
    /// Turns in a row that the event loop may skip while no client waits for a reply.
    ///
    /// Asking the kernel for news costs more than a script that only computes.
    const MAX_SKIPPED_TURNS: u32 = 16;

    /// Returns the current time.
    fn now(&self) -> Moment;

    /// Lets `fill` append bytes for connection `link`, and sends as much as the connection takes.
    ///
    /// A connection that turns out to be lost is reported by the next [`Reactor::turn`].
    fn send(&mut self, link: usize, fill: &mut dyn FnMut(&mut Vec<u8>) -> AfterSend);

    /// Replaces connection `link` by a new one; returns how long that took.
    ///
    /// # Errors
    /// There is no new connection.
    fn reconnect(&mut self, link: usize) -> Result<Duration, ReconnectError>;

    /// Waits from `now` until something arrives, at most until `until`, and hands it to `handler`.
    ///
    /// # Errors
    /// The reactor itself no longer works.
    fn turn(
        &mut self,
        now: Moment,
        until: Moment,
        handler: &mut impl ReactorHandler,
    ) -> io::Result<()>;
}

/// Returns `wait` as the kernel reads it.
fn timespec(wait: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(wait.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: wait.subsec_nanos().into(),
    }
}

#[cfg(test)]
mod tests;
