//! The rate of one thread: its share of a load's rate, and when its next transaction is due.

use std::time::Duration;

use pgdyno_model::load_rate::{LoadRate, RateStage};

use crate::schedule::Moment;

/// Rate at which transactions of one thread's clients are due.
#[derive(Clone, Debug)]
pub enum ThreadRate {
    /// The mean time between two of them (microseconds).
    Constant(f64),
    /// Stages from the window's opening on.
    Staged(StagedRate),
}

impl ThreadRate {
    /// Creates the share of a thread, of which `rate` is `threads` times as much.
    pub fn new(rate: &LoadRate, threads: f64) -> Self {
        match rate {
            LoadRate::Constant(rate) => Self::Constant(1e6 / (rate / threads)),
            LoadRate::Stages(stages) => Self::Staged(StagedRate::new(stages, threads)),
        }
    }

    /// Returns the moment by which `expected` more transactions than at `from` are due, on average;
    /// `opening` is that of the window.
    pub fn after(&mut self, from: Moment, opening: Moment, expected: f64) -> Moment {
        match self {
            // Whole microseconds, as pgbench has them.
            Self::Constant(mean_us) => {
                from.after(Duration::from_micros((expected * *mean_us + 0.5) as u64))
            }
            Self::Staged(rate) => {
                let at = from.since(opening).as_secs_f64() - opening.since(from).as_secs_f64();
                let wait = rate.after(at, expected) - at;
                from.after(Duration::try_from_secs_f64(wait).unwrap_or(Duration::MAX))
            }
        }
    }
}

/// Stages of a rate, of which a thread has a share. Moments only ever go forward.
#[derive(Clone, Debug)]
pub struct StagedRate {
    stages: Vec<RateStage>,
    /// Shares that make up the rate (count).
    threads: f64,
    /// Length of all stages (seconds).
    length_s: f64,
    /// Transactions of all threads that are due in all stages (count).
    due: f64,
    /// Stage in which the last moment lay.
    stage: usize,
    /// Beginning of that stage (seconds since the opening).
    begin_s: f64,
}

impl StagedRate {
    fn new(stages: &[RateStage], threads: f64) -> Self {
        Self {
            stages: stages.to_vec(),
            threads,
            length_s: stages.iter().map(|stage| f64::from(stage.seconds)).sum(),
            due: stages.iter().map(RateStage::due).sum(),
            stage: 0,
            begin_s: 0.0,
        }
    }

    /// Returns the time by which `expected` more transactions of a thread than at `from_s` are due
    /// (seconds since the opening, negative before it: the rate is then that of the first moment).
    fn after(&mut self, mut from_s: f64, expected: f64) -> f64 {
        let mut left = expected * self.threads;
        if from_s < 0.0 {
            let rate = self.stages[0].from;
            if left <= rate * -from_s {
                return from_s + left / rate;
            }
            left += rate * from_s;
            from_s = 0.0;
        }
        loop {
            let RateStage { seconds, from, to } = self.stages[self.stage];
            let length = f64::from(seconds);
            let end_s = self.begin_s + length;
            if from_s < end_s {
                let slope = (to - from) / length;
                let rate = from + slope * (from_s - self.begin_s);
                let rest = f64::midpoint(rate, to) * (end_s - from_s);
                if left <= rest && rest > 0.0 {
                    // The root of rate·x + slope·x²/2 = left, in the form that also does for a
                    // slope of 0.
                    let root = (rate * rate + 2.0 * slope * left).max(0.0).sqrt();
                    return from_s + (2.0 * left / (rate + root)).min(end_s - from_s);
                }
                left -= rest;
                from_s = end_s;
            }
            self.stage += 1;
            self.begin_s = end_s;
            if self.stage == self.stages.len() {
                self.stage = 0;
                let rounds = ((left / self.due).ceil() - 1.0).max(0.0);
                left -= rounds * self.due;
                self.begin_s += rounds * self.length_s;
                from_s = from_s.max(self.begin_s);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(text: &str, threads: f64) -> ThreadRate {
        ThreadRate::new(&text.parse().unwrap(), threads)
    }

    /// Seconds since an opening at 10 s, of each transaction if they were evenly spread.
    fn even(rate: &mut ThreadRate, from_s: u64, count: usize) -> Vec<f64> {
        let second = Duration::from_secs(1);
        let opening = Moment(0).after(10 * second);
        let mut at = Moment(0).after(second * u32::try_from(from_s).unwrap());
        let next = |_| {
            at = rate.after(at, opening, 1.0);
            (at.0 as f64 / 1e9 - 10.0) * 1e6
        };
        (0..count).map(next).map(|us| us.round() / 1e6).collect()
    }

    #[test]
    fn transactions_are_due_by_stages_which_begin_anew() {
        let mut steps = rate("2 for 1s, 0 for 2s, 4 for 1s", 1.0);
        let expected = [0.5, 1.0, 3.25, 3.5, 3.75, 4.0, 4.5, 5.0, 7.25];
        assert_eq!(even(&mut steps, 10, 9), expected);
        // Two threads have half of it each.
        assert_eq!(even(&mut rate("2 for 1s, 0 for 2s, 4 for 1s", 2.0), 10, 3), [1.0, 3.5, 4.0]);
        // Rare ones: half a transaction a round of four seconds.
        assert_eq!(even(&mut rate("0.5 for 1s, 0 for 3s", 1.0), 10, 2), [5.0, 13.0]);
    }

    #[test]
    fn a_ramp_goes_straight_from_one_rate_to_the_other() {
        let found = even(&mut rate("4 to 0 for 4s, 0 to 4 for 2s", 1.0), 10, 9);
        // By t seconds 4t - t²/2 are due, then (t - 4)² more than 8.
        let down = (1..=8).map(|n| 4.0 - f64::from(16 - 2 * n).sqrt());
        for (found, expected) in found.iter().zip(down.chain([5.0])) {
            assert!((found - expected).abs() < 1e-4, "{found} for {expected}");
        }
    }

    #[test]
    fn before_the_window_the_rate_is_that_of_its_first_moment() {
        assert_eq!(even(&mut rate("2 for 1s, 1 for 9s", 1.0), 9, 5), [-0.5, 0.0, 0.5, 1.0, 2.0]);
        assert_eq!(even(&mut rate("0 to 2 for 1s", 1.0), 9, 2), [1.0, 2.0]);
    }
}
