//! Replays a captured workload, and looks at the server meanwhile.

use std::num::NonZeroU32;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use pgdyno_connect::conninfo::{self, ConnectOptions};
use pgdyno_dataset::workload;
use pgdyno_engine::script::{Script, WeightedScript};
use pgdyno_engine::{LoadObserver, LoadSpec, run_load};
use pgdyno_model::Measurement;
use pgdyno_model::experiment::{Length, LoadOptions, Protocol};
use pgdyno_model::load_rate::LoadRate;
use pgdyno_model::target::Servers;
use pgdyno_model::units::Span;

use crate::ask::Statistics;
use crate::document::Captured;
use crate::error::CaptureError;
use crate::fidelity::{Fidelity, fidelity};
use crate::folder;

/// Tries of a transaction that meets a deadlock or a serialization failure.
const TRIES: u32 = 10;
/// Time between two checks for the end.
const TICK: Duration = Duration::from_millis(20);

/// How to replay a captured workload.
#[derive(Clone, Debug)]
pub struct ReplayOptions {
    /// Connections (count); none: as many as the original had.
    pub clients: Option<NonZeroU32>,
    /// Transactions due over all connections.
    pub rate: ReplayRate,
    /// Load before the stretch that is watched.
    pub warm_up: Duration,
    /// Length of the stretch that is watched.
    pub length: Duration,
    /// Protocol that statements are sent with.
    pub protocol: Protocol,
    /// Seed of all random numbers.
    pub seed: u64,
}

/// Transactions that are due in a replay.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum ReplayRate {
    /// As many as the original committed.
    #[default]
    Original,
    /// So many (1/s).
    PerSecond(f64),
    /// Each connection's next one once its last one is done.
    Max,
}

/// Replays the captured workload in `folder` on the server of `connect`, whose tables are loaded,
/// and compares its activity with the original's.
///
/// # Errors
/// The folder holds no captured workload, the server cannot be asked, or the load fails.
pub fn replay(
    folder: &Path,
    connect: &ConnectOptions,
    options: &ReplayOptions,
    stop: &AtomicBool,
) -> Result<(Fidelity, Measurement), CaptureError> {
    let captured = folder::read(folder)?;
    let resolved = conninfo::resolve(connect)?;
    let (client, target) = resolved.connect()?;
    let schema = pgdyno_connect::control::schemas_of_user(&target)?.into_iter().next();
    let schema = schema.unwrap_or_else(|| captured.table_schema.clone());
    let mut statistics = Statistics::new(client, &schema)?;
    check_tables(&captured, &mut statistics, &schema)?;
    let version = statistics.client().announced_version().unwrap_or_default().to_owned();
    let spec = spec(folder, &captured, resolved.servers, options)?;
    let (end, ended) = (AtomicBool::new(false), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let load = scope.spawn(|| {
            let observer = LoadObserver { stop: &end, on_open: &|_| {}, on_second: &|_| {} };
            let measured = run_load(&spec, &observer);
            ended.store(true, Ordering::Relaxed);
            measured
        });
        let is_over = || stop.load(Ordering::Relaxed) || ended.load(Ordering::Relaxed);
        let began = Instant::now();
        while began.elapsed() < options.warm_up && !is_over() {
            std::thread::sleep(TICK);
        }
        let activity = statistics.watch(options.length, &is_over);
        end.store(true, Ordering::Relaxed);
        let measured = load.join().map_err(|_| CaptureError::LoadPanicked)?;
        if stop.load(Ordering::Relaxed) {
            return Err(CaptureError::Interrupted);
        }
        let measured = measured?;
        Ok((fidelity(&captured, &activity?, &version), measured))
    })
}

/// Checks that the tables of the workload are on the server.
fn check_tables(
    captured: &Captured,
    statistics: &mut Statistics,
    schema: &str,
) -> Result<(), CaptureError> {
    let wanted: Vec<&str> = captured.tables.iter().map(|table| table.name.as_str()).collect();
    let asked = "SELECT w FROM unnest($1::text[]) AS wanted (w) WHERE NOT EXISTS \
                 (SELECT FROM pg_tables WHERE schemaname = $2 AND tablename = w) \
                 ORDER BY w LIMIT 1";
    let missing = statistics.client().query_opt(asked, &[&wanted, &schema]);
    let missing = missing.map_err(|e| CaptureError::query("look for the tables", &e))?;
    missing.map_or(Ok(()), |row| Err(CaptureError::NoTable { table: row.get(0) }))
}

fn spec(
    folder: &Path,
    captured: &Captured,
    servers: Servers,
    options: &ReplayOptions,
) -> Result<LoadSpec, CaptureError> {
    // A workload's folder is told by a slash.
    let workload = workload::load(&format!("{}/", folder.display()), &[])?;
    let mut scripts = Vec::new();
    for text in &workload.scripts {
        let script = Script::parse(&text.name, &text.text);
        let script = script.map_err(|source| CaptureError::Script { source })?;
        scripts.push(WeightedScript::new(Arc::new(script), text.weight));
    }
    let connected = captured.sessions.connected.round().clamp(1.0, 1e4) as u32;
    let clients = options.clients.or(NonZeroU32::new(connected)).unwrap_or(NonZeroU32::MIN);
    let rate = match options.rate {
        ReplayRate::Original => Some(captured.commits_per_s()),
        ReplayRate::PerSecond(rate) => Some(rate),
        ReplayRate::Max => None,
    };
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    // The watch ends it.
    let length = Length::Duration(Span(options.length * 10 + Duration::from_secs(3600)));
    Ok(LoadSpec {
        clients,
        threads: NonZeroU32::new(u32::try_from(cores).unwrap_or(1)).unwrap_or(NonZeroU32::MIN),
        protocol: options.protocol,
        length,
        seed: options.seed,
        options: LoadOptions {
            rate: rate.map(LoadRate::Constant),
            max_tries: TRIES,
            ..LoadOptions::default()
        },
        ..LoadSpec::new(servers, scripts)
    })
}
