//! How far equal runs differ from day to day, and within a day.

use crate::mean::{count, mean};
use crate::variance::Variance;

/// Parts of the variance between equal runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Days {
    /// That of runs of one day.
    pub within: Variance,
    /// That of days, beyond what their runs differ by; it may be estimated as less than 0.
    pub between: Variance,
}

/// Splits the variance of runs in `groups` of equal ones, each (day, mean logarithm).
///
/// Groups are the treatments of the same runs, so that both are known by the degrees of freedom of
/// the largest group.
///
/// A nested analysis of variance with unequal numbers (S. R. Searle, *Linear Models*, 1971). None
/// unless a group has two runs of one day, and one has runs of two days.
pub fn days(groups: &[Vec<(u64, f64)>]) -> Option<Days> {
    let (mut within, mut within_freedom) = (0.0, 0.0);
    let (mut between, mut between_freedom, mut runs_a_day) = (0.0, 0.0, 0.0);
    let (mut most_within, mut most_between) = (0.0_f64, 0.0_f64);
    for group in groups.iter().filter(|group| !group.is_empty()) {
        let mut days: Vec<u64> = group.iter().map(|(day, _)| *day).collect();
        days.sort_unstable();
        days.dedup();
        let all = mean(group.iter().map(|(_, value)| *value));
        let mut squared_sizes = 0.0;
        for day in &days {
            let of_day = || group.iter().filter(|(other, _)| other == day).map(|(_, value)| *value);
            let (size, level) = (count(of_day().count()), mean(of_day()));
            within += of_day().map(|value| (value - level).powi(2)).sum::<f64>();
            between += size * (level - all).powi(2);
            squared_sizes += size * size;
        }
        within_freedom += count(group.len() - days.len());
        between_freedom += count(days.len() - 1);
        most_within = most_within.max(count(group.len() - days.len()));
        most_between = most_between.max(count(days.len() - 1));
        runs_a_day += count(group.len()) - squared_sizes / count(group.len());
    }
    (within_freedom > 0.0 && between_freedom > 0.0).then(|| {
        let within = Variance { value: within / within_freedom, freedom: most_within };
        let excess = between / between_freedom - within.value;
        let value = excess / (runs_a_day / between_freedom);
        Days { within, between: Variance { value, freedom: most_between } }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_told_from_their_runs_by_hand() {
        // Days with means 1 and 4 of two runs each, ±1: within 4 on 2 degrees of freedom, so 2.
        // Between 2 × (1.5² + 1.5²) = 9 on one; (9 − 2) ÷ 2 runs a day = 3.5.
        let found = days(&[vec![(1, 0.0), (1, 2.0), (2, 3.0), (2, 5.0)]]).unwrap();
        assert_eq!(found.within, Variance { value: 2.0, freedom: 2.0 });
        assert_eq!(found.between, Variance { value: 3.5, freedom: 1.0 });
        assert_eq!(days(&[vec![(1, 0.0), (1, 2.0)]]), None);
        assert_eq!(days(&[vec![(1, 0.0), (2, 2.0)]]), None);
    }
}
