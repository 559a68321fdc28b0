//! Splits the noise of each host by its levels: seconds within trials, trials within runs, runs,
//! days.
//!
//! The levels are those of T. Kalibera and R. Jones, *Rigorous benchmarking in reasonable time*
//! (International Symposium on Memory Management, 2013).

mod earlier;
mod experiments;
mod forecast;
mod view;

use std::collections::BTreeSet;

pub use earlier::learn;
use experiments::is_same_host;
pub(super) use experiments::{Experiment, MOST_RUNS, experiments, ran_on, tells_noise};
pub use forecast::{BUSY, Forecast, NoForecast, forecast, found_on_a_busy_host};
use pgdyno_model::facts::HostFacts;
use pgdyno_model::record::SessionRecord;
use pgdyno_model::units::Epoch;
use pgdyno_stats::{self as stats, Days, HostNoise, RunSpread, Variance};
pub use view::{ExperimentNoise, Finds, HostNoiseView, NoiseView, SpreadView};

use crate::gate::Measure;
use crate::records::RunData;
use pgdyno_store::{RunSummary, Store, StoreError};

/// Numbers of repeats for which [`HostNoiseView::finds`] tells what a run finds.
const REPEATS: [u32; 4] = [3, 5, 10, 20];
/// Treatments of the run that [`HostNoiseView::finds`] supposes.
const TREATMENTS: usize = 4;

/// Analyses the noise of the store's hosts, each from its newest completed runs.
///
/// # Errors
/// [`StoreError::Damaged`]; [`StoreError::Sqlite`] or [`StoreError::Corrupt`].
pub fn noise(store: &Store) -> Result<NoiseView, StoreError> {
    let all = store.runs()?;
    let completed: Vec<&RunSummary> = all.iter().filter(|run| tells_noise(run)).collect();
    let mut hosts: Vec<(HostFacts, Vec<RunData>)> = Vec::new();
    for run in &completed {
        let Some((_, SessionRecord { host, .. }, _)) = store.sessions(&run.id)?.pop() else {
            continue;
        };
        let known = hosts.iter().position(|(known, _)| is_same_host(known, &host));
        let place = known.unwrap_or_else(|| {
            hosts.push((host, Vec::new()));
            hosts.len() - 1
        });
        let of_host = &mut hosts[place].1;
        if of_host.len() < MOST_RUNS {
            of_host.push(RunData::read(store, &run.id)?);
        }
    }
    let newest = hosts.first().map(|(host, _)| host.clone()).unwrap_or_default();
    let read = hosts.iter().map(|(_, runs)| runs.len()).sum();
    let hosts = hosts
        .iter()
        .map(|(host, runs)| HostNoiseView {
            name: host.label().map(str::to_owned),
            differs: newest.differences(host),
            ..of_host(runs)
        })
        .collect();
    Ok(NoiseView { hosts, read, completed: completed.len() })
}

/// Analyses the noise of one host's `runs`, newest first.
fn of_host(runs: &[RunData]) -> HostNoiseView {
    let experiments = experiments(runs, 0..runs.len());
    let spreads: Vec<RunSpread> =
        experiments.iter().filter_map(|e| e.spread(runs, Measure::Tps)).collect();
    let pool = HostNoise::pool(&spreads);
    let of_trials: Vec<Variance> = experiments.iter().filter_map(|e| e.trials(runs)).collect();
    let trials = Variance::pooled(of_trials.iter().copied());
    // It counts beside a run's own.
    let prior = stats::noise_prior(&of_trials);
    let days: Vec<Days> = experiments.iter().filter_map(|e| e.days(runs)).collect();
    let finds = |repeats: &u32| {
        let difference = stats::detectable(TREATMENTS, &BTreeSet::new(), *repeats, true, prior?)?;
        Some(Finds { repeats: *repeats, difference })
    };
    let began = |run: Option<&RunData>| run.map_or(Epoch(0), |run| run.head.started_at);
    HostNoiseView {
        name: None,
        differs: Vec::new(),
        runs: runs.len(),
        since: began(runs.last()),
        until: began(runs.first()),
        seconds: seconds(runs),
        trials: trials.map(spread),
        between_runs: all_runs(&spreads).map(spread),
        unknown: pool.err(),
        runs_of_a_day: Variance::pooled(days.iter().map(|d| d.within)).map(spread),
        days: Variance::pooled(days.iter().map(|d| d.between)).map(spread),
        experiments: experiments.iter().map(|e| of_experiment(e, runs)).collect(),
        finds: REPEATS.iter().filter_map(finds).collect(),
        two_runs_find: pool.ok().and_then(|pool| pool.detectable()),
    }
}

fn of_experiment(experiment: &Experiment, runs: &[RunData]) -> ExperimentNoise {
    let members = experiment.runs();
    ExperimentNoise {
        recipe: members.first().map_or_else(String::new, |r| runs[*r].head.recipe.clone()),
        runs: members.len(),
        treatments: experiment.treatments(),
        trials: experiment.trials(runs).map(spread),
        between_runs: experiment.spread(runs, Measure::Tps).map(|s| spread(beyond_trials(&s))),
    }
}

/// Returns how far equal runs differ beyond their trials, over all experiments.
fn all_runs(spreads: &[RunSpread]) -> Option<Variance> {
    Variance::pooled(spreads.iter().map(beyond_trials))
}

/// Returns a run's variance without what its trials make; less than 0 where that is more.
fn beyond_trials(spread: &RunSpread) -> Variance {
    Variance { value: spread.of_runs - spread.of_trials, freedom: spread.freedom }
}

fn seconds(runs: &[RunData]) -> Option<SpreadView> {
    let squares = runs.iter().flat_map(experiments::seconds);
    let each = squares.map(|value| Variance { value, freedom: 1.0 });
    Variance::pooled(each).map(spread)
}

fn spread(variance: Variance) -> SpreadView {
    SpreadView { spread: variance.spread(), known_by: variance.freedom }
}
