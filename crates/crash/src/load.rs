//! The load of a round, every transaction of which leaves a row named by its token, with a ledger
//! beside it.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use pgdyno_engine::ledger::{Ledger, MappedLedger, read, read_positions};
use pgdyno_engine::script::{Script, Value};
use pgdyno_engine::{LoadError, LoadObserver, LoadSpec, WeightedScript, run_load};
use pgdyno_model::Measurement;
use pgdyno_model::crash::CrashOptions;
use pgdyno_model::experiment::Length;
use pgdyno_model::ledger::{History, LogPositions, Token};
use pgdyno_model::target::Target;
use pgdyno_model::units::Span;

use super::error::CrashError;
use super::workload::CrashLoad;
use pgdyno_provision::{BenchError, Context};

/// How long load goes on beyond the time in which a fault is to strike: checkpoints and the like
/// come after.
const LONGER: Duration = Duration::from_secs(20);
/// How long clients whose server is gone may take to notice.
const NOTICING: Duration = Duration::from_secs(10);
/// How long the first acknowledgements may take.
const WARMING: Duration = Duration::from_secs(60);

/// Connections that offer load.
pub(super) fn clients(options: &CrashOptions) -> NonZeroU32 {
    NonZeroU32::new(options.clients).unwrap_or(NonZeroU32::MIN)
}

/// The load on `target`, for a ledger to be added.
pub(super) fn spec(
    target: Target,
    options: &CrashOptions,
    seed: u64,
) -> Result<LoadSpec, BenchError> {
    let text = CrashLoad::named(options.workload).script;
    let script = WeightedScript::new(Arc::new(Script::parse("ledger", text)?), 1);
    Ok(LoadSpec {
        clients: clients(options),
        seed,
        variables: vec![("scale".into(), Value::Int(options.scale.into()).into())],
        ..LoadSpec::new(target, vec![script])
    })
}

/// History of a load on a recorded disk, as its clients know it.
pub(super) struct RecordedLoad {
    pub(super) history: History,
    /// The positions of the disk's log at each COMMIT.
    pub(super) positions: BTreeMap<Token, LogPositions>,
    /// Reasons why clients gave up; empty if they did not.
    pub(super) said: String,
}

/// A load under way.
pub(super) struct Load {
    ledger: Arc<MappedLedger>,
    path: PathBuf,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<Measurement, LoadError>>>,
}

impl Load {
    /// Offers load to `target` for `length` and some time more, its ledger in the directory
    /// `scratch`; tokens begin at `first`. The ledger notes the position of a recorded disk, which
    /// the file `position` tells.
    pub(super) fn start(
        target: Target,
        options: &CrashOptions,
        length: Duration,
        seed: u64,
        first: u64,
        scratch: &Path,
        position: Option<&Path>,
    ) -> Result<Self, BenchError> {
        let path = scratch.join(format!("ledger-{first}"));
        let clients = clients(options);
        let seconds = (length + LONGER).as_secs_f64();
        let ledger =
            MappedLedger::create(&path, clients.get(), capacity(clients.get(), seconds), first);
        let ledger = ledger
            .and_then(|ledger| match position {
                Some(position) => ledger.with_disk_position(position),
                None => Ok(ledger),
            })
            .map_err(|e| ledger_error(&path, e))?;
        let ledger = Arc::new(ledger);
        let spec = LoadSpec {
            length: Length::Duration(Span(length + LONGER)),
            ledger: Some(Arc::clone(&ledger) as Arc<dyn Ledger>),
            ..spec(target, options, seed)?
        };
        let stop = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&stop);
        let thread = std::thread::Builder::new().name("crash-load".into()).spawn(move || {
            run_load(&spec, &LoadObserver { stop: &told, on_open: &|_| {}, on_second: &|_| {} })
        });
        let thread = Some(thread.map_err(|e| BenchError::from(LoadError::System(e)))?);
        Ok(Self { ledger, path, stop, thread })
    }

    /// Waits until every client has had the time for some transactions; false if the load ended
    /// before.
    pub(super) fn wait_warm(&self, clients: u32, context: Context<'_>) -> Result<bool, BenchError> {
        let is_warm = context.poll(WARMING, Duration::from_millis(10), || {
            let is_warm = self.ledger.acknowledged() >= u64::from(clients) * 2;
            Ok((is_warm || self.has_ended()).then_some(is_warm))
        });
        Ok(is_warm?.unwrap_or(false))
    }

    /// The ledger's file.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it has ended by itself.
    pub(super) fn has_ended(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Returns a function that converts an instant to the ledger's clock.
    pub(super) fn clock(&self) -> impl Fn(Instant) -> Duration + use<> {
        let ledger = Arc::clone(&self.ledger);
        move |at| ledger.time_of(at)
    }

    /// Ends it, and reads from the ledger's file what clients know; with why clients gave up, as
    /// they tell it.
    pub(super) fn finish(mut self) -> Result<(History, String), BenchError> {
        let until = Instant::now() + NOTICING;
        while !self.has_ended() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(5));
        }
        let said = match self.join() {
            Some(Ok(Ok(measurement))) => {
                measurement.counters.abort_reasons.first().cloned().unwrap_or_default()
            }
            Some(Ok(Err(e))) => e.to_string(),
            Some(Err(_)) => "the load's thread panicked".into(),
            None => String::new(),
        };
        Ok((read(&self.path).map_err(|e| ledger_error(&self.path, e))?, said))
    }

    /// Ends it as [`Self::finish`] does, and also returns where the disk's log was at each COMMIT.
    pub(super) fn finish_recorded(self) -> Result<RecordedLoad, BenchError> {
        let path = self.path.clone();
        let (history, said) = self.finish()?;
        let positions = read_positions(&path).map_err(|e| ledger_error(&path, e))?;
        Ok(RecordedLoad { history, positions, said })
    }

    fn join(&mut self) -> Option<std::thread::Result<Result<Measurement, LoadError>>> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().map(JoinHandle::join)
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        let _ = self.join();
    }
}

fn ledger_error(path: &Path, source: std::io::Error) -> CrashError {
    CrashError::Ledger { path: path.to_owned(), source }
}

/// Transactions that a client may come to in so many seconds: clients share a server.
fn capacity(clients: u32, seconds: f64) -> usize {
    let each = (20_000.0 / f64::from(clients)).max(500.0);
    (seconds * each) as usize
}
