//! What earlier runs on a host tell of the noise of a run to come.

use std::collections::BTreeMap;

use pgdyno_model::facts::HostFacts;
use pgdyno_model::{NoisePrior, Plan};
use pgdyno_stats::{self as stats, Variance};

use super::experiments::{MOST_RUNS, has_noise, noise_of_trials, ran_on, tells_noise};
use crate::store::{Store, StoreError};

/// Degrees of freedom from which a recipe's own runs tell its noise, without those of others.
const ENOUGH: f64 = 6.0;

/// Noise between the trials of one run, as a host's earlier runs have it.
pub(super) struct Known {
    /// Its variance, pooled.
    pub(super) trials: Variance,
    /// What of it counts for a run that is not among them.
    pub(super) prior: NoisePrior,
    /// Whether runs of the same recipe tell it.
    pub(super) is_own: bool,
}

impl Known {
    /// Reads the newest runs on `host` that tell noise; none where no run tells that of a run of `plan`.
    pub(super) fn read(
        store: &Store,
        plan: &Plan,
        host: &HostFacts,
    ) -> Result<Option<Self>, StoreError> {
        if !has_noise(plan) {
            return Ok(None);
        }
        // By the recipe's name: of each run the variance of its trials.
        let mut recipes: BTreeMap<String, Vec<Variance>> = BTreeMap::new();
        let mut read = 0;
        for run in store.runs()?.iter().filter(|run| tells_noise(run)) {
            if !ran_on(store, &run.id, &[host])? {
                continue;
            }
            let plan = store.run(&run.id)?.plan;
            let tps = store.compared(&run.id)?;
            let tps: Vec<&[(u32, f64)]> = tps.values().map(Vec::as_slice).collect();
            let found = noise_of_trials(&plan, &tps);
            recipes.entry(plan.name).or_default().extend(found);
            read += 1;
            if read == MOST_RUNS {
                break;
            }
        }
        Ok(Self::of_recipes(&recipes, &plan.name))
    }

    fn of_recipes(recipes: &BTreeMap<String, Vec<Variance>>, own: &str) -> Option<Self> {
        let pooled = |runs: &Vec<Variance>| Variance::pooled(runs.iter().copied());
        let of_own = recipes.get(own).filter(|runs| {
            let known = pooled(runs);
            known.is_some_and(|known| known.freedom >= ENOUGH)
        });
        // Runs of one recipe are as alike as runs can be; those of several are one experiment each.
        let (alike, runs) = match of_own {
            Some(runs) => (runs.clone(), runs.len()),
            None => {
                let all = recipes.values().filter_map(pooled).collect();
                (all, recipes.values().map(Vec::len).sum())
            }
        };
        let trials = Variance::pooled(alike.iter().copied())?;
        let Variance { value: variance, freedom } = stats::noise_prior(&alike)?;
        let prior = NoisePrior { variance, freedom, runs };
        Some(Self { trials, prior, is_own: of_own.is_some() })
    }
}

/// Returns what earlier runs on `host` tell of the noise of a run of `plan`; none where they tell nothing,
/// or where its trials have another noise.
///
/// # Errors
/// [`StoreError::Sqlite`] or [`StoreError::Corrupt`].
pub fn noise_prior(
    store: &Store,
    plan: &Plan,
    host: &HostFacts,
) -> Result<Option<NoisePrior>, StoreError> {
    Ok(Known::read(store, plan, host)?.map(|known| known.prior))
}
