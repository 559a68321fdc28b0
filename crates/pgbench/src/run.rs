//! Runs: options become a load, and its measurement becomes the report.

use std::io::Write;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, SyncSender};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use pgdyno_connect::ConnectError;
use pgdyno_engine::script::Value;
use pgdyno_engine::{
    ClientLogKind, LiveSecond, LoadError, LoadObserver, LoadSpec, TransactionLog, WeightedScript,
    WindowEnd, run_load,
};
use pgdyno_exec::cgroup::cpus_allowed;
use pgdyno_exec::program::start_piped;
use pgdyno_generators::{GeneratorsError, Hands};
use pgdyno_model::record::AdHocRun;
use pgdyno_model::target::{Address, Servers, Target};
use pgdyno_model::{Advice, Measurement};

use crate::ad_hoc::ad_hoc_run;
use crate::connection::Connected;
use crate::hdr_log::HdrLog;
use crate::log::Logs;
use crate::progress::Progress;
use crate::request::Run;
use crate::server_messages::server_version;
use crate::tables::Tables;
use crate::usage_error::UsageError;
use crate::{connection, extra_report, files, report, tables};

/// Capacity of the queue of messages that are not written yet (count).
const WORDS: usize = 1 << 16;

/// How a run ended that was not refused.
pub(crate) enum RunEnd {
    Well,
    /// Clients gave up.
    Incomplete,
    /// A signal.
    Interrupted,
}

/// Runs `run` against the servers of `connected`.
///
/// # Errors
/// Nothing was measured.
pub(crate) fn run(
    connected: Connected,
    run: &Run,
    (out, err): (&mut dyn Write, &mut (dyn Write + Send)),
    stop: &AtomicBool,
    measured: &mut Option<AdHocRun>,
) -> Result<RunEnd, UsageError> {
    let seed = run.seed.unwrap_or_else(|| fastrand::u64(..));
    let run = &Run { seed: Some(seed), ..run.clone() };
    let Connected { servers, client: mut control, target, schemas, notices, .. } = connected;
    let server = server_version(&control);
    let _ = writeln!(
        out,
        "pgbench ({}.0 compatible, pgdyno {}, server {})",
        run.dialect,
        env!("CARGO_PKG_VERSION"),
        version_words(server)
    );
    let _ = out.flush();
    if run.debug {
        write_plan(run, &target, err);
    }
    let tables = tables::look(&mut control, &schemas, &target.database, run, err)?;
    tables::vacuum(&mut control, &schemas, &notices, run, err)?;
    drop(control);
    if stop.load(Ordering::Relaxed) {
        return Ok(RunEnd::Interrupted);
    }
    let mut log = run
        .hdr_log
        .as_deref()
        .map(|path| HdrLog::create(path, run.progress.unwrap_or(Duration::from_secs(1))))
        .transpose()?;
    let logs = run.log.as_ref().map(|log| Arc::new(Logs::new(log, run)));
    let began = SystemTime::now();
    let Some(measurement) = load(servers, run, &tables, logs.as_ref(), log.as_mut(), err, stop)?
    else {
        return Ok(RunEnd::Interrupted);
    };
    if run.exit_on_abort && measurement.counters.aborted_clients > 0 {
        return Err(UsageError::new(format!(
            "Run was aborted due to an error in thread {}",
            measurement.aborted_thread.unwrap_or(0)
        ))
        .after_a_part());
    }
    let is_stopped = stop.load(Ordering::Relaxed);
    if run.store.is_some() {
        *measured = Some(ad_hoc_run(run, &tables, target, began, &measurement, is_stopped));
    }
    let _ = out.write_all(report::pgbench(&measurement, run, &tables).as_bytes());
    if run.extra_report {
        let _ = out.write_all(extra_report::text(&measurement, run).as_bytes());
    }
    if let Some(log) = log {
        log.finish(&measurement)?;
    }
    if let Some(file) = &run.json {
        files::json(&measurement, run, &tables, file.as_deref(), out)?;
    }
    if let Some(why) = logs.and_then(|logs| logs.lost()) {
        // pgbench does not notice that lines were lost.
        let _ = out.flush();
        return Err(UsageError::new(why));
    }
    if measurement.counters.aborted_clients > 0 {
        let _ = out.flush();
        let _ = writeln!(err, "pgbench: error: Run was aborted; the above results are incomplete.");
        return Ok(RunEnd::Incomplete);
    }
    Ok(if stop.load(Ordering::Relaxed) { RunEnd::Interrupted } else { RunEnd::Well })
}

/// Writes pgbench's debug line: where the run connects to, and how long it is.
fn write_plan(run: &Run, target: &Target, err: &mut dyn Write) {
    let (host, port) = match &target.address {
        Address::Unix { directory, port } => (directory.display().to_string(), port),
        Address::Tcp { host, port } => (host.clone(), port),
    };
    let length = match run.transactions {
        Some(n) => format!("nxacts: {n}"),
        None => format!("duration: {}", run.seconds.unwrap_or(0)),
    };
    let (clients, database) = (run.clients, &target.database);
    let _ = writeln!(
        err,
        "pgbench: pghost: {host} pgport: {port} nclients: {clients} {length} dbName: {database}"
    );
}

/// Returns a version as people write it: `150004` is `15.4`, `90624` is `9.6.24`.
fn version_words(number: u32) -> String {
    match number {
        n if n >= 100_000 => format!("{}.{}", n / 10_000, n % 10_000),
        n => format!("{}.{}.{}", n / 10_000, n / 100 % 100, n % 100),
    }
}

