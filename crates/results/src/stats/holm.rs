//! Several comparisons at once.

/// Which of several comparisons still hold at `alpha` when they are judged together: Holm's step-down rule
/// (S. Holm, *A simple sequentially rejective multiple test procedure*, Scandinavian Journal of Statistics 6, 1979).
/// One answer for each of `p`, in its order.
#[must_use]
#[allow(clippy::cast_precision_loss)]
pub fn holm(p: &[f64], alpha: f64) -> Vec<bool> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|a, b| p[*a].total_cmp(&p[*b]));
    let mut holds = vec![false; p.len()];
    for (rank, index) in order.into_iter().enumerate() {
        // The comparison is false for NaN as well.
        if p[index] <= alpha / (p.len() - rank) as f64 {
            holds[index] = true;
        } else {
            break;
        }
    }
    holds
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_textbook_example() {
        // Against 0.05/4, 0.05/3, 0.05/2: 0.005 and 0.01 hold, 0.03 does not, nor does any after it.
        assert_eq!(holm(&[0.01, 0.04, 0.03, 0.005], 0.05), [true, false, false, true]);
        assert_eq!(holm(&[], 0.05), [false; 0]);
        assert_eq!(holm(&[f64::NAN, 0.001], 0.05), [false, true]);
    }
}
