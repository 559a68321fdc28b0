//! The experiment that the options of `pgdyno crash` describe: one treatment on one storage.

use pgdyno_experiment::file::{Override, Source};
use toml::{Table, Value};

use super::options::{CrashArgs, Under};
use crate::error::CommandError;

/// The size of the file that a filesystem is made in: a cluster, its tables and 256 MB of WAL.
const IMAGE: &str = "800MiB";

/// Returns the experiment without its overrides. The overrides set everything that a message may
/// have to name.
pub(super) fn source(options: &CrashArgs) -> Source {
    let mut disk = Table::new();
    let mut storage = Table::new();
    if options.filesystem.is_some() {
        let file = table([("size", IMAGE.into())]);
        disk.insert("backing".into(), table([(backing(options), file.into())]).into());
        disk.insert("filesystem".into(), "ext4".into());
        if options.under != Under::Both {
            storage.insert("wal".into(), disk.clone().into());
            disk.insert("wal".into(), "wal".into());
        }
    }
    storage.insert("disk".into(), disk.into());
    let experiment = table([
        ("experiment", table([("repeats", 1.into())]).into()),
        ("telemetry", table([("fsync", "0s".into())]).into()),
        ("storage", storage.into()),
        ("crash", table([("faults", list(["process"]))]).into()),
    ]);
    Source {
        name: "crash".into(),
        shown: "the options of `pgdyno crash`".into(),
        text: experiment.to_string(),
        base: ".".into(),
    }
}

fn table<const N: usize>(entries: [(&str, Value); N]) -> Table {
    entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

fn list<'a>(texts: impl IntoIterator<Item = &'a str>) -> Value {
    Value::Array(texts.into_iter().map(Value::from).collect())
}

/// Returns the faults. Every state of a disk is one that a power cut leaves.
fn faults(options: &CrashArgs) -> Vec<&str> {
    if options.exhaustive.is_some() {
        return vec!["power"];
    }
    options.fault.iter().map(|fault| fault.trim()).collect()
}

/// Returns the key of the backing that carries the filesystem.
fn backing(options: &CrashArgs) -> &'static str {
    if options.emulated || options.exhaustive.is_some() { "emulated" } else { "loop" }
}

/// Returns the storages that options about the filesystem are for.
fn storages(options: &CrashArgs) -> &'static [&'static str] {
    if options.under == Under::Both { &["disk"] } else { &["disk", "wal"] }
}

/// Returns the overrides that the options stand for; those of `--set` are the last.
///
/// # Errors
/// The directory of `--storage` cannot be made absolute, or a `--setting` or `--set` has no
/// `NAME=VALUE`.
pub(super) fn overrides(options: &CrashArgs) -> Result<Vec<Override>, CommandError> {
    let mut overrides = vec![
        Override::new("crash.faults", list(faults(options))),
        Override::new("crash.rounds", i64::from(options.rounds)),
        Override::new("crash.workload", options.workload.as_str()),
        Override::new("crash.clients", i64::from(options.clients)),
        Override::new("crash.seed", options.seed),
        Override::new("crash.controls", !options.no_controls),
        Override::new("crash.under", options.under.name()),
    ];
    if let Some(exhaustive) = options.exhaustive {
        overrides.push(Override::new("crash.states", exhaustive.name()));
    }
    if let Some(budget) = &options.budget {
        overrides.push(Override::new("crash.budget", budget.to_string()));
    }
    if let Some(jobs) = options.jobs {
        overrides.push(Override::new("crash.jobs", i64::from(jobs.get())));
    }
    if let Some(load) = &options.load {
        overrides.push(Override::new("crash.load", load.to_string()));
    }
    if let Some(limit) = &options.recovery_limit {
        overrides.push(Override::new("crash.recovery_limit", limit.to_string()));
    }
    for storage in storages(options) {
        if let Some(filesystem) = &options.filesystem {
            let key = format!("storage.{storage}.filesystem");
            overrides.push(Override::new(&key, filesystem.as_str()));
        }
        if !options.mount.is_empty() {
            let mount = list(options.mount.iter().map(String::as_str));
            overrides.push(Override::new(&format!("storage.{storage}.mount"), mount));
        }
    }
    if let Some(directory) = &options.storage {
        let directory = std::path::absolute(directory)
            .map_err(|source| {
                CommandError::with_source(format!("cannot use {}", directory.display()), source)
            })?
            .display()
            .to_string();
        for storage in storages(options) {
            let key = match options.filesystem {
                Some(_) => format!("storage.{storage}.backing.{}.directory", backing(options)),
                None => "storage.disk.directory".to_owned(),
            };
            overrides.push(Override::text(&key, &directory, &format!("--storage {directory}")));
        }
    }
    for setting in &options.setting {
        let (name, value) = setting
            .split_once('=')
            .filter(|(name, _)| !name.trim().is_empty())
            .ok_or_else(|| {
                let message =
                    format!("cannot read `--setting {setting}`: there is no `NAME=VALUE` in it");
                CommandError::new(message).with_help("write it like `--setting fsync=off`")
            })?;
        let key = format!("postgres.settings.{}", name.trim());
        overrides.push(Override::text(&key, value.trim(), &format!("--setting {setting}")));
    }
    for set in &options.set {
        overrides.push(Override::parse(set)?);
    }
    Ok(overrides)
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;
    use pgdyno_experiment::file::parse;

    use super::*;
    use crate::arguments::{Arguments, Command};

    fn options(words: &str) -> Box<CrashArgs> {
        let words = ["pgdyno", "crash"].into_iter().chain(words.split(' '));
        match Arguments::try_parse_from(words).unwrap().command {
            Some(Command::Crash(options)) => options,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn every_shape_of_storage_is_an_experiment() {
        for words in [
            "--fault process",
            "--fault power --filesystem xfs",
            "--fault power --filesystem ext4 --emulated --under wal --mount noatime",
            "--exhaustive --filesystem ext4 --budget 10m --jobs 2",
            "--exhaustive=flushes --filesystem xfs",
        ] {
            let options = options(words);
            let overrides = overrides(&options).unwrap();
            parse(&source(&options), &overrides).unwrap_or_else(|e| panic!("{words}: {e}"));
        }
    }

    #[test]
    fn quotes_in_an_option_stay_in_its_value() {
        let options = options("--fault process --filesystem ext4 --mount a\"b");
        let wanted = Override::new("storage.disk.mount", list(["a\"b"]));
        assert!(overrides(&options).unwrap().contains(&wanted));
    }
}
