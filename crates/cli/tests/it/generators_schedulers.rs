//! `--generators slurm:…` and `ray:…` where there is neither, and the manifest for Kubernetes.
//! `just cluster` has the tests with real ones.

use std::process::{Command, Output};

use crate::generators_support::{assert_failed, pgbench, server_with_tables, text};
use pgdyno_test_support::{Server, skip};

/// Runs a load by two workers of a scheduler, with a variable set.
fn run(server: &Server, generators: &str, (name, value): (&str, &std::path::Path)) -> Output {
    let args = ["-n", "-S", "-c", "2", "-t", "1", "--generators", generators];
    pgbench(server).args(args).env(name, value).output().unwrap()
}

#[test]
fn a_missing_srun_or_python_or_ray_is_said_at_once() {
    let (server, folder) = (server_with_tables(), tempfile::tempdir().unwrap());
    let words = ["workers cannot be started", "cannot run srun", "install Slurm's client"];
    assert_failed(&run(&server, "slurm:2", ("PATH", folder.path())), &words);

    let python = folder.path().join("bin/python3");
    let words = ["cannot run ", "bin/python3", "PGDYNO_RAY_PYTHON"];
    let with = ("PGDYNO_RAY_PYTHON", &*python);
    assert_failed(&run(&server, "ray:workers=2", with), &words);
    let mut venv = Command::new("python3");
    let made = venv.args(["-m", "venv", "--without-pip"]).arg(folder.path()).output().unwrap();
    assert!(made.status.success(), "{}", text(&made).1);
    let words = ["0 of 2 workers came", "bin/python3 has no Ray"];
    assert_failed(&run(&server, "ray:workers=2", with), &words);
}

#[test]
fn the_manifest_for_kubernetes_is_what_its_schema_allows() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/kubernetes/workers.yaml");
    let validate = |file: &std::path::Path| {
        let mut python = Command::new("python3");
        python.args(["-m", "kubernetes_validate", "--strict"]).arg(file).output().unwrap()
    };
    let valid = validate(file.as_ref());
    let (out, err) = text(&valid);
    if err.contains("No module named") {
        let test = "the_manifest_for_kubernetes_is_what_its_schema_allows";
        return skip(test, "Python has no kubernetes-validate");
    }
    assert!(valid.status.success(), "{out}{err}");
    // The schema is looked at.
    let other = tempfile::NamedTempFile::new().unwrap();
    let text = std::fs::read_to_string(file).unwrap().replace("completions:", "completion:");
    std::fs::write(other.path(), text).unwrap();
    assert!(!validate(other.path()).status.success());
}
