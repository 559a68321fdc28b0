//! A run: from options to a load, from its measurement to the report.

use std::io::Write;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use pgdyno_engine::script::Value;
use pgdyno_engine::{
    Live, LoadError, LoadSpec, OnError, PgbenchSeeds, TransactionLog, Watch, WeightedScript, drive,
};
use pgdyno_model::Measurement;
use pgdyno_model::experiment::Length;
use pgdyno_model::target::Target;
use pgdyno_model::units::Span;
use postgres::Client;

use super::initialize::server_version;
use super::log::Logs;
use super::options::Run;
use super::progress::Progress;
use super::refused::Refused;
use super::tables::Tables;
use super::{files, report, tables};

/// How a run ended that was not refused.
pub(super) enum Ended {
    Well,
    /// Clients gave up.
    Incomplete,
    /// A signal.
    Interrupted,
}

/// Runs `run` against `target`.
///
/// # Errors
/// Nothing was measured.
pub(super) fn run(
    target: &Target,
    mut control: Client,
    run: &Run,
    out: &mut dyn Write,
    err: &mut (dyn Write + Send),
    stop: &AtomicBool,
) -> Result<Ended, Refused> {
    let server = server_version(&mut control)?;
    let _ = writeln!(
        out,
        "pgbench ({}.0 compatible, pgdyno {}, server {})",
        run.dialect,
        env!("CARGO_PKG_VERSION"),
        version_words(server)
    );
    let _ = out.flush();
    if run.debug {
        let _ = writeln!(
            err,
            "pgbench: server: {} nclients: {} {} dbName: {}",
            target.address,
            run.clients,
            run.transactions.map_or_else(
                || format!("duration: {}", run.seconds.unwrap_or(0)),
                |n| format!("nxacts: {n}")
            ),
            target.database
        );
    }
    let tables = tables::look(&mut control, &target.database, run, err)?;
    tables::vacuum(&mut control, run, err);
    drop(control);
    let measurement = load(target, run, &tables, err, stop)?;
    let _ = out.write_all(report::pgbench(&measurement, run, &tables).as_bytes());
    let _ = out.write_all(report::more(&measurement, run).as_bytes());
    if let Some(file) = &run.hdr_log {
        files::hdr_log(&measurement, file)?;
    }
    if let Some(file) = &run.json {
        files::json(&measurement, run, &tables, file.as_deref(), out)?;
    }
    if measurement.aborted_clients > 0 {
        let _ = out.flush();
        let _ = writeln!(err, "pgbench: error: Run was aborted; the above results are incomplete.");
        return Ok(Ended::Incomplete);
    }
    Ok(if stop.load(Ordering::Relaxed) { Ended::Interrupted } else { Ended::Well })
}

/// `150004` as `15.4`, `90624` as `9.6.24`.
fn version_words(number: u32) -> String {
    match number {
        n if n >= 100_000 => format!("{}.{}", n / 10_000, n % 10_000),
        n => format!("{}.{}.{}", n / 10_000, n / 100 % 100, n % 100),
    }
}

/// Counts are never 0: the options see to it.
fn nonzero(n: u32) -> NonZeroU32 {
    NonZeroU32::new(n).unwrap_or(NonZeroU32::MIN)
}

/// Offers the load. Words of its threads go to `err` as they come.
fn load(
    target: &Target,
    run: &Run,
    tables: &Tables,
    err: &mut (dyn Write + Send),
    stop: &AtomicBool,
) -> Result<Measurement, Refused> {
    let seed = run.seed.unwrap_or_else(|| fastrand::u64(..));
    let scripts =
        run.scripts.iter().map(|s| WeightedScript { script: Arc::clone(&s.script), weight: s.weight });
    let mut variables: Vec<_> =
        run.variables.iter().map(|(name, text)| (name.clone(), text.as_str().into())).collect();
    if variables.iter().all(|(name, _)| name != "scale") {
        variables.push(("scale".to_owned(), Value::Int(tables.scale.into()).into()));
    }
    let logs = run.log.as_ref().map(|log| Arc::new(Logs::new(log, run)));
    let (words, told) = mpsc::channel::<String>();
    let say = words.clone();
    let spec = LoadSpec {
        clients: nonzero(run.clients),
        threads: nonzero(run.threads),
        protocol: run.protocol,
        length: match (run.seconds, run.transactions) {
            (Some(seconds), _) => Length::Duration(Span::from_secs(seconds.into())),
            (None, each) => Length::Transactions(each.unwrap_or(1).into()),
        },
        seed,
        variables,
        rate: run.rate,
        latency_limit: run.latency_limit_ms.map(|ms| Duration::from_secs_f64((ms / 1000.0).min(1e9))),
        max_tries: run.max_tries,
        reconnect_each: run.reconnect,
        on_error: match (run.exit_on_abort, run.continue_on_error) {
            (true, _) => OnError::AbortAll,
            (false, true) => OnError::Continue,
            (false, false) => OnError::AbortClient,
        },
        log: logs.clone().map(|logs| logs as Arc<dyn TransactionLog>),
        say: Some(Arc::new(move |text: &str| {
            // Failures that are tried again or counted are news; what ends a client is an error.
            let is_news =
                [" got an error in command", " ends the failed transaction", " repeats the transaction"];
            let error = if is_news.iter().any(|words| text.contains(words)) { "" } else { "error: " };
            let _ = say.send(format!("pgbench: {error}{text}\n"));
        })),
        say_failures: run.verbose_errors,
        pgbench_seeds: Some(PgbenchSeeds { seed }),
        ..LoadSpec::new(target.clone(), scripts.collect())
    };
    let progress = run.progress.map(|every| Mutex::new(Progress::new(every, run)));
    let driven = std::thread::scope(|scope| {
        // One thread writes what all others say.
        scope.spawn(move || {
            for text in told {
                let _ = err.write_all(text.as_bytes());
            }
        });
        let lines = Mutex::new(words);
        let show = |told: &dyn Fn(&mut Progress) -> String| {
            let Some(progress) = &progress else { return };
            if let (Ok(mut progress), Ok(lines)) = (progress.lock(), lines.lock()) {
                let _ = lines.send(told(&mut progress));
            }
        };
        let on_second = |live: &Live| show(&|progress| progress.second(live));
        let driven = drive(&spec, &Watch { stop, on_open: &|_| {}, on_second: &on_second });
        if let Ok(measurement) = &driven {
            let measured = Duration::from_secs_f64(measurement.measured_s.max(0.0));
            show(&|progress| progress.finish(measured));
        }
        // The writing thread ends when nobody can say anything any more.
        drop(spec);
        driven
    });
    driven.map_err(|e| refused(&e, logs.as_deref()))
}

fn refused(error: &LoadError, logs: Option<&Logs>) -> Refused {
    let log = logs.and_then(|l| l.refused.lock().ok().and_then(|why| why.clone()));
    let refused = match (log, error) {
        (Some(why), _) => Refused::new(why),
        (None, LoadError::Connect { client, cause }) => {
            Refused::new(cause.to_string()).then(format!("could not create connection for client {client}"))
        }
        (None, other) => Refused::new(other.to_string()),
    };
    match error.help() {
        Some(help) => refused.hint(help),
        None => refused,
    }
}
