//! Clock, schedule and the times of transactions.
//!
//! All threads of a load share one [`Clock`] and one [`Schedule`]. Without a rate, load is a closed
//! loop: a client's next transaction is due when its last one is done. With a rate, a transaction
//! is due when the thread's [`crate::pace::Pacer`] says so, whether or not a client is free.

use std::time::{Duration, Instant};

use rustix::event::Timespec;

/// Nanoseconds since the load's base, an instant before its first connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(pub u64);

impl Moment {
    /// A moment that never comes.
    pub const NEVER: Self = Self(u64::MAX);

    /// Returns the moment `span` later, at most [`Moment::NEVER`].
    #[must_use]
    pub fn after(self, span: Duration) -> Self {
        Self(self.0.saturating_add(nanoseconds(span)))
    }

    /// Returns the time since `earlier`; zero if `earlier` is later.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.nanoseconds_since(earlier))
    }

    /// Returns the nanoseconds since `earlier`; 0 if `earlier` is later.
    #[inline]
    pub fn nanoseconds_since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

fn nanoseconds(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

/// Reads the monotonic clock (nanoseconds).
///
/// `Instant` reads this clock too, but takes twice as long to yield a difference.
#[inline]
fn monotonic() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    time.tv_sec
        .cast_unsigned()
        .wrapping_mul(1_000_000_000)
        .wrapping_add(time.tv_nsec.cast_unsigned())
}

/// Readings of two clocks that set one by the other (count).
const READINGS: u32 = 10;

/// Returns when the kernel's clock read 0 for a base, from the time since the base, and the
/// kernel's before and after that was read (nanoseconds).
///
/// The closest reading counts: a thread that is preempted between two clocks would set them apart.
fn zero(readings: impl Iterator<Item = (u64, u64, u64)>) -> u64 {
    let apart = |&(before, _, after): &(u64, u64, u64)| after - before;
    let (before, ago, _) = readings.min_by_key(apart).unwrap_or_default();
    before.saturating_sub(ago)
}

/// Monotonic clock that is read as moments.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    base: Instant,
    /// `base` as the kernel has it (nanoseconds).
    zero: u64,
}

impl Clock {
    /// Creates a clock whose moments count from `base`.
    pub fn new(base: Instant) -> Self {
        let reading = |_| (monotonic(), nanoseconds(base.elapsed()), monotonic());
        Self { base, zero: zero((0..READINGS).map(reading)) }
    }

    /// Returns the current time.
    #[inline]
    pub fn now(&self) -> Moment {
        Moment(monotonic().saturating_sub(self.zero))
    }

    /// Converts a moment to the kernel's monotonic time.
    pub(crate) fn kernel_time(&self, of: Moment) -> Timespec {
        const SECOND: u64 = 1_000_000_000;
        let at = self.zero.saturating_add(of.0);
        let part = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        Timespec { tv_sec: part(at / SECOND), tv_nsec: part(at % SECOND) }
    }

    /// Converts an instant to a moment.
    pub(crate) fn moment(&self, of: Instant) -> Moment {
        Moment(nanoseconds(of.saturating_duration_since(self.base)))
    }

    /// Converts a moment to an instant.
    pub fn instant(&self, of: Moment) -> Instant {
        self.base.checked_add(Duration::from_nanos(of.0)).unwrap_or(self.base)
    }
}

/// When load is offered and when it counts.
///
/// The default begins at once, without a warm-up, and never ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// Beginning of the load.
    pub start: Moment,
    /// Opening of the measured window.
    pub opening: Moment,
    /// When clients begin their last transactions; [`Moment::NEVER`] where a count ends the load.
    pub last_begin: Moment,
    /// Closing of the window; [`Moment::NEVER`] where its last transaction closes it.
    pub closing: Moment,
    /// Transactions that each client starts at or after the opening; none where time ends the
    /// window.
    pub transactions: Option<u64>,
    /// Time after `last_begin` in which a transaction under way may still end.
    pub grace: Duration,
}

