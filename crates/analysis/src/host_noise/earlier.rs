//! Learns from earlier runs on a host for a run to come: the noise of its trials, and whether its
//! first trial will differ from the others.

use std::collections::BTreeMap;

use pgdyno_model::facts::HostFacts;
use pgdyno_model::{Conditioning, NoisePrior, Plan};
use pgdyno_stats::{self as stats, FirstTrial, Variance};

use super::experiments::{MOST_RUNS, has_noise, noise_of_trials, ran_on, tells_noise};
use pgdyno_store::{Store, StoreError};

/// Degrees of freedom from which a recipe's own runs suffice to tell its noise.
const ENOUGH: f64 = 6.0;

/// The newest runs of a host that tell the noise of tps.
#[derive(Default)]
pub(super) struct EarlierRuns {
    /// Noise between the trials of each run, by the recipe's name.
    recipes: BTreeMap<String, Vec<Variance>>,
    /// First trials of the runs that did not begin with an unmeasured trial.
    firsts: Vec<FirstTrial>,
    /// Conditioning of the newest run that began with an unmeasured trial.
    conditioned: Option<Conditioning>,
}

/// Noise between the trials of a run to come.
pub(super) struct Known {
    /// Variance, pooled over the earlier runs.
    pub(super) trials: Variance,
    /// Variance predicted for a new run, with the degrees of freedom that it is worth.
    pub(super) prior: NoisePrior,
    /// Whether runs of the same recipe tell the noise.
    pub(super) is_own: bool,
}

impl EarlierRuns {
    /// Reads the runs on `host`.
    pub(super) fn read(store: &Store, host: &HostFacts) -> Result<Self, StoreError> {
        let (mut earlier, mut read) = (Self::default(), 0);
        for run in store.runs()?.iter().filter(|run| tells_noise(run)) {
            if !ran_on(store, &run.id, &[host])? {
                continue;
            }
            let plan = store.run(&run.id)?.plan;
            if has_noise(&plan) {
                let mut tps = store.compared(&run.id)?;
                let all = (0..plan.treatments.len()).map(|t| tps.remove(&t).unwrap_or_default());
                let all: Vec<Vec<(u32, f64)>> = all.collect();
                earlier.add(plan, &all.iter().map(Vec::as_slice).collect::<Vec<_>>());
                read += 1;
            }
            if read == MOST_RUNS {
                break;
            }
        }
        Ok(earlier)
    }

    /// Adds a run of `plan`, with the (block, tps) of each treatment.
    fn add(&mut self, plan: Plan, tps: &[&[(u32, f64)]]) {
        let noise = noise_of_trials(&plan, tps);
        match (plan.conditioning, plan.trials.first()) {
            (Some(told), _) => drop(self.conditioned.get_or_insert(told)),
            (None, Some(first)) => {
                let place = (first.treatment, first.block);
                self.firsts.extend(stats::first_trial(tps, !plan.is_sequential(), place));
            }
            (None, None) => {}
        }
        self.recipes.entry(plan.name).or_default().extend(noise);
    }

    /// Returns the noise to expect of a run of `plan`; none if no earlier run tells it.
    pub(super) fn noise(&self, plan: &Plan) -> Option<Known> {
        if !has_noise(plan) {
            return None;
        }
        let pooled = |runs: &Vec<Variance>| Variance::pooled(runs.iter().copied());
        let is_enough = |runs: &&Vec<Variance>| pooled(runs).is_some_and(|it| it.freedom >= ENOUGH);
        let own = self.recipes.get(&plan.name).filter(is_enough);
        // Runs of one recipe are as alike as runs can be; those of several are one experiment each.
        let (alike, runs) = match own {
            Some(runs) => (runs.clone(), runs.len()),
            None => {
                let all = self.recipes.values().filter_map(pooled).collect();
                (all, self.recipes.values().map(Vec::len).sum())
            }
        };
        let trials = Variance::pooled(alike.iter().copied())?;
        let Variance { value: variance, freedom } = stats::noise_prior(&alike)?;
        let prior = NoisePrior { variance, freedom, runs };
        Some(Known { trials, prior, is_own: own.is_some() })
    }

    /// Returns the reason to open a run of `plan` with an unmeasured trial; none if first trials
    /// are like all others.
    ///
    /// Conditioned runs do not tell how first trials differ. So a run after one is conditioned,
    /// too.
    pub(super) fn conditioning(&self, plan: &Plan) -> Option<Conditioning> {
        let runs = self.firsts.len();
        let found = || {
            let difference = stats::first_trials_differ(&self.firsts)?;
            Some(Conditioning { difference, runs })
        };
        has_noise(plan).then(|| self.conditioned.or_else(found))?
    }
}

/// Records in `plan` what earlier runs on `host` tell of it: the noise of its trials, and whether
/// an unmeasured trial opens the run.
///
/// # Errors
/// [`StoreError::Sqlite`] or [`StoreError::Corrupt`].
pub fn learn(store: &Store, plan: &mut Plan, host: &HostFacts) -> Result<(), StoreError> {
    let earlier = EarlierRuns::read(store, host)?;
    plan.noise_prior = earlier.noise(plan).map(|known| known.prior);
    plan.conditioning = earlier.conditioning(plan);
    Ok(())
}
