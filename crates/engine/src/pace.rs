//! When transactions are due, and which script is next, where all clients of a thread share that.

use std::time::Duration;

use crate::random::Random;
use crate::schedule::Moment;

/// Due times at a rate.
#[derive(Clone, Debug)]
struct Throttle {
    random: Random,
    /// Mean time between two (microseconds).
    mean_us: f64,
    due: Moment,
}

/// What the clients of a thread share.
#[derive(Clone, Debug, Default)]
pub struct Pacer {
    throttle: Option<Throttle>,
    /// Where scripts are chosen from; none where each client has a stream of its own.
    pub choice: Option<Random>,
}

impl Pacer {
    /// Transactions are due at random from `start` on, `rate` a second on average.
    pub fn throttle(&mut self, rate: f64, start: Moment, random: Random) {
        self.throttle = Some(Throttle { random, mean_us: 1e6 / rate, due: start });
    }

    /// Whether transactions are due when they can be sent.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.throttle.is_none()
    }

    /// When the next transaction is due; none where it is due when it can be sent.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    pub fn next_due(&mut self) -> Option<Moment> {
        let throttle = self.throttle.as_mut()?;
        // In (0, 1], so that the logarithm is finite; whole microseconds, as pgbench has them.
        let uniform = 1.0 - throttle.random.unit();
        let wait = (-uniform.ln() * throttle.mean_us + 0.5) as u64;
        throttle.due = throttle.due.after(Duration::from_micros(wait));
        Some(throttle.due)
    }
}
