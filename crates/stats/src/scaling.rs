//! How throughput grows with the number of clients: the Universal Scalability Law.
//!
//! X(N) = λN / (1 + σ(N − 1) + κN(N − 1)), with λ the throughput of one client, σ the share that
//! cannot run side by side, κ what each client costs each other one: N. J. Gunther, *Guerrilla
//! Capacity Planning*, Springer 2007, chapter 4.

use std::collections::{BTreeMap, BTreeSet};

use crate::no_interval::NoFit;
use crate::student::{CONFIDENCE, moments, t_quantile};

/// Numbers of clients needed: one more than the law has parameters.
const FEWEST: usize = 4;

/// A fit of the law.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Scaling {
    /// λ: throughput of one client (1/s).
    pub lambda: Fitted,
    /// σ: contention (a share).
    pub sigma: Fitted,
    /// κ: cost of every pair of clients (a share).
    pub kappa: Fitted,
    /// Number of clients with the highest throughput; none if it rises for ever (κ = 0).
    pub peak_clients: Option<Fitted>,
    /// Highest throughput (1/s); with κ = 0 the limit λ / σ. None if there is none (σ = 0 too).
    pub peak: Option<Fitted>,
    /// The knee: `peak` over λ. This many clients would reach the peak if they did not hinder each
    /// other; the two asymptotic bounds meet there (P. J. Denning and J. P. Buzen, *The operational
    /// analysis of queueing network models*, ACM Computing Surveys 10, 1978).
    pub knee: Option<Fitted>,
    /// Largest deviation of a number of clients' geometric mean from the law (a share).
    pub worst: f64,
    /// Most clients that were measured; beyond, the law extrapolates.
    pub measured_to: u32,
}

/// A fitted value.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Fitted {
    /// Best estimate.
    pub value: f64,
    /// 95% confidence interval: jackknife over blocks (R. G. Miller, *The jackknife – a review*,
    /// Biometrika 61, 1974). None with fewer than three blocks, or where leaving one out leaves no
    /// value.
    pub ci95: Option<[f64; 2]>,
}

/// Fits the law to the trials' (block, clients, throughput).
///
/// # Errors
/// Why nothing can be fitted.
pub fn scaling(trials: &[(u32, u32, f64)]) -> Result<Scaling, NoFit> {
    if trials.iter().any(|(_, _, x)| !x.is_finite() || *x <= 0.0) {
        return Err(NoFit::NoTransaction);
    }
    let whole = fit(trials)?;
    let blocks: BTreeSet<u32> = trials.iter().map(|(block, ..)| *block).collect();
    let left_out: Vec<Option<Law>> = blocks
        .iter()
        .map(|out| {
            let rest: Vec<_> = trials.iter().copied().filter(|(block, ..)| block != out).collect();
            fit(&rest).ok()
        })
        .collect();
    let fitted = |of: fn(&Law) -> Option<f64>| {
        let value = of(&whole)?;
        let left_out: Option<Vec<f64>> = left_out.iter().map(|law| of(law.as_ref()?)).collect();
        Some(Fitted { value, ci95: left_out.and_then(|values| jackknife(value, &values)) })
    };
    let (Some(lambda), Some(sigma), Some(kappa)) =
        (fitted(|l| Some(l.lambda)), fitted(|l| Some(l.sigma)), fitted(|l| Some(l.kappa)))
    else {
        return Err(NoFit::NoSolution);
    };
    let off = |(clients, x): (&u32, &f64)| (x / whole.at(f64::from(*clients)) - 1.0).abs();
    let means = geometric_means(trials);
    Ok(Scaling {
        lambda,
        sigma,
        kappa,
        peak_clients: fitted(Law::peak_clients),
        peak: fitted(Law::peak),
        knee: fitted(|l| Some(l.peak()? / l.lambda)),
        worst: means.iter().map(off).fold(0.0, f64::max),
        measured_to: means.keys().max().copied().unwrap_or_default(),
    })
}

#[derive(Clone, Copy)]
struct Law {
    lambda: f64,
    sigma: f64,
    kappa: f64,
}

impl Law {
    fn at(&self, n: f64) -> f64 {
        self.lambda * n / (1.0 + self.sigma * (n - 1.0) + self.kappa * n * (n - 1.0))
    }

