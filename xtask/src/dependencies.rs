//! Holds which crate depends on which.
//!
//! Cargo refuses circles between crates. [`PLAN`] says which of the other arrows are meant: a
//! dependency that it lacks is as wrong as an entry that no crate uses any more.

use std::collections::BTreeMap;
use std::process::Command;

use serde_json::Value;

use crate::root;

/// Each crate of the workspace with its dependencies there, which all stand above it. Tests are
/// free to depend on more.
const PLAN: &[(&str, &[&str])] = &[
    ("text", &[]),
    ("model", &["text"]),
    ("ioctl", &[]),
    ("stdio", &[]),
    ("wire", &["model"]),
    ("connect", &["wire", "model", "text"]),
    ("engine", &["connect", "wire", "model"]),
    ("generators", &["engine", "model"]),
    ("replay", &["engine", "connect", "wire", "model"]),
    ("exec", &["ioctl", "model"]),
    ("facts", &["exec", "model"]),
    ("emulated-disk", &["exec", "model"]),
    ("storage", &["emulated-disk", "facts", "exec", "ioctl", "model", "text"]),
    ("postgres", &["storage", "exec", "connect", "model", "text"]),
    ("observe", &["postgres", "facts", "exec", "connect", "model"]),
    ("stats", &[]),
    ("durability", &["model"]),
    ("audit", &["stats", "model", "text"]),
    ("store", &["audit", "model", "text"]),
    ("analysis", &["store", "audit", "stats", "model", "text"]),
    ("report", &["analysis", "store", "audit", "stats", "model", "text"]),
    ("dataset", &["postgres", "exec", "engine", "connect", "model", "text"]),
    ("capture", &["dataset", "engine", "connect", "model", "text"]),
    (
        "experiment",
        &[
            "dataset",
            "stats",
            "postgres",
            "storage",
            "exec",
            "generators",
            "engine",
            "model",
            "text",
        ],
    ),
    (
        "provision",
        &[
            "experiment",
            "dataset",
            "store",
            "postgres",
            "storage",
            "emulated-disk",
            "facts",
            "exec",
            "generators",
            "engine",
            "connect",
            "model",
        ],
    ),
    (
        "crash",
        &[
            "provision",
            "experiment",
            "dataset",
            "durability",
            "postgres",
            "storage",
            "emulated-disk",
            "facts",
            "exec",
            "generators",
            "engine",
            "connect",
            "model",
            "text",
        ],
    ),
    (
        "lab",
        &[
            "crash",
            "provision",
            "experiment",
            "dataset",
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
            "model",
        ],
    ),
    ("pgbench", &["dataset", "exec", "generators", "engine", "connect", "model"]),
    ("web", &["lab", "provision", "report", "analysis", "store", "model", "text"]),
    (
        "cli",
        &[
            "web",
            "pgbench",
            "lab",
            "crash",
            "provision",
            "experiment",
            "dataset",
            "report",
            "analysis",
            "store",
            "audit",
            "capture",
            "replay",
            "generators",
            "stdio",
            "model",
            "text",
        ],
    ),
    ("test-support", &["analysis", "store", "postgres", "exec", "engine", "connect", "model"]),
];

/// Crates that may hold `unsafe` code.
const UNSAFE: [&str; 3] = ["engine", "ioctl", "stdio"];

/// Returns the packages of the workspace as Cargo describes them, without `xtask`.
fn packages() -> Vec<Value> {
    let cargo = std::env::var("CARGO").unwrap();
    let arguments = ["metadata", "--offline", "--no-deps", "--format-version", "1"];
    let output = Command::new(cargo).args(arguments).current_dir(root()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let Value::Array(mut packages) = metadata["packages"].take() else { panic!("no packages") };
    packages.retain(|package| package["name"] != "xtask");
    packages
}

/// Returns the name of a package or a dependency without its prefix; none for another's crate.
fn short_name(value: &Value) -> Option<&str> {
    value["name"].as_str()?.strip_prefix("pgdyno-")
}

/// Returns the dependencies of `package` on crates of the workspace that its product needs.
fn dependencies(package: &Value) -> Vec<&str> {
    let all = package["dependencies"].as_array().unwrap().iter();
    let mut names: Vec<&str> =
        all.filter(|dependency| dependency["kind"] != "dev").filter_map(short_name).collect();
    names.sort_unstable();
    names.dedup();
    names
}

#[test]
fn crates_depend_on_each_other_as_planned() {
    let packages = packages();
    let found: BTreeMap<&str, Vec<&str>> =
        packages.iter().map(|p| (short_name(p).unwrap(), dependencies(p))).collect();
    let sorted = |names: &&[&'static str]| {
        let mut names = names.to_vec();
        names.sort_unstable();
        names
    };
    let planned: BTreeMap<&str, Vec<&str>> =
        PLAN.iter().map(|(name, names)| (*name, sorted(names))).collect();
    assert_eq!(found, planned, "found on the left, planned in PLAN on the right");
}

#[test]
fn each_crate_of_the_plan_depends_on_crates_above_it_only() {
    for (at, (name, dependencies)) in PLAN.iter().enumerate() {
        for below in *dependencies {
            let is_above = PLAN[..at].iter().any(|(known, _)| known == below);
            assert!(is_above, "{name} depends on {below}, which does not stand above it");
        }
    }
}

#[test]
fn unsafe_code_is_forbidden_outside_engine_ioctl_and_stdio() {
    let table =
        |path: &str| -> toml::Table { std::fs::read_to_string(path).unwrap().parse().unwrap() };
    let workspace = table(root().join("Cargo.toml").to_str().unwrap());
    assert_eq!(workspace["workspace"]["lints"]["rust"]["unsafe_code"].as_str(), Some("forbid"));
    for package in packages() {
        let manifest = table(package["manifest_path"].as_str().unwrap());
        let takes_lints = manifest["lints"].get("workspace").and_then(toml::Value::as_bool);
        let name = short_name(&package).unwrap();
        assert!(takes_lints == Some(true) || UNSAFE.contains(&name), "{name} has its own lints");
    }
}