/// Returns a count as one above 0, which the options ensure.
fn nonzero(n: u32) -> NonZeroU32 {
    NonZeroU32::new(n).unwrap_or(NonZeroU32::MIN)
}

/// Why nothing was measured.
enum Failure {
    Load(LoadError),
    Generators(GeneratorsError),
}

/// Runs the load, and writes messages of its threads to `err` as they come.
///
/// Returns nothing if a signal ended the load before the window opened.
fn load(
    servers: Servers,
    run: &Run,
    tables: &Tables,
    logs: Option<&Arc<Logs>>,
    hdr_log: Option<&mut HdrLog>,
    err: &mut (dyn Write + Send),
    stop: &AtomicBool,
) -> Result<Option<Measurement>, UsageError> {
    // A thread that logs faster than messages are written waits.
    let (words, told) = mpsc::sync_channel::<String>(WORDS);
    let spec = load_spec(servers, run, tables, logs, words.clone());
    let progress = run.progress.map(|every| Mutex::new(Progress::new(every, run)));
    let driven = std::thread::scope(|scope| {
        // One thread writes the messages of all others.
        scope.spawn(move || {
            for text in told {
                let _ = err.write_all(text.as_bytes());
            }
        });
        let news = words.clone();
        let lines = Mutex::new(words);
        let show = |told: &dyn Fn(&mut Progress<'_>) -> String| {
            let Some(progress) = &progress else { return };
            if let (Ok(mut progress), Ok(lines)) = (progress.lock(), lines.lock()) {
                let _ = lines.send(told(&mut progress));
            }
        };
        let hdr_log = Mutex::new(hdr_log);
        let with_log = |act: &dyn Fn(&mut HdrLog)| {
            if let Ok(mut log) = hdr_log.lock()
                && let Some(log) = log.as_deref_mut()
            {
                act(log);
            }
        };
        let on_open = |opened| with_log(&|log| log.open(opened));
        let on_second = |live: &LiveSecond| {
            with_log(&|log| log.second(live));
            show(&|progress| progress.second(live));
        };
        let observer = LoadObserver { stop, on_open: &on_open, on_second: &on_second };
        let driven = match &run.generators {
            None => run_load(&spec, &observer)
                .map(|measured| measured.with_cpus_allowed(cpus_allowed()))
                .map_err(Failure::Load),
            Some(generators) => {
                let notice = |text: &str| drop(news.send(format!("pgdyno: {text}\n")));
                let hands = Hands {
                    start: start_piped,
                    notice: &notice,
                    admission: None,
                    cpus_allowed: cpus_allowed(),
                };
                pgdyno_generators::run_load(&spec, &observer, generators, &hands)
                    .map_err(Failure::Generators)
            }
        };
        if let Ok(measurement) = &driven {
            let measured = Duration::from_secs_f64(measurement.measured_s.max(0.0));
            show(&|progress| progress.finish(measured));
        }
        // The writing thread ends when the last sender is gone.
        drop(spec);
        driven
    });
    match driven {
        Ok(measurement) => Ok(Some(measurement)),
        Err(
            Failure::Load(LoadError::Interrupted)
            | Failure::Generators(GeneratorsError::Interrupted),
        ) => Ok(None),
        Err(Failure::Load(error)) => Err(refused(&error, logs.map(Arc::as_ref))),
        Err(Failure::Generators(error)) => Err(error.into()),
    }
}

/// Returns the load that the options describe. Its clients send what they log to `messages`.
fn load_spec(
    servers: Servers,
    run: &Run,
    tables: &Tables,
    logs: Option<&Arc<Logs>>,
    messages: SyncSender<String>,
) -> LoadSpec {
    let scripts = run.scripts.iter().map(|s| WeightedScript::new(Arc::clone(&s.script), s.weight));
    LoadSpec {
        clients: nonzero(run.clients),
        threads: nonzero(run.threads),
        protocol: run.protocol,
        length: run.length(),
        seed: run.seed.unwrap_or_default(),
        variables: vec![("scale".to_owned(), Value::Int(tables.scale.into()).into())],
        options: run.load_options(),
        log: logs.cloned().map(|logs| logs as Arc<dyn TransactionLog>),
        client_log: Some(Arc::new(move |about, text: &str| {
            let begin = match about {
                ClientLogKind::Error => "pgbench: error: ",
                ClientLogKind::News => "pgbench: ",
                ClientLogKind::Value | ClientLogKind::Notice => "",
            };
            let _ = messages.send(format!("{begin}{text}\n"));
        })),
        log_failures: run.verbose_errors,
        log_steps: run.debug,
        draws_as_pgbench: true,
        window_end: WindowEnd::WithLastTransaction,
        reactor: run.reactor,
        ..LoadSpec::new(servers, scripts.collect())
    }
}

fn refused(error: &LoadError, logs: Option<&Logs>) -> UsageError {
    let log = logs.and_then(|l| l.refused.lock().ok().and_then(|why| why.clone()));
    match (log, error) {
        (Some(why), _) => UsageError::new(why),
        (None, LoadError::Connect { client, cause }) => {
            let what = match cause {
                ConnectError::Server { address, error, .. } => {
                    connection::failed(&address.to_string(), &error.libpq_text(None))
                }
                other => other.to_string(),
            };
            UsageError::new(what).then(format!("could not create connection for client {client}"))
        }
        (None, other) => UsageError::new(other.to_string()),
    }
    .help(error.help())
}
