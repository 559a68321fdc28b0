//! Checks of the house itself: `cargo xtask dependencies` prints who depends on whom and fails
//! where a rule is broken; the tests hold the rules.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Whom each of pgdyno's crates may depend on, among pgdyno's crates. Dependencies point one way.
const ALLOWED: &[(&str, &[&str])] = &[
    ("model", &[]),
    ("ioctl", &[]),
    ("wire", &["model"]),
    ("connect", &["wire", "model"]),
    ("engine", &["connect", "wire", "model"]),
    ("exec", &["ioctl", "model"]),
    ("facts", &["exec", "ioctl", "model"]),
    ("emulated-disk", &["facts", "exec", "ioctl", "model"]),
    ("storage", &["emulated-disk", "facts", "exec", "ioctl", "model"]),
    ("postgres", &["storage", "facts", "exec", "connect", "wire", "model"]),
    ("observe", &["postgres", "storage", "emulated-disk", "facts", "exec", "connect", "model"]),
    ("stats", &["model"]),
    ("durability", &["model"]),
    ("audit", &["stats", "model"]),
    ("results", &["audit", "durability", "stats", "model"]),
    ("dataset", &["postgres", "exec", "engine", "connect", "model"]),
    (
        "lab",
        &[
            "dataset",
            "results",
            "durability",
            "stats",
            "observe",
            "postgres",
            "storage",
            "emulated-disk",
            "facts",
            "exec",
            "engine",
            "connect",
            "wire",
            "model",
        ],
    ),
    ("pgbench", &["dataset", "engine", "connect", "exec", "model"]),
    (
        "cli",
        &[
            "pgbench",
            "lab",
            "dataset",
            "results",
            "audit",
            "durability",
            "stats",
            "observe",
            "postgres",
            "storage",
            "facts",
            "exec",
            "connect",
            "model",
        ],
    ),
    (
        "test-support",
        &["postgres", "storage", "emulated-disk", "facts", "exec", "connect", "wire", "model"],
    ),
];

fn main() -> ExitCode {
    match std::env::args().nth(1).as_deref() {
        Some("dependencies") => match graph(&root()) {
            Ok(graph) => {
                for (from, to) in &graph {
                    #[allow(clippy::print_stdout)]
                    {
                        println!("{from} -> {}", to.join(", "));
                    }
                }
                match violations(&graph).as_slice() {
                    [] => ExitCode::SUCCESS,
                    broken => complain(&broken.join("\n")),
                }
            }
            Err(e) => complain(&e),
        },
        _ => complain("usage: cargo xtask dependencies"),
    }
}

