//! Power of Student's t test, and the smallest difference that it finds.
//!
//! The statistic has the noncentral t distribution: with noncentrality λ it is (Z + λ) / S, where Z
//! is normal and νS² is χ² with ν degrees of freedom.

use statrs::distribution::{ContinuousCDF, Normal};

use crate::scale::{Scale, least};
use crate::student::t_quantile;

/// Probability with which a difference must be found to count as detectable.
pub const POWER: f64 = 0.8;

/// Returns the probability (0 to 1) with which a two-sided t test at level `alpha` with `freedom`
/// degrees of freedom rejects, if the true difference is `lambda` standard errors. None outside the
/// domain.
#[cfg(test)]
pub(crate) fn t_power(lambda: f64, freedom: f64, alpha: f64) -> Option<f64> {
    Some(TTest::new(freedom, alpha)?.rejected(lambda)?.clamp(0.0, 1.0))
}

/// Returns the smallest true difference, in standard errors, that such a test finds with
/// probability `power`. None outside the domain.
pub(crate) fn minimum_detectable(freedom: f64, alpha: f64, power: f64) -> Option<f64> {
    let test = TTest::new(freedom, alpha)?;
    least(|lambda| Some(test.rejected(lambda)? - power))
}

/// A two-sided t test.
struct TTest {
    /// Critical value of the statistic, on either side.
    critical: f64,
    normal: Normal,
    scale: Scale,
}

impl TTest {
    /// Creates the test; none outside the domain.
    fn new(freedom: f64, alpha: f64) -> Option<Self> {
        let critical = t_quantile(1.0 - alpha / 2.0, freedom).filter(|c| c.is_finite())?;
        let (normal, scale) = (Normal::new(0.0, 1.0).ok()?, Scale::new(freedom)?);
        Some(Self { critical, normal, scale })
    }

    /// P(|(Z + λ) / S| > critical).
    fn rejected(&self, lambda: f64) -> Option<f64> {
        let Self { critical, normal, scale } = self;
        scale.mean(|s| normal.sf(critical * s - lambda) + normal.cdf(-critical * s - lambda))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn power_is_that_of_the_published_tables() {
        // Without a difference it is the level. One-sample t tests as power tables have them (Cohen
        // 1988), λ = d √n: d = 0.5, n = 34, two-sided 0.05: 0.808; d = 1, n = 10: 0.803.
        for (lambda, freedom, power) in [
            (0.0, 4.0, 0.05),
            (0.0, 1.0, 0.05),
            (0.5 * 34f64.sqrt(), 33.0, 0.808),
            (10f64.sqrt(), 9.0, 0.803),
        ] {
            let found = t_power(lambda, freedom, 0.05).unwrap();
            assert!((found - power).abs() < 2e-3, "λ={lambda} ν={freedom}: {found}");
        }
    }

    #[test]
    fn what_is_detectable_is_detected_as_often_as_asked() {
        for freedom in [1.0, 2.0, 4.0, 30.0] {
            for alpha in [0.05, 0.05 / 12.0] {
                let lambda = minimum_detectable(freedom, alpha, POWER).unwrap();
                assert!((t_power(lambda, freedom, alpha).unwrap() - POWER).abs() < 1e-6);
            }
        }
        assert_eq!(minimum_detectable(0.0, 0.05, POWER), None);
        assert_eq!(minimum_detectable(f64::NAN, 0.05, POWER), None);
    }
}
