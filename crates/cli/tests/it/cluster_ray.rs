//! `--generators ray:…` and `--hosts ray:…` on a real Ray cluster with three nodes, r1 to r3, of
//! two processors each. `just cluster` installs Ray and runs these tests; each starts a cluster of
//! its own.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use crate::cluster_support::{Bench, assert_failed, lab, worker, workers};
use pgdyno_exec::process::Identity;
use rustix::process::Signal;

const PYTHON: &str = "PGDYNO_RAY_PYTHON";

/// Three raylets on this machine; they end with this value.
struct Cluster {
    python: Child,
    raylets: Vec<i32>,
    /// The home of what runs on the nodes.
    _home: tempfile::TempDir,
}

impl Cluster {
    /// Starts the cluster, and a server for its loads.
    fn start() -> (Self, Bench) {
        let python = std::env::var(PYTHON).expect("`just cluster` names a Python that has Ray");
        let script =
            concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/cluster_support/ray_cluster.py");
        let home = tempfile::tempdir().unwrap();
        let mut python = Command::new(python)
            .arg(script)
            .env("HOME", home.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(python.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let mut words = line.split_whitespace();
        let address = words.next().expect("an address of the cluster").to_owned();
        let raylets: Vec<i32> = words.map(|pid| pid.parse().unwrap()).collect();
        assert_eq!(raylets.len(), 3, "{line}");
        let cluster = Self { python, raylets, _home: home };
        let bench = Bench { ray_address: Some(address), ..Bench::new() };
        // Ships the program, which has hundreds of megabytes in a build for tests.
        bench.run("ray:workers=3,wait=5m", &["-c", "3", "-t", "1"]).exits(0);
        (cluster, bench)
    }

    /// The raylet of node r`number`.
    fn raylet(&self, number: usize) -> Identity {
        Identity::from_pid(self.raylets[number - 1]).unwrap()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        drop(self.python.stdin.take());
        let _ = self.python.wait();
    }
}

#[test]
#[ignore = "needs Ray: `just cluster`"]
fn three_nodes_offer_one_load_and_are_named() {
    let (_cluster, bench) = Cluster::start();
    bench.assert_one_load("ray:workers=3", ["r1", "r2", "r3"]);
    assert!(workers().is_empty());
    // The cluster is free again.
    bench.run("ray:workers=3", &["-c", "6", "-j", "6", "-t", "10"]).exits(0);
}

#[test]
#[ignore = "needs Ray: `just cluster`"]
fn a_killed_worker_ends_the_run_and_is_named() {
    let (_cluster, mut bench) = Cluster::start();
    let told = ("a worker", &["generator r2 in second", "its worker ended"][..]);
    bench.assert_ends("ray:workers=3", told, |_| worker("r2").signal(Signal::KILL));
}

#[test]
#[ignore = "needs Ray: `just cluster`"]
fn a_killed_raylet_ends_the_run_and_is_named() {
    let (cluster, mut bench) = Cluster::start();
    let told = ("a raylet", &["generator r2 in second", "its worker ended"][..]);
    bench.assert_ends("ray:workers=3", told, |_| cluster.raylet(2).signal(Signal::KILL));
}

#[test]
#[ignore = "needs Ray: `just cluster`"]
fn a_killed_or_interrupted_coordinator_leaves_nothing() {
    let (_cluster, mut bench) = Cluster::start();
    bench.assert_coordinator_leaves_nothing("ray:workers=3");
}

#[test]
#[ignore = "needs Ray: `just cluster`"]
fn what_ray_does_not_have_is_said() {
    let (cluster, bench) = Cluster::start();
    let few = ["-c", "4", "-t", "1"];
    let words = ["0 of 4 workers came", "of the cluster's 3 nodes 3 have", "ray status"];
    assert_failed(bench.run("ray:workers=4", &few), &words);
    let many = ["-c", "9", "-j", "9", "-t", "1"];
    assert_failed(bench.run("ray:workers=3", &many), &["of the cluster's 3 nodes 0 have"]);
    // Nobody is there any more.
    drop(cluster);
    let words = ["0 of 2 workers came", "no Ray cluster answers"];
    assert_failed(bench.run("ray:workers=2", &few), &words);
}

#[test]
#[ignore = "needs Ray: `just cluster`"]
fn an_experiment_runs_whole_on_every_node() {
    let (_cluster, bench) = Cluster::start();
    let address = bench.ray_address.as_ref().unwrap().into();
    let variables = vec![("RAY_ADDRESS", address), (PYTHON, std::env::var_os(PYTHON).unwrap())];
    lab::Lab::new("ray", ["r1", "r2", "r3"], variables).assert_all(|| {});
}
