//! What carries a thread's bytes and tells its time.

pub mod epoll;
pub mod sim;

use std::io;
use std::time::Duration;

use crate::schedule::Moment;

/// Whether a connection is still wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// It is.
    Open,
    /// It is to be closed once what was appended for it is sent.
    Close,
}

/// Who acts on what a reactor brings.
pub trait Driver {
    /// `bytes` arrived on connection `link` at `now`; what is to be sent is appended to `out`, which is sent at once.
    fn received(&mut self, link: usize, bytes: &[u8], now: Moment, out: &mut Vec<u8>) -> Keep;

    /// Connection `link` is gone; `how` says what was seen. It is already closed.
    fn lost(&mut self, link: usize, how: &str, now: Moment);
}

/// An event loop's connections and clock. Connections are known by their index.
pub trait Reactor {
    /// The present.
    fn now(&self) -> Moment;

    /// Lets `fill` append to what is to be sent on connection `link`, and sends it as far as it goes. A connection that
    /// is found gone is reported at the next [`Reactor::turn`].
    fn send(&mut self, link: usize, fill: &mut dyn FnMut(&mut Vec<u8>) -> Keep);

    /// Gives `link` a new connection in place of the one that it had, and says how long that took.
    ///
    /// # Errors
    /// In words, why there is none.
    fn reconnect(&mut self, link: usize) -> Result<Duration, String>;

    /// Waits for something to happen, at most until `until`, and brings all that did.
    ///
    /// # Errors
    /// The reactor itself no longer works.
    fn turn(&mut self, until: Moment, driver: &mut impl Driver) -> io::Result<()>;
}
