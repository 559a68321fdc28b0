//! Time that a plan takes.

use std::time::Duration;

use pgdyno_dataset as dataset;
use pgdyno_model::Treatment;
use pgdyno_model::crash::{CrashOptions, States};
use pgdyno_model::experiment::{Length, ProbeKind};

use crate::checks::crash::control_rounds;
use crate::resolved_experiment::ResolvedExperiment;

/// initdb, start, stop and removal of a cluster; from runs on a two-core virtual machine.
const CLUSTER: Duration = Duration::from_millis(3500);
/// Making a filesystem and taking it down; from the same machine.
const STACK: Duration = Duration::from_millis(1500);
/// Settling before and counting after a trial, on the same machine: 0.2 s in group-commit, 1 s on
/// filesystems in loop files.
const AROUND_TRIAL: Duration = Duration::from_millis(700);
/// Rows loaded in a second, keys and vacuum included, on the same machine.
const ROWS_PER_SECOND: u64 = 250_000;

/// Around the load of a crash test's round: fault, recovery, oracles, a second start.
const AROUND_ROUND: Duration = Duration::from_secs(4);
/// Flushes in a second of a crash test's load, on the same machine.
const FLUSHES_A_SECOND: u32 = 1000;
/// States between two flushes that are looked at, on the same machine (count).
const STATES_A_FLUSH: u32 = 50;
/// Showing and judging a state, on the same machine.
const STATE: Duration = Duration::from_millis(500);
/// Tests of the fsync probe (count).
const FSYNC_TESTS: u32 = 25;
/// Points of the disk probe that take a given time (count).
const DISK_POINTS: u32 = 31;

/// Steps that a search for the highest rate takes, its first and its confirmation left out (count):
/// most take so many.
const STEPS: u32 = 16;

/// Returns the time for one trial, without what comes around it; none if it ends by count.
fn load_time(resolved: &ResolvedExperiment) -> Option<Duration> {
    if let (Some(find), Length::Duration(window)) = (&resolved.plan.find, resolved.plan.length) {
        let warm_up = resolved.plan.warm_up.0;
        let step = find.step.0 + warm_up.min(find.step.0);
        return Some(2 * warm_up + find.step.0 + STEPS * step + window.0);
    }
    match resolved.plan.length {
        Length::Duration(span) => Some(resolved.plan.warm_up.0 + span.0),
        Length::Transactions(_) => None,
    }
}

/// The time that a plan takes, as far as it can be known.
#[derive(Clone, Copy, Debug)]
pub struct TimeEstimate {
    /// The least time: the most, where the number of repeats is fixed.
    pub least: Duration,
    /// The most time.
    pub most: Duration,
    /// Trials end by count: their own time comes on top of both.
    pub is_without_trials: bool,
}

/// Estimates the time that the plan takes.
pub fn time(resolved: &ResolvedExperiment) -> TimeEstimate {
    let mut time = Duration::ZERO;
    if !resolved.experiment.postgres.is_external() {
        let storages = u32::try_from(resolved.storages().len()).unwrap_or(u32::MAX);
        time += resolved.experiment.telemetry.fsync.0 * storages;
    }
    time += probes(resolved) + crashes(resolved);
    let making = |treatment: &Treatment| {
        let rows = dataset::rows(resolved.data(treatment), treatment.scale);
        CLUSTER + Duration::from_millis(rows * 1000 / ROWS_PER_SECOND)
    };
    time += resolved.clusters().iter().map(|(_, treatment)| making(treatment)).sum::<Duration>();
    let load = load_time(resolved);
    let each = around_trial(resolved) + load.unwrap_or(resolved.plan.warm_up.0);
    let anew = resolved.made_anew();
    let trials = |blocks: u32| {
        let all: Vec<u32> =
            resolved.plan.trials.iter().filter(|t| t.block <= blocks).map(|t| t.ordinal).collect();
        let anew = anew.iter().filter(|(ordinal, _)| all.contains(ordinal));
        let anew = anew.map(|(_, treatment)| making(treatment) + STACK);
        each * u32::try_from(all.len()).unwrap_or(u32::MAX) + anew.sum::<Duration>()
    };
    let most = trials(u32::MAX);
    let (least, most) = match &resolved.plan.stopping {
        None => (most, most),
        Some(stopping) => {
            let least = trials(stopping.floor);
            (least, stopping.budget.map_or(most, |budget| most.min(budget.0).max(least)))
        }
    };
    TimeEstimate { least: time + least, most: time + most, is_without_trials: load.is_none() }
}