    fn peak_clients(&self) -> Option<f64> {
        // Where the derivative is 0; never below one client.
        (self.kappa > 0.0).then(|| ((1.0 - self.sigma).max(0.0) / self.kappa).sqrt().max(1.0))
    }

    fn peak(&self) -> Option<f64> {
        match self.peak_clients() {
            Some(n) => Some(self.at(n)),
            None => (self.sigma > 0.0).then(|| self.lambda / self.sigma),
        }
    }
}

fn geometric_means(trials: &[(u32, u32, f64)]) -> BTreeMap<u32, f64> {
    let mut logs: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for (_, clients, x) in trials {
        logs.entry(*clients).or_default().push(x.ln());
    }
    logs.into_iter()
        .map(|(clients, logs)| (clients, (logs.iter().sum::<f64>() / logs.len() as f64).exp()))
        .collect()
}

/// Least squares of relative errors. N / X = 1/λ + (σ/λ)(N − 1) + (κ/λ)N(N − 1) is linear in three
/// unknowns, none of which may be negative: the best of the fits with some of the last two left at
/// 0.
fn fit(trials: &[(u32, u32, f64)]) -> Result<Law, NoFit> {
    let means = geometric_means(trials);
    if means.len() < FEWEST {
        return Err(NoFit::TooFewClients);
    }
    // Divided by N / X, so that the right-hand side is 1 and residuals are relative.
    let rows: Vec<[f64; 3]> = means
        .iter()
        .map(|(clients, x)| {
            let n = f64::from(*clients);
            [x / n, x / n * (n - 1.0), x * (n - 1.0)]
        })
        .collect();
    let mut best: Option<(f64, [f64; 3])> = None;
    for free in [&[0, 1, 2][..], &[0, 1], &[0, 2], &[0]] {
        let Some(solution) =
            least_squares(&rows, free).filter(|s| s[0] > 0.0 && s[1] >= 0.0 && s[2] >= 0.0)
        else {
            continue;
        };
        let residual = |row: &[f64; 3]| {
            (1.0 - row.iter().zip(&solution).map(|(a, b)| a * b).sum::<f64>()).powi(2)
        };
        let squares: f64 = rows.iter().map(residual).sum();
        if best.is_none_or(|(least, _)| squares < least) {
            best = Some((squares, solution));
        }
    }
    let (_, [one, contention, pairs]) = best.ok_or(NoFit::NoSolution)?;
    Ok(Law { lambda: 1.0 / one, sigma: contention / one, kappa: pairs / one })
}

/// The `free` coefficients that bring the rows closest to 1, the others 0; none where they are not
/// determined.
fn least_squares(rows: &[[f64; 3]], free: &[usize]) -> Option<[f64; 3]> {
    // Columns of like size, so that elimination loses nothing.
    let size = |c: usize| rows.iter().map(|r| r[c] * r[c]).sum::<f64>().sqrt();
    let scales: Vec<f64> = free.iter().map(|c| size(*c)).collect();
    if scales.iter().any(|s| *s <= 0.0 || !s.is_finite()) {
        return None;
    }
    let k = free.len();
    let scaled = |row: &[f64; 3], i: usize| row[free[i]] / scales[i];
    let mut matrix: Vec<Vec<f64>> = (0..k)
        .map(|i| {
            let product = |j: usize| rows.iter().map(|r| scaled(r, i) * scaled(r, j)).sum::<f64>();
            (0..k).map(product).chain([rows.iter().map(|r| scaled(r, i)).sum()]).collect()
        })
        .collect();
    for i in 0..k {
        let pivot = (i..k).max_by(|a, b| matrix[*a][i].abs().total_cmp(&matrix[*b][i].abs()))?;
        matrix.swap(i, pivot);
        if matrix[i][i].abs() < 1e-12 {
            return None;
        }
        let pivot = matrix[i].clone();
        for (_, row) in matrix.iter_mut().enumerate().filter(|(j, _)| *j != i) {
            let factor = row[i] / pivot[i];
            row.iter_mut().zip(&pivot).for_each(|(value, p)| *value -= factor * p);
        }
    }
    let mut out = [0.0; 3];
    for i in 0..k {
        out[free[i]] = matrix[i][k] / matrix[i][i] / scales[i];
    }
    Some(out)
}

