//! Earlier runs that tell how far equal runs differ on this host.
//!
//! An earlier run counts for a pair of treatments if one of its treatments differs from side A's in
//! nothing but what is compared on purpose. Repeated runs of other experiments on the host count
//! too ([`HostNoise`]). [`History::load`] reads the candidates once; [`History::of_pair`] then
//! picks for each pair, and [`Earlier::ratio`] judges.

use pgdyno_model::Plan;
use pgdyno_model::facts::HostFacts;
use pgdyno_model::record::RunState;
use pgdyno_stats::{self as stats, EarlierRuns, HostNoise, NoHostNoise, Ratio, RunSpread};

use super::super::pairing::Pairing;
use super::chosen::{Selection, others};
use super::equal::{self, Side};
use crate::gate::Measure;
use crate::host_noise::{Experiment, MOST_RUNS, experiments, ran_on, tells_noise};
use crate::records::RunData;
use crate::treatment::TreatmentSamples;
use pgdyno_store::{Store, StoreError};

/// Completed runs of the store that may tell how far two runs differ without a cause, newest first.
#[derive(Default)]
pub(super) struct History {
    runs: Vec<RunData>,
    /// Indices of the runs that may be of the compared experiment, since their trials are measured
    /// alike.
    alike: Vec<usize>,
    /// Experiments of the host that both runs ran on; empty unless asked for.
    experiments: Vec<Experiment>,
}

impl History {
    /// Reads the newest completed runs that began before the later of `a` and `b`, and whose trials
    /// are measured like those of either. With `on_host`, it reads the runs of all experiments on
    /// the host too.
    pub(super) fn load(
        store: &Store,
        a: &Selection,
        b: &Selection,
        on_host: bool,
    ) -> Result<Self, StoreError> {
        let (of_a, of_b) = (&a.run, &b.run);
        let latest = of_a.head.started_at.max(of_b.head.started_at);
        let hosts: Vec<&HostFacts> =
            of_a.sessions.iter().chain(&of_b.sessions).map(|session| &session.host).collect();
        let (mut runs, mut alike, mut here) = (Vec::new(), Vec::new(), Vec::new());
        for summary in store.runs()? {
            let is_side = summary.id == of_a.head.id || summary.id == of_b.head.id;
            let is_earlier = summary.started_at <= latest;
            if is_side || !is_earlier || summary.state != RunState::Completed {
                continue;
            }
            let is_alike = alike.len() < MOST_RUNS && {
                let plan = store.run(&summary.id)?.plan;
                [&of_a.plan, &of_b.plan].iter().any(|other| is_measured_alike(&plan, other))
            };
            let is_here = on_host
                && here.len() < MOST_RUNS
                && tells_noise(&summary)
                && ran_on(store, &summary.id, &hosts)?;
            if is_alike || is_here {
                alike.extend(is_alike.then_some(runs.len()));
                here.extend(is_here.then_some(runs.len()));
                runs.push(RunData::read(store, &summary.id)?);
            }
            if alike.len() == MOST_RUNS && (here.len() == MOST_RUNS || !on_host) {
                break;
            }
        }
        Ok(Self { experiments: experiments(&runs, here), runs, alike })
    }

    /// Returns the experiments that were run more than once and have no run of `own`.
    fn others(&self, own: &[usize]) -> Vec<&Experiment> {
        let is_other = |e: &&Experiment| {
            let runs = e.runs();
            let is_own = |run: &usize| own.contains(run);
            runs.len() > 1 && !runs.iter().any(is_own)
        };
        self.experiments.iter().filter(is_other).collect()
    }

    /// Picks the earlier runs that count for treatment `i` of A and treatment `j` of B, where `by`
    /// is compared on purpose.
    pub(super) fn of_pair(
        &self,
        (a, i): (&Selection, usize),
        (b, j): (&Selection, usize),
        by: &[String],
    ) -> Earlier<'_> {
        let (mut own, mut runs) = (Vec::new(), Vec::new());
        let (of_a, of_b) = (a.treatment(i), b.treatment(j));
        let by_machine = by.iter().any(|name| name == equal::MACHINE);
        for run in &self.alike {
            let earlier = &self.runs[*run];
            let candidate = earlier.treatments.iter().map(|t| t.index).find_map(|index| {
                if earlier.sums[index].tps.is_empty() {
                    return None;
                }
                let levels = |run: &RunData, t: usize| others(&run.treatments[t].factors, by);
                if levels(earlier, index) != levels(&a.run, i) {
                    return None;
                }
                let treatment = &earlier.plan.treatments[index];
                let this = Side { run: earlier, treatment, index };
                let differences = equal::differences(&of_a, &this);
                let on_purpose = |d: &equal::Difference| {
                    d.is_named(by, |name| equal::is_bundle(name, of_a.treatment, this.treatment))
                };
                if !differences.iter().all(on_purpose) {
                    return None;
                }
                // Where machines are compared, one as good as another is still another.
                let is_beside =
                    |side: &Selection| !by_machine || earlier.hosts() == side.run.hosts();
                let is_like_b = || equal::differences(&of_b, &this).is_empty() && is_beside(b);
                let like = match differences.is_empty() && is_beside(a) {
                    true => Like::A,
                    false if is_like_b() => Like::B,
                    false => Like::Neither,
                };
                Some((like, &earlier.sums[index]))
            });
            if let Some(found) = candidate {
                own.push(*run);
                runs.push(found);
            }
        }
        Earlier { runs, others: self.others(&own), all: &self.runs }
    }
}

/// Returns whether two plans have the same window, warm-up and search.
fn is_measured_alike(a: &Plan, b: &Plan) -> bool {
    a.length == b.length && a.warm_up == b.warm_up && a.find == b.find
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
pub(super) struct Earlier<'a> {
    runs: Vec<(Like, &'a TreatmentSamples)>,
    /// Other experiments of the host.
    others: Vec<&'a Experiment>,
    /// Runs that the experiments refer to by index.
    all: &'a [RunData],
}

impl Earlier<'_> {
    /// Runs (count).
    pub(super) fn count(&self) -> usize {
        self.runs.len()
    }

    /// Pools how far repeated runs of other experiments on the host differ.
    pub(super) fn host_noise(&self, measure: Measure) -> Result<HostNoise, NoHostNoise> {
        let spreads: Vec<RunSpread> =
            self.others.iter().filter_map(|e| e.spread(self.all, measure)).collect();
        HostNoise::pool(&spreads)
    }

    /// Computes the ratio `b` ÷ `a` of two runs' trials, with an interval from the spread of
    /// earlier runs; none if these are too few.
    ///
    /// Runs equal to either side count, beside the host's noise. If these are too few, all earlier
    /// runs are pooled; their differences on purpose then count as spread.
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
        let host = self.host_noise(measure).ok();
        stats::ratio_across(share, of_b, of_a, &equal, host.as_ref())
            .or_else(|| stats::ratio_across(share, of_b, of_a, &all, None))
    }
}
