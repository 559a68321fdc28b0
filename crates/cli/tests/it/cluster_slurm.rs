//! `--generators slurm:…` and `--hosts slurm:…` on a real Slurm with three nodes, n1 to n3, of two
//! processors each. `just cluster` starts it and runs these tests.

use std::process::{Command, Stdio};

use crate::cluster_support::{Bench, assert_failed, lab, worker, workers};
use crate::support::{Ended, ended};
use pgdyno_test_support::wait_for;
use rustix::process::{Pid, Signal, kill_process};

/// Waits until Slurm has no job.
fn assert_no_job() {
    wait_for("the jobs' end", || {
        let queue = Command::new("squeue").arg("--noheader").output().unwrap();
        (queue.status.success() && queue.stdout.is_empty()).then_some(())
    });
}

#[test]
#[ignore = "needs Slurm: `just cluster`"]
fn three_tasks_offer_one_load_and_are_named_after_their_nodes() {
    let bench = Bench::new();
    bench.assert_one_load("slurm:3", ["n1", "n2", "n3"]);
    assert_no_job();
    assert!(workers().is_empty());
}

#[test]
#[ignore = "needs Slurm: `just cluster`"]
fn tasks_share_nodes_when_there_are_more_of_them() {
    let bench = Bench::new();
    let Ended { out, .. } = bench.run("slurm:4", &["-c", "8", "-j", "4", "-t", "50"]).exits(0);
    assert!(out.contains("actually processed: 400/400"), "{out}");
    let names: Vec<_> =
        ["n1", "n2", "n3"].map(|n| out.matches(&format!("pgdyno: {n}")).count()).into();
    assert_eq!((names.iter().sum::<usize>(), names.iter().min()), (4, Some(&1)), "{out}");
    assert_no_job();
}

#[test]
#[ignore = "needs Slurm: `just cluster`"]
fn a_killed_worker_ends_the_run_and_is_named() {
    let mut bench = Bench::new();
    let told = ("a worker", &["generator n2 in second", "its worker ended"][..]);
    bench.assert_ends("slurm:3", told, |_| worker("n2").signal(Signal::KILL));
    assert_no_job();
}

#[test]
#[ignore = "needs Slurm: `just cluster`"]
fn a_killed_or_interrupted_coordinator_leaves_nothing() {
    let mut bench = Bench::new();
    bench.assert_coordinator_leaves_nothing("slurm:3");
    assert_no_job();
}

#[test]
#[ignore = "needs Slurm: `just cluster`"]
fn a_killed_srun_ends_the_run() {
    let mut bench = Bench::new();
    bench.assert_ends("slurm:3", ("srun", &["its worker ended"]), |run| {
        let children = pgdyno_exec::process::children(i32::try_from(run.id()).unwrap());
        let [srun] = children.as_slice() else { panic!("{children:?}") };
        srun.signal(Signal::KILL);
    });
    assert_no_job();
}

#[test]
#[ignore = "needs Slurm: `just cluster`"]
fn what_slurm_does_not_have_is_said() {
    let bench = Bench::new();
    let many = ["-c", "8", "-j", "8", "-t", "1"];
    // More tasks than processors, more event loops than a node has, more than are free.
    assert_failed(bench.run("slurm:7", &many), &["0 of 7 workers came", "error: ", "sinfo"]);
    assert_failed(bench.run("slurm:2", &many), &["0 of 2 workers came", "error: ", "sinfo"]);
    let mut other = Command::new("srun")
        .args(["--ntasks=5", "sleep", "600"])
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    wait_for("another job", || {
        let queue = Command::new("squeue").args(["-h", "-t", "R"]).output().unwrap();
        (!queue.stdout.is_empty()).then_some(())
    });
    assert_failed(bench.run("slurm:3", &["-c", "3", "-t", "1"]), &["busy", "salloc"]);
    kill_process(Pid::from_child(&other), Signal::TERM).unwrap();
    other.wait().unwrap();
    assert_no_job();
}

#[test]
#[ignore = "needs Slurm: `just cluster`"]
fn a_slurm_that_does_not_answer_is_said() {
    let bench = Bench::new();
    let text = std::fs::read_to_string(std::env::var("SLURM_CONF").unwrap()).unwrap();
    let conf = tempfile::NamedTempFile::new().unwrap();
    let (port, nobody) = ("SlurmctldPort=", "SlurmctldPort=1\n#");
    std::fs::write(conf.path(), text.replace(port, nobody)).unwrap();
    let mut command = bench.command("slurm:2");
    command.env("SLURM_CONF", conf.path()).args(["-c", "2", "-t", "1"]);
    assert_failed(
        ended(command.output().unwrap()),
        &["0 of 2 workers came", "Unable to contact slurm controller"],
    );
}

#[test]
#[ignore = "needs Slurm: `just cluster`"]
fn an_allocation_of_the_users_is_used() {
    let bench = Bench::new();
    let mut inner = bench.command("slurm:2");
    inner.args(["-c", "4", "-t", "10"]);
    let mut outer = Command::new("salloc");
    outer.args(["--nodes=2", "--ntasks=2", "--nodelist=n2,n3"]).arg(inner.get_program());
    outer.args(inner.get_args()).stdin(Stdio::null());
    for (name, value) in inner.get_envs() {
        match value {
            Some(value) => outer.env(name, value),
            None => outer.env_remove(name),
        };
    }
    let Ended { out, .. } = ended(outer.output().unwrap()).exits(0);
    assert!(out.contains("pgdyno: n2 ") && out.contains("pgdyno: n3 "), "{out}");
    assert_no_job();
}

#[test]
#[ignore = "needs Slurm: `just cluster`"]
fn an_experiment_starts_its_workers_for_each_trial() {
    let bench = Bench::new();
    let folder = tempfile::tempdir().unwrap();
    let server = bench.server.tcp("postgres", Some(pgdyno_test_support::PASSWORD));
    let pgdyno_model::target::Address::Tcp { host, port } = server.address else { panic!() };
    let experiment = folder.path().join("experiment.toml");
    let words = format!(
        r#"
[experiment]
question = "What do more clients bring?"
repeats = 1
[factors]
clients = [3, 6]
[workload]
name = "tpcb-like"
scale = 1
[load]
duration = "1s"
warm_up = "1s"
[postgres]
dsn = "host={host} port={port} user=postgres dbname=postgres"
[generators]
launch = "slurm:3"
max_start_skew = "60s"
"#
    );
    std::fs::write(&experiment, words).unwrap();
    let mut run = Command::new(env!("CARGO_BIN_EXE_pgdyno"));
    run.env("PGPASSWORD", pgdyno_test_support::PASSWORD)
        .env("PGDYNO_STORE", folder.path().join("store.sqlite3"))
        .arg("run")
        .arg(&experiment);
    let Ended { out, .. } = ended(run.stdin(Stdio::null()).output().unwrap()).exits(0);
    assert!(out.contains("n3"), "{out}");
    assert_no_job();
}

#[test]
#[ignore = "needs Slurm: `just cluster`"]
fn an_experiment_runs_whole_on_every_node() {
    let conf = std::env::var_os("SLURM_CONF").unwrap();
    lab::Lab::new("slurm", ["n1", "n2", "n3"], vec![("SLURM_CONF", conf)]).assert_all(|| {
        let steps = Command::new("scontrol").args(["show", "step"]).output().unwrap();
        let steps = String::from_utf8(steps.stdout).unwrap();
        assert_eq!(steps.matches(" CPUs=2 ").count(), 3, "each has its node's: {steps}");
    });
    assert_no_job();
}
