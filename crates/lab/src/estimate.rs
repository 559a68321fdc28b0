//! How long a plan takes and how much room: told before it begins, and how much is left while it
//! runs.

use std::collections::BTreeMap;
use std::time::Duration;

use pgdyno_dataset as dataset;
use pgdyno_model::crash::{CrashOptions, States};
use pgdyno_model::experiment::{Length, ProbeKind};
use pgdyno_model::units::Bytes;

use crate::crash::feasibility::control_rounds;
use crate::prepare::Prepared;
use crate::provisioner::RoomNeeded;

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

/// Time for one trial, without what comes around it; none if it ends by count.
fn offered(prepared: &Prepared) -> Option<Duration> {
    if let (Some(find), Length::Duration(window)) = (&prepared.plan.find, prepared.plan.length) {
        let warm_up = prepared.plan.warm_up.0;
        let step = find.step.0 + warm_up.min(find.step.0);
        return Some(2 * warm_up + find.step.0 + STEPS * step + window.0);
    }
    match prepared.plan.length {
        Length::Duration(span) => Some(prepared.plan.warm_up.0 + span.0),
        Length::Transactions(_) => None,
    }
}

/// The least and the most time that the plan takes, as far as it can be known: the same where the
/// number of repeats is fixed. The flag is true if trials end by count, so that their own time is
/// not in it.
pub(crate) fn time(prepared: &Prepared) -> (Duration, Duration, bool) {
    let mut time = Duration::ZERO;
    if !prepared.experiment.postgres.is_external() {
        let storages = u32::try_from(prepared.storages().len()).unwrap_or(u32::MAX);
        time += prepared.experiment.telemetry.fsync.0 * storages;
    }
    time += probes(prepared) + crashes(prepared);
    for (key, treatment) in prepared.clusters() {
        let rows = dataset::rows(prepared.data(treatment), key.scale);
        time += CLUSTER + Duration::from_millis(rows * 1000 / ROWS_PER_SECOND);
    }
    let each = around_trial(prepared) + offered(prepared).unwrap_or(prepared.plan.warm_up.0);
    let trials = |blocks: u32| {
        let all: Vec<u32> =
            prepared.plan.trials.iter().filter(|t| t.block <= blocks).map(|t| t.ordinal).collect();
        let anew = prepared.made_anew().into_iter().filter(|(ordinal, _)| all.contains(ordinal));
        let making = anew.map(|(_, treatment)| {
            let rows = dataset::rows(prepared.data(treatment), treatment.scale);
            CLUSTER + STACK + Duration::from_millis(rows * 1000 / ROWS_PER_SECOND)
        });
        each * u32::try_from(all.len()).unwrap_or(u32::MAX) + making.sum::<Duration>()
    };
    let most = trials(u32::MAX);
    let (least, most) = match &prepared.plan.stopping {
        None => (most, most),
        Some(stopping) => {
            let least = trials(stopping.floor);
            (least, stopping.budget.map_or(most, |budget| most.min(budget.0).max(least)))
        }
    };
    (time + least, time + most, offered(prepared).is_none())
}

