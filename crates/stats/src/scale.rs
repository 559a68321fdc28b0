//! The estimated spread's own distribution: integrals over it, and the least value that one of them
//! allows.

use statrs::distribution::{ChiSquared, Continuous, ContinuousCDF};

/// S = an estimated standard deviation ÷ the true one, where νS² is χ² with ν degrees of freedom.
pub(crate) struct Scale {
    /// S at the nodes of Simpson's rule, each with the rule's weight times the density.
    nodes: Vec<(f64, f64)>,
}

impl Scale {
    /// Returns none for degrees of freedom that are not positive.
    pub(crate) fn new(freedom: f64) -> Option<Self> {
        const STEPS: u32 = 400;
        let chi_squared = ChiSquared::new(freedom).ok()?;
        // S is not beyond this but once in 10⁹.
        let most = (chi_squared.inverse_cdf(1.0 - 1e-9) / freedom).sqrt();
        let density = |s: f64| {
            // The density of S from that of νS²; at 0 the rule's end point, where only one degree
            // of freedom has any.
            let s = s.max(1e-9);
            chi_squared.pdf(freedom * s * s) * 2.0 * freedom * s
        };
        let width = most / f64::from(STEPS);
        let node = |i: u32| {
            let s = f64::from(i) * width;
            let weight = if i == 0 || i == STEPS { 1.0 } else { 2.0 + 2.0 * f64::from(i % 2) };
            (s, weight * density(s) * width / 3.0)
        };
        Some(Self { nodes: (0..=STEPS).map(node).collect() })
    }

    /// Returns the mean of `value` over S; none if it is not finite.
    pub(crate) fn mean(&self, value: impl Fn(f64) -> f64) -> Option<f64> {
        let sum: f64 = self.nodes.iter().map(|&(s, weight)| weight * value(s)).sum();
        sum.is_finite().then_some(sum)
    }
}

/// Returns the least number from 0 that is `enough`, as all above it are; none beyond 10⁹, or where it
/// is not known.
pub(crate) fn least(enough: impl Fn(f64) -> Option<bool>) -> Option<f64> {
    let (mut lo, mut hi) = (0.0, 1.0);
    while !enough(hi)? {
        lo = hi;
        hi *= 2.0;
        if hi > 1e9 {
            return None;
        }
    }
    for _ in 0..60 {
        let middle = f64::midpoint(lo, hi);
        if enough(middle)? {
            hi = middle;
        } else {
            lo = middle;
        }
    }
    Some(hi)
}
