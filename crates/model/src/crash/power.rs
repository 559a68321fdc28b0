//! How much the silence of rounds can mean: what they put under test, and what they bound.

use serde::Serialize;

use super::{Fault, Round, RoundPower};

/// Amount of testing that all rounds of a fault did together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FaultPower {
    /// Rounds that count towards the bound (count). In such a round a checkpoint completed. If the
    /// fault is a power cut alone, an acknowledged commit also lay in the last flush window, unless
    /// nobody counted those commits.
    pub rounds: usize,
    /// Checkpoints that completed (count); none where no round counted them.
    pub checkpoints: Option<u64>,
    /// Flushes that the storage completed (count); none where no round counted them.
    pub flushes: Option<u64>,
    /// Fewest and most acknowledged commits in the last flush window (count); none where no round
    /// counted them.
    pub last_window: Option<(u64, u64)>,
    /// Rounds on whose disk flushes were under test with a commit in the last window (count): see
    /// [`skip_seen`].
    pub windows: usize,
    /// Whether the disk's own flushes were under test in every round.
    pub disk_flushes: bool,
}

impl FaultPower {
    /// Sums up the `rounds` of `fault`.
    pub fn new(fault: Fault, rounds: &[Round]) -> Self {
        let each = || rounds.iter().map(|round| &round.power);
        let sum = |counted: fn(&RoundPower) -> Option<u64>| {
            each().filter_map(counted).reduce(|a, b| a + b)
        };
        let windows = || each().filter_map(|power| power.last_window);
        Self {
            rounds: each().filter(|power| power.counts(fault)).count(),
            checkpoints: sum(|power| power.checkpoints),
            flushes: sum(|power| power.flushes),
            last_window: windows().min().zip(windows().max()),
            windows: each().filter(|power| power.tests_a_window()).count(),
            disk_flushes: !rounds.is_empty() && each().all(|power| power.disk_flushes),
        }
    }
}

/// The probability with which `rounds` would have shown a disk that skips one flush in `one_in`: 1
/// − Π(1 − lᵢ/k), over the rounds that put flushes of the disk under test with a commit in the last
/// flush window. lᵢ is the share of the cache that the cut took, [`RoundPower::cache_lost`].
///
/// Only the last flush before the cut matters: a later flush makes durable what an earlier one
/// skipped. So a round shows the skip with probability lᵢ/k. Assumes that skips are independent of
/// each other and of the load, and that a commit is one write: several would be lost more often.
pub fn skip_seen(rounds: &[Round], one_in: f64) -> f64 {
    let powers = rounds.iter().map(|round| round.power).filter(RoundPower::tests_a_window);
    1.0 - powers.map(|power| 1.0 - power.cache_lost.unwrap_or(1.0) / one_in).product::<f64>()
}

/// The largest probability with which a round can fail although none of `rounds` did, at 95%
/// confidence: the p with (1 − p)ⁿ = 0.05, which for many rounds is the *rule of three*, 3/n
/// (Hanley and Lippman-Hand, "If nothing goes wrong, is everything all right?", JAMA 249, 1983). It
/// is about rounds like these: same load, same moments, same faults.
pub fn chance_at_most(rounds: u64) -> Option<f64> {
    (rounds > 0).then(|| 1.0 - 0.05_f64.powf(1.0 / rounds as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_without_a_failure_bound_its_probability_and_prove_nothing() {
        assert_eq!(chance_at_most(0), None);
        assert!((chance_at_most(1).unwrap() - 0.95).abs() < 1e-9);
        assert!((chance_at_most(300).unwrap() - 0.01).abs() < 0.0001, "the rule of three");
    }
}
