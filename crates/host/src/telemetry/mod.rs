//! What is watched while load runs. One file a probe, one line of registration below.

mod cpu;
mod diskstats;
mod memory;
mod pg_stat;
mod sampler;

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use pgdyno_model::target::Target;
use pgdyno_model::telemetry::{Column, Kind};
use postgres::Client;

use crate::postgres::control;

pub use sampler::Sampler;

/// A source of samples.
pub trait Probe: Send {
    /// Its name, that of its source.
    fn name(&self) -> &'static str;
    /// What each of a sample's values is.
    fn columns(&self) -> &[Column];
    /// Values now, one for each column: counters raw, not as differences; none where the source has none.
    ///
    /// # Errors
    /// Why there is no sample, in words; the probe is not asked again.
    fn sample(&mut self) -> Result<Vec<Option<f64>>, String>;
}

/// What is to be watched.
pub struct Watched {
    /// `PGDATA`, or another directory on its device; none where it lies on another machine.
    pub data: Option<PathBuf>,
    /// The database under load.
    pub database: String,
    client: Result<Arc<Mutex<Client>>, String>,
}

impl Watched {
    /// Connects to the server once for all its probes. `control` should name another database than `database`, so
    /// that the probes' own transactions do not count in the loaded one.
    #[must_use]
    pub fn new(data: Option<PathBuf>, control: &Target, database: &str) -> Self {
        let client = control::connect(control).map_err(|e| e.to_string()).and_then(|mut client| {
            // A server that hangs must not hold up the other probes for good.
            client.batch_execute("SET statement_timeout = '10s'").map_err(|e| control::said(&e))?;
            Ok(Arc::new(Mutex::new(client)))
        });
        Self { data, database: database.to_owned(), client }
    }
}

/// Makes a probe; none where this kernel or server version has no such source.
type Make = fn(&Watched) -> Result<Option<Box<dyn Probe>>, String>;

/// Every probe there is, in the order of reports.
const PROBES: &[(&str, Make)] = &[
    ("cpu", cpu::make),
    ("memory", memory::make),
    ("diskstats", diskstats::make),
    ("pg_stat_wal", pg_stat::wal),
    ("pg_stat_database", pg_stat::database),
    ("pg_stat_bgwriter", pg_stat::bgwriter),
    ("pg_stat_checkpointer", pg_stat::checkpointer),
];

/// All probes for what is watched. One that cannot work here stands in the list all the same: its table tells why.
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
