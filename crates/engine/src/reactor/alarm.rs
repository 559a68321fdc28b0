//! Wakes an epoll instance at a moment. The kernel is told only when the moment is earlier than the
//! one it knows: a limit for each wait would start and cancel a timer every time.

use std::io;

use rustix::event::Timespec;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};

use crate::schedule::{Clock, Moment};

/// A timer to be watched for its edges.
pub(super) struct Alarm {
    timer: OwnedFd,
    clock: Clock,
    /// When it goes off.
    set: Moment,
}

impl Alarm {
    /// One that is not set.
    ///
    /// # Errors
    /// The kernel refuses a timer.
    pub(super) fn new(clock: Clock) -> io::Result<Self> {
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        Ok(Self { timer, clock, set: Moment::NEVER })
    }

    /// Sees that it goes off at `at`, or before.
    ///
    /// # Errors
    /// The kernel refuses the time.
    #[inline]
    pub(super) fn set(&mut self, at: Moment) -> io::Result<()> {
        if at >= self.set {
            return Ok(());
        }
        let once = Itimerspec {
            it_interval: Timespec { tv_sec: 0, tv_nsec: 0 },
            it_value: self.clock.kernel_time(at),
        };
        timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &once)?;
        self.set = at;
        Ok(())
    }

    /// It has gone off.
    pub(super) fn gone_off(&mut self) {
        self.set = Moment::NEVER;
    }
}

impl AsFd for Alarm {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.timer.as_fd()
    }
}
