//! Pacing: when transactions are due with a rate.
//!
//! The clients of a thread share a [`Pacer`]. Arrivals are a Poisson process, as in pgbench.

use crate::random::Random;
use crate::schedule::{Moment, Schedule};
use crate::thread_rate::ThreadRate;

/// Due times at a rate.
#[derive(Clone, Debug)]
struct Throttle {
    random: Random,
    rate: ThreadRate,
    due: Moment,
    /// Opening of the measured window.
    opening: Moment,
}

/// Due times and choice of scripts that the clients of a thread share.
#[derive(Clone, Debug, Default)]
pub struct Pacer {
    throttle: Option<Throttle>,
    /// Random numbers that choose scripts; none where each client has its own.
    pub script_random: Option<Random>,
}

impl Pacer {
    /// Makes transactions due at random, at `rate` on average, from the start of `schedule`.
    pub fn throttle(&mut self, rate: ThreadRate, schedule: &Schedule, random: Random) {
        let (due, opening) = (schedule.start, schedule.opening);
        self.throttle = Some(Throttle { random, rate, due, opening });
    }

    /// Returns whether load is a closed loop: transactions are due as soon as they can be sent.
    pub fn is_closed(&self) -> bool {
        self.throttle.is_none()
    }

    /// Returns when the next transaction is due; none in a closed loop.
    ///
    /// Once the window is open at `now`, arrivals that queued up during the warm-up are dropped:
    /// the window begins without a queue. A Poisson process has no memory, so it may begin anew at
    /// any moment.
    pub fn next_due(&mut self, now: Moment) -> Option<Moment> {
        let throttle = self.throttle.as_mut()?;
        if now >= throttle.opening {
            throttle.due = throttle.due.max(throttle.opening);
        }
        // In (0, 1], so that the logarithm is finite.
        let uniform = 1.0 - throttle.random.unit();
        throttle.due = throttle.rate.after(throttle.due, throttle.opening, -uniform.ln());
        Some(throttle.due)
    }
}
