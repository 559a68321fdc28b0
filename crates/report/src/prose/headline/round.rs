//! The command that repeats a round of crash tests.

use pgdyno_model::crash::{CrashOptions, Round, Under};
use pgdyno_model::storage::{Backing, Storage};
use pgdyno_model::{CrashRecord, Fault};

use super::super::shell::command_line;

/// Returns the `pgdyno crash` that repeats `round` of `fault`: the same seed draws the same rounds.
///
/// Returns none if options cannot describe what was crashed: a storage of several disks, or a fault
/// that takes a person.
pub(crate) fn round_command(record: &CrashRecord, fault: Fault, round: &Round) -> Option<String> {
    let options = &record.outcome.options;
    if fault == Fault::Plug || round.number == 0 {
        return None;
    }
    let mut words: Vec<String> = ["pgdyno", "crash"].map(str::to_owned).into();
    let mut add = |option: &str, value: String| words.extend([option.to_owned(), value]);
    add("--fault", fault.name().to_owned());
    add("--rounds", round.number.to_string());
    add("--seed", options.seed.to_string());
    add("--clients", options.clients.to_string());
    for (option, value) in load_and_recovery(options) {
        add(option, value);
    }
    for (name, value) in &record.outcome.settings {
        add("--setting", format!("{name}={value}"));
    }
    let is_emulated = match &record.storage.asked {
        Some(asked) => storage(asked, options, &mut add)?,
        None => false,
    };
    if is_emulated {
        words.push("--emulated".to_owned());
    }
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    command_line(&words)
}

/// Options of the load and of recovery that differ from the defaults.
fn load_and_recovery(options: &CrashOptions) -> Vec<(&'static str, String)> {
    let default = CrashOptions::default();
    let mut out = Vec::new();
    if options.workload != default.workload {
        out.push(("--workload", options.workload.to_string()));
    }
    if options.load != default.load {
        out.push(("--load", options.load.to_string()));
    }
    if options.recovery_limit != default.recovery_limit {
        out.push(("--recovery-limit", options.recovery_limit.to_string()));
    }
    if (options.lie - default.lie).abs() > f64::EPSILON {
        out.push(("--set", format!("crash.lie={}", options.lie)));
    }
    out
}

/// Adds the options of a storage, and returns whether it is an emulated disk.
fn storage(
    asked: &Storage,
    options: &CrashOptions,
    add: &mut impl FnMut(&str, String),
) -> Option<bool> {
    let (directory, is_emulated) = match &asked.backing {
        Backing::Directory(directory) => (directory, false),
        Backing::Loop(file) => (&file.directory, false),
        Backing::Emulated(disk) => (&disk.directory, true),
        Backing::Device(_) | Backing::Ram(_) | Backing::Raid0(_) => return None,
    };
    if let Some(filesystem) = &asked.filesystem {
        add("--filesystem", filesystem.name.clone());
        for option in &filesystem.mount {
            add("--mount", option.clone());
        }
        let under = match options.under {
            Under::Both => None,
            Under::Data => Some("data"),
            Under::Wal => Some("wal"),
        };
        if let Some(under) = under {
            add("--under", under.to_owned());
        }
    }
    if let Some(directory) = directory {
        add("--storage", directory.display().to_string());
    }
    Some(is_emulated)
}
