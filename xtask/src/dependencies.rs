//! Dependencies between the workspace's crates, and the plan that they follow.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use crate::error::Error;

/// For each crate, the crates of the workspace that it may depend on: only ones above it here.
///
/// Tests of any crate may depend on `test-support`, and on what `test-support` depends on.
pub(crate) const ALLOWED: &[(&str, &[&str])] = &[
    ("model", &[]),
    ("ioctl", &[]),
    ("stdio", &[]),
    ("wire", &["model"]),
    ("connect", &["wire", "model"]),
    ("engine", &["connect", "wire", "model"]),
    ("generators", &["engine", "connect", "wire", "model"]),
    ("exec", &["ioctl", "model"]),
    ("facts", &["exec", "ioctl", "model"]),
    ("emulated-disk", &["facts", "exec", "ioctl", "model"]),
    ("storage", &["emulated-disk", "facts", "exec", "ioctl", "model"]),
    ("postgres", &["storage", "facts", "exec", "connect", "wire", "model"]),
    ("observe", &["postgres", "storage", "emulated-disk", "facts", "exec", "connect", "model"]),
    ("stats", &["model"]),
    ("durability", &["model"]),
    ("audit", &["stats", "model"]),
    ("store", &["audit", "model"]),
    ("analysis", &["store", "audit", "stats", "model"]),
    ("report", &["analysis", "store", "audit", "stats", "model"]),
    ("dataset", &["postgres", "exec", "engine", "connect", "model"]),
    (
        "lab",
        &[
            "dataset",
            "report",
            "analysis",
            "store",
            "durability",
            "stats",
            "observe",
            "postgres",
            "storage",
            "emulated-disk",
            "facts",
            "exec",
            "generators",
            "engine",
            "connect",
            "wire",
            "model",
        ],
    ),
    ("pgbench", &["dataset", "generators", "engine", "connect", "exec", "model"]),
    ("web", &["lab", "report", "analysis", "store", "model"]),
    (
        "cli",
        &[
            "web",
            "pgbench",
            "lab",
            "dataset",
            "report",
            "analysis",
            "store",
            "audit",
            "durability",
            "stats",
            "observe",
            "postgres",
            "storage",
            "facts",
            "exec",
            "generators",
            "connect",
            "model",
            "stdio",
        ],
    ),
    (
        "test-support",
        &[
            "report",
            "analysis",
            "store",
            "audit",
            "durability",
            "stats",
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
];

/// The crate for tests, which only tests may depend on.
const TEST_SUPPORT: &str = "test-support";

/// The crates of the workspace that each crate depends on.
pub(crate) type Graph = BTreeMap<String, Vec<Dependency>>;

/// A dependency of one crate on another.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    pub(crate) is_for_tests: bool,
}

impl fmt::Display for Dependency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        if self.is_for_tests { f.write_str(" (tests)") } else { Ok(()) }
    }
}

/// A dependency that the plan does not allow, or a crate that the plan lacks.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub(crate) enum Violation {
    #[error("{0} is not in the plan: add it to ALLOWED in xtask/src/dependencies.rs")]
    UnknownCrate(String),
    #[error("{from} depends on {to}, but may only depend on: {}", allowed.join(", "))]
    NotAllowed { from: String, to: Dependency, allowed: &'static [&'static str] },
}

