//! Interim analyses: judging a run while it goes on.
//!
//! Each analysis (a *look*) spends a share of the 5% chance of a wrong verdict. K. K. G. Lan and D.
//! L. DeMets, *Discrete sequential boundaries for clinical trials*, Biometrika 70 (1983), spend it
//! as a function of how far the run is. Here it is in proportion to the repeats since the look
//! before.
//!
//! The shares are added (Bonferroni's inequality). So the promise holds with Student's t for any
//! number of repeats, where the usual boundaries are of the normal distribution. It costs repeats,
//! since looks resemble each other. Intervals over looks are repeated confidence intervals: C.
//! Jennison and B. W. Turnbull, *Interim analyses: the repeated confidence interval approach*,
//! Journal of the Royal Statistical Society B 51 (1989).

/// Schedule of interim analyses: the numbers of repeats at which a run is judged.
///
/// ```
/// use pgdyno_stats::InterimAnalyses;
///
/// let looks = InterimAnalyses::between(4, 30);
/// assert_eq!(looks.at(), [4, 6, 9, 13, 19, 28, 30]);
/// // The look at nine repeats spends a tenth of the 5%: three repeats of thirty.
/// assert!((looks.alpha_share(9) - 0.1).abs() < 1e-12);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterimAnalyses(Vec<u32>);

impl InterimAnalyses {
    /// Creates a schedule from the first look at `floor` repeats to the last at `ceiling`.
    ///
    /// Each look comes after half as many repeats more than the look before.
    pub fn between(floor: u32, ceiling: u32) -> Self {
        let mut at = vec![floor.clamp(1, ceiling.max(1))];
        while let Some(last) = at.last().copied().filter(|last| *last < ceiling) {
            at.push(last.saturating_add((last / 2).max(1)).min(ceiling));
        }
        Self(at)
    }

    /// Creates a schedule of looks at `repeats`, in any order. The last one ends the run.
    pub fn at_repeats(mut repeats: Vec<u32>) -> Self {
        repeats.sort_unstable();
        repeats.dedup();
        Self(repeats)
    }

    /// Returns the numbers of repeats, ascending.
    pub fn at(&self) -> &[u32] {
        &self.0
    }

    /// Returns the looks at the first `n` repeats, each with its share of the 5% error chance.
    ///
    /// `n` itself is a look, since the run may have ended there.
    pub fn until(&self, n: u32) -> Vec<(u32, f64)> {
        let ceiling = self.0.last().copied().unwrap_or(1);
        let n = n.min(ceiling);
        let earlier = self.0.iter().copied().filter(|look| *look < n);
        let mut before = 0;
        earlier
            .chain((n > 0).then_some(n))
            .map(|look| {
                let alpha_share = f64::from(look - before) / f64::from(ceiling);
                before = look;
                (look, alpha_share)
            })
            .collect()
    }

    /// Returns the looks at a run of these `blocks`, ascending: the last block of each, with its
    /// share of the 5% error chance. A look at fewer than two blocks, which no interval can be made
    /// of, is left out.
    pub(crate) fn at_blocks(&self, blocks: &[u32]) -> Vec<(u32, f64)> {
        let n = u32::try_from(blocks.len()).unwrap_or(u32::MAX);
        let last = |(look, alpha_share): (u32, f64)| {
            let count = usize::try_from(look).ok().filter(|count| *count >= 2)?;
            Some((*blocks.get(count - 1)?, alpha_share))
        };
        self.until(n).into_iter().filter_map(last).collect()
    }

    /// Returns the share of the 5% error chance that the look at `n` repeats spends.
    pub fn alpha_share(&self, n: u32) -> f64 {
        self.until(n).last().map_or(1.0, |(_, alpha_share)| *alpha_share)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_grow_apart_and_spend_the_whole() {
        let looks = InterimAnalyses::between(4, 30);
        assert_eq!(looks.at(), [4, 6, 9, 13, 19, 28, 30]);
        let all = looks.until(30);
        assert!((all.iter().map(|(_, share)| share).sum::<f64>() - 1.0).abs() < 1e-12);
        assert_eq!(all[0], (4, 4.0 / 30.0));
        assert_eq!(looks.until(8), [(4, 4.0 / 30.0), (6, 2.0 / 30.0), (8, 2.0 / 30.0)]);
        assert_eq!((looks.until(0), looks.until(3)), (vec![], vec![(3, 0.1)]));
        assert!((looks.alpha_share(9) - 0.1).abs() < 1e-12);
        for (floor, ceiling) in [(1, 1), (0, 0), (9, 3), (2, 2), (2, u32::MAX)] {
            let looks = InterimAnalyses::between(floor, ceiling);
            assert!(looks.at().windows(2).all(|w| w[0] < w[1]) && !looks.at().is_empty());
        }
    }
}
