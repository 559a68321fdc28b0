//! Down-sampling that keeps extremes: mean, minimum and maximum of each bucket of time.
//!
//! A trial of hours has more seconds than a chart has pixels, and a page has room for few of them.
//! The store keeps full resolution.

use std::collections::BTreeMap;

use serde::Serialize;

/// Buckets of equal width over a trial's window: a whole number of seconds each, so that series and
/// telemetry share their borders.
#[derive(Clone, Copy, Debug)]
pub(super) struct Grid {
    width_s: f64,
}

impl Grid {
    /// Returns the finest grid that cuts `seconds` into at most `limit` buckets.
    pub(super) fn new(seconds: f64, limit: usize) -> Self {
        let width = (seconds / limit.max(1) as f64).ceil();
        Self { width_s: if width.is_finite() { width.max(1.0) } else { 1.0 } }
    }

    /// Returns whether a bucket holds more than one second.
    pub(super) fn is_reduced(self) -> bool {
        self.width_s > 1.0
    }

    /// Groups the indices of `times` by bucket, in order of time. A time that is no number is in
    /// none.
    pub(super) fn groups(self, times: &[f64]) -> Vec<Vec<usize>> {
        let mut groups: BTreeMap<i64, Vec<usize>> = BTreeMap::new();
        for (i, t) in times.iter().enumerate().filter(|(_, t)| t.is_finite()) {
            groups.entry((t / self.width_s).floor() as i64).or_default().push(i);
        }
        groups.into_values().collect()
    }
}

/// Values over buckets; extremes where a bucket may hold several values.
#[derive(Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct Reduced {
    pub(super) mean: Vec<Option<f64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) min: Option<Vec<Option<f64>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) max: Option<Vec<Option<f64>>>,
}

impl Reduced {
    /// Returns `values` as they are.
    pub(super) fn whole(values: impl Iterator<Item = Option<f64>>) -> Self {
        Self { mean: values.map(short).collect(), min: None, max: None }
    }

    /// Reduces `values` to one for each group: the mean weighted by `weights`, and the extremes.
    pub(super) fn new(values: &[Option<f64>], weights: &[f64], groups: &[Vec<usize>]) -> Self {
        let of = |group: &Vec<usize>| -> Vec<(f64, f64)> {
            let weight = |i: usize| weights.get(i).copied().unwrap_or(1.0);
            group.iter().filter_map(|i| Some(((*values.get(*i)?)?, weight(*i)))).collect()
        };
        let known: Vec<Vec<(f64, f64)>> = groups.iter().map(of).collect();
        let extreme = |pick: fn(f64, f64) -> f64| {
            let each = known.iter().map(|all| short(all.iter().map(|(v, _)| *v).reduce(pick)));
            Some(each.collect())
        };
        Self {
            mean: known.iter().map(|all| short(mean(all))).collect(),
            min: extreme(f64::min),
            max: extreme(f64::max),
        }
    }
}

fn mean(values: &[(f64, f64)]) -> Option<f64> {
    let weight: f64 = values.iter().map(|(_, w)| w).sum();
    if weight > 0.0 {
        return Some(values.iter().map(|(v, w)| v * w).sum::<f64>() / weight);
    }
    let sum: f64 = values.iter().map(|(v, _)| v).sum();
    (!values.is_empty()).then(|| sum / values.len() as f64)
}

/// Rounds to six significant digits, which no chart can tell from the value. None for what is no
/// number.
pub(super) fn short(value: Option<f64>) -> Option<f64> {
    const DIGITS: i32 = 6;
    let value = value.filter(|value| value.is_finite())?;
    if value == 0.0 {
        return Some(0.0);
    }
    let exponent = value.abs().log10().floor() as i32 + 1 - DIGITS;
    // Powers of ten up to 22 are exact, so that the result has no more digits.
    let rounded = match exponent {
        -22..0 => (value * 10f64.powi(-exponent)).round() / 10f64.powi(-exponent),
        0..=22 => (value / 10f64.powi(exponent)).round() * 10f64.powi(exponent),
        _ => value,
    };
    Some(rounded)
}

/// Returns the length of each interval that begins at `times`; the last is as long as the one
/// before.
pub(super) fn lengths(times: &[f64]) -> Vec<f64> {
    let mut lengths: Vec<f64> = times.windows(2).map(|pair| (pair[1] - pair[0]).max(0.0)).collect();
    if !times.is_empty() {
        lengths.push(lengths.last().copied().unwrap_or(1.0));
    }
    lengths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extremes_of_a_single_second_survive() {
        let times: Vec<f64> = (0..7200).map(f64::from).collect();
        let mut values = vec![Some(100.0); 7200];
        values[4321] = Some(3.0);
        values[17] = Some(99_999.0);
        let grid = Grid::new(7200.0, 450);
        let groups = grid.groups(&times);
        assert!(grid.is_reduced() && groups.len() == 450);
        let reduced = Reduced::new(&values, &vec![1.0; 7200], &groups);
        let (low, high) = (reduced.min.unwrap(), reduced.max.unwrap());
        assert_eq!(low.iter().flatten().copied().fold(f64::MAX, f64::min), 3.0);
        assert_eq!(high[1], Some(99_999.0), "second 17 is in the bucket from 16");
        assert_eq!(
            reduced.mean[270],
            Some((15.0 * 100.0 + 3.0) / 16.0).map(|m| short(Some(m)).unwrap())
        );
    }

    #[test]
    fn means_are_weighted_by_the_length_of_their_intervals() {
        let times = [0.0, 9.0, 10.0];
        assert_eq!(lengths(&times), [9.0, 1.0, 1.0]);
        let groups = Grid::new(20.0, 2).groups(&times);
        let reduced = Reduced::new(&[Some(1.0), Some(11.0), None], &lengths(&times), &groups);
        assert_eq!(reduced.mean, [Some(2.0), None]);
        assert_eq!(reduced.max, Some(vec![Some(11.0), None]));
    }

    #[test]
    fn absurd_times_and_values_stay_bounded() {
        let times = [f64::NAN, f64::INFINITY, -1e300, 1e300, 5.0];
        let groups = Grid::new(f64::INFINITY, 100).groups(&times);
        assert_eq!(groups, [vec![2], vec![4], vec![3]]);
        let reduced = Reduced::new(&[Some(f64::NAN); 5], &[f64::NAN; 5], &groups);
        assert_eq!(reduced.mean, [None, None, None]);
    }

    #[test]
    fn numbers_keep_six_digits() {
        for (value, kept) in [
            (1_234_567.89, 1_234_570.0),
            (0.000_123_456_789, 0.000_123_457),
            (-2.0 / 3.0, -0.666_667),
            (5.0, 5.0),
            (1e300, 1e300),
        ] {
            assert_eq!(short(Some(value)), Some(kept));
        }
        assert_eq!(serde_json::to_string(&short(Some(0.1 + 0.2))).unwrap(), "0.3");
    }
}
