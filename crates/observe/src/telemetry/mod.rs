//! Samples of the host and the server while load runs.
//!
//! Create a [`TelemetryContext`] for the server, pass [`probes`] of it to [`Sampler::start`], and
//! call [`Sampler::finish`] once the load is over. Each probe becomes one table.
//!
//! To add a probe, write one file with a type that implements [`Probe`] and a function that creates
//! it, and add one line to `HOST_PROBES` or `SERVER_PROBES`.

mod buffercache;
mod cgroup;
mod columns;
mod context;
mod cost;
mod counts;
mod cpu;
mod diskstats;
mod hwmon;
mod memory;
mod network;
mod observer;
mod pg_stat;
mod pg_stat_io;
mod pressure;
mod probe;
mod processes;
mod run_queue;
mod sampler;
mod session;
mod sizes;
mod statements;
mod vmstat;
mod wait_events;
mod zfs;

use std::path::Path;

use context::{MakeHostProbe, MakeProbe};
pub use context::{MonitoredServer, TelemetryContext};
use pgdyno_model::telemetry::Column;
use probe::ProbeResult;
pub use probe::{NamedProbe, Probe, ProbeError};
pub use sampler::Sampler;
pub use wait_events::Wait;

/// Probes of the host, in the order of reports.
const HOST_PROBES: &[(&str, MakeHostProbe)] = &[
    ("cpu", cpu::all),
    ("cpu_cores", cpu::cores),
    ("run_queue", run_queue::make),
    ("pressure", pressure::make),
    ("memory", memory::make),
    ("vmstat", vmstat::make),
    ("diskstats", diskstats::make),
    ("network", network::make),
    ("cgroup", cgroup::make),
    ("hwmon", hwmon::make),
    ("arcstats", zfs::arcstats),
    ("zpool_iostat", zfs::iostat),
];

/// Probes of the server, in the order of reports.
const SERVER_PROBES: &[(&str, MakeProbe)] = &[
    ("processes", processes::make),
    (wait_events::NAME, wait_events::make),
    ("pg_stat_wal", pg_stat::wal),
    ("pg_stat_database", pg_stat::database),
    ("pg_stat_bgwriter", pg_stat::bgwriter),
    ("pg_stat_checkpointer", pg_stat::checkpointer),
    ("pg_stat_archiver", pg_stat::archiver),
    ("pg_stat_io", pg_stat_io::make),
    ("pg_stat_progress", counts::progress),
    ("pg_locks", counts::locks),
    ("sizes", sizes::make),
    ("pg_stat_statements", statements::make),
    ("pg_buffercache", buffercache::make),
    // The last one, so that its values include the cost of all others.
    ("observer", observer::make),
];

/// Creates all probes of `context`. A probe that cannot work here is in the list too, and its table
/// says why.
pub fn probes(context: &TelemetryContext) -> Vec<NamedProbe> {
    host_probes(context.server.data.as_deref()).into_iter().chain(server_probes(context)).collect()
}

/// Creates the probes of this host, which need no session with the server; `data` is `PGDATA`, or
/// another directory on its device. As [`probes`].
pub fn host_probes(data: Option<&Path>) -> Vec<NamedProbe> {
    HOST_PROBES.iter().filter_map(|(name, make)| probe_or_nothing(name, make(data))).collect()
}

/// Creates the probes of the server. As [`probes`].
pub fn server_probes(context: &TelemetryContext) -> Vec<NamedProbe> {
    SERVER_PROBES.iter().filter_map(|(name, make)| probe_or_nothing(name, make(context))).collect()
}

/// Returns the probe `name`; if it cannot be made, one that tells why.
fn probe_or_nothing(name: &'static str, probe: ProbeResult) -> Option<NamedProbe> {
    let probe = probe.unwrap_or_else(|why| Some(Box::new(Unavailable(why))));
    probe.map(|probe| (name, probe))
}

/// A probe that could not be made.
struct Unavailable(ProbeError);

impl Probe for Unavailable {
    fn columns(&self) -> &[Column] {
        &[]
    }

    fn sample(&mut self) -> Result<Vec<Option<f64>>, ProbeError> {
        Err(self.0.clone())
    }
}
