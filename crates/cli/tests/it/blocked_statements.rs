//! Reports and gives up statements of pgdyno's own that wait for another session. Later statements
//! come to no harm.

use crate::pgbench_support::Server;
use crate::support::{World, finish, quick, with_sets};
use pgdyno_test_support::test_name;

/// Names a standby that does not exist.
const NOBODY: &str = "synchronous_standby_names=nobody";

#[test]
#[ignore = "long: a crash session; the first tier has a run that waits so"]
fn a_crash_test_whose_server_waits_for_a_standby_is_unknown() {
    let world = World::new();
    let disk = world.disk();
    let mut args = vec!["crash", "--json", "--fault", "process", "--rounds", "1", "--no-controls"];
    args.extend(["--setting", NOBODY, "--storage", disk.to_str().unwrap()]);
    let ended = world.run(&args).exits(5);
    let shown = ended.json();
    assert_eq!(shown["verdict"], "unknown", "{shown}");
    let reason = shown["reason"].as_str().unwrap();
    assert!(reason.contains("for a standby to confirm its commit"), "{reason}");
    ended.says("has waited 2 s for a standby");
    world.assert_nothing_left();
}

#[test]
fn a_level_with_which_no_data_can_be_loaded_costs_its_own_trials_only() {
    let world = World::new();
    let sets = [
        "factors={}",
        "factors.v={ waits = { synchronous_standby_names = \"nobody\" }, \
         reads = { default_transaction_read_only = true }, good = { work_mem = \"5MB\" } }",
        "experiment.order=\"sequential\"",
        "experiment.repeats=1",
    ];
    world.run(&quick(&world, "quickstart", &sets)).exits(2);
    let shown = world.show("latest");
    let trials = shown["trials"].as_array().unwrap();
    let failures: Vec<Option<&str>> = trials.iter().map(|t| t["failure"].as_str()).collect();
    let [Some(waits), Some(reads), None] = failures[..] else { panic!("{failures:?}") };
    assert!(waits.contains("for a standby to confirm its commit"), "{waits}");
    assert!(reads.contains("in a read-only transaction"), "{reads}");
    world.assert_nothing_left();
}

#[test]
#[ignore = "long: locks are waited for until they are given up"]
fn a_lock_that_somebody_holds_fails_the_trial_and_its_holder_is_named() {
    let Some(server) = Server::newest(test_name!()) else { return };
    let world = World::new();
    let dsn = format!(
        "postgres.dsn=\"host={} user=postgres dbname=our\"",
        server.directory("server").display()
    );
    let sets = [
        dsn.as_str(),
        "factors={}",
        "load.clients=1",
        "experiment.repeats=6",
        "load.duration=1s",
        "load.rate=100",
        "workload.scale=1",
    ];
    let run = with_sets(&["run", "quickstart"], sets);
    let child = world.spawn(&run);
    world.until("a trial", || world.trials_stored() == 1);
    let lock =
        "begin; lock table pgdyno.pgbench_history in access share mode; select pg_sleep(600)";
    let holder = "select pid from pg_stat_activity where query like '%pg_sleep(600)' and pid <> \
        pg_backend_pid()";
    std::thread::scope(|scope| {
        let held = scope.spawn(|| server.asked("our", lock));
        let mut pid = String::new();
        world.until("the lock", || {
            pid = server.ask("our", holder);
            !pid.is_empty()
        });
        let waiting = "select pid from pg_stat_activity where wait_event_type = 'Lock'";
        let mut waiter = String::new();
        world.until("a wait", || {
            waiter = server.ask("our", waiting);
            !waiter.is_empty()
        });
        // The next trial's follows soon.
        world.until("its end", || server.ask("our", waiting) != waiter);
        server.ask("our", &format!("select pg_terminate_backend({pid})"));
        held.join().unwrap();
        let ended = finish(child).exits(2);
        let named = format!("that the server's process {pid} holds");
        assert!(ended.err.contains(&named), "{named}: {}", ended.err);
    });
    let schemas = "select count(*) from pg_namespace where nspname like 'pgdyno%'";
    assert_eq!(server.ask("our", schemas), "0");
}
