//! Whether repeats rise or fall.

use crate::holm::holm;

/// How surely a sequence rises or falls.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Trend {
    /// Whether it rises.
    pub rising: bool,
    /// Whether each value is beyond the one before it.
    pub every_one: bool,
    /// The two-sided p-value: the share of all orders of its values that rise or fall as steadily
    /// or more so.
    pub chance: f64,
    /// That p-value where several sequences are judged together by Holm's rule ([`trends`]); alone,
    /// the same.
    pub chance_together: f64,
}

/// At most this p-value is significant.
const LEVEL: f64 = 0.05;
/// A p-value is a sum of shares: one that equals the level may be rounded beyond it.
const ROUNDING: f64 = 1e-9;
/// More values than these have a trend in their plot.
const MOST: usize = 200;
/// Fewer values have no trend that anybody could believe.
const FEWEST: usize = 4;

impl Trend {
    /// Whether it is significant at 5%, all sequences that were judged with it considered.
    pub fn is_significant(&self) -> bool {
        self.chance_together <= LEVEL + ROUNDING
    }
}

/// The trends of several sequences judged together: each as [`trend`] has it, with Holm's rule over
/// all that have four values or more. The chance that any of them is significant, if none has a
/// trend, is at most 5%.
pub fn trends(sequences: &[Vec<f64>]) -> Vec<Option<Trend>> {
    let mut found: Vec<Option<Trend>> = sequences.iter().map(|values| trend(values)).collect();
    let judged: Vec<usize> = (0..sequences.len()).filter(|i| is_judged(&sequences[*i])).collect();
    // As many steps up as down: nothing to report, but judged with the others.
    let p: Vec<f64> = judged.iter().map(|i| found[*i].map_or(1.0, |t| t.chance)).collect();
    for (i, together) in judged.into_iter().zip(holm(&p)) {
        if let Some(trend) = &mut found[i] {
            trend.chance_together = together;
        }
    }
    found
}

/// The trend of `values` in their order; none for fewer than four or more than 200, one that is not
/// finite, or as many steps up as down.
///
/// The exact two-sided test of H. B. Mann, *Nonparametric tests against trend*, Econometrica 13
/// (1945), with M. G. Kendall's statistic: pairs in rising order less pairs in falling order. Equal
/// values count for neither, and only orders that differ are counted.
pub fn trend(values: &[f64]) -> Option<Trend> {
    if !is_judged(values) {
        return None;
    }
    let n = values.len();
    let pairs = || (0..n).flat_map(|i| (i + 1..n).map(move |j| (i, j)));
    let up = pairs().filter(|(i, j)| values[*i] < values[*j]).count();
    let down = pairs().filter(|(i, j)| values[*i] > values[*j]).count();
    if up == down {
        return None;
    }
    let tail: f64 = out_of_order_shares(&groups(values)).iter().take(up.min(down) + 1).sum();
    // The tails are equal: an order read backwards has as many pairs in order as it had out of
    // order.
    let chance = (2.0 * tail).min(1.0);
    let every_one = up.max(down) == n * (n - 1) / 2;
    Some(Trend { rising: up > down, every_one, chance, chance_together: chance })
}

/// The share of all orders of `values` whose two-sided p-value is at most `level`: less than
/// `level` where values are few.
pub fn share_of_orders_with_trend(values: &[f64], level: f64) -> f64 {
    if !is_judged(values) {
        return 0.0;
    }
    let tails = out_of_order_shares(&groups(values)).into_iter().scan(0.0, |sum, share| {
        *sum += share;
        Some(2.0 * *sum)
    });
    tails.take_while(|p| *p <= level + ROUNDING).last().unwrap_or(0.0)
}

fn is_judged(values: &[f64]) -> bool {
    (FEWEST..=MOST).contains(&values.len()) && values.iter().all(|v| v.is_finite())
}

/// How often each of the values occurs.
fn groups(values: &[f64]) -> Vec<usize> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.chunk_by(|a, b| a == b).map(<[f64]>::len).collect()
}

/// The share of the orders of values that occur so often that have 0, 1, 2, … pairs out of order.
fn out_of_order_shares(groups: &[usize]) -> Vec<f64> {
    let mut shares = vec![1.0];
    let mut before = 0;
    for group in groups {
        // Where larger values stand among smaller ones does not depend on how those are ordered.
        let new = between_shares(before, *group);
        let mut next = vec![0.0; shares.len() + new.len() - 1];
        for (i, share) in shares.iter().enumerate() {
            for (slot, new) in next[i..].iter_mut().zip(&new) {
                *slot += share * new;
            }
        }
        shares = next;
        before += group;
    }
    shares
}

