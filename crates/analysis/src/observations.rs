//! Facts of a run's trials that the notes on it need.

use std::collections::{BTreeMap, BTreeSet};

use pgdyno_model::measurement::GeneratorLimit;
use pgdyno_model::{Treatment, TrialRecord};

use crate::idle_device::IdleDevice;
use crate::rates::resets;

/// Facts of a run's trials that no other view has.
#[derive(Clone, Debug, Default)]
pub struct Observations {
    /// Probes that saw nothing or less than expected, each with the reason.
    pub unavailable: BTreeSet<(String, String)>,
    /// Trials (counted from 1) in which a probe's counters were reset.
    pub resets: BTreeMap<String, BTreeSet<u32>>,
    /// The largest share of its threads that the load generator used.
    pub generator: Option<(f64, u32)>,
    /// Reason why the generator may have been the limit, with the threads and clients of the first
    /// such trial.
    pub limit: Option<(GeneratorLimit, u32, u32)>,
    /// Trials in which the generator may have been the limit (count).
    pub limited: u32,
    /// Reactors that carried the load instead of the requested one, with the reason.
    pub reactors: BTreeSet<String>,
    /// Whether a server had fsync off.
    pub fsync_off: bool,
    /// Window of a trial that was shorter than `checkpoint_timeout`, and that timeout (seconds).
    pub shorter_than_checkpoints: Option<(f64, f64)>,
    /// Trials in which the disk was not under test.
    pub idle_device: IdleDevice,
}

impl Observations {
    pub(crate) fn add(&mut self, trial: &TrialRecord, treatment: &Treatment) {
        for table in &trial.telemetry {
            if let Some(why) = &table.unavailable {
                self.unavailable.insert((table.probe.clone(), why.clone()));
            }
            if !resets(table).is_empty() {
                self.resets.entry(table.probe.clone()).or_default().insert(trial.ordinal + 1);
            }
        }
        if let Some(server) = &trial.server {
            self.fsync_off |= server.setting("fsync") == Some("off");
        }
        let Some(m) = trial.measurement.as_ref().filter(|m| m.measured_s > 0.0) else { return };
        self.idle_device.add(&trial.telemetry);
        if let Some(limit) = m.generator_limit() {
            self.limit.get_or_insert((limit, treatment.threads, treatment.clients));
            self.limited += 1;
        }
        if m.reactor_reason.is_some() {
            self.reactors.insert(m.carried_by());
        }
        let cpus = m.generator_cpu_s / m.measured_s;
        let share = |(cpus, threads): (f64, u32)| cpus / f64::from(threads.max(1));
        if self.generator.is_none_or(|known| share(known) < share((cpus, treatment.threads))) {
            self.generator = Some((cpus, treatment.threads));
        }
        let timeout = trial
            .server
            .as_ref()
            .and_then(|s| s.setting("checkpoint_timeout")?.parse::<f64>().ok());
        if let Some(timeout) = timeout.filter(|timeout| *timeout > m.measured_s) {
            self.shorter_than_checkpoints = Some((m.measured_s, timeout));
        }
    }
}
