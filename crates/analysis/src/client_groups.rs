//! Groups of clients over a treatment's trials.

use pgdyno_model::{ClientGroup, Latencies, Measurement, Treatment};

use super::treatment::tps_view;
use super::view::{GroupView, LatencyView};

/// Figures of each group of a treatment's clients; empty where clients have no groups.
#[derive(Default)]
pub(super) struct GroupSamples(Vec<GroupSample>);

struct GroupSample {
    group: ClientGroup,
    /// tps of each trial, as (block, value).
    tps: Vec<(u32, f64)>,
    latency: Latencies,
    transactions: u64,
    failed: u64,
}

impl GroupSamples {
    /// Adds a trial of block `block`.
    pub(super) fn add(&mut self, block: u32, treatment: &Treatment, measurement: &Measurement) {
        if self.0.is_empty() {
            self.0 = treatment.groups.iter().map(GroupSample::new).collect();
        }
        for sample in &mut self.0 {
            sample.add(block, measurement);
        }
    }

    /// Returns the groups, their intervals with a coverage of `level`.
    pub(super) fn views(&self, level: f64) -> Vec<GroupView> {
        self.0.iter().map(|sample| sample.view(level)).collect()
    }
}

impl GroupSample {
    fn new(group: &ClientGroup) -> Self {
        Self {
            group: group.clone(),
            tps: Vec::new(),
            latency: Latencies::new(),
            transactions: 0,
            failed: 0,
        }
    }

    fn add(&mut self, block: u32, measurement: &Measurement) {
        let mut transactions = 0;
        let is_its = |name: &Option<String>| name.as_ref() == Some(&self.group.name);
        for script in measurement.scripts.iter().filter(|script| is_its(&script.group)) {
            transactions += script.transactions;
            self.failed += script.failed;
            self.latency.merge(&script.latency);
        }
        self.transactions += transactions;
        if measurement.measured_s > 0.0 {
            self.tps.push((block, transactions as f64 / measurement.measured_s));
        }
    }

    fn view(&self, level: f64) -> GroupView {
        let ClientGroup { name, clients, rate, think_time, server, .. } = &self.group;
        let think_time = Some(think_time).filter(|time| !time.0.is_zero());
        GroupView {
            name: name.clone(),
            clients: clients.get(),
            rate: rate.as_ref().map(ToString::to_string),
            think_time: think_time.map(ToString::to_string),
            server: server.clone(),
            tps: tps_view(level, &self.tps).0,
            latency_us: LatencyView::new(&self.latency),
            transactions: self.transactions,
            failed: self.failed,
        }
    }
}