/// Reads the manifests of the crates below `root`.
///
/// # Errors
/// A manifest cannot be read or parsed.
pub(crate) fn graph(root: &Path) -> Result<Graph, Error> {
    let path = root.join("crates");
    let failed = |source| Error::Read { path: path.clone(), source };
    let mut graph = Graph::new();
    for entry in std::fs::read_dir(&path).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let path = entry.path().join("Cargo.toml");
        let text = std::fs::read_to_string(&path)
            .map_err(|source| Error::Read { path: path.clone(), source })?;
        let manifest: toml::Table =
            text.parse().map_err(|source| Error::Manifest { path, source })?;
        let mut found = Vec::new();
        for kind in ["dependencies", "build-dependencies", "dev-dependencies"] {
            let table = manifest.get(kind).and_then(toml::Value::as_table);
            for name in table.into_iter().flat_map(toml::Table::keys) {
                let Some(name) = name.strip_prefix("pgdyno-") else { continue };
                let is_for_tests = kind == "dev-dependencies";
                found.push(Dependency { name: name.to_owned(), is_for_tests });
            }
        }
        found.sort();
        found.dedup_by(|later, earlier| later.name == earlier.name);
        graph.insert(entry.file_name().to_string_lossy().into_owned(), found);
    }
    Ok(graph)
}

/// Returns the dependencies of `graph` that the plan does not allow.
pub(crate) fn violations(graph: &Graph) -> Vec<Violation> {
    let allowed_for =
        |name: &str| ALLOWED.iter().find(|(known, _)| *known == name).map(|(_, allowed)| *allowed);
    let for_tests = allowed_for(TEST_SUPPORT).unwrap_or_default();
    let mut found = Vec::new();
    for (from, dependencies) in graph {
        let Some(allowed) = allowed_for(from) else {
            found.push(Violation::UnknownCrate(from.clone()));
            continue;
        };
        for to in dependencies {
            let name = to.name.as_str();
            let in_tests = to.is_for_tests && (name == TEST_SUPPORT || for_tests.contains(&name));
            if !allowed.contains(&name) && !in_tests {
                found.push(Violation::NotAllowed { from: from.clone(), to: to.clone(), allowed });
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::root;

    fn dependency(name: &str, is_for_tests: bool) -> Dependency {
        Dependency { name: name.to_owned(), is_for_tests }
    }

    #[test]
    fn dependencies_point_one_way() {
        let graph = graph(&root()).unwrap();
        assert_eq!(graph.len(), ALLOWED.len(), "a crate came or went");
        assert_eq!(violations(&graph), []);
    }

    #[test]
    fn a_dependency_that_points_up_is_found() {
        let graph = Graph::from([
            ("model".to_owned(), vec![dependency("lab", false)]),
            ("new".to_owned(), Vec::new()),
        ]);
        let found = violations(&graph);
        assert!(
            matches!(
                found.as_slice(),
                [
                    Violation::NotAllowed { from, to, .. },
                    Violation::UnknownCrate(new),
                ] if from == "model" && to.name == "lab" && new == "new"
            ),
            "{found:?}"
        );
    }

    #[test]
    fn only_tests_depend_on_the_crate_for_tests() {
        let graph = |is_for_tests| {
            Graph::from([("wire".to_owned(), vec![dependency(TEST_SUPPORT, is_for_tests)])])
        };
        assert_eq!(violations(&graph(true)), []);
        assert_eq!(violations(&graph(false)).len(), 1);
        assert!(ALLOWED.iter().all(|(_, allowed)| !allowed.contains(&TEST_SUPPORT)));
    }

    #[test]
    fn each_crate_of_the_plan_depends_on_crates_above_it_only() {
        for (at, (name, allowed)) in ALLOWED.iter().enumerate() {
            for below in *allowed {
                let is_above = ALLOWED[..at].iter().any(|(known, _)| known == below);
                assert!(is_above, "{name} may depend on {below}, which does not stand above it");
            }
        }
    }

    #[test]
    fn unsafe_code_is_forbidden_outside_engine_ioctl_and_stdio() {
        let workspace: toml::Table =
            std::fs::read_to_string(root().join("Cargo.toml")).unwrap().parse().unwrap();
        assert_eq!(workspace["workspace"]["lints"]["rust"]["unsafe_code"].as_str(), Some("forbid"));
        let may_not = |name: &&String| !["engine", "ioctl", "stdio"].contains(&name.as_str());
        for name in graph(&root()).unwrap().keys().filter(may_not) {
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
