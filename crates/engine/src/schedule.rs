//! The times of a trial, shared by all its threads, and those of a transaction.
//!
//! Without a rate, load is a closed loop: a client's next transaction is due when its last one is
//! done. With one, when the thread's `Pacer` says, whether or not a client is free.

use std::time::{Duration, Instant};

use rustix::event::Timespec;

/// Nanoseconds since the trial's base, an instant before its first connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(pub u64);

impl Moment {
    /// A moment that never comes.
    pub const NEVER: Self = Self(u64::MAX);

    /// The moment `span` later; at most [`Moment::NEVER`].
    #[must_use]
    pub fn after(self, span: Duration) -> Self {
        Self(self.0.saturating_add(nanoseconds(span)))
    }

    /// From `earlier` to here; nothing if `earlier` is later.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.nanoseconds_since(earlier))
    }

    /// Nanoseconds from `earlier` to here; 0 if `earlier` is later.
    #[must_use]
    #[inline]
    pub fn nanoseconds_since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

fn nanoseconds(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

/// The monotonic clock (nanoseconds). `Instant` reads the same one, and takes as long again to make
/// a difference of it.
#[inline]
fn monotonic() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    time.tv_sec
        .cast_unsigned()
        .wrapping_mul(1_000_000_000)
        .wrapping_add(time.tv_nsec.cast_unsigned())
}

/// The monotonic clock, read as moments.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    base: Instant,
    /// `base` as the kernel has it (nanoseconds).
    zero: u64,
}

impl Clock {
    /// A clock whose moments count from `base`.
    #[must_use]
    pub fn new(base: Instant) -> Self {
        let ago = nanoseconds(base.elapsed());
        Self { base, zero: monotonic().saturating_sub(ago) }
    }

    /// The present.
    #[must_use]
    #[inline]
    pub fn now(&self) -> Moment {
        Moment(monotonic().saturating_sub(self.zero))
    }

    /// A moment on the kernel's monotonic clock.
    pub(crate) fn kernel_time(&self, of: Moment) -> Timespec {
        const SECOND: u64 = 1_000_000_000;
        let at = self.zero.saturating_add(of.0);
        let part = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        Timespec { tv_sec: part(at / SECOND), tv_nsec: part(at % SECOND) }
    }

    /// The instant of a moment.
    #[must_use]
    pub fn instant(&self, of: Moment) -> Instant {
        self.base.checked_add(Duration::from_nanos(of.0)).unwrap_or(self.base)
    }
}

/// The times of a trial.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Schedule {
    /// When load is first offered.
    pub start: Moment,
    /// When the measured window opens.
    pub opening: Moment,
    /// When it closes; [`Moment::NEVER`] where a count of transactions ends it.
    pub closing: Moment,
    /// Transactions that every client starts at or after the opening; none where time ends the
    /// window.
    pub transactions: Option<u64>,
    /// How long after the closing a transaction under way may take.
    pub grace: Duration,
}

/// What is offered at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Load is offered, and does not count.
    WarmUp,
    /// The measured window is open.
    Measuring,
    /// The window has closed; what was under way is finished.
    Draining,
}

impl Schedule {
    /// The phase that `at` lies in. The window holds its opening and not its closing.
    #[must_use]
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

    /// Whether a transaction in the window is left over from the warm-up and must not count: a
    /// window that a count ends is those transactions and no others.
    #[must_use]
    #[inline]
    pub fn began_in_warm_up(&self, due: Moment) -> bool {
        self.transactions.is_some() && due < self.opening
    }

    /// The times of a transaction as its phase counts them: what it waited for during the warm-up
    /// before it was sent is no latency of the window.
    #[must_use]
    #[inline]
    pub fn counted_times(&self, times: Timeline) -> Timeline {
        if times.due < self.opening && times.done >= self.opening {
            Timeline { due: times.sent, ..times }
        } else {
            times
        }
    }

    /// When `phase` begins.
    #[must_use]
    pub fn begin_of(&self, phase: Phase) -> Moment {
        match phase {
            Phase::WarmUp => self.start,
            Phase::Measuring => self.opening,
            Phase::Draining => self.closing,
        }
    }

    /// When `phase` ends.
    #[must_use]
    pub fn end_of(&self, phase: Phase) -> Moment {
        match phase {
            Phase::WarmUp => self.opening,
            Phase::Measuring => self.closing,
            Phase::Draining => self.closing.after(self.grace),
        }
    }
}

/// The times of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeline {
    /// When it should have been sent.
    pub due: Moment,
    /// When it was.
    pub sent: Moment,
    /// When its reply was complete.
    pub done: Moment,
}

impl Timeline {
    /// Nanoseconds from due to done: what someone who wanted it had to wait.
    #[must_use]
    #[inline]
    pub fn latency(&self) -> u64 {
        self.done.nanoseconds_since(self.due)
    }

    /// Nanoseconds from sent to done: what the server took.
    #[must_use]
    #[inline]
    pub fn service(&self) -> u64 {
        self.done.nanoseconds_since(self.sent)
    }
}

/// The times of a statement and its reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// When it was sent.
    pub sent: Moment,
    /// When the first byte of its reply arrived.
    pub first_byte: Moment,
    /// When its reply was complete.
    pub done: Moment,
}

impl Exchange {
    /// Nanoseconds from sent to done.
    #[must_use]
    #[inline]
    pub fn latency(&self) -> u64 {
        self.done.nanoseconds_since(self.sent)
    }

    /// Nanoseconds from sent to the first byte; never more than the whole.
    #[must_use]
    #[inline]
    pub fn until_first_byte(&self) -> u64 {
        self.first_byte.min(self.done).nanoseconds_since(self.sent)
    }
}
