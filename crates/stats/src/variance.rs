//! Variances of logarithms, with their degrees of freedom.

/// A variance of logarithms.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Variance {
    /// The estimate.
    pub value: f64,
    /// Degrees of freedom of the estimate.
    pub freedom: f64,
}

impl Variance {
    /// Returns the mean of `variances`, each weighted by its degrees of freedom; none without any.
    pub fn pooled(variances: impl IntoIterator<Item = Self>) -> Option<Self> {
        let add =
            |(sum, freedom): (f64, f64), v: Self| (sum + v.value * v.freedom, freedom + v.freedom);
        let (sum, freedom) = variances.into_iter().fold((0.0, 0.0), add);
        (freedom > 0.0).then(|| Self { value: sum / freedom, freedom })
    }

    /// Returns the variance of a sum of independent terms, with the degrees of freedom of F. E.
    /// Satterthwaite, *An approximate distribution of estimates of variance components*, Biometrics
    /// Bulletin 2 (1946). Without any spread these are not a number.
    pub(crate) fn of_sum(terms: impl IntoIterator<Item = Self>) -> Self {
        let add = |(sum, by_freedom): (f64, f64), v: Self| {
            (sum + v.value, by_freedom + v.value * v.value / v.freedom)
        };
        let (value, by_freedom) = terms.into_iter().fold((0.0, 0.0), add);
        Self { value, freedom: value * value / by_freedom }
    }

    /// Returns `by` times the variance.
    pub(crate) fn scaled(self, by: f64) -> Self {
        Self { value: self.value * by, ..self }
    }

    /// Returns the relative standard deviation (a share: 0.01 for 1%).
    pub fn spread(&self) -> f64 {
        self.value.max(0.0).sqrt().exp_m1()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variances_are_pooled_by_their_degrees_of_freedom() {
        let of = |value, freedom| Variance { value, freedom };
        assert_eq!(Variance::pooled([of(1.0, 1.0), of(4.0, 2.0)]), Some(of(3.0, 3.0)));
        assert_eq!(Variance::pooled([]), None);
    }
}
