//! Holds the options that texts name against those that there are: docs, help, messages, recipes.
//!
//! Where a text shows a command (`pgdyno run … --size`), the option must be that command's. One
//! that is named alone (`--size`) must be some command's, or one of another program's.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use clap::CommandFactory;

use crate::arguments::Arguments;
use crate::commands::completions::pgbench_options;

/// Options of other programs that texts name alone: of cargo, fio, smartctl, initdb, postgres,
/// Docker, and of `examples/client-library/compare.py`.
#[rustfmt::skip]
const OTHERS: &[&str] = &[
    "beside", "data-checksums", "describe-config", "device", "features", "no-default-features",
    "nocapture", "output-format", "profile", "release", "rw", "user",
];

/// Returns the options of each command, by the command's name.
fn options() -> BTreeMap<String, BTreeSet<String>> {
    let mut root = Arguments::command().mut_subcommand("pgbench", |it| it.args(pgbench_options()));
    root.build();
    let options = |command: &clap::Command| (command.get_name().to_owned(), long_options(command));
    root.get_subcommands().map(options).collect()
}

fn long_options(command: &clap::Command) -> BTreeSet<String> {
    let own = command.get_arguments().filter_map(|argument| argument.get_long().map(str::to_owned));
    own.chain(command.get_subcommands().flat_map(long_options)).collect()
}

/// Returns every option of `text` that `dashes` precede, without its dashes.
fn find_options(text: &str, dashes: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices(dashes) {
        let before = text[..at].chars().next_back();
        let name: String = text[at + dashes.len()..]
            .chars()
            .take_while(|c| c.is_ascii_alphanumeric() || *c == '-')
            .collect();
        let begins = name.starts_with(|c: char| c.is_ascii_lowercase());
        if begins && !before.is_some_and(|c| c.is_alphanumeric() || c == '-') {
            found.push(name.trim_end_matches('-').to_owned());
        }
    }
    found
}

/// Returns the commands that `text` shows: each one's name and the options behind it.
fn find_commands<'a>(
    text: &'a str,
    known: &BTreeMap<String, BTreeSet<String>>,
) -> Vec<(&'a str, Vec<String>)> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices("pgdyno ") {
        let rest = &text[at + "pgdyno ".len()..];
        let end = rest.find(['`', '"', '\n', '|', ';', '#', ',', ')']).unwrap_or(rest.len());
        let Some(name) = rest[..end].split_whitespace().find(|word| !word.starts_with('-')) else {
            continue;
        };
        if known.contains_key(name) {
            found.push((name, find_options(&rest[..end], "--")));
        }
    }
    found
}

/// Returns all files under `folder` whose names end in `ending`.
fn list_files(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let (folders, files): (Vec<PathBuf>, Vec<PathBuf>) = entries.partition(|path| path.is_dir());
    let below = folders.iter().flat_map(|folder| list_files(folder, ending));
    let is_meant = |path: &PathBuf| path.to_string_lossy().ends_with(ending);
    files.iter().filter(|path| is_meant(path)).cloned().chain(below).collect()
}

/// Returns all texts that users read, and the sources that hold them, each with its place.
fn read_texts() -> Vec<(String, String)> {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let mut files = vec![root.join("README.md")];
    files.extend(list_files(&root.join("docs"), ".md"));
    files.extend(list_files(&root.join("experiments"), ".toml"));
    files.extend(list_files(&root.join("crates"), ".rs"));
    files.retain(|path| {
        let path = path.to_string_lossy();
        !["/adr/", "/tests", "/benches/", file!()].iter().any(|other| path.contains(other))
    });
    let read = |path: PathBuf| (path.display().to_string(), std::fs::read_to_string(path).unwrap());
    let mut texts: Vec<_> = files.into_iter().map(read).collect();
    let mut command = Arguments::command();
    command.build();
    for command in command.get_subcommands_mut() {
        // Under the command's name, so that what its help says of options is held against its own.
        texts.push((command.get_name().to_owned(), command.render_long_help().to_string()));
    }
    texts
}

#[test]
fn every_option_that_a_text_names_exists() {
    let known = options();
    let mut all: BTreeSet<&str> = known.values().flatten().map(String::as_str).collect();
    all.extend(OTHERS);
    let mut wrong = Vec::new();
    for (place, text) in read_texts() {
        for (command, options) in find_commands(&text, &known) {
            for option in options.iter().filter(|option| !known[command].contains(*option)) {
                wrong.push(format!("{place}: `pgdyno {command}` has no --{option}"));
            }
        }
        for option in find_options(&text, "`--").iter().filter(|o| !all.contains(o.as_str())) {
            wrong.push(format!("{place}: nothing has --{option}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn an_option_that_does_not_exist_is_found() {
    let known = options();
    let text = "Ask for less: `pgdyno fsync DIR --size 1GiB`, not `--duration`.";
    assert_eq!(find_commands(text, &known), [("fsync", vec!["size".to_owned()])]);
    assert_eq!(find_options(text, "`--"), ["duration"]);
    assert!(!known["fsync"].contains("size") && known["disk"].contains("size"));
    assert!(
        known["pgbench"].contains("aggregate-interval") && !known["pgbench"].contains("resume")
    );
    assert_eq!(find_options("a---b x--y -- --z=1 --w-", "--"), ["z", "w"]);
}