/// Estimates the time of one trial with what comes around it. A trial that ends by count has no
/// time of its own.
pub fn trial(resolved: &ResolvedExperiment) -> Duration {
    around_trial(resolved) + load_time(resolved).unwrap_or_default()
}

/// Returns the time for the crash tests after the trials: treatments that are crashed alike are
/// crashed once.
fn crashes(resolved: &ResolvedExperiment) -> Duration {
    let Some(crash) = &resolved.experiment.crash else { return Duration::ZERO };
    let sessions = resolved.plan.crashed.len();
    let sessions = u32::try_from(sessions).unwrap_or(u32::MAX);
    if crash.states != States::Drawn {
        return stretch(crash).saturating_mul(sessions);
    }
    let controls: u32 = match crash.controls {
        true => crash.faults.iter().map(|fault| control_rounds(*fault)).sum(),
        false => 0,
    };
    let faults = u32::try_from(crash.faults.len()).unwrap_or(u32::MAX);
    let rounds = faults.saturating_mul(crash.rounds).saturating_add(controls);
    // Most controls do not leave a cluster behind that another round could begin on.
    (CLUSTER + STACK) * (1 + controls) * sessions
        + (crash.load.0 + AROUND_ROUND) * rounds * sessions
}

/// Returns the time for a session that records a stretch and judges its states.
fn stretch(crash: &CrashOptions) -> Duration {
    let jobs = crash.jobs.max(1);
    let states = FLUSHES_A_SECOND
        * match crash.states {
            States::All => 1 + STATES_A_FLUSH,
            States::Drawn | States::Flushes => 1,
        };
    let states = crash.load.0.as_secs_f64() * f64::from(states) / f64::from(jobs);
    let judging = STATE.as_secs_f64() * states;
    let judging = Duration::try_from_secs_f64(judging).unwrap_or(Duration::MAX);
    let judging = crash.budget.map_or(judging, |budget| judging.min(budget.0));
    let control = if crash.controls { STATE } else { Duration::ZERO };
    (CLUSTER + STACK.saturating_mul(jobs) + crash.load.0 + control).saturating_add(judging)
}

/// Returns the time for the probes before and after the trials, without the filling of the disk
/// probe's file.
fn probes(resolved: &ResolvedExperiment) -> Duration {
    let stages = &resolved.experiment.probe;
    let storages = u32::try_from(resolved.storages().len()).unwrap_or(u32::MAX);
    let tests = |kind: &ProbeKind| match kind {
        ProbeKind::Fsync => FSYNC_TESTS * u32::try_from(stages.block_bytes.len()).unwrap_or(1),
        ProbeKind::Disk => DISK_POINTS,
    };
    let last = stages.after_trim.then_some(&ProbeKind::Disk);
    let all: u32 = stages.before.iter().chain(&stages.after).chain(last).map(tests).sum();
    stages.duration.0 * all * storages
}

/// Returns the time around a trial: what settles and counts, and the pause.
fn around_trial(resolved: &ResolvedExperiment) -> Duration {
    AROUND_TRIAL + resolved.experiment.between.pause.0
}

#[cfg(test)]
mod tests {
    use pgdyno_model::units::Span;

    use super::*;

    #[test]
    fn states_take_their_time_and_at_most_the_budget() {
        let secs = Duration::from_secs;
        let of = |states, budget: Option<u64>, jobs| {
            let budget = budget.map(|budget| Span(secs(budget)));
            let load = Span(secs(1));
            stretch(&CrashOptions { states, budget, jobs, load, ..CrashOptions::default() })
        };
        let one = of(States::Flushes, None, 1);
        assert!(one > secs(500) && one < secs(510), "{one:?}");
        let two = of(States::Flushes, None, 2);
        assert!(two > secs(250) && two < secs(260), "{two:?}");
        let short = of(States::All, Some(60), 1);
        assert!(short > secs(60) && short < secs(70), "{short:?}");
        assert!(of(States::All, None, 1) > one * 40);
        assert_eq!(of(States::Flushes, Some(1 << 40), 1), one);
    }
}
