//! `pgdyno crash`.

use std::sync::atomic::{AtomicBool, Ordering};

use pgdyno_lab::file::{Override, Source};
use pgdyno_lab::{CrashRecord, LabError, Prepared, Trust, Verdict, crash as lab};
use pgdyno_results::report;

use crate::Done;
use crate::args;
use crate::commands::{json, store_path, with_progress};
use crate::output::{Failure, print, tell};

/// The size of the file that a filesystem is made in: a cluster, its tables and 256 MB of WAL.
const IMAGE: &str = "1300MiB";

pub(crate) fn crash(options: &args::Crash, stop: &AtomicBool) -> Result<Done, Failure> {
    if let Some(args::CrashWhat::Witness(witness)) = &options.what {
        let directory = witness.directory.clone().unwrap_or_else(pgdyno_lab::default_witness);
        let secret = shared_secret(witness.secret_file.as_deref())?;
        lab::witness::serve(witness.listen, &directory, secret, stop, &tell)?;
        return Ok(Done::Whole);
    }
    let prepared = Prepared::new(source(options), overrides(options)?)?;
    if let Some(address) = witness_of(options)? {
        return plug(prepared, address, options, stop);
    }
    if options.dry_run {
        print(&lab::dry_run(&prepared)?);
        return Ok(Done::Whole);
    }
    let prepared = prepared.with_trust(Trust::new(options.trust.paths.clone()), None)?;
    let store = store_path(&options.store);
    let record = match with_progress(|progress| {
        lab::crash(&prepared, lab::Interference::default(), &store, progress, stop)
    }) {
        Err(LabError::Interrupted) => {
            tell("interrupted before the first round was over; nothing is left behind");
            return Ok(Done::Interrupted);
        }
        record => record?,
    };
    print(&shown(&record, options.json)?);
    if stop.load(Ordering::Relaxed) {
        tell("interrupted: what was done is kept");
        return Ok(Done::Interrupted);
    }
    Ok(done(record.outcome.verdict))
}

/// The witness's address, where the plug is to be pulled.
fn witness_of(options: &args::Crash) -> Result<Option<&str>, Failure> {
    let is_plug = options.fault.iter().any(|fault| fault == "plug");
    match &options.witness {
        Some(_) if !is_plug || options.fault.len() > 1 => Err(Failure::helped(
            "cannot use `--witness`: it goes with `--fault plug` alone",
            "leave it out, or name that fault only",
        )),
        witness => Ok(witness.as_deref()),
    }
}

/// The secret of a witness, from `file` or the environment.
fn shared_secret(file: Option<&std::path::Path>) -> Result<Option<lab::witness::Secret>, Failure> {
    lab::witness::shared_secret(file).map_err(|e| Failure::of(&e, e.help()))
}

fn plug(
    prepared: Prepared,
    address: &str,
    options: &args::Crash,
    stop: &AtomicBool,
) -> Result<Done, Failure> {
    if options.dry_run {
        print(&lab::dry_run(&prepared)?);
        return Ok(Done::Whole);
    }
    let secret = shared_secret(options.secret_file.as_deref())?.ok_or_else(|| {
        Failure::helped(
            format!(
                "cannot speak with the witness at {address}: the secret that both sides share is missing"
            ),
            "name its file by `--secret-file FILE`, or set PGDYNO_WITNESS_SECRET as the witness prints it",
        )
    })?;
    let witness = lab::witness::Witness { address: address.to_owned(), secret };
    let prepared = prepared.with_trust(Trust::new(options.trust.paths.clone()), None)?;
    let store = store_path(&options.store);
    match with_progress(|progress| lab::witness::plug(&prepared, &witness, &store, progress, stop))
    {
        Ok(lab::witness::Plugged::Judged(record)) => {
            print(&shown(&record, options.json)?);
            Ok(done(record.outcome.verdict))
        }
        Ok(lab::witness::Plugged::Ended) | Err(LabError::Interrupted) => {
            tell("ended without a plug pulled; nothing is left behind");
            Ok(Done::Interrupted)
        }
        Err(e) => Err(e.into()),
    }
}

