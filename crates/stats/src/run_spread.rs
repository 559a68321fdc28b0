//! The spread of equal runs.

/// Earlier runs that an interval across runs needs at least (count).
pub const FEWEST_RUNS: usize = 3;

/// Returns whether a spread with so many degrees of freedom lets two runs be compared.
pub(crate) fn is_enough(freedom: f64) -> bool {
    freedom + 1.0 >= FEWEST_RUNS as f64
}

/// Differences between equal runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RunSpread {
    /// Variance of a run's mean logarithm.
    pub of_runs: f64,
    /// Part of `of_runs` that the spread within runs explains (0 where no run has two trials).
    pub of_trials: f64,
    /// Degrees of freedom of `of_runs`.
    pub freedom: f64,
}

impl RunSpread {
    /// Returns both as one, each by its degrees of freedom.
    pub(crate) fn pooled_with(self, other: Self) -> Self {
        let freedom = self.freedom + other.freedom;
        let mean = |a: f64, b: f64| (a * self.freedom + b * other.freedom) / freedom;
        Self {
            of_runs: mean(self.of_runs, other.of_runs),
            of_trials: mean(self.of_trials, other.of_trials),
            freedom,
        }
    }
}