impl Default for Schedule {
    fn default() -> Self {
        Self {
            start: Moment(0),
            opening: Moment(0),
            last_begin: Moment::NEVER,
            closing: Moment::NEVER,
            transactions: None,
            grace: Duration::ZERO,
        }
    }
}

/// Phase of a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Load is offered but does not count.
    WarmUp,
    /// The measured window is open.
    Measuring,
    /// The window has closed; what was under way is finished and does not count.
    Draining,
}

impl Schedule {
    /// Returns the phase that `at` lies in. The window includes its opening, not its closing.
    #[inline]
    pub fn phase(&self, at: Moment) -> Phase {
        if at < self.opening {
            Phase::WarmUp
        } else if at < self.closing {
            Phase::Measuring
        } else {
            Phase::Draining
        }
    }

    /// Returns whether load lasts at `now` although nothing more is due: up to a closing at a
    /// set time. Where the last transaction closes the window it ends, as pgbench then does.
    #[inline]
    pub(crate) fn is_open(&self, now: Moment) -> bool {
        self.closing != Moment::NEVER && now < self.closing
    }

    /// Returns whether a transaction that was sent at `sent` is left over from the warm-up.
    ///
    /// It must not count where a count of transactions ends the window: only transactions that were
    /// sent in the window belong to the count.
    #[inline]
    pub fn began_in_warm_up(&self, sent: Moment) -> bool {
        self.transactions.is_some() && sent < self.opening
    }

    /// Returns the times of a transaction as they count: a wait during the warm-up is no latency of
    /// the window.
    #[inline]
    pub fn counted_times(&self, times: Timeline) -> Timeline {
        if times.due < self.opening && times.done >= self.opening {
            Timeline { due: times.sent, ..times }
        } else {
            times
        }
    }

    /// Returns the beginning of `phase`.
    pub fn begin_of(&self, phase: Phase) -> Moment {
        match phase {
            Phase::WarmUp => self.start,
            Phase::Measuring => self.opening,
            Phase::Draining => self.closing,
        }
    }

    /// Returns the end of `phase`.
    pub fn end_of(&self, phase: Phase) -> Moment {
        match phase {
            Phase::WarmUp => self.opening,
            Phase::Measuring => self.closing,
            Phase::Draining => self.last_begin.after(self.grace),
        }
    }
}

/// Times of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeline {
    /// Time at which the transaction should have been sent.
    pub due: Moment,
    /// Time at which it was sent.
    pub sent: Moment,
    /// Time at which the reply was complete.
    pub done: Moment,
}

impl Timeline {
    /// Returns the nanoseconds from due to done: the wait of a user of the transaction.
    #[inline]
    pub fn latency(&self) -> u64 {
        self.done.nanoseconds_since(self.due)
    }

    /// Returns the nanoseconds from sent to done: the time that the server took.
    #[inline]
    pub fn service(&self) -> u64 {
        self.done.nanoseconds_since(self.sent)
    }
}

/// Times of a statement and its reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// Time at which the statement was sent.
    pub sent: Moment,
    /// Time at which the first byte of the reply arrived.
    pub first_byte: Moment,
    /// Time at which the reply was complete.
    pub done: Moment,
}

impl Exchange {
    /// Returns the nanoseconds from sent to done.
    #[inline]
    pub fn latency(&self) -> u64 {
        self.done.nanoseconds_since(self.sent)
    }

    /// Returns the nanoseconds from sent to the first byte; never more than the latency.
    #[inline]
    pub fn until_first_byte(&self) -> u64 {
        self.first_byte.min(self.done).nanoseconds_since(self.sent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_are_set_by_the_reading_that_was_not_preempted() {
        // A base at 5,000. The first reading was preempted before, the last after the base's was.
        let readings = [(6_000, 3_000, 8_010), (8_100, 3_110, 8_120), (8_200, 3_210, 9_900)];
        assert_eq!(zero(readings.into_iter()), 4_990);
    }
}
