//! How long a plan takes and how much room: told before it begins, and how much is left while it runs.

use std::collections::BTreeMap;
use std::time::Duration;

use pgdyno_model::experiment::Length;
use pgdyno_model::units::Bytes;

use crate::dataset;
use crate::prepare::Prepared;

/// initdb, start, stop and removal of a cluster; from runs on a two-core virtual machine.
const CLUSTER: Duration = Duration::from_millis(3500);
/// Settling before and counting after a trial, on the same machine.
const AROUND_TRIAL: Duration = Duration::from_millis(1500);
/// Rows loaded in a second, keys and vacuum included, on the same machine.
const ROWS_PER_SECOND: u64 = 250_000;

/// Time for one trial, without what comes around it; none if it ends by count.
fn offered(prepared: &Prepared) -> Option<Duration> {
    match prepared.plan.length {
        Length::Duration(span) => Some(prepared.plan.warm_up.0 + span.0),
        Length::Transactions(_) => None,
    }
}

/// The time that the whole plan takes, as far as it can be known; the flag is true if trials end by count, so that
/// their own time is not in it.
pub(crate) fn time(prepared: &Prepared) -> (Duration, bool) {
    let mut time = Duration::ZERO;
    if prepared.experiment.postgres.dsn.is_none() {
        let storages = u32::try_from(prepared.storages().len()).unwrap_or(u32::MAX);
        time += prepared.experiment.telemetry.fsync.0 * storages;
    }
    for (key, treatment) in prepared.clusters() {
        let rows = dataset::rows(prepared.data(treatment), key.scale);
        time += CLUSTER + Duration::from_millis(rows * 1000 / ROWS_PER_SECOND);
    }
    let trials = u32::try_from(prepared.plan.trials.len()).unwrap_or(u32::MAX);
    time += (around_trial(prepared) + offered(prepared).unwrap_or(prepared.plan.warm_up.0)) * trials;
    (time, offered(prepared).is_none())
}

fn around_trial(prepared: &Prepared) -> Duration {
    AROUND_TRIAL + prepared.experiment.between.pause.0
}

/// The room that the plan takes on each storage at once, with the data sets that lie there.
pub(crate) fn room(prepared: &Prepared) -> BTreeMap<String, (Bytes, String)> {
    let mut room: BTreeMap<String, (Bytes, String)> = BTreeMap::new();
    for (key, treatment) in prepared.clusters() {
        let needed = dataset::room_needed(prepared.data(treatment), key.scale);
        let what = format!("{} at scale {}", key.data, key.scale);
        room.entry(key.storage)
            .and_modify(|(bytes, names)| {
                bytes.0 = bytes.0.saturating_add(needed.0);
                *names = format!("{names}, {what}");
            })
            .or_insert((needed, what));
    }
    room
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
    use super::*;

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
