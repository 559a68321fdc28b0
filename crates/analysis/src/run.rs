//! Analyses a run: from the records of the store to a [`RunView`].
//!
//! [`RunData::read`] reads the records once, trial by trial. [`analyse`] then judges: promises
//! first, since a treatment that broke its promise is not ranked, then comparisons, then what is
//! derived from them.

use pgdyno_model::{NoisePrior, Plan};
use pgdyno_stats::{self as stats, Variance};
use pgdyno_store::{Store, StoreError};

use crate::comparison::family::{self, Family};
use crate::comparison::pairing::design;
use crate::comparison::{pairs, within};
use crate::factors::Factors;
use crate::gate::Measure;
use crate::records::{RunData, hosts};
use crate::treatment::TreatmentSamples;
use crate::view::{NoisePriorView, RatioView, RunView, TreatmentView};
use crate::{capacity, effect, noise_floor, promise, scaling, stopping, why};

/// Analyses the run whose full name is `run` (see [`Store::resolve`]).
///
/// ```no_run
/// # use pgdyno_analysis::analyse;
/// # use pgdyno_store::Store;
/// let store = Store::open_existing("results.sqlite3")?;
/// let view = analyse(&store, &store.resolve("latest")?)?;
/// for treatment in &view.treatments {
///     println!("{}: {:?} tps", treatment.label, treatment.tps.as_ref().map(|tps| tps.mean));
/// }
/// # Ok::<(), pgdyno_store::StoreError>(())
/// ```
///
/// Trials are read one at a time. Of several attempts at a trial the first completed one counts.
///
/// # Errors
/// [`StoreError::UnknownRun`]; [`StoreError::Damaged`]; [`StoreError::Sqlite`] or
/// [`StoreError::Corrupt`].
pub fn analyse(store: &Store, run: &str) -> Result<RunView, StoreError> {
    let data = RunData::read(store, run)?;
    let newest_floor = match data.sessions.last() {
        Some(session) => noise_floor::newest(store, &session.host)?,
        None => None,
    };
    let RunData { plan, sums, .. } = &data;
    let state = data.head.state;
    let family = Family::of_run(plan, state, sums);
    let (best, treatments) = rank(&data, &family);
    let comparisons = within::compare(plan, sums, &family);
    let factors = Factors::of_run(plan, state, sums);
    Ok(RunView {
        pairs: pairs::pairs(plan, best, &family),
        capacity: capacity::views(plan, &data.trials),
        why: why::of_run(plan, best, &treatments, &comparisons, sums),
        scaling: scaling::sweeps(plan, sums),
        effects: effect::effects(plan, &family),
        equal_ratio: equal_ratio(plan, &family),
        effect: factors.effect,
        courses: factors.courses,
        interactions: factors.interactions,
        stopping: stopping::view(plan, state, sums),
        noise_prior: noise_prior(plan, sums),
        noise_floor: newest_floor,
        best,
        treatments,
        comparisons,
        run: data.head,
        ad_hoc: data.ad_hoc,
        thinned: data.thinned,
        observations: data.observations,
        trials: data.trials,
        fsync: data.fsync,
        probes: data.probes,
        crashes: data.crashes,
        sessions: data.sessions,
        servers: data.servers,
        plan: data.plan,
        experiment: data.experiment,
        overrides: data.overrides,
    })
}

impl RunView {
    /// Machines that its sessions ran on, by name, each once, or as `pgdyno run --hosts` named the
    /// machine; none from earlier versions.
    pub fn hosts(&self) -> Vec<String> {
        hosts(&self.run, &self.sessions)
    }

    /// Returns the measure that compares its treatments: `tps` or `maximum rate`.
    pub fn measure(&self) -> &'static str {
        family::measure(&self.plan)
    }

    /// Whether a run of fixed repeats may still go on, so that no verdict may be drawn.
    pub fn is_provisional(&self) -> bool {
        family::is_provisional(&self.plan, self.run.state)
    }
}

/// Returns the best treatment, and all with their places beside it.
fn rank(data: &RunData, family: &Family) -> (Option<usize>, Vec<TreatmentView>) {
    let not_ranked = promise::judge(&data.treatments, &data.sums);
    let treatments = data.treatments.iter().cloned().zip(not_ranked);
    let treatments =
        treatments.map(|(treatment, not_ranked)| TreatmentView { not_ranked, ..treatment });
    let treatments: Vec<TreatmentView> = treatments.collect();
    let best = within::best(&treatments, &data.sums);
    let standings = within::standings(&treatments, best, family);
    let rank = |(treatment, standing): (TreatmentView, within::Standing)| TreatmentView {
        may_be_best: standing.may_be_best,
        ratio_to_best: standing.ratio_to_best,
        ..treatment
    };
    (best, treatments.into_iter().zip(standings).map(rank).collect())
}

/// Returns the ratio of the two treatments that set the same; none without such a pair.
fn equal_ratio(plan: &Plan, family: &Family) -> Option<RatioView> {
    let [a, b] = noise_floor::same_pair(plan)?;
    family.judged(b, a).map(|judged| RatioView::from(&judged))
}

/// Returns the noise that earlier runs told when the run began, and whether it counts.
fn noise_prior(plan: &Plan, sums: &[TreatmentSamples]) -> Option<NoisePriorView> {
    let tps = TreatmentSamples::all_values(sums, Measure::Tps);
    let prior = plan.noise_prior?;
    let (used, own) = stats::prior_use(&tps, design(plan, None, Some(prior)))?;
    let NoisePrior { variance, freedom, runs } = prior;
    Some(NoisePriorView {
        used,
        spread: Variance { value: variance, freedom }.spread(),
        freedom,
        runs,
        own_spread: own.spread(),
        own_freedom: own.freedom,
    })
}
