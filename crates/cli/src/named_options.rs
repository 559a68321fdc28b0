//! Holds every option that texts name against those that there are: docs, help, messages, recipes.
//!
//! Where a text shows a command (`pgdyno run … --size`), the option must be that command's; else it
//! must be some command's, or one of another program's that is listed here.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use clap::CommandFactory;

/// Options of other programs that texts name.
const OTHERS: &[(&str, &[&str])] = &[
    (
        "cargo",
        &[
            "all-features",
            "bench",
            "features",
            "locked",
            "no-default-features",
            "path",
            "prefix",
            "profile",
            "release",
            "test",
            "tests",
            "timings",
            "workspace",
        ],
    ),
    ("uvx", &["from"]),
    ("pgdyno's benchmarks", &["minimal", "only", "pairs", "seconds"]),
    ("gh", &["body-file"]),
    ("fio", &["output-format"]),
    ("btrfs", &["readonly"]),
    ("examples/client-library/compare.py", &["beside"]),
    ("pg_checksums, pg_config and libpq's options", &["bindir", "check", "name"]),
    ("initdb and postgres", &["data-checksums", "pwfile", "single", "sync-only", "waldir"]),
    ("useradd", &["system"]),
    ("Slurm", &["cpus-per-task", "nodelist", "nodes", "noheader"]),
    ("ray start", &["node-name"]),
    ("smartctl, mdadm and LVM", &["detail", "health", "stop", "wait", "xall", "yes"]),
    ("systemctl", &["now"]),
    (
        "docker",
        &["cap-add", "cpus", "cpuset-cpus", "device", "file", "memory", "tag", "user", "volume"],
    ),
    ("systemd-run", &["scope"]),
    ("losetup and blockdev", &["align", "detach", "direct-io"]),
    ("wipefs", &["all"]),
];

/// Returns the options of each command, by the command's name.
fn options() -> BTreeMap<String, BTreeSet<String>> {
    let mut root = crate::arguments::Arguments::command();
    root.build();
    let mut all = BTreeMap::new();
    for command in root.get_subcommands() {
        all.insert(command.get_name().to_owned(), longs(command));
    }
    all.insert("pgbench".to_owned(), pgbench_options());
    all
}

fn longs(command: &clap::Command) -> BTreeSet<String> {
    let own = command.get_arguments().filter_map(|argument| argument.get_long().map(str::to_owned));
    own.chain(command.get_subcommands().flat_map(longs)).collect()
}

/// Returns the options that pgbench's `--help` lists in any dialect: a line begins with an option's
/// names.
fn pgbench_options() -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for dialect in ["15", "16", "17", "18"] {
        let arguments = [format!("--dialect={dialect}"), "--help".to_owned()];
        let (mut out, stop) = (Vec::new(), std::sync::atomic::AtomicBool::new(false));
        pgdyno_pgbench::main(&arguments, &mut out, &mut std::io::sink(), &stop);
        let help = String::from_utf8(out).unwrap();
        for line in help.lines().filter(|line| line.trim_start().starts_with('-')) {
            // `-c, --client=NUM   number of …`
            let names = line.trim_start().split("  ").next().unwrap_or_default();
            all.extend(named(names));
        }
    }
    all
}

/// Returns every `--option` of `text`, without its dashes.
fn named(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices("--") {
        let before = text[..at].chars().next_back();
        let name: String =
            text[at + 2..].chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '-').collect();
        let begins = name.starts_with(|c: char| c.is_ascii_lowercase());
        if begins && !before.is_some_and(|c| c.is_alphanumeric() || c == '-') {
            found.push(name.trim_end_matches('-').to_owned());
        }
    }
    found
}

/// Returns the commands that `text` shows: each one's name and the options behind it.
fn commands<'a>(
    text: &'a str,
    known: &BTreeMap<String, BTreeSet<String>>,
) -> Vec<(&'a str, Vec<String>)> {
    let mut shown = Vec::new();
    for (at, _) in text.match_indices("pgdyno ") {
        let rest = &text[at + "pgdyno ".len()..];
        let end = rest.find(['`', '\n', '|', ';', '#', ',', ')']).unwrap_or(rest.len());
        let Some(name) = rest[..end].split_whitespace().find(|word| !word.starts_with('-')) else {
            continue;
        };
        if known.contains_key(name) {
            shown.push((name, named(&rest[..end])));
        }
    }
    shown
}

