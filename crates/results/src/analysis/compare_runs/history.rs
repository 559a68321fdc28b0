//! What earlier runs say of two runs that are compared: how far equal ones differ on this host.
//!
//! An earlier run counts for a pair of treatments if one of its treatments differs from side A's in
//! nothing but what is compared on purpose. [`History::load`] reads the candidates once;
//! [`History::of_pair`] then picks for each pair and [`Earlier::ratio`] judges.

use pgdyno_model::record::RunState;
use pgdyno_stats::{self as stats, EarlierRuns, Ratio};

use super::super::pairing::Pairing;
use super::super::run::{Gathered, gather};
use super::super::treatment::TreatmentSamples;
use super::super::view::RunView;
use super::chosen::{Selection, others};
use super::equal::{self, Side};
use crate::gate::Measure;
use crate::store::{Store, StoreError};

/// The most runs that are read: older ones tell little of the host as it is, and reading takes
/// time.
const MOST_RUNS: usize = 24;

/// Completed runs of the store that might be of the experiment that two runs are of.
#[derive(Default)]
pub(super) struct History {
    runs: Vec<Gathered>,
}

impl History {
    /// Reads the newest completed runs, begun before the later of `a` and `b`, that have the window
    /// and warm-up of either.
    pub(super) fn load(store: &Store, a: &Selection, b: &Selection) -> Result<Self, StoreError> {
        let (of_a, of_b) = (&a.view, &b.view);
        let mut runs = Vec::new();
        for summary in store.runs()? {
            let is_side = summary.id == of_a.run.id || summary.id == of_b.run.id;
            let is_earlier = summary.started_at <= of_a.run.started_at.max(of_b.run.started_at);
            if is_side || !is_earlier || summary.state != RunState::Completed {
                continue;
            }
            let plan = store.run(&summary.id)?.plan;
            let alike = [&of_a.plan, &of_b.plan].iter().any(|other| {
                plan.length == other.length
                    && plan.warm_up == other.warm_up
                    && plan.find == other.find
            });
            if !alike {
                continue;
            }
            runs.push(gather(store, &summary.id)?);
            if runs.len() == MOST_RUNS {
                break;
            }
        }
        Ok(Self { runs })
    }

    /// The earlier runs that tell of treatment `i` of A beside treatment `j` of B, where `by` is
    /// compared on purpose.
    pub(super) fn of_pair(
        &self,
        (a, i): (&Selection, usize),
        (b, j): (&Selection, usize),
        by: &[String],
    ) -> Earlier<'_> {
        let mut earlier = Earlier::default();
        let (of_a, of_b) = (a.treatment(i), b.treatment(j));
        let by_machine = by.iter().any(|name| name == equal::MACHINE);
        for Gathered { view, sums, .. } in &self.runs {
            let candidate = view.treatments.iter().map(|t| t.index).find_map(|index| {
                if sums[index].tps.is_empty() {
                    return None;
                }
                let levels = |view: &RunView, t: usize| others(&view.treatments[t].factors, by);
                if levels(view, index) != levels(&a.view, i) {
                    return None;
                }
                let treatment = &view.plan.treatments[index];
                let this = Side { view, sums: &sums[index], treatment, index };
                let differences = equal::differences(&of_a, &this);
                let on_purpose = |d: &equal::Difference| {
                    d.is_named(by, |name| equal::is_bundle(name, of_a.treatment, this.treatment))
                };
                if !differences.iter().all(on_purpose) {
                    return None;
                }
                // Where machines are compared, one as good as another is still another.
                let is_beside = |side: &Selection| !by_machine || view.hosts() == side.view.hosts();
                let is_like_b = || equal::differences(&of_b, &this).is_empty() && is_beside(b);
                let like = match differences.is_empty() && is_beside(a) {
                    true => Like::A,
                    false if is_like_b() => Like::B,
                    false => Like::Neither,
                };
                Some((like, &sums[index]))
            });
            earlier.runs.extend(candidate);
        }
        earlier
    }
}

/// Which side's treatment an earlier run measured.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Like {
    A,
    B,
    /// Another level of what is compared.
    Neither,
}

/// The earlier runs of one pair, newest first.
#[derive(Default)]
pub(super) struct Earlier<'a> {
    runs: Vec<(Like, &'a TreatmentSamples)>,
}

impl Earlier<'_> {
    /// Runs (count).
    pub(super) fn count(&self) -> usize {
        self.runs.len()
    }

    /// The ratio `b` ÷ `a` of two runs' trials, with an interval of the spread of earlier runs;
    /// none where these are too few.
    ///
    /// Runs that should be equal to either side are enough where there are three of them; else all
    /// are taken together, and what they differ in on purpose counts as spread.
    pub(super) fn ratio(
        &self,
        measure: Measure,
        a: &TreatmentSamples,
        b: &TreatmentSamples,
        pairing: &Pairing,
    ) -> Option<Ratio> {
        let of = |wanted: &[Like]| -> Vec<&[(u32, f64)]> {
            self.runs
                .iter()
                .filter(|(like, _)| wanted.contains(like))
                .map(|(_, sums)| sums.values(measure))
                .collect()
        };
        let mut equal = EarlierRuns::default();
        equal.add_group(of(&[Like::A]));
        equal.add_group(of(&[Like::B]));
        let mut all = EarlierRuns::default();
        all.add_group(of(&[Like::A, Like::B, Like::Neither]));
        let (of_a, of_b) = (a.values(measure), b.values(measure));
        let share = pairing.share(of_b, of_a);
        stats::ratio_across(share, of_b, of_a, &equal)
            .or_else(|| stats::ratio_across(share, of_b, of_a, &all))
    }
}
