//! Hosts with networks of their own: generators, a server of pgdyno's that listens for them, and
//! the host of an external server.

use std::fs;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::process::{Child, Stdio};

use crate::pgbench_support;
use crate::ssh_support::Hosts;
use crate::support::{Ended, World, ended, finish, quick, read_column, with_sets};
use pgdyno_exec::process::children;
use pgdyno_test_support::test_name;

/// A run of one trial by generators on `gen1` and `gen2`, whose server listens for them.
fn run(world: &World, hosts: &Hosts, seconds: u32) -> Vec<String> {
    let listen = format!("postgres.listen={}", hosts.links[0].here);
    let duration = format!("load.duration={seconds}s");
    let sets = [
        "factors={clients = [2]}",
        "experiment.repeats=1",
        "generators.launch=ssh:gen1,gen2",
        "generators.max_start_skew=60s",
        "generators.allow_saturated=true",
        &duration,
        &listen,
    ];
    quick(world, "quickstart", &sets)
}

/// The files of the server that runs in `world`: its folder, and the port that it listens on.
fn server(world: &World) -> (PathBuf, String) {
    let pid = world.servers()[0];
    let data = fs::read_link(format!("/proc/{pid}/cwd")).unwrap();
    let text = fs::read_to_string(data.join("postmaster.pid")).unwrap();
    (data.parent().unwrap().to_owned(), text.lines().nth(3).unwrap().to_owned())
}

/// Waits for a client from `address` of the server that `run` works with.
fn until_a_client(world: &World, run: &mut Child, address: &Ipv4Addr) {
    // A backend's title has its client's address.
    let client = format!(" {address}(");
    world.until("a client of the host", || {
        assert!(run.try_wait().unwrap().is_none(), "it ended before");
        world.servers().iter().flat_map(|pid| children(*pid)).any(|process| {
            fs::read(format!("/proc/{}/cmdline", process.pid()))
                .is_ok_and(|title| String::from_utf8_lossy(&title).contains(&client))
        })
    });
}

/// Tries to connect from host `n`, from 1.
fn attempt(world: &World, hosts: &Hosts, n: usize, ssl: &str) -> Ended {
    let (_, port) = server(world);
    let link = &hosts.links[n - 1];
    let here = hosts.links[0].here.to_string();
    let words = ["pgbench", "-n", "-S", "-t", "1", "-U", "postgres", "-h", &here, "-p", &port];
    let mut command = link.command(env!("CARGO_BIN_EXE_pgdyno"));
    command.args(words).arg("postgres").env("PGPASSWORD", "guessed").env("PGSSLMODE", ssl);
    ended(command.output().unwrap())
}

#[test]
fn a_managed_server_lets_in_the_hosts_of_its_generators_and_nobody_else() {
    let Some(hosts) = Hosts::start_apart(test_name!(), 3) else { return };
    let world = World::new();
    let mut command = world.command(&run(&world, &hosts, 8));
    command.env("PGDYNO_SSH", hosts.ssh()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // The server has its last restart behind it.
    until_a_client(&world, &mut child, &hosts.links[1].there);
    let text = fs::read_to_string(server(&world).0.join("pg_hba.conf")).unwrap();
    let mut lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    lines.sort_unstable();
    let mut allowed = [hosts.links[0].here, hosts.links[0].there, hosts.links[1].there]
        .map(|address| format!("hostssl all postgres {address}/32 scram-sha-256"));
    allowed.sort();
    assert_eq!(lines, [&allowed[..], &["local all all trust".to_owned()]].concat());

    for (n, ssl, why) in [
        (3, "require", "no pg_hba.conf entry for host"),
        (1, "disable", "no encryption"),
        (1, "require", "password authentication failed"),
    ] {
        let refused = attempt(&world, &hosts, n, ssl).exits(1);
        assert!(refused.err.contains(why), "gen{n}, {ssl}: {}", refused.err);
    }

    let done = finish(child).exits(0);
    for name in ["gen1 ", "gen2 "] {
        done.prints(name);
    }
    world.assert_nothing_left();
}

#[test]
#[ignore = "long: a host that is waited for"]
fn a_host_that_is_cut_off_is_named_and_its_worker_ends_by_itself() {
    let Some(hosts) = Hosts::start_apart(test_name!(), 2) else { return };
    let world = World::new();
    let mut command = world.command(&run(&world, &hosts, 120));
    command.env("PGDYNO_SSH", hosts.ssh()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let link = &hosts.links[1];
    let workers = || link.processes().iter().filter(|(_, line)| line.contains(" worker")).count();
    until_a_client(&world, &mut child, &link.there);
    assert_eq!(workers(), 1);
    link.cut();
    finish(child).exits(2).says("generator gen2").says("nothing was heard of its worker for 3 s");
    world.until("the worker to end", || workers() == 0);
    world.assert_nothing_left();
}

#[test]
fn telemetry_of_an_external_server_is_read_on_its_host() {
    let test = "telemetry_of_an_external_server_is_read_on_its_host";
    let Some(server) = pgbench_support::Server::newest(test) else { return };
    let Some(hosts) = Hosts::start_apart(test, 1) else { return };
    let world = World::new();
    let socket = server.directory("server");
    let dsn = format!("postgres.dsn=\"host={} user=postgres dbname=our\"", socket.display());
    let small = format!("workload.name={}", world.small_workload());
    let run = |host: &str| {
        let observe = format!("postgres.observe=ssh:{host}");
        let sets = [
            dsn.as_str(),
            &observe,
            &small,
            "load.rate=200",
            "load.duration=2s",
            "load.warm_up=200ms",
            "workload.scale=1",
            "factors={}",
            "experiment.repeats=1",
            "telemetry.interval=200ms",
        ];
        let args = with_sets(&["run", "quickstart"], sets);
        ended(world.command(&args).env("PGDYNO_SSH", hosts.ssh()).output().unwrap())
    };
    run("gen1").exits(0);
    let read = |sql: &str| -> Vec<String> { read_column(&world.store(), sql).unwrap() };
    // The host's interfaces, and not this machine's.
    let network = read("SELECT columns FROM telemetry WHERE probe = 'network'").concat();
    assert!(network.contains("eth0") && !network.contains("pgd"), "{network}");
    for (probe, source) in [("cpu", "the host"), ("pg_stat_database", "the server")] {
        let sql = format!(
            "SELECT CAST(count(*) AS TEXT) FROM telemetry t JOIN sample s ON s.telemetry = t.id \
             WHERE probe = '{probe}'"
        );
        assert!(read(&sql)[0].parse::<u32>().unwrap() > 5, "{probe} of {source}");
    }
    let link = &hosts.links[0];
    let observers = || link.processes().iter().any(|(_, line)| line.contains("--observe"));
    world.until("the observer to end", || !observers());

    run("nowhere.invalid").exits(2).says("cannot observe nowhere.invalid");
}
