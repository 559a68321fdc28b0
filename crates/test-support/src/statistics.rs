//! Medians that benches print.

/// A median with a 95% bootstrap interval.
#[derive(Clone, Copy, Debug)]
pub struct Interval {
    /// The median; NaN without ratios.
    pub median: f64,
    low: f64,
    high: f64,
    count: usize,
}

impl Interval {
    /// Computes the median of `ratios` and its interval, by the percentile bootstrap with 2,000
    /// resamples and a fixed seed.
    pub fn bootstrap(ratios: &[f64]) -> Self {
        let mut random = fastrand::Rng::with_seed(7);
        let mut medians: Vec<f64> = (0..2000)
            .map(|_| {
                let drawn: Vec<f64> =
                    ratios.iter().map(|_| ratios[random.usize(..ratios.len())]).collect();
                median(&drawn)
            })
            .collect();
        medians.sort_by(f64::total_cmp);
        let at =
            |share: usize| medians.get(medians.len() * share / 1000).copied().unwrap_or(f64::NAN);
        Self { median: median(ratios), low: at(25), high: at(974), count: ratios.len() }
    }

    /// Returns the median alone, as text; `-` without ratios.
    pub fn median(&self) -> String {
        if self.count == 0 { "-".to_owned() } else { format!("{:.2}", self.median) }
    }
}

impl std::fmt::Display for Interval {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.count == 0 {
            return f.write_str("-");
        }
        write!(f, "{:.2} ({:.2}-{:.2})", self.median, self.low, self.high)
    }
}

/// Returns the median of `values`; NaN without any.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => sorted[n / 2],
        n => f64::midpoint(sorted[n / 2 - 1], sorted[n / 2]),
    }
}
