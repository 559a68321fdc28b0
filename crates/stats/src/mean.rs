//! Counts and means.

use std::borrow::Borrow;

/// Returns a count as a number to compute with.
pub(crate) fn count(n: usize) -> f64 {
    n as f64
}

/// Returns the mean of `values`; not a number without any.
pub(crate) fn mean(values: impl IntoIterator<Item = impl Borrow<f64>>) -> f64 {
    let (mut sum, mut n) = (0.0, 0);
    for value in values {
        sum += value.borrow();
        n += 1;
    }
    sum / count(n)
}