/// Time for the crash tests after the trials: treatments that are crashed alike are crashed once.
fn crashes(prepared: &Prepared) -> Duration {
    let Some(crash) = &prepared.experiment.crash else { return Duration::ZERO };
    let sessions = prepared.plan.crashed.len();
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

/// Time for a session that records a stretch and judges its states.
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

/// Time for the probes before and after the trials, without the filling of the disk probe's file.
fn probes(prepared: &Prepared) -> Duration {
    let stages = &prepared.experiment.probe;
    let storages = u32::try_from(prepared.storages().len()).unwrap_or(u32::MAX);
    let tests = |kind: &ProbeKind| match kind {
        ProbeKind::Fsync => FSYNC_TESTS * u32::try_from(stages.block_bytes.len()).unwrap_or(1),
        ProbeKind::Disk => DISK_POINTS,
    };
    let last = stages.after_trim.then_some(&ProbeKind::Disk);
    let all: u32 = stages.before.iter().chain(&stages.after).chain(last).map(tests).sum();
    stages.duration.0 * all * storages
}

fn around_trial(prepared: &Prepared) -> Duration {
    AROUND_TRIAL + prepared.experiment.between.pause.0
}

/// The room that the plan takes on each storage at once, with the data sets that lie there. What
/// tablespaces hold is counted where PGDATA lies.
pub(crate) fn room(prepared: &Prepared) -> BTreeMap<String, RoomNeeded> {
    let mut room: BTreeMap<String, RoomNeeded> = BTreeMap::new();
    let mut add = |storage: &str, needed: Bytes, what: String| {
        room.entry(storage.to_owned())
            .and_modify(|all| {
                all.bytes.0 = all.bytes.0.saturating_add(needed.0);
                all.data = format!("{}, {what}", all.data);
            })
            .or_insert(RoomNeeded { bytes: needed, data: what });
    };
    for (key, treatment) in prepared.clusters() {
        let mut needed = dataset::room_needed(prepared.data(treatment), key.scale);
        let what = format!("{} at scale {}", key.data, key.scale);
        let wal_room = wal_room(prepared);
        match &prepared.experiment.storage[&key.storage].wal {
            Some(wal) => add(wal, wal_room, format!("the WAL of {what}")),
            None => needed.0 = needed.0.saturating_add(wal_room.0),
        }
        add(&key.storage, needed, what);
    }
    room
}

/// Room that a cluster's WAL takes: `max_wal_size`, the largest that any treatment gives it.
fn wal_room(prepared: &Prepared) -> Bytes {
    let set = prepared.plan.treatments.iter().filter_map(|t| t.settings.get("max_wal_size"));
    set.filter_map(|text| memory(text)).max().unwrap_or(dataset::WAL_ROOM)
}

/// A size as PostgreSQL's settings spell it; `max_wal_size` without a unit is in megabytes.
fn memory(text: &str) -> Option<Bytes> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let unit: u64 = match unit.trim() {
        "B" => 1,
        "kB" => 1 << 10,
        "MB" | "" => 1 << 20,
        "GB" => 1 << 30,
        "TB" => 1 << 40,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(unit).map(Bytes)
}

/// Learns from the trials that were run how long the rest will take.
#[derive(Debug)]
pub(crate) struct Clock {
    expected: Duration,
    spent: Duration,
    done: u32,
}

impl Clock {
    pub(crate) fn new(prepared: &Prepared) -> Self {
        Self {
            expected: around_trial(prepared) + offered(prepared).unwrap_or_default(),
            spent: Duration::ZERO,
            done: 0,
        }
    }

    /// A trial took `wall`.
    pub(crate) fn trial(&mut self, wall: Duration) {
        self.spent += wall;
        self.done += 1;
    }

    /// Time for `trials` more, of the first of which `begun` has passed.
    pub(crate) fn left(&self, trials: usize, begun: Duration) -> Duration {
        let each = if self.done == 0 { self.expected } else { self.spent / self.done };
        (each * u32::try_from(trials).unwrap_or(u32::MAX)).saturating_sub(begun.min(each))
    }
}

#[cfg(test)]
mod tests {
    use pgdyno_model::units::Span;

    use super::*;

    #[test]
    fn room_for_wal_is_what_the_settings_allow_it() {
        assert_eq!(memory("512MB"), Some(Bytes(512 << 20)));
        assert_eq!([memory("2GB"), memory("2048"), memory("2 GB")], [Some(Bytes(2 << 30)); 3]);
        assert_eq!(memory("much"), None);
    }

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

    #[test]
    fn the_time_left_follows_what_trials_really_took() {
        let mut clock = Clock { expected: Duration::from_secs(7), spent: Duration::ZERO, done: 0 };
        assert_eq!(clock.left(10, Duration::from_secs(2)), Duration::from_secs(68));
        clock.trial(Duration::from_secs(20));
        assert_eq!(clock.left(9, Duration::ZERO), Duration::from_secs(180));
        // A trial that takes longer than expected does not eat the time of those after it.
        assert_eq!(clock.left(2, Duration::from_secs(500)), Duration::from_secs(20));
    }
}
