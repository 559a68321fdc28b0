//! When a reactor has the kernel wake it.
//!
//! The kernel is told only of a moment that is earlier than the one it knows: a limit for each wait
//! would start and cancel a timer every time. A reactor calls [`Alarm::advance`] before it waits,
//! hands the time that it returns to its timer, and calls [`Alarm::went_off`] when that fires.

use rustix::event::Timespec;

use crate::schedule::{Clock, Moment};

/// The earliest moment that a reactor's timer is set to.
pub(super) struct Alarm {
    clock: Clock,
    set: Moment,
}

impl Alarm {
    /// One that is not set.
    pub(super) fn new(clock: Clock) -> Self {
        Self { clock, set: Moment::NEVER }
    }

    /// Notes that the reactor has to wake at `at` or before; returns the time, on the kernel's
    /// monotonic clock, that its timer is to be set to, and none where it goes off early enough.
    #[inline]
    pub(super) fn advance(&mut self, at: Moment) -> Option<Timespec> {
        if at >= self.set {
            return None;
        }
        self.set = at;
        Some(self.clock.kernel_time(at))
    }

    /// Notes that the timer has gone off.
    pub(super) fn went_off(&mut self) {
        self.set = Moment::NEVER;
    }
}
