//! The host's noise floor: how far the same treatment under two names differed.

use pgdyno_model::facts::HostFacts;
use pgdyno_model::record::RunState;
use pgdyno_model::{Levels, Plan, RunRecord, Treatment};

use super::treatment::{label, percentile};
use super::view::{LatencyFloor, NoiseFloor, PERCENTILES};
use crate::comparison::pairing::Pairing;
use pgdyno_store::{Store, StoreError};

/// The farther end of the interval of a ratio, as a share.
pub fn farther([lo, hi]: [f64; 2]) -> f64 {
    hi.max(1.0 / lo) - 1.0
}

/// The floor of `host`, from the newest completed run there with two treatments that set the same.
pub(crate) fn newest(store: &Store, host: &HostFacts) -> Result<Option<NoiseFloor>, StoreError> {
    for id in store.runs_with_equal_treatments()? {
        let RunRecord { plan, started_at, .. } = store.run(&id)?;
        let Some(pair) = same_pair(&plan) else { continue };
        if store.state(&id)? != RunState::Completed {
            continue;
        }
        let sessions = store.sessions(&id)?;
        if sessions.is_empty()
            || !sessions.iter().all(|(_, s, _)| s.host.differences(host).is_empty())
        {
            continue;
        }
        let mut tps = [Vec::new(), Vec::new()];
        let mut latency: [[Vec<(u32, f64)>; 2]; PERCENTILES.len()] = Default::default();
        let mut seen = Vec::new();
        for trial in store.trials(&id)? {
            let Some(side) = pair.iter().position(|index| *index == trial.treatment) else {
                continue;
            };
            if trial.failure.is_some() || seen.contains(&trial.ordinal) {
                continue;
            }
            seen.push(trial.ordinal);
            let Some(m) = trial.measurement else { continue };
            tps[side].extend(m.compared().map(|tps| (trial.block, tps)));
            for ((_, quantile), values) in PERCENTILES.iter().zip(&mut latency) {
                values[side].extend(percentile(&m, *quantile).map(|us| (trial.block, us)));
            }
        }
        let pairing = Pairing::within(&plan);
        let ratio = pairing.ratio(&tps[0], &tps[1]);
        // One that found no interval is no floor; an older one may be.
        let (Some(value), Some(ci95)) = (ratio.value, ratio.ci95) else { continue };
        return Ok(Some(NoiseFloor {
            run: id,
            started_at,
            names: pair.map(|index| label(&plan.treatments[index].levels)),
            ratio: value,
            ci95,
            blocks: tps[0].len().min(tps[1].len()),
            floor: farther(ci95),
            latency: PERCENTILES
                .iter()
                .zip(&latency)
                .filter_map(|((percentile, _), [a, b])| {
                    Some(LatencyFloor { percentile, floor: farther(pairing.ratio(a, b).ci95?) })
                })
                .collect(),
        }));
    }
    Ok(None)
}

/// The first two treatments that differ in nothing but their names.
pub fn same_pair(plan: &Plan) -> Option<[usize; 2]> {
    let bare = |t: &Treatment| Treatment { levels: Levels(Vec::new()), ..t.clone() };
    let all: Vec<Treatment> = plan.treatments.iter().map(bare).collect();
    (0..all.len()).find_map(|a| (a + 1..all.len()).find(|b| all[a] == all[*b]).map(|b| [a, b]))
}