/// The share of the orders of `small` equal values and `large` equal larger ones that have 0, 1, 2,
/// … pairs out of order.
///
/// The null distribution of H. B. Mann and D. R. Whitney, *On a test of whether one of two random
/// variables is stochastically larger than the other*, Annals of Mathematical Statistics 18 (1947),
/// by their recursion over the last value.
fn between_shares(small: usize, large: usize) -> Vec<f64> {
    // Of no small values and 0, 1, 2, … large ones.
    let mut rows = vec![vec![1.0]; large + 1];
    for i in 1..=small {
        for j in 1..=large {
            let mut row = vec![0.0; i * j + 1];
            let last_is_small = i as f64 / (i + j) as f64;
            for (slot, share) in row[j..].iter_mut().zip(&rows[j]) {
                *slot += last_is_small * share;
            }
            for (slot, share) in row.iter_mut().zip(&rows[j - 1]) {
                *slot += (1.0 - last_is_small) * share;
            }
            rows[j] = row;
        }
    }
    rows.swap_remove(large)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: f64, b: f64) {
        assert!((a - b).abs() < 1e-12, "{a} is not {b}");
    }

    #[test]
    fn the_chances_are_those_of_counting() {
        // Four values: 1 of 24 orders rises throughout and 1 falls; 3 more of each have one pair
        // out of order.
        let four = trend(&[1.0, 2.0, 3.0, 4.0]).unwrap();
        assert!(four.rising && four.every_one);
        close(four.chance, 2.0 / 24.0);
        let one_off = trend(&[4.0, 3.0, 1.0, 2.0]).unwrap();
        assert!(!one_off.rising && !one_off.every_one);
        close(one_off.chance, 8.0 / 24.0);
        // Kendall's table: n = 10, S ≥ 25 has probability 0.014.
        let shares = out_of_order_shares(&[1; 10]);
        assert!((shares.iter().take(11).sum::<f64>() - 0.0143).abs() < 5e-4);
        close(shares.iter().sum(), 1.0);
    }

    /// Every order of `values`, by Heap's algorithm.
    fn orders(values: &mut Vec<f64>, n: usize, each: &mut impl FnMut(&[f64])) {
        if n == 1 {
            return each(values);
        }
        for i in 0..n {
            orders(values, n - 1, each);
            values.swap(if n.is_multiple_of(2) { i } else { 0 }, n - 1);
        }
    }

    #[test]
    fn with_equal_values_too_the_chance_is_the_share_of_all_orders() {
        for values in [
            [1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
            [1.0, 1.0, 2.0, 3.0, 3.0, 3.0],
            [1.0, 1.0, 1.0, 1.0, 1.0, 2.0],
        ] {
            let score = |values: &[f64]| {
                let pairs = (0..6).flat_map(|i| (i + 1..6).map(move |j| (i, j)));
                pairs.map(|(i, j)| (values[j] - values[i]).clamp(-0.5, 0.5) * 2.0).sum::<f64>()
            };
            let mut scores = Vec::new();
            orders(&mut values.to_vec(), 6, &mut |order| scores.push(score(order).abs()));
            assert_eq!(scores.len(), 720);
            let as_far = scores.iter().filter(|s| **s >= score(&values).abs()).count();
            close(trend(&values).unwrap().chance, as_far as f64 / 720.0);
        }
    }

    #[test]
    fn few_equal_or_missing_values_have_no_trend() {
        assert_eq!(trend(&[1.0, 2.0, 3.0]), None);
        assert_eq!(trend(&[5.0; 6]), None);
        assert_eq!(trend(&[1.0, 2.0, 3.0, f64::NAN]), None);
        close(trend(&[1.0, 1.0, 1.0, 2.0]).unwrap().chance, 0.5);
    }

    #[test]
    fn sequences_are_judged_together() {
        let rising = |n: u32| (0..n).map(f64::from).collect::<Vec<_>>();
        let flat = vec![1.0, 2.0, 2.0, 1.0];
        assert!(!trends(&[rising(4)])[0].unwrap().is_significant(), "2 of 24 orders");
        // Three times 2 / 120 is 5%, four times is more.
        assert!(trends(&[rising(5), flat.clone(), flat.clone()])[0].unwrap().is_significant());
        let found = trends(&[rising(5), flat.clone(), flat.clone(), flat]);
        close(found[0].unwrap().chance_together, 8.0 / 120.0);
        assert!(!found[0].unwrap().is_significant() && found[1].is_none());
        // What is too short to be judged costs the others nothing.
        close(trends(&[rising(5), rising(3)])[0].unwrap().chance_together, 2.0 / 120.0);
    }

    #[test]
    fn the_level_that_few_values_attain_is_the_share_of_orders_that_reach_it() {
        close(share_of_orders_with_trend(&[1.0, 2.0, 3.0, 4.0], 0.1), 2.0 / 24.0);
        close(share_of_orders_with_trend(&[1.0, 2.0, 3.0, 4.0], 0.05), 0.0);
        close(share_of_orders_with_trend(&[1.0, 2.0, 3.0, 4.0, 5.0], 0.1), 10.0 / 120.0);
        close(share_of_orders_with_trend(&[1.0, 2.0, 3.0], 0.1), 0.0);
    }
}