/// Returns the string literals of a Rust source, before its tests. Those of one word are left out:
/// they are arguments of programs, not prose.
fn literals(source: &str) -> Vec<String> {
    let source = source.split("#[cfg(test)]").next().unwrap_or_default();
    let mut found = Vec::new();
    let mut rest = source;
    while let Some(at) = rest.find(['"', '/', '\'']) {
        let tail = &rest[at..];
        if tail.starts_with("//") {
            rest = tail.split_once('\n').map_or("", |(_, after)| after);
        } else if tail.starts_with("'\"'") || tail.starts_with("'\\") {
            // A character that a scan for quotes would take for one.
            rest = tail.get(3..).unwrap_or_default();
        } else if let Some(text) = tail.strip_prefix('"') {
            let hashes = rest[..at].chars().rev().take_while(|c| *c == '#').count();
            let raw = rest[..at - hashes].ends_with('r');
            let end = if raw {
                text.find(&format!("\"{}", "#".repeat(hashes)))
            } else {
                end_of_literal(text)
            };
            let end = end.unwrap_or(text.len());
            found.push(text[..end].replace("\\\n", " "));
            rest = text.get(end + 1..).unwrap_or_default();
        } else {
            rest = &tail[1..];
        }
    }
    found.retain(|text| text.contains(' '));
    found
}

fn end_of_literal(text: &str) -> Option<usize> {
    let mut escaped = false;
    text.char_indices().find_map(|(at, c)| {
        let ends = c == '"' && !escaped;
        escaped = c == '\\' && !escaped;
        ends.then_some(at)
    })
}

/// Returns all files under `folder` whose names end in `ending`.
fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let (folders, files): (Vec<PathBuf>, Vec<PathBuf>) = entries.partition(|path| path.is_dir());
    let below = folders.iter().flat_map(|folder| self::files(folder, ending));
    let is_meant = |path: &PathBuf| path.to_string_lossy().ends_with(ending);
    files.iter().filter(|path| is_meant(path)).cloned().chain(below).collect()
}

/// Returns all texts that users read, each with its place.
fn texts() -> Vec<(String, String)> {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let read = |path: &Path| std::fs::read_to_string(path).unwrap();
    let mut all = vec![("README.md".to_owned(), read(&root.join("README.md")))];
    let docs = files(&root.join("docs"), ".md")
        .into_iter()
        .filter(|path| !path.to_string_lossy().contains("/adr/"));
    for path in docs.chain(files(&root.join("experiments"), ".toml")) {
        all.push((path.display().to_string(), read(&path)));
    }
    for entry in std::fs::read_dir(root.join("crates")).unwrap() {
        let sources = files(&entry.unwrap().path().join("src"), ".rs");
        for path in sources
            .into_iter()
            .filter(|path| !path.ends_with("tests.rs") && !path.ends_with(file!()))
        {
            let place = path.display().to_string();
            all.extend(literals(&read(&path)).into_iter().map(|text| (place.clone(), text)));
        }
    }
    let mut root = crate::arguments::Arguments::command();
    root.build();
    all.push(("--help".to_owned(), root.render_long_help().to_string()));
    for command in root.get_subcommands_mut() {
        // Under the command's name, so that what its help says of options is held against its own.
        let help = command.render_long_help().to_string();
        let name = command.get_name().to_owned();
        all.push((format!("{name} --help"), help));
    }
    all
}

#[test]
fn every_option_that_a_text_names_exists() {
    let known = options();
    let of_any: BTreeSet<&String> = known.values().flatten().collect();
    let of_others: BTreeSet<&str> =
        OTHERS.iter().flat_map(|(_, options)| *options).copied().collect();
    let (mut wrong, mut used) = (Vec::new(), BTreeSet::new());
    for (place, text) in texts() {
        for (command, options) in commands(&text, &known) {
            for option in options.iter().filter(|option| !known[command].contains(*option)) {
                wrong.push(format!("{place}: `pgdyno {command}` has no --{option}"));
            }
        }
        for option in named(&text) {
            if let Some(other) = of_others.get(option.as_str()) {
                used.insert(*other);
            } else if !of_any.contains(&option) {
                wrong.push(format!("{place}: nothing has --{option}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let unused: Vec<_> = of_others.difference(&used).collect();
    assert!(unused.is_empty(), "no text names these of other programs: {unused:?}");
}

#[test]
fn an_option_that_does_not_exist_is_found() {
    let known = options();
    let shown = commands("Ask for less: `pgdyno fsync DIR --size 1GiB`, not --duration.", &known);
    assert_eq!(shown, [("fsync", vec!["size".to_owned()])]);
    assert!(!known["fsync"].contains("size") && known["disk"].contains("size"));
    assert!(
        known["pgbench"].contains("aggregate-interval") && !known["pgbench"].contains("resume")
    );
    let source = "// \"a comment --no\"\n\
        fn f() { '\"'; g(\"--bare\"); h(\"with \\\"--one\\\" x\", r#\"and \"--two\"\"#) }\n\
        #[cfg(test)] mod tests { \"in a --test\" }";
    let found: Vec<String> = literals(source).iter().flat_map(|text| named(text)).collect();
    assert_eq!(found, ["one", "two"]);
    assert_eq!(named("a---b x--y -- --z=1 --w-"), ["z", "w"]);
}
