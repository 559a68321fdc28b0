//! Several comparisons at once.

/// The p-value of each of several comparisons when they are judged together: Holm's step-down rule
/// (S. Holm, *A simple sequentially rejective multiple test procedure*, Scandinavian Journal of
/// Statistics 6, 1979). To hold at `alpha` is to be at most `alpha`; the chance that any true null
/// hypothesis among them does so is at most `alpha`, however they depend on each other. One answer
/// for each of `p`, in its order; NaN holds nowhere and becomes 1.
pub fn holm(p: &[f64]) -> Vec<f64> {
    holm_weighted(p, &vec![1.0; p.len()])
}

/// Holm's rule with weights (section 4 of the same paper): a comparison of twice the weight is
/// asked for half as much evidence.
///
/// `weights` are positive, one for each of `p`; only their proportions matter. The first comparison
/// of the rule is judged at `alpha` times its share of all weights.
pub fn holm_weighted(p: &[f64], weights: &[f64]) -> Vec<f64> {
    let known = |i: usize| if p[i].is_nan() { 1.0 } else { p[i] };
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|a, b| (known(*a) / weights[*a]).total_cmp(&(known(*b) / weights[*b])));
    let mut adjusted = vec![1.0; p.len()];
    let mut least = 0.0_f64;
    for (rank, index) in order.iter().enumerate() {
        let left: f64 = order[rank..].iter().map(|i| weights[*i]).sum();
        // None is more significant than one before it.
        least = least.max(known(*index) * left / weights[*index]).min(1.0);
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

    #[test]
    fn a_heavier_comparison_needs_less_evidence() {
        // p ÷ w: 0.01 and 0.03. The first: 0.03 × 4 / 3 = 0.04; the second, alone: 0.03, which may
        // not be less.
        let found = holm_weighted(&[0.03, 0.03], &[3.0, 1.0]);
        assert!((found[0] - 0.04).abs() < 1e-12 && (found[1] - 0.04).abs() < 1e-12, "{found:?}");
        assert_eq!(holm_weighted(&[0.01, 0.04, 0.03], &[2.0; 3]), holm(&[0.01, 0.04, 0.03]));
    }
}
