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
        // What adds nothing to a mean of values that are about 1.
        let adds = |(_, weight): &(f64, f64)| *weight > 1e-20;
        Some(Self { nodes: (0..=STEPS).map(node).filter(adds).collect() })
    }

    /// Returns the mean of `value` over S; none if it is not finite.
    pub(crate) fn mean(&self, value: impl Fn(f64) -> f64) -> Option<f64> {
        let sum: f64 = self.nodes.iter().map(|&(s, weight)| weight * value(s)).sum();
        sum.is_finite().then_some(sum)
    }
}

/// Returns the least number from 0 at which `excess` is not negative, as at all above it; none
/// beyond 10⁹, or where it is not known.
///
/// By T. R. Chandrupatla, *A new hybrid quadratic/bisection algorithm for finding the zero of a
/// nonlinear function without using derivatives*, Advances in Engineering Software 28, 1997.
pub(crate) fn least(excess: impl Fn(f64) -> Option<f64>) -> Option<f64> {
    /// Of the answer: relative, and absolute below 1.
    const ERROR: f64 = 1e-12;
    let at = |x| Some((x, excess(x).filter(|e| e.is_finite())?));
    // The newest point, and the nearest beyond the zero from there.
    let (mut newest, mut across) = (at(1.0)?, at(0.0)?);
    if across.1 >= 0.0 {
        return Some(0.0);
    }
    while newest.1 < 0.0 {
        (newest, across) = (at(newest.0 * 2.0)?, newest);
        if newest.0 > 1e9 {
            return None;
        }
    }
    let mut step = 0.5;
    loop {
        let width = across.0 - newest.0;
        let highest = newest.0.max(across.0);
        let least_step = ERROR * highest.max(1.0) / width.abs();
        if least_step > 0.5 {
            return Some(highest);
        }
        let next = at(newest.0 + f64::clamp(step, least_step, 1.0 - least_step) * width)?;
        let is_same_side = (next.1 < 0.0) == (newest.1 < 0.0);
        let (behind, opposite) = if is_same_side { (newest, across) } else { (across, newest) };
        (newest, across) = (next, opposite);
        step = quadratic_step(newest, across, behind).unwrap_or(0.5);
    }
}

/// Returns the way to the zero of the inverse quadratic through three points, as a share of that
/// from `newest` to `across`; none where it may lead astray.
fn quadratic_step(newest: (f64, f64), across: (f64, f64), behind: (f64, f64)) -> Option<f64> {
    let ((x1, f1), (x2, f2), (x3, f3)) = (newest, across, behind);
    let (xi, phi) = ((x1 - x2) / (x3 - x2), (f1 - f2) / (f3 - f2));
    let is_safe = phi.powi(2) < xi && (1.0 - phi).powi(2) < 1.0 - xi;
    is_safe.then(|| {
        f1 / (f2 - f1) * f3 / (f2 - f3) + (x3 - x1) / (x2 - x1) * f1 / (f3 - f1) * f2 / (f3 - f2)
    })
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn the_least_number_is_found_with_few_looks() {
        let looks = Cell::new(0);
        let looked = |excess: f64| {
            looks.set(looks.get() + 1);
            Some(excess)
        };
        let found = |excess: &dyn Fn(f64) -> f64, zero: f64, most: u32| {
            looks.set(0);
            let found = least(|x| looked(excess(x))).unwrap();
            assert!(found >= zero && found - zero <= 2e-12 * zero.max(1.0), "{found}, not {zero}");
            assert!(looks.get() <= most, "{zero}: {} looks", looks.get());
        };
        // Smooth, flat beyond, and a step, of which only halving finds the place.
        found(&|x| x.powi(3) - 27.0, 3.0, 16);
        found(&|x| 0.05 - (-x).exp(), -(0.05_f64.ln()), 16);
        found(&|x| if x < 700.0 { -0.95 } else { 0.05 }, 700.0, 70);
        found(&|_| 1.0, 0.0, 2);
        assert_eq!(least(|_| Some(-1.0)), None);
        assert_eq!(least(|_| Some(f64::NAN)), None);
        assert_eq!(least(|_| None), None);
    }
}