fn complain(what: &str) -> ExitCode {
    #[allow(clippy::print_stderr)]
    {
        eprintln!("{what}");
    }
    ExitCode::FAILURE
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Every crate under `crates/`, and which of the others its manifest names, in any kind of
/// dependency.
fn graph(root: &Path) -> Result<BTreeMap<String, Vec<String>>, String> {
    let mut graph = BTreeMap::new();
    let entries =
        std::fs::read_dir(root.join("crates")).map_err(|e| format!("cannot list crates: {e}"))?;
    for entry in entries.flatten() {
        let manifest = entry.path().join("Cargo.toml");
        let text = std::fs::read_to_string(&manifest)
            .map_err(|e| format!("cannot read {}: {e}", manifest.display()))?;
        let table: toml::Table =
            text.parse().map_err(|e| format!("{}: {e}", manifest.display()))?;
        let mut named: Vec<String> = ["dependencies", "dev-dependencies", "build-dependencies"]
            .iter()
            .filter_map(|kind| table.get(*kind)?.as_table())
            .flat_map(|dependencies| dependencies.keys())
            .filter_map(|name| name.strip_prefix("pgdyno-").map(str::to_owned))
            .collect();
        named.sort();
        named.dedup();
        graph.insert(entry.file_name().to_string_lossy().into_owned(), named);
    }
    Ok(graph)
}

/// What in `graph` the rules do not allow, in words.
fn violations(graph: &BTreeMap<String, Vec<String>>) -> Vec<String> {
    let rule =
        |name: &str| ALLOWED.iter().find(|(known, _)| *known == name).map(|(_, allowed)| *allowed);
    let mut broken = Vec::new();
    for (from, to) in graph {
        let Some(allowed) = rule(from) else {
            broken.push(format!("{from} is new: say in ALLOWED whom it may depend on"));
            continue;
        };
        for name in to.iter().filter(|name| !allowed.contains(&name.as_str())) {
            broken.push(format!("{from} depends on {name}; it may depend on {allowed:?}"));
        }
    }
    broken
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dependencies_point_one_way() {
        let graph = graph(&root()).unwrap();
        assert_eq!(graph.len(), ALLOWED.len(), "a crate came or went");
        assert_eq!(violations(&graph), Vec::<String>::new());
    }

    #[test]
    fn a_dependency_that_points_back_is_found() {
        let graph = BTreeMap::from([
            ("model".to_owned(), vec!["lab".to_owned()]),
            ("new".to_owned(), Vec::new()),
        ]);
        assert_eq!(violations(&graph).len(), 2);
    }

    #[test]
    fn the_rules_themselves_have_no_circle() {
        fn reaches(from: &str, to: &str) -> bool {
            ALLOWED
                .iter()
                .find(|(name, _)| *name == from)
                .is_some_and(|(_, next)| next.iter().any(|n| *n == to || reaches(n, to)))
        }
        for (name, _) in ALLOWED {
            assert!(!reaches(name, name), "{name} depends on itself");
        }
    }

    #[test]
    fn unsafe_code_is_forbidden_everywhere_but_in_the_engine_and_in_one_call() {
        let workspace: toml::Table =
            std::fs::read_to_string(root().join("Cargo.toml")).unwrap().parse().unwrap();
        assert_eq!(workspace["workspace"]["lints"]["rust"]["unsafe_code"].as_str(), Some("forbid"));
        for (name, _) in ALLOWED.iter().filter(|(name, _)| !["engine", "ioctl"].contains(name)) {
            let manifest = root().join("crates").join(name).join("Cargo.toml");
            let table: toml::Table = std::fs::read_to_string(manifest).unwrap().parse().unwrap();
            assert_eq!(
                table["lints"]["workspace"].as_bool(),
                Some(true),
                "{name} does not take the workspace's lints"
            );
        }
    }

    /// The tests that a line of docs/security.md names as `PATH`: `TEST`, `TEST`; PATH.
    fn named_tests(line: &str) -> Vec<(String, String)> {
        let mut file = String::new();
        let words = line.split('`').skip(1).step_by(2);
        let mut named = Vec::new();
        for word in words {
            if Path::new(word).extension().is_some_and(|e| e == "rs") {
                word.clone_into(&mut file);
            } else if !file.is_empty() {
                named.push((file.clone(), word.to_owned()));
            }
        }
        named
    }

    #[test]
    fn each_line_of_the_threat_model_names_tests_that_exist() {
        let text = std::fs::read_to_string(root().join("docs/security.md")).unwrap();
        let (_, table) = text.split_once("## Who may do what").unwrap();
        let (table, _) = table.split_once("\n## ").unwrap();
        let rows: Vec<&str> = table.lines().filter(|line| line.starts_with("| ")).skip(1).collect();
        assert!(rows.len() > 30, "{} rows", rows.len());
        for row in rows {
            let tests = named_tests(row.rsplit('|').nth(1).unwrap());
            assert!(!tests.is_empty(), "names no test: {row}");
            for (file, test) in tests {
                let source =
                    std::fs::read_to_string(root().join("crates").join(&file)).unwrap_or_default();
                let is_there = source.contains(&format!("#[test]\nfn {test}()"));
                assert!(is_there, "{file} has no test `{test}`");
            }
        }
    }
}
