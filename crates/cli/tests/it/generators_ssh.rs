//! `pgdyno pgbench --generators ssh:…` with hosts of the test's own.

use std::process::{Command, Stdio};

use crate::generators_support::{self, ANY_SKEW, CLIENTS, server_with_tables};
use crate::ssh_support::Hosts;
use crate::support::ended;
use pgdyno_exec::process::children;
use pgdyno_test_support::{PASSWORD, Server, Session, test_name, wait_for};

/// A command for `pgdyno pgbench` with generators at `hosts`.
fn pgbench(server: &Server, hosts: &Hosts) -> Command {
    let mut command = generators_support::pgbench(server);
    command.env("PGDYNO_SSH", hosts.ssh());
    command
}

/// Runs with all hosts, from the first copy of the program to a changed host key.
#[test]
fn three_hosts_offer_one_load_and_need_nothing_installed() {
    let Some(hosts) = Hosts::start(test_name!(), 3) else { return };
    let server = server_with_tables();

    // The first run copies the program.
    let run = |args: &[&str]| ended(pgbench(&server, &hosts).args(args).output().unwrap());
    let args = &["-n", "-S", "-t", "3", ANY_SKEW, "--generators", "ssh:gen1"];
    run(args).exits(0).prints("actually processed: 3/3");
    let copies = || std::fs::read_dir(hosts.cache()).unwrap().map(|entry| entry.unwrap().path());
    let copied: Vec<_> = copies().collect();
    assert_eq!(copied.len(), 1, "{copied:?}");
    let written = copied[0].metadata().unwrap().modified().unwrap();

    // Later ones find it, by the login that starts it.
    let all = "ssh:gen1,gen2*2,gen3";
    run(&["-n", "-c", "8", "-R", "200", "-T", "2", ANY_SKEW, "--generators", all])
        .exits(0)
        .prints("pgdyno: gen1 ")
        .prints("pgdyno: gen2 ")
        .prints("pgdyno: gen3 ");
    assert_eq!(copies().collect::<Vec<_>>(), copied);
    assert_eq!(copied[0].metadata().unwrap().modified().unwrap(), written);
    assert_eq!((hosts.logins(2), hosts.logins(3)), (1, 1));

    assert_killed_without_trace(&server, &hosts);

    // A host whose key changed is refused, with ssh's own words.
    hosts.forge_known_hosts();
    run(&["-n", "-S", "-c", "4", "-t", "3", "--generators", "ssh:gen1,gen2"])
        .fails(&["generator gen", "verification failed"]);
    run(&["-n", "-S", "-t", "3", "--generators", "ssh:nowhere.invalid"])
        .fails(&["generator nowhere.invalid"]);
}

/// Kills a coordinator of three hosts: nothing is left on them, and no process showed the password.
fn assert_killed_without_trace(server: &Server, hosts: &Hosts) {
    let mut session = Session::new(&server.unix());
    let all = "ssh:gen1,gen2,gen3";
    let args = ["-n", "-S", "-c", "6", "-R", "100", "-T", "120", ANY_SKEW, "--generators", all];
    let mut coordinator = pgbench(server, hosts)
        .args(args)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait_for("six clients", || (session.count(CLIENTS) == 6).then_some(()));
    let workers: Vec<String> = words_of_processes(hosts);
    assert_eq!(workers.len(), 3, "{workers:?}");
    let launchers = children(i32::try_from(coordinator.id()).unwrap());
    assert_eq!(launchers.len(), 3);
    for words in workers.iter().chain(&launchers.iter().map(words_of).collect::<Vec<_>>()) {
        assert!(!words.contains(PASSWORD), "{words}");
    }
    coordinator.kill().unwrap();
    coordinator.wait().unwrap();
    wait_for("the workers' end", || words_of_processes(hosts).is_empty().then_some(()));
    wait_for("the connections' end", || (session.count(CLIENTS) == 0).then_some(()));
}

/// The command lines of processes that run a program from the hosts' cache.
fn words_of_processes(hosts: &Hosts) -> Vec<String> {
    let cache = hosts.cache().display().to_string();
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = entries.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    let lines = lines.map(|line| String::from_utf8_lossy(&line).replace('\0', " "));
    lines.filter(|line| line.starts_with(&cache)).collect()
}

fn words_of(process: &pgdyno_exec::process::Identity) -> String {
    let path = format!("/proc/{}/cmdline", process.pid());
    String::from_utf8_lossy(&std::fs::read(path).unwrap_or_default()).replace('\0', " ")
}
