//! What is watched while load runs. One file a probe, one line of registration below.

mod buffercache;
mod cgroup;
mod columns;
mod counts;
mod cpu;
mod diskstats;
mod hwmon;
mod layers;
mod locks;
mod memory;
mod network;
mod observer;
mod pg_stat;
mod pg_stat_io;
mod pressure;
mod progress;
mod run_queue;
mod sampler;
mod session;
mod sizes;
mod statements;
mod vmstat;
mod wait_events;
mod zfs;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use pgdyno_model::experiment::Telemetry;
use pgdyno_model::target::Target;
use pgdyno_model::telemetry::{Column, Kind};

use observer::Observer;
pub use sampler::Sampler;
use session::Session;

/// A source of samples.
pub trait Probe: Send {
    /// Its name, that of its source.
    fn name(&self) -> &'static str;
    /// What each of a sample's values is. Sampling may add columns at the end, for what was 0 until
    /// then.
    fn columns(&self) -> &[Column];
    /// Values now, one for each column: counters raw, not as differences; none where the source has
    /// none.
    ///
    /// # Errors
    /// Why there is no sample, in words; the probe is not asked again.
    fn sample(&mut self) -> Result<Vec<Option<f64>>, String>;
    /// The least time between two samples, for what is costly to ask.
    fn every(&self) -> Duration {
        Duration::ZERO
    }
    /// What its samples lack, if anything.
    fn gap(&self) -> Option<String> {
        None
    }
}

/// For what is costly to ask or changes slowly: sizes, statements, the buffer cache, the archiver.
const SLOW: Duration = Duration::from_secs(10);

/// The server that is watched.
pub struct Subject {
    /// `PGDATA`, or another directory on its device; none where it lies on another machine.
    pub data: Option<PathBuf>,
    /// Where the probes connect. It should name another database than `loaded`, so that their
    /// transactions do not count in the loaded one.
    pub control: Target,
    /// The database under load.
    pub loaded: Target,
    /// Whether the server is pgdyno's own, so that extensions may be created beside the loaded
    /// database.
    pub managed: bool,
}

/// What is to be watched, and the connection that most of the server's probes share.
pub struct Watched {
    subject: Subject,
    wanted: Telemetry,
    session: Result<Session, String>,
    observer: Arc<Observer>,
}

impl Watched {
    /// Connects to the server once for its cheap probes.
    #[must_use]
    pub fn new(subject: Subject, wanted: Telemetry) -> Self {
        let observer = Arc::new(Observer::new(subject.data.clone()));
        let session = Session::open(&subject.control, &observer);
        Self { subject, wanted, session, observer }
    }

    fn session(&self) -> Result<&Session, String> {
        self.session.as_ref().map_err(Clone::clone)
    }

    /// A connection to where the extension `name` is, and its schema. On a server of pgdyno's own
    /// it is created beside the loaded database, which stays as it is.
    fn with_extension(&self, name: &str) -> Result<(Session, String), String> {
        let control = self.session()?.clone();
        if let Some(schema) = control.extension(name, self.subject.managed)? {
            return Ok((control, schema));
        }
        let loaded = self.own_session(&self.subject.loaded)?;
        match loaded.extension(name, false)? {
            Some(schema) => Ok((loaded, schema)),
            None => Err(format!(
                "database {} has no extension {name}; CREATE EXTENSION {name} makes it",
                self.subject.loaded.database
            )),
        }
    }

    /// A connection for one probe alone.
    fn own_session(&self, target: &Target) -> Result<Session, String> {
        Session::open(target, &self.observer)
    }
}

/// Makes a probe; none where this kernel or server version has no such source.
type Make = fn(&Watched) -> Result<Option<Box<dyn Probe>>, String>;

/// Every probe there is, in the order of reports.
const PROBES: &[(&str, Make)] = &[
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
    ("wait_events", wait_events::make),
    ("pg_stat_wal", pg_stat::wal),
    ("pg_stat_database", pg_stat::database),
    ("pg_stat_bgwriter", pg_stat::bgwriter),
    ("pg_stat_checkpointer", pg_stat::checkpointer),
    ("pg_stat_archiver", pg_stat::archiver),
    ("pg_stat_io", pg_stat_io::make),
    ("pg_stat_progress", progress::make),
    ("pg_locks", locks::make),
    ("sizes", sizes::make),
    ("pg_stat_statements", statements::make),
    ("pg_buffercache", buffercache::make),
    // The last: what it reads holds the others' cost.
    ("observer", observer::make),
];

/// All probes for what is watched. One that cannot work here stands in the list all the same: its
/// table tells why.
#[must_use]
pub fn probes(watched: &Watched) -> Vec<Box<dyn Probe>> {
    PROBES
        .iter()
        .filter_map(|(name, make)| match make(watched) {
            Ok(probe) => probe,
            Err(why) => Some(Box::new(Unavailable { name, why }) as Box<dyn Probe>),
        })
        .collect()
}

struct Unavailable {
    name: &'static str,
    why: String,
}

impl Probe for Unavailable {
    fn name(&self) -> &'static str {
        self.name
    }

    fn columns(&self) -> &[Column] {
        &[]
    }

    fn sample(&mut self) -> Result<Vec<Option<f64>>, String> {
        Err(self.why.clone())
    }
}

fn column(name: impl Into<String>, unit: &str, kind: Kind) -> Column {
    Column { name: name.into(), unit: unit.to_owned(), kind }
}

/// Counters beyond 2^53 lose their last digits, which no difference over a second needs.
#[allow(clippy::cast_precision_loss)]
fn float(count: u64) -> f64 {
    count as f64
}

/// A file of the kernel's as text.
fn read(path: impl AsRef<std::path::Path>) -> Result<String, String> {
    let path = path.as_ref();
    std::fs::read_to_string(path).map_err(|e| format!("cannot read {}: {e}", path.display()))
}
