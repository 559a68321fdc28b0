//! Whether repeats rise or fall.

/// How surely a sequence rises or falls.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Trend {
    /// Whether it rises.
    pub rising: bool,
    /// Whether each value is beyond the one before it.
    pub every_one: bool,
    /// The share of all orders of its values that rise (or fall) as steadily or more so.
    pub chance: f64,
}

/// More values than these have a trend in their plot.
const MOST: usize = 200;

/// The trend of `values` in their order; none for fewer than four or more than 200, one that is not finite, or as many steps
/// up as down.
///
/// The exact one-sided test of H. B. Mann, *Nonparametric tests against trend*, Econometrica 13 (1945), with M. G. Kendall's
/// statistic: pairs in rising order less pairs in falling order. Equal values count for neither.
#[must_use]
pub fn trend(values: &[f64]) -> Option<Trend> {
    let n = values.len();
    if !(4..=MOST).contains(&n) || values.iter().any(|v| !v.is_finite()) {
        return None;
    }
    let pairs = || (0..n).flat_map(|i| (i + 1..n).map(move |j| (i, j)));
    let up = pairs().filter(|(i, j)| values[*i] < values[*j]).count();
    let down = pairs().filter(|(i, j)| values[*i] > values[*j]).count();
    if up == down {
        return None;
    }
    let rising = up > down;
    let every_one = up.max(down) == n * (n - 1) / 2;
    // S = up - down ≥ s is the same as at most (pairs - s) / 2 pairs out of order.
    let out_of_order = (n * (n - 1) / 2 - up.abs_diff(down)) / 2;
    let chance = out_of_order_shares(n).iter().take(out_of_order + 1).sum();
    Some(Trend { rising, every_one, chance })
}

/// The share of the orders of `n` values that have 0, 1, 2, … pairs out of order.
#[allow(clippy::cast_precision_loss)]
fn out_of_order_shares(n: usize) -> Vec<f64> {
    let mut shares = vec![1.0];
    for values in 2..=n {
        // The new largest value has 0 to `values - 1` others behind it, each as likely.
        let mut next = vec![0.0; shares.len() + values - 1];
        for (before, share) in shares.iter().enumerate() {
            for slot in &mut next[before..before + values] {
                *slot += share / values as f64;
            }
        }
        shares = next;
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chances_are_those_of_counting() {
        // Four values: 1 of 24 orders rises throughout, 3 more have one pair out of order.
        let four = trend(&[1.0, 2.0, 3.0, 4.0]).unwrap();
        assert!(four.rising && four.every_one && (four.chance - 1.0 / 24.0).abs() < 1e-12);
        let one_off = trend(&[4.0, 3.0, 1.0, 2.0]).unwrap();
        assert!(!one_off.rising && !one_off.every_one && (one_off.chance - 4.0 / 24.0).abs() < 1e-12);
        // Kendall's table: n = 10, S ≥ 25 has probability 0.014.
        let shares = out_of_order_shares(10);
        assert!((shares.iter().take(11).sum::<f64>() - 0.0143).abs() < 5e-4);
        assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-12);
    }

    #[test]
    fn few_equal_or_missing_values_have_no_trend() {
        assert_eq!(trend(&[1.0, 2.0, 3.0]), None);
        assert_eq!(trend(&[5.0; 6]), None);
        assert_eq!(trend(&[1.0, 2.0, 3.0, f64::NAN]), None);
        assert!(trend(&[1.0, 1.0, 1.0, 2.0]).unwrap().chance > 0.05, "ties are no evidence");
    }
}
