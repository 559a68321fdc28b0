//! Runs of one host, sorted into experiments: runs that should be equal.

use pgdyno_model::Plan;
use pgdyno_model::facts::HostFacts;
use pgdyno_model::record::RunState;
use pgdyno_stats::{self as stats, Days, EarlierRuns, RunSpread, Variance};

use crate::comparison::runs::equal::{Side, differences};
use crate::gate::Measure;
use crate::records::RunData;
use crate::treatment::TreatmentSamples;
use pgdyno_store::{RunSummary, Store, StoreError};

/// Most runs of a host that are read. Older ones tell little of the host as it is, and reading
/// takes time.
pub(crate) const MOST_RUNS: usize = 24;

const NANOSECONDS_A_DAY: u64 = 86_400_000_000_000;

/// Returns whether a run tells noise: it is complete and not ad hoc, since nobody knows what else
/// ran beside an ad hoc one.
pub(crate) fn tells_noise(run: &RunSummary) -> bool {
    run.state == RunState::Completed && !run.ad_hoc
}

/// Returns whether all sessions of the run `id` were on a machine with the facts of all `hosts`.
pub(crate) fn ran_on(store: &Store, id: &str, hosts: &[&HostFacts]) -> Result<bool, StoreError> {
    let sessions = store.sessions(id)?;
    let is_same = |host: &&HostFacts| {
        sessions.iter().all(|(_, session, _)| is_same_host(&session.host, host))
    };
    Ok(!sessions.is_empty() && !hosts.is_empty() && hosts.iter().all(is_same))
}

/// Returns whether two sessions ran on one machine in one state.
pub(super) fn is_same_host(a: &HostFacts, b: &HostFacts) -> bool {
    !a.is_other_than(b) && a.differences(b).is_empty()
}

/// Runs that should be equal, by the treatments that they have in common.
pub(crate) struct Experiment {
    /// Places where each treatment was measured, as indices (run, treatment).
    groups: Vec<Vec<(usize, usize)>>,
}

/// Sorts the runs of one host, at the indices `here` of `runs`, into experiments.
///
/// Two treatments are equal if they set the same, and if nothing differs that `compare` asks to be
/// equal. Runs that have a treatment in common are of one experiment.
pub(crate) fn experiments(
    runs: &[RunData],
    here: impl IntoIterator<Item = usize>,
) -> Vec<Experiment> {
    let mut groups: Vec<Vec<(usize, usize)>> = Vec::new();
    for run in here {
        for treatment in 0..runs[run].sums.len() {
            if runs[run].sums[treatment].tps.is_empty() {
                continue;
            }
            let is_its = |group: &&mut Vec<(usize, usize)>| {
                group.iter().all(|(other, _)| *other != run)
                    && are_equal(runs, group[0], (run, treatment))
            };
            match groups.iter_mut().find(is_its) {
                Some(group) => group.push((run, treatment)),
                None => groups.push(vec![(run, treatment)]),
            }
        }
    }
    let mut experiments: Vec<Experiment> = Vec::new();
    for group in groups {
        let mut together = Experiment { groups: vec![group] };
        let shares = |other: &mut Experiment| other.runs().iter().any(|run| together.has(*run));
        let joined: Vec<Experiment> = experiments.extract_if(.., shares).collect();
        joined.into_iter().for_each(|other| together.groups.extend(other.groups));
        experiments.push(together);
    }
    experiments
}

fn are_equal(runs: &[RunData], a: (usize, usize), b: (usize, usize)) -> bool {
    let side = |(run, index): (usize, usize)| {
        let run = &runs[run];
        Side { run, treatment: &run.plan.treatments[index], index }
    };
    let (a, b) = (side(a), side(b));
    a.treatment == b.treatment && differences(&a, &b).is_empty()
}

impl Experiment {
    /// Returns the indices of the runs, each once, ascending.
    pub(crate) fn runs(&self) -> Vec<usize> {
        let mut runs: Vec<usize> = self.groups.iter().flatten().map(|(run, _)| *run).collect();
        runs.sort_unstable();
        runs.dedup();
        runs
    }

    fn has(&self, run: usize) -> bool {
        self.groups.iter().flatten().any(|(other, _)| *other == run)
    }

    /// Treatments (count).
    pub(super) fn treatments(&self) -> usize {
        self.groups.len()
    }

    /// Computes how far the runs differ by `measure`; none for a single run.
    pub(crate) fn spread(&self, runs: &[RunData], measure: Measure) -> Option<RunSpread> {
        let mut earlier = EarlierRuns::default();
        for group in &self.groups {
            let values = |(run, treatment): &(usize, usize)| {
                TreatmentSamples::values(&runs[*run].sums[*treatment], measure)
            };
            earlier.add_group(group.iter().map(values));
        }
        earlier.spread_of_experiment()
    }

    /// Computes how far trials of one run differ in tps, pooled over runs.
    pub(super) fn trials(&self, runs: &[RunData]) -> Option<Variance> {
        Variance::pooled(self.runs().into_iter().filter_map(|run| trials_of(&runs[run])))
    }

    /// Splits the difference of its runs into days and runs of one day.
    pub(super) fn days(&self, runs: &[RunData]) -> Option<Days> {
        let at = |(run, treatment): &(usize, usize)| {
            let run = &runs[*run];
            let logs = run.sums[*treatment].tps.iter().map(|(_, tps)| tps.ln());
            let mean = logs.sum::<f64>() / run.sums[*treatment].tps.len() as f64;
            (run.head.started_at.0 / NANOSECONDS_A_DAY, mean)
        };
        let is_positive = |(_, mean): &(u64, f64)| mean.is_finite();
        let group = |of: &Vec<(usize, usize)>| of.iter().map(at).filter(is_positive).collect();
        stats::days(&self.groups.iter().map(group).collect::<Vec<_>>())
    }
}

/// Computes how far trials of one run differ in tps.
fn trials_of(run: &RunData) -> Option<Variance> {
    noise_of_trials(&run.plan, &TreatmentSamples::all_values(&run.sums, Measure::Tps))
}

/// Computes how far trials of a run of `plan` differ, from each treatment's (block, tps); none if
/// these do not tell the noise of tps.
pub(super) fn noise_of_trials(plan: &Plan, tps: &[&[(u32, f64)]]) -> Option<Variance> {
    has_noise(plan).then(|| stats::rest(tps, !plan.is_sequential()))?
}

/// Returns whether trials of `plan` have the noise of tps: no rate sets their tps, and none is
/// searched for.
pub(super) fn has_noise(plan: &Plan) -> bool {
    !plan.has_rate() && plan.find.is_none()
}

/// Computes the squared relative standard error of each trial's mean tps, from its whole seconds.
pub(super) fn seconds(run: &RunData) -> impl Iterator<Item = f64> + '_ {
    run.trials.iter().filter(|trial| trial.tps.is_some()).filter_map(|trial| {
        let whole = trial.series.iter().take_while(|s| s.second.length_s > 0.999);
        let tps: Vec<f64> = whole.filter_map(|second| second.tps).collect();
        stats::standard_error_of_mean(&tps).map(|error| error * error)
    })
}
