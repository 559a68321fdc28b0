//! Student's t distribution, and the moments that every estimate starts from.

use statrs::distribution::{ContinuousCDF, StudentsT};

/// Confidence level of every interval.
pub const CONFIDENCE: f64 = 0.95;

/// Spread below which values count as equal (share of the mean): rounding leaves as much.
pub(crate) const ROUNDING: f64 = 1e-12;

/// Returns mean and sample standard deviation.
///
/// None for fewer than two values, or if one is not finite.
pub(crate) fn moments(values: &[f64]) -> Option<(f64, f64)> {
    if values.len() < 2 || values.iter().any(|v| !v.is_finite()) {
        return None;
    }
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0);
    (mean.is_finite() && variance.is_finite()).then(|| (mean, variance.sqrt()))
}

/// Returns the `p` quantile of Student's t with `freedom` degrees of freedom.
pub(crate) fn t_quantile(p: f64, freedom: f64) -> Option<f64> {
    let t = StudentsT::new(0.0, 1.0, freedom).ok()?.inverse_cdf(p);
    t.is_finite().then_some(t)
}

/// Returns the one-sided p-value of `t`: the chance of a value at least as large.
pub(crate) fn t_one_sided(t: f64, freedom: f64) -> Option<f64> {
    let p = StudentsT::new(0.0, 1.0, freedom).ok()?.sf(t);
    p.is_finite().then_some(p)
}

/// Returns the two-sided p-value of `t`: the chance of a value at least as far from 0.
pub(crate) fn t_two_sided(t: f64, freedom: f64) -> Option<f64> {
    let p = 2.0 * StudentsT::new(0.0, 1.0, freedom).ok()?.sf(t.abs());
    p.is_finite().then_some(p.min(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_quantiles_are_those_of_the_printed_tables() {
        // Two-sided 95%: the table in any textbook, to four digits.
        for (freedom, t) in
            [(1.0, 12.7062), (2.0, 4.3027), (4.0, 2.7764), (9.0, 2.2622), (30.0, 2.0423)]
        {
            assert!((t_quantile(0.975, freedom).unwrap() - t).abs() < 5e-5, "{freedom}");
        }
    }
}
