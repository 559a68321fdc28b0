//! The time that is left of a run.

use std::time::Duration;

use pgdyno_experiment::{ResolvedExperiment, estimate};

/// Learns from the trials that were run how long the rest will take.
#[derive(Debug)]
pub(super) struct Clock {
    expected: Duration,
    spent: Duration,
    done: u32,
}

impl Clock {
    pub(super) fn new(resolved: &ResolvedExperiment) -> Self {
        Self { expected: estimate::trial(resolved), spent: Duration::ZERO, done: 0 }
    }

    /// Notes that a trial took `wall`.
    pub(super) fn trial(&mut self, wall: Duration) {
        self.spent += wall;
        self.done += 1;
    }

    /// Returns the time for `trials` more, of the first of which `begun` has passed.
    pub(super) fn left(&self, trials: usize, begun: Duration) -> Duration {
        let each = if self.done == 0 { self.expected } else { self.spent / self.done };
        (each * u32::try_from(trials).unwrap_or(u32::MAX)).saturating_sub(begun.min(each))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_left_follows_what_trials_really_took() {
        let mut clock = Clock { expected: Duration::from_secs(7), spent: Duration::ZERO, done: 0 };
        assert_eq!(clock.left(10, Duration::from_secs(2)), Duration::from_secs(68));
        clock.trial(Duration::from_secs(20));
        assert_eq!(clock.left(9, Duration::ZERO), Duration::from_secs(180));
        // A trial that takes longer than expected does not eat the time of those after it.
        assert_eq!(clock.left(2, Duration::from_secs(500)), Duration::from_secs(20));
    }
}
