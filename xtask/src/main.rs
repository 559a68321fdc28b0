//! Checks of the house itself: `cargo xtask dependencies` prints who depends on whom; the tests hold the rules.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Whom each of pgdyno's crates may depend on, among pgdyno's crates. Dependencies point one way.
const ALLOWED: &[(&str, &[&str])] = &[
    ("model", &[]),
    ("wire", &[]),
    ("engine", &["wire", "model"]),
    ("host", &["model"]),
    ("durability", &["model"]),
    ("results", &["model"]),
    ("lab", &["engine", "host", "durability", "results", "model"]),
    ("cli", &["lab", "results"]),
];

fn main() -> ExitCode {
    match std::env::args().nth(1).as_deref() {
        Some("dependencies") => match graph(&root()) {
            Ok(graph) => {
                for (from, to) in graph {
                    #[allow(clippy::print_stdout)]
                    {
                        println!("{from} -> {}", to.join(", "));
                    }
                }
                ExitCode::SUCCESS
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

/// Every crate under `crates/`, and which of the others its manifest names, in any kind of dependency.
fn graph(root: &Path) -> Result<BTreeMap<String, Vec<String>>, String> {
    let mut graph = BTreeMap::new();
    let entries = std::fs::read_dir(root.join("crates")).map_err(|e| format!("cannot list crates: {e}"))?;
    for entry in entries.flatten() {
        let manifest = entry.path().join("Cargo.toml");
        let text = std::fs::read_to_string(&manifest)
            .map_err(|e| format!("cannot read {}: {e}", manifest.display()))?;
        let table: toml::Table = text.parse().map_err(|e| format!("{}: {e}", manifest.display()))?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dependencies_point_one_way() {
        let graph = graph(&root()).unwrap();
        let crates: Vec<&str> = graph.keys().map(String::as_str).collect();
        let mut known: Vec<&str> = ALLOWED.iter().map(|(name, _)| *name).collect();
        known.sort_unstable();
        assert_eq!(crates, known, "a crate came or went: say in ALLOWED whom it may depend on");
        for (from, to) in &graph {
            let (_, allowed) = ALLOWED.iter().find(|(name, _)| name == from).unwrap();
            for name in to {
                assert!(
                    allowed.contains(&name.as_str()),
                    "{from} depends on {name}; it may depend on {allowed:?}"
                );
            }
        }
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
    fn unsafe_code_is_forbidden_everywhere_but_in_the_engine() {
        let workspace: toml::Table =
            std::fs::read_to_string(root().join("Cargo.toml")).unwrap().parse().unwrap();
        assert_eq!(workspace["workspace"]["lints"]["rust"]["unsafe_code"].as_str(), Some("forbid"));
        for (name, _) in ALLOWED.iter().filter(|(name, _)| *name != "engine") {
            let manifest = root().join("crates").join(name).join("Cargo.toml");
            let table: toml::Table = std::fs::read_to_string(manifest).unwrap().parse().unwrap();
            assert_eq!(
                table["lints"]["workspace"].as_bool(),
                Some(true),
                "{name} does not take the workspace's lints"
            );
        }
    }
}
