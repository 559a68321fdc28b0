//! Which of several treatments may be the fastest.

use std::collections::BTreeMap;

use crate::common_noise::level;
use crate::ratio::{LogDifference, Noise, Ratio};
use crate::student::t_one_sided;
use crate::studentized_range::{Compared, LargestT};

/// Returns the p-value of each of `candidates` being the fastest. In 95% of runs the fastest is
/// among those with more than 5%. `ratio` returns the ratio of two of them, as [`all_pairs`] judges
/// it.
///
/// It is small for a treatment that another leads by more than chance lets any other lead the
/// fastest: multiple comparisons with the best (J. C. Hsu, *Simultaneous confidence intervals for
/// all distances from the "best"*, Annals of Statistics 9, 1981). Where treatments share no noise
/// the chance is multiplied by the number of others (Bonferroni). A pair without an interval tells
/// nothing.
///
/// [`all_pairs`]: crate::all_pairs()
///
/// ```
/// let quick = [(1, 131.0), (2, 128.0), (3, 130.0)];
/// let slow = [(1, 100.0), (2, 102.0), (3, 101.0)];
/// let also_quick = [(1, 128.0), (2, 130.0), (3, 129.0)];
/// let pairs = pgdyno_stats::all_pairs(
///     &[&quick, &slow, &also_quick],
///     &[].into(),
///     pgdyno_stats::RunDesign::new(true),
/// );
/// let p = pgdyno_stats::p_of_best(|a, b| pairs.get(&(a, b)).map(|pair| &pair.ratio), &[0, 1, 2]);
/// assert!(p[&0] > 0.05 && p[&1] < 0.05 && p[&2] > 0.05);
/// ```
pub fn p_of_best<'a>(
    ratio: impl Fn(usize, usize) -> Option<&'a Ratio>,
    candidates: &[usize],
) -> BTreeMap<usize, f64> {
    let mut leads = Leads { candidates: candidates.len(), known: Vec::new() };
    let mut lead = |this: usize, other: usize| {
        let sign = if this < other { -1.0 } else { 1.0 };
        ratio(this.min(other), this.max(other))?.least_p(|log, noise| {
            leads.p(LogDifference { difference: sign * log.difference, ..log }, noise)
        })
    };
    let mut of = |this: usize| {
        let others = candidates.iter().filter(|other| **other != this);
        others.filter_map(|other| lead(this, *other)).fold(1.0, f64::min)
    };
    candidates.iter().map(|this| (*this, of(*this))).collect()
}

/// Chances that others lead the fastest.
struct Leads {
    /// Treatments that may be the fastest (count).
    candidates: usize,
    /// Distributions of the largest lead, by degrees of freedom.
    known: Vec<(f64, LargestT)>,
}

impl Leads {
    /// Returns the chance of a lead as large as `log`, were the led treatment the fastest.
    fn p(&mut self, log: LogDifference, noise: Noise) -> Option<f64> {
        let t = log.difference / log.error;
        if t <= 0.0 {
            return Some(1.0);
        }
        let Noise::Shared { treatments } = noise else {
            let others = self.candidates.saturating_sub(1) as f64;
            return Some(others * t_one_sided(t, log.freedom)?);
        };
        let is_it = |(freedom, _): &&(f64, LargestT)| (freedom - log.freedom).abs() < 1e-9;
        if !self.known.iter().any(|known| is_it(&known)) {
            let largest = LargestT::new(Compared::LeadsOverOne, self.candidates, log.freedom)?;
            self.known.push((log.freedom, largest));
        }
        let (_, largest) = self.known.iter().find(is_it)?;
        Some(largest.p(t)? / level(treatments))
    }
}
