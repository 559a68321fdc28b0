//! `pgdyno pgbench --generators`: several processes on this machine offer one load.

use std::process::{Child, Command, Stdio};

use crate::generators_support::{ANY_SKEW, CLIENTS};
use crate::pgbench_support::{Server, signal};
use crate::support::{FORCE, World, elements, finish, read_column, read_json};
use pgdyno_exec::process::{Identity, children};
use pgdyno_test_support::{assert_contains, test_name, wait_for};

/// The newest server, with pgbench's tables in `our`.
fn server(test: &str) -> Option<Server> {
    let server = Server::newest(test)?;
    server.run("our", "-i -q").exits(0);
    Some(server)
}

/// A load of a minute by `generators`, with 4 clients; returned once all of them are at work.
fn running(server: &Server, generators: &str) -> (Child, Vec<Identity>) {
    let args =
        ["-n", "-S", "-c", "4", "-R", "500", "-T", "60", ANY_SKEW, "--generators", generators];
    let mut command = server.command("our");
    let child = command.args(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_for("a second of load", || (clients(server) == 4).then_some(()));
    let pid = i32::try_from(child.id()).unwrap();
    let workers = children(pid);
    assert_eq!(workers.len(), 2);
    // The load has begun when transactions are counted.
    let before = transactions(server);
    wait_for("transactions", || (transactions(server) > before + 100).then_some(()));
    (child, workers)
}

/// Connections of clients.
fn clients(server: &Server) -> u32 {
    server.ask("postgres", CLIENTS).parse().unwrap()
}

fn transactions(server: &Server) -> u64 {
    let query = "SELECT xact_commit FROM pg_stat_database WHERE datname = 'our'";
    server.ask("postgres", query).parse().unwrap()
}

/// Waits until neither workers nor their connections are left.
fn assert_all_gone(server: &Server, workers: &[Identity]) {
    wait_for("the workers' end", || workers.iter().all(|w| !w.is_alive()).then_some(()));
    wait_for("the connections' end", || (clients(server) == 0).then_some(()));
}

#[test]
fn several_processes_draw_what_one_would_draw() {
    let Some(server) = server(test_name!()) else { return };
    server.script(
        "draw.sql",
        "\\set x random(1, 1000000000)\nINSERT INTO drawn VALUES (:client_id, :x);\n",
    );
    let drawn = |generators: &str| {
        server.ask("our", "DROP TABLE IF EXISTS drawn; CREATE TABLE drawn (client int, x int)");
        let args = format!("-n -f draw.sql -c 5 -j 3 -t 20 --random-seed=7 {generators}");
        let run = server.run("our", &args).exits(0);
        run.prints("actually processed: 100/100");
        let rows = "SELECT string_agg(client || ' ' || x, ',' ORDER BY client, x) FROM drawn";
        (server.ask("our", rows), run.out)
    };
    let (alone, _) = drawn("");
    let (two, report) = drawn(&format!("{ANY_SKEW} --generators local:2"));
    assert_eq!(two, alone);
    assert_eq!(drawn(&format!("{ANY_SKEW} --generators local:3")).0, alone);
    assert_contains(&report, &["pgdyno: generator ", "pgdyno: local-1 ", "pgdyno: local-2 "]);
}

#[test]
fn the_report_and_the_json_tell_of_each_generator() {
    let Some(server) = server(test_name!()) else { return };
    let args = "-n -c 4 -T 2 -R 200 -P 1 -r --json=run.json --hdr-log=run.hdr --generators local:2";
    let run = server.run("our", &format!("{args} {ANY_SKEW}")).exits(0);
    run.says("progress: 1.0 s");
    let json = read_json(server.directory("our").join("run.json"));
    let m = &json["measurement"];
    let generators = m["generators"].as_array().unwrap();
    assert_eq!((json["threads"].as_u64(), generators.len()), (Some(2), 2));
    let sum: u64 = generators.iter().map(|g| g["transactions"].as_u64().unwrap()).sum();
    assert_eq!(m["transactions"].as_u64(), Some(sum));
    assert!(generators.iter().all(|g| g["clients"] == 2 && g["latency_us_p99"].is_f64()));
    let committed = server.ask("our", "SELECT count(*) FROM pgbench_history");
    let all = sum + m["drained_transactions"].as_u64().unwrap();
    assert_eq!(committed, all.to_string());
}

#[test]
fn a_killed_worker_makes_the_run_invalid_and_stops_the_other() {
    let Some(server) = server("a_killed_worker_makes_the_run_invalid") else { return };
    let (child, workers) = running(&server, "local:2");
    signal(workers[1].pid(), "KILL");
    let run = finish(child).exits(1);
    run.says("generator local-").says(" in second ").says("SIGKILL");
    assert!(!run.out.contains("tps"), "{}", run.out);
    assert_all_gone(&server, &workers);
}

#[test]
fn a_trial_in_which_a_worker_is_killed_is_tried_again() {
    let world = World::new();
    let text = format!(
        "[experiment]\nrepeats = 1\n[load]\nclients = 2\nrate = 100\nduration = \"2s\"\n\
         warm_up = \"200ms\"\n[workload]\nname = \"{}\"\nscale = 1\n[telemetry]\nfsync = \"0s\"\n\
         [generators]\nlaunch = \"local:2\"\nmax_start_skew = \"60s\"\nretry = 1\n\
         [storage.disk]\ndirectory = \"{}\"\n",
        world.small_workload(),
        world.disk().display()
    );
    world.file("again.toml", &text);
    let child = world.spawn(&["run", "again.toml"]);
    let pid = i32::try_from(child.id()).unwrap();
    let is_worker = |process: &Identity| {
        let line = std::fs::read(format!("/proc/{}/cmdline", process.pid())).unwrap_or_default();
        line.split(|byte| *byte == 0).any(|word| word == b"worker")
    };
    let workers = wait_for("workers", || {
        let workers: Vec<_> = children(pid).into_iter().filter(is_worker).collect();
        (workers.len() == 2).then_some(workers)
    });
    signal(workers[0].pid(), "KILL");
    finish(child).exits(0).says("tried again");
    let failures: Vec<Option<String>> =
        read_column(&world.store(), "SELECT failure FROM trial ORDER BY rowid").unwrap();
    assert_eq!(failures.len(), 2, "{failures:?}");
    assert!(failures[0].as_ref().is_some_and(|why| why.contains("generator local-")));
    assert_eq!(failures[1], None);
}

#[test]
fn one_process_and_two_are_levels_of_one_run() {
    let world = World::new();
    let text = format!(
        "[experiment]\nrepeats = 2\n[factors]\ngenerators = [\"none\", \"local:2\"]\n\
         [load]\nclients = 2\nthreads = 2\nrate = 200\nduration = \"1s\"\nwarm_up = \"200ms\"\n\
         [workload]\nname = \"{}\"\nscale = 1\n[telemetry]\nfsync = \"0s\"\n\
         [generators]\nmax_start_skew = \"60s\"\n[storage.disk]\ndirectory = \"{}\"\n",
        world.small_workload(),
        world.disk().display()
    );
    world.file("levels.toml", &text);
    // Refused before anything starts.
    for (set, word) in [
        ("factors.generators=[\"none\", \"local:3\"]", "generators=local:3"),
        ("factors.generators=[\"none\", \"ssh:a\"]", "ssh:a"),
    ] {
        let refused = world.run(&["run", "levels.toml", "--set", set]).exits(1);
        assert!(refused.err.contains(word) && !world.store().exists(), "{}", refused.err);
    }
    let run = world.run(&["run", "levels.toml"]).exits(0);
    for label in ["generators=none", "generators=local:2"] {
        run.prints(label);
    }
    let shown = world.show("latest");
    let names: Vec<Vec<&str>> = ["none", "local:2"]
        .map(|level| {
            let mut treatments = elements(&shown["treatments"]);
            let treatment = treatments.find(|t| t["factors"]["generators"] == level).unwrap();
            let generators = elements(&treatment["generators"]);
            let in_both = generators.filter(|generator| generator["trials"] == 2);
            in_both.map(|generator| generator["name"].as_str().unwrap()).collect()
        })
        .into();
    assert_eq!(names, [vec![], vec!["local-1", "local-2"]]);
    // They are two sides of a comparison, not one treatment under two names.
    assert_eq!(shown["comparisons"].as_array().unwrap().len(), 1);
    world
        .run(&["compare", FORCE, "latest", "latest", "--by", "generators"])
        .exits(0)
        .prints("none→local:2");
    world.assert_nothing_left();
}

#[test]
fn no_worker_outlives_a_killed_coordinator() {
    let Some(server) = server(test_name!()) else { return };
    let (mut child, workers) = running(&server, "local:2");
    child.kill().unwrap();
    child.wait().unwrap();
    assert_all_gone(&server, &workers);
}

#[test]
fn an_interrupted_run_reports_what_was_measured() {
    let Some(server) = server(test_name!()) else { return };
    let (child, workers) = running(&server, "local:2");
    signal(child.id(), "INT");
    finish(child).exits(130).prints("tps = ");
    assert_all_gone(&server, &workers);
}

#[test]
fn what_several_generators_cannot_do_is_refused() {
    let Some(server) = server(test_name!()) else { return };
    for (args, word) in [
        ("-n -S -c 4 -l --generators local:2", "-l"),
        ("-n -S -c 1 --generators local:2", "too few"),
        ("-n -S -c 4 --generators pigeon:2", "pigeon:2"),
        ("-n -S -c 4 --generators ssh:-x", "no host"),
        ("-n -S -c 4 --generators ssh:nowhere.invalid", "socket"),
        ("-n -S -c 4 --max-start-skew=5", "--generators"),
        ("-n -S -c 4 --allow-saturated", "--generators"),
        ("-i --generators local:2", "--generators"),
    ] {
        let run = server.run("our", args).with_case(args).exits(1);
        run.says(word);
    }
    // A script that fails at a worker ends the run with the server's words.
    server.script("wrong.sql", "SELECT 1/0;\n");
    let args = "-n -f wrong.sql -c 2 -t 2 --generators local:2";
    server.run("our", &format!("{args} {ANY_SKEW}")).exits(2).says("division by zero");
}

#[test]
fn a_worker_that_nobody_orders_about_ends_at_once() {
    let mut worker = Command::new(env!("CARGO_BIN_EXE_pgdyno"))
        .arg("worker")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    assert!(!worker.wait().unwrap().success());
}
