//! Several comparisons at once.

/// The p-value of each of several comparisons when they are judged together: Holm's step-down rule
/// (S. Holm, *A simple sequentially rejective multiple test procedure*, Scandinavian Journal of
/// Statistics 6, 1979). To hold at `alpha` is to be at most `alpha`; the chance that any true null
/// hypothesis among them does so is at most `alpha`, however they depend on each other. One answer
/// for each of `p`, in its order; NaN holds nowhere and becomes 1.
pub fn holm(p: &[f64]) -> Vec<f64> {
    let known = |i: usize| if p[i].is_nan() { 1.0 } else { p[i] };
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|a, b| known(*a).total_cmp(&known(*b)));
    let mut adjusted = vec![1.0; p.len()];
    let mut least = 0.0_f64;
    for (rank, index) in order.iter().enumerate() {
        let left = (p.len() - rank) as f64;
        // None is more significant than one before it.
        least = least.max(known(*index) * left).min(1.0);
        adjusted[*index] = least;
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_textbook_example() {
        // 0.005 × 4, 0.01 × 3, 0.03 × 2, and 0.04 × 1 which may not be less than the one before it.
        let close = |a: &[f64], b: &[f64]| {
            assert!(
                a.len() == b.len() && a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-12),
                "{a:?}"
            );
        };
        close(&holm(&[0.01, 0.04, 0.03, 0.005]), &[0.03, 0.06, 0.06, 0.02]);
        close(&holm(&[]), &[]);
        close(&holm(&[f64::NAN, 0.001]), &[1.0, 0.002]);
        close(&holm(&[0.9, 0.8]), &[1.0, 1.0]);
    }
}