/// How a command ends that came to `verdict`.
pub(crate) fn done(verdict: Verdict) -> Done {
    match verdict {
        Verdict::Pass | Verdict::BoundedLoss | Verdict::AsPlanted(_) => Done::Whole,
        Verdict::Fail(_) => Done::PromiseBroken,
        Verdict::Unknown | Verdict::Invalid => Done::Undecided,
    }
}

/// Crash tests' page, or their JSON.
pub(crate) fn shown(record: &CrashRecord, as_json: bool) -> Result<String, Failure> {
    if as_json {
        return json(&report::CrashView::from(record));
    }
    Ok(report::crash_with(record, &|kept| std::path::Path::new(kept).exists()))
}

/// The experiment that the options describe: one treatment on one storage.
fn source(options: &args::Crash) -> Source {
    let mut text =
        String::from("[experiment]\nrepeats = 1\n[telemetry]\nfsync = \"0s\"\n[storage.disk]\n");
    if options.filesystem.is_some() {
        let made = format!(
            "backing = {{ {} = {{ size = \"{IMAGE}\" }} }}\nfilesystem = \"ext4\"\n",
            backing(options)
        );
        text.push_str(&made);
        if options.under != args::Under::Both {
            text.push_str(&format!("wal = \"wal\"\n[storage.wal]\n{made}"));
        }
    }
    text.push_str("[crash]\nfaults = [\"process\"]\n");
    Source {
        name: "crash".into(),
        shown: "the options of `pgdyno crash`".into(),
        text,
        base: ".".into(),
    }
}

/// What carries the filesystem.
fn backing(options: &args::Crash) -> &'static str {
    if options.emulated { "emulated" } else { "loop" }
}

/// The storages that options about the filesystem are for.
fn storages(options: &args::Crash) -> &'static [&'static str] {
    if options.under == args::Under::Both { &["disk"] } else { &["disk", "wal"] }
}

fn overrides(options: &args::Crash) -> Result<Vec<Override>, Failure> {
    let mut given = Vec::new();
    let mut parse =
        |text: String| Override::parse(&text).map(|o| given.push(o)).map_err(LabError::from);
    let faults: Vec<String> =
        options.fault.iter().map(|fault| format!("\"{}\"", fault.trim())).collect();
    parse(format!("crash.faults=[{}]", faults.join(", ")))?;
    parse(format!("crash.rounds={}", options.rounds))?;
    parse(format!("crash.clients={}", options.clients))?;
    parse(format!("crash.seed={}", options.seed))?;
    parse(format!("crash.controls={}", !options.no_controls))?;
    parse(format!("crash.under={}", options.under.name()))?;
    if let Some(load) = &options.load {
        parse(format!("crash.load={load}"))?;
    }
    if let Some(limit) = &options.recovery_limit {
        parse(format!("crash.recovery_limit={limit}"))?;
    }
    for storage in storages(options) {
        if let Some(filesystem) = &options.filesystem {
            parse(format!("storage.{storage}.filesystem={filesystem}"))?;
        }
        if !options.mount.is_empty() {
            let words: Vec<String> = options.mount.iter().map(|w| format!("\"{w}\"")).collect();
            parse(format!("storage.{storage}.mount=[{}]", words.join(", ")))?;
        }
    }
    if let Some(directory) = &options.storage {
        let directory = std::path::absolute(directory)
            .map_err(|e| Failure::new(format!("cannot use {}: {e}", directory.display())))?;
        for storage in storages(options) {
            let key = match options.filesystem {
                Some(_) => format!("storage.{storage}.backing.{}.directory", backing(options)),
                None => "storage.disk.directory".to_owned(),
            };
            given.push(Override::text(
                &key,
                &directory.display().to_string(),
                &format!("--storage {}", directory.display()),
            ));
        }
    }
    for setting in &options.setting {
        let Some((name, value)) =
            setting.split_once('=').filter(|(name, _)| !name.trim().is_empty())
        else {
            return Err(Failure::helped(
                format!("cannot read `--setting {setting}`: there is no `NAME=VALUE` in it"),
                "write it like `--setting fsync=off`",
            ));
        };
        let key = format!("postgres.settings.{}", name.trim());
        given.push(Override::text(&key, value.trim(), &format!("--setting {setting}")));
    }
    for set in &options.set {
        given.push(Override::parse(set).map_err(LabError::from)?);
    }
    Ok(given)
}
