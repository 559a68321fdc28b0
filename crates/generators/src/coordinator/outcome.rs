//! The end of a coordinated load.

use std::collections::BTreeSet;

use pgdyno_engine::LoadSpec;
use pgdyno_engine::schedule::Moment;
use pgdyno_engine::tally::Tally;
use pgdyno_model::Measurement;

use super::Coordinator;
use super::member::Member;
use crate::error::GeneratorsError;

impl Coordinator {
    /// Returns the measurement of `spec`, which the coordinator was created for.
    ///
    /// # Errors
    /// [`GeneratorsError`]: a generator failed, the totals do not add up, or the load ended before
    /// its window opened.
    pub fn finish(mut self, spec: &LoadSpec) -> Result<Measurement, GeneratorsError> {
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        let stopped_at = self.stopped.map(|at| Moment(at.saturating_sub(self.go_at.unwrap_or(at))));
        let all_done = self.members.iter().all(|member| member.done.is_some());
        let in_warm_up = stopped_at.is_some_and(|at| at < self.schedule.opening);
        if self.go_at.is_none() || in_warm_up || !all_done {
            return Err(GeneratorsError::Interrupted);
        }
        let dones = || self.members.iter().filter_map(|member| member.done.as_ref());
        let cpu_s = dones().map(|done| done.cpu_s).sum();
        let busiest_thread = dones().map(|done| done.busiest_thread).fold(0.0, f64::max);
        let allowed_cpu_used = dones().filter_map(|done| done.allowed_cpu_used).reduce(f64::max);
        let reactors: BTreeSet<&str> = dones().flat_map(|done| done.reactor.split(", ")).collect();
        let reactor = reactors.into_iter().collect::<Vec<_>>().join(", ");
        let reactor_reason = dones().find_map(|done| done.reactor_reason.clone());
        let aborted_thread = self.members.iter().find_map(aborted_thread);
        let measurement = self.aggregate.measurement(spec, stopped_at, cpu_s);
        if self.totals.map(comparable) != Some(comparable(self.aggregate.tally())) {
            return Err(GeneratorsError::Totals);
        }
        let connecting = self.ready.unwrap_or_default() - self.connecting.unwrap_or_default();
        Ok(Measurement {
            connect_s: connecting as f64 / 1e9,
            busiest_thread,
            allowed_cpu_used,
            reactor,
            reactor_reason,
            aborted_thread,
            generators: self.members.iter().map(Member::measurement).collect(),
            ..measurement
        })
    }
}

/// The event loop, of all, that first ended with an aborted client.
fn aborted_thread(member: &Member) -> Option<u32> {
    Some(member.description.share.start + member.done.as_ref()?.aborted_thread?)
}

/// Leaves out what depends on the order of addition: the sum of reconnections' fractions of
/// seconds, and which reasons were first.
fn comparable(mut tally: Tally) -> Tally {
    tally.counters.reconnect_s = 0.0;
    tally.counters.abort_reasons.clear();
    tally
}
