//! When transactions are due, and which script is next, where all clients of a thread share that.

use std::time::Duration;

use crate::random::Random;
use crate::schedule::{Moment, Schedule};

/// Due times at a rate.
#[derive(Clone, Debug)]
struct Throttle {
    random: Random,
    /// Mean time between two (microseconds).
    mean_us: f64,
    due: Moment,
    /// When the measured window opens.
    opening: Moment,
}

/// What the clients of a thread share.
#[derive(Clone, Debug, Default)]
pub struct Pacer {
    throttle: Option<Throttle>,
    /// Where scripts are chosen from; none where each client has a stream of its own.
    pub script_random: Option<Random>,
}

impl Pacer {
    /// Transactions are due at random from the start of `schedule` on, `rate` a second on average.
    pub fn throttle(&mut self, rate: f64, schedule: &Schedule, random: Random) {
        let (due, opening) = (schedule.start, schedule.opening);
        self.throttle = Some(Throttle { random, mean_us: 1e6 / rate, due, opening });
    }

    /// Whether transactions are due when they can be sent.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.throttle.is_none()
    }

    /// When the next transaction is due, asked `now`; none where it is due when it can be sent.
    ///
    /// Once the window is open, arrivals that queued up during the warm-up and were not sent are
    /// dropped: the window begins without a queue. Arrivals at random have no memory, so that they
    /// may begin anew at any moment.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
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