fn jackknife(whole: f64, left_out: &[f64]) -> Option<[f64; 2]> {
    let n = left_out.len() as f64;
    let pseudo: Vec<f64> = left_out.iter().map(|v| n * whole - (n - 1.0) * v).collect();
    let (_, sd) = moments(&pseudo).filter(|(_, sd)| pseudo.len() >= 3 && *sd > 0.0)?;
    let half = t_quantile(0.5 + CONFIDENCE / 2.0, n - 1.0)? * sd / n.sqrt();
    // None of what is fitted can be negative.
    Some([(whole - half).max(0.0), whole + half])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Normal;

    const TRUTH: Law = Law { lambda: 1000.0, sigma: 0.05, kappa: 0.0005 };
    const CLIENTS: [u32; 7] = [1, 2, 4, 8, 16, 32, 64];

    fn sweep(blocks: u32, mut noise: impl FnMut() -> f64) -> Vec<(u32, u32, f64)> {
        let mut out = Vec::new();
        for block in 1..=blocks {
            out.extend(CLIENTS.map(|n| (block, n, TRUTH.at(f64::from(n)) * noise().exp())));
        }
        out
    }

    #[test]
    fn the_law_is_found_again() {
        let exact = scaling(&sweep(1, || 0.0)).unwrap();
        for (fitted, truth) in [
            (exact.lambda, 1000.0),
            (exact.sigma, 0.05),
            (exact.kappa, 0.0005),
            (exact.peak_clients.unwrap(), (0.95f64 / 0.0005).sqrt()),
        ] {
            assert!((fitted.value / truth - 1.0).abs() < 1e-6, "{fitted:?} {truth}");
            assert_eq!(fitted.ci95, None, "one block has no interval");
        }
        assert!(exact.worst < 1e-9 && exact.measured_to == 64);
        let amdahl: Vec<_> = CLIENTS
            .map(|n| (1, n, 1000.0 * f64::from(n) / (1.0 + 0.1 * (f64::from(n) - 1.0))))
            .into();
        let amdahl = scaling(&amdahl).unwrap();
        assert!(amdahl.kappa.value < 1e-9);
        assert!((amdahl.peak.unwrap().value / 10_000.0 - 1.0).abs() < 1e-3, "{amdahl:?}");
    }

    #[test]
    fn intervals_hold_the_truth_about_as_often_as_they_say() {
        let mut random = Normal(77);
        let mut held = [0; 3];
        for _ in 0..1000 {
            let found = scaling(&sweep(5, || 0.03 * random.draw())).unwrap();
            let holds =
                |f: Fitted, truth: f64| f.ci95.is_some_and(|[lo, hi]| (lo..=hi).contains(&truth));
            let peak = TRUTH.peak().unwrap();
            held[0] += i32::from(holds(found.lambda, 1000.0));
            held[1] += i32::from(found.peak.is_some_and(|f| holds(f, peak)));
            held[2] += i32::from(found.knee.is_some_and(|f| holds(f, peak / 1000.0)));
        }
        eprintln!("scaling: {held:?} of 1000");
        assert!(held.iter().all(|h| (930..=970).contains(h)), "{held:?} of 1000");
    }

    #[test]
    fn what_cannot_be_fitted_is_words() {
        assert_eq!(scaling(&[]), Err(NoFit::TooFewClients));
        assert_eq!(scaling(&sweep(3, || 0.0)[..3]), Err(NoFit::TooFewClients));
        let mut zero = sweep(1, || 0.0);
        zero[0].2 = 0.0;
        assert_eq!(scaling(&zero), Err(NoFit::NoTransaction));
        zero[0].2 = f64::NAN;
        assert_eq!(scaling(&zero), Err(NoFit::NoTransaction));
        // Throughput that falls from the first client on has its peak there.
        let falling: Vec<_> = CLIENTS.map(|n| (1, n, 1000.0 / f64::from(n))).into();
        assert!(scaling(&falling).unwrap().peak_clients.unwrap().value >= 1.0);
    }
}
