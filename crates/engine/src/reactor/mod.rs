//! What carries a thread's bytes and tells its time.

mod alarm;
mod buffers;
pub(crate) mod choice;
pub mod epoll;
pub mod sim;
pub mod uring;

use std::io;
use std::time::Duration;

use rustix::event::Timespec;

use crate::connect::Stream;
use crate::schedule::Moment;

/// Makes a connection; or says in words why not.
pub type Connector = Box<dyn FnMut(usize) -> Result<Stream, String> + Send>;

/// Whether a connection is still wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterSend {
    /// It is.
    Open,
    /// It is to be closed once what was appended for it is sent.
    Close,
}

/// Who acts on what a reactor brings.
pub trait ReactorHandler {
    /// `bytes` arrived on connection `link` at `now`; what is to be sent is appended to `out`,
    /// which is sent at once.
    fn received(&mut self, link: usize, bytes: &[u8], now: Moment, out: &mut Vec<u8>) -> AfterSend;

    /// Connection `link` is gone; `how` says what was seen. It is already closed.
    fn lost(&mut self, link: usize, how: &str, now: Moment);
}

/// An event loop's connections and clock. Connections are known by their index.
pub trait Reactor {
    /// How many turns in a row may be left out while no client waits for one: asking the kernel for
    /// news costs more than a script that only computes.
    const MAX_SKIPPED_TURNS: u32 = 16;

    /// The present.
    fn now(&self) -> Moment;

    /// Lets `fill` append to what is to be sent on connection `link`, and sends it as far as it
    /// goes. A connection that is found gone is reported at the next [`Reactor::turn`].
    fn send(&mut self, link: usize, fill: &mut dyn FnMut(&mut Vec<u8>) -> AfterSend);

    /// Gives `link` a new connection in place of the one that it had, and says how long that took.
    ///
    /// # Errors
    /// In words, why there is none.
    fn reconnect(&mut self, link: usize) -> Result<Duration, String>;

    /// Waits for something to happen, from `now` at most until `until`, and brings all that did.
    ///
    /// # Errors
    /// The reactor itself no longer works.
    fn turn(
        &mut self,
        now: Moment,
        until: Moment,
        driver: &mut impl ReactorHandler,
    ) -> io::Result<()>;
}

/// `wait` as the kernel wants it.
fn timespec(wait: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(wait.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: wait.subsec_nanos().into(),
    }
}

// facade: removed at integration
#[doc(hidden)]
pub use {AfterSend as Keep, ReactorHandler as Driver};

#[cfg(test)]
mod tests;
