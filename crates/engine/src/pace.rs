//! Pacing: when transactions are due with a rate.
//!
//! The clients of a thread share a [`Pacer`]. Arrivals are a Poisson process, as in pgbench.

use std::time::Duration;

use crate::random::Random;
use crate::schedule::{Moment, Schedule};

/// Due times at a rate.
#[derive(Clone, Debug)]
struct Throttle {
    random: Random,
    /// Mean time between two arrivals (microseconds).
    mean_us: f64,
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
    /// Makes transactions due at random, `rate` a second on average, from the start of `schedule`.
    pub fn throttle(&mut self, rate: f64, schedule: &Schedule, random: Random) {
        let (due, opening) = (schedule.start, schedule.opening);
        self.throttle = Some(Throttle { random, mean_us: 1e6 / rate, due, opening });
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
        // In (0, 1], so that the logarithm is finite; whole microseconds, as pgbench has them.
        let uniform = 1.0 - throttle.random.unit();
        let wait = (-uniform.ln() * throttle.mean_us + 0.5) as u64;
        throttle.due = throttle.due.after(Duration::from_micros(wait));
        Some(throttle.due)
    }
}
