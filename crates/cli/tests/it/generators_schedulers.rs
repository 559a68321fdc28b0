//! `--generators slurm:…` and `ray:…` where there is neither, and the manifest for Kubernetes.
//! `just cluster` has the tests with real ones.

use std::process::Command;

use crate::generators_support::{pgbench, server_with_tables};
use crate::support::{Ended, ended};
use pgdyno_test_support::{Server, skip, test_name};

/// Runs a load by two workers of a scheduler, with a variable set.
fn run(server: &Server, generators: &str, (name, value): (&str, &std::path::Path)) -> Ended {
    let args = ["-n", "-S", "-c", "2", "-t", "1", "--generators", generators];
    ended(pgbench(server).args(args).env(name, value).output().unwrap())
}

#[test]
fn a_missing_srun_or_python_or_ray_is_said_at_once() {
    let (server, folder) = (server_with_tables(), tempfile::tempdir().unwrap());
    let words = ["workers cannot be started", "cannot run srun", "install Slurm's client"];
    run(&server, "slurm:2", ("PATH", folder.path())).fails(&words);

    let python = folder.path().join("bin/python3");
    let words = ["cannot run ", "bin/python3", "PGDYNO_RAY_PYTHON"];
    let with = ("PGDYNO_RAY_PYTHON", &*python);
    run(&server, "ray:workers=2", with).fails(&words);
    let mut venv = Command::new("python3");
    ended(venv.args(["-m", "venv", "--without-pip"]).arg(folder.path()).output().unwrap()).exits(0);
    let words = ["0 of 2 workers came", "bin/python3 has no Ray"];
    run(&server, "ray:workers=2", with).fails(&words);
}

#[test]
fn the_manifest_for_kubernetes_is_what_its_schema_allows() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/kubernetes/workers.yaml");
    let validate = |file: &std::path::Path| {
        let mut python = Command::new("python3");
        ended(python.args(["-m", "kubernetes_validate", "--strict"]).arg(file).output().unwrap())
    };
    let valid = validate(file.as_ref());
    if valid.err.contains("No module named") {
        return skip(test_name!(), "Python has no kubernetes-validate");
    }
    valid.exits(0);
    // The schema is looked at.
    let other = tempfile::NamedTempFile::new().unwrap();
    let text = std::fs::read_to_string(file).unwrap().replace("completions:", "completion:");
    std::fs::write(other.path(), text).unwrap();
    assert_ne!(validate(other.path()).code, Some(0));
}
