//! Samples telemetry beside a load: of the server, and of its host, whether that is this one or one
//! that `ssh` reaches.

use std::sync::atomic::AtomicBool;
use std::time::Instant;

use pgdyno_model::Experiment;
use pgdyno_model::telemetry::Table;
use pgdyno_observe::telemetry::{Sampler, TelemetryContext, probes, server_probes};

use super::server::Server;
use crate::host_telemetry::ObservedHost;
use pgdyno_provision::BenchError;

/// Telemetry that is being sampled.
pub(super) struct Observation {
    sampler: Sampler,
    /// The server's host, if `ssh` reaches it.
    host: Option<ObservedHost>,
}

impl Observation {
    /// Starts to watch `server` and its host.
    ///
    /// # Errors
    /// The host that the experiment names cannot be observed.
    pub(super) fn start(
        server: &Server,
        experiment: &Experiment,
        stop: &AtomicBool,
    ) -> Result<Self, BenchError> {
        let telemetry = experiment.telemetry;
        let interval = telemetry.interval.0;
        let observe = |host| ObservedHost::start(host, server.data_there(), interval, stop);
        let host = experiment.postgres.observe.as_deref().map(observe).transpose()?;
        let context = TelemetryContext::new(server.subject(), telemetry);
        // This machine is not the server's.
        let probes = if host.is_some() { server_probes(&context) } else { probes(&context) };
        Ok(Self { sampler: Sampler::start(probes, interval), host })
    }

    /// Returns the sampler that runs in this process.
    pub(super) fn sampler(&self) -> &Sampler {
        &self.sampler
    }

    /// Returns the tables of samples, as [`Sampler::finish`] does.
    pub(super) fn finish(self, opened: Instant, closed: Instant, stop: &AtomicBool) -> Vec<Table> {
        let host = self.host.map(|host| host.finish(opened, closed, stop));
        host.into_iter().flatten().chain(self.sampler.finish(opened, closed)).collect()
    }
}
