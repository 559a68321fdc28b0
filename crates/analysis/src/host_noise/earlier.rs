//! What earlier runs on a host tell of a run to come: the noise of its trials, and whether its first trial
//! will be like the others.

use std::collections::BTreeMap;

use pgdyno_model::facts::HostFacts;
use pgdyno_model::{Conditioning, NoisePrior, Plan};
use pgdyno_stats::{self as stats, FirstTrial, Variance};

use super::experiments::{MOST_RUNS, has_noise, noise_of_trials, ran_on, tells_noise};
use pgdyno_store::{Store, StoreError};

/// Degrees of freedom from which a recipe's own runs tell its noise, without those of others.
const ENOUGH: f64 = 6.0;

/// The newest runs of a host that tell the noise of tps.
#[derive(Default)]
pub(super) struct EarlierRuns {
    /// How far trials of each run differ, by the recipe's name.
    recipes: BTreeMap<String, Vec<Variance>>,
    /// First trials of those that no other trial went before.
    firsts: Vec<FirstTrial>,
    /// What the newest run that was conditioned was told.
    conditioned: Option<Conditioning>,
}

/// Noise between the trials of a run to come.
pub(super) struct Known {
    /// Its variance, pooled.
    pub(super) trials: Variance,
    /// What of it counts for a run that is not among them.
    pub(super) prior: NoisePrior,
    /// Whether runs of the same recipe tell it.
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

    /// Adds the (block, tps) of the treatments of a run.
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

    /// Returns the noise of a run of `plan`; none where nothing is known of it.
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

    /// Returns why a trial that is not measured is to open a run of `plan`; none where first trials are as
    /// all others.
    ///
    /// Where the newest runs were conditioned, nobody can tell anew: the next one is so, too.
    pub(super) fn conditioning(&self, plan: &Plan) -> Option<Conditioning> {
        let runs = self.firsts.len();
        let found = || {
            let difference = stats::first_trials_differ(&self.firsts)?;
            Some(Conditioning { difference, runs })
        };
        has_noise(plan).then(|| self.conditioned.or_else(found))?
    }
}

/// Tells `plan` what earlier runs on `host` know of it: the noise of its trials, and whether its first
/// trial is to be measured.
///
/// # Errors
/// [`StoreError::Sqlite`] or [`StoreError::Corrupt`].
pub fn learn(store: &Store, plan: &mut Plan, host: &HostFacts) -> Result<(), StoreError> {
    let earlier = EarlierRuns::read(store, host)?;
    plan.noise_prior = earlier.noise(plan).map(|known| known.prior);
    plan.conditioning = earlier.conditioning(plan);
    Ok(())
}
