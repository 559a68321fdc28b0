//! `pgdyno run --hosts ssh:…` with hosts of the test's own: three sshd on this machine, each with
//! its own folders for data, journal and clusters.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::ssh_support::Hosts;
use crate::support::{Ended, FORCE, World, ended, finish, read_column, signal};
use pgdyno_test_support::test_name;

/// One treatment, whose clusters lie in another folder on each host.
fn experiment(world: &World, hosts: &Hosts, repeats: u32) -> String {
    let workload = world.small_workload();
    let mut text = format!(
        "[experiment]\nname = \"lab\"\nrepeats = {repeats}\n[load]\nclients = 1\n\
         rate = 200\nduration = \"1s\"\nwarm_up = \"200ms\"\n\
         [workload]\nname = \"{workload}\"\nscale = 1\n\
         [telemetry]\nfsync = \"20ms\"\n\
         [storage.disk]\ndirectory = \"/nowhere\"\n"
    );
    for n in 1..=3 {
        let folder = hosts.folder_of(n, "disk");
        text += &format!("[hosts.gen{n}.storage.disk]\ndirectory = \"{}\"\n", folder.display());
    }
    text
}

fn run(world: &World, hosts: &Hosts, args: &[&str]) -> Ended {
    ended(world.command(args).env("PGDYNO_SSH", hosts.ssh()).output().unwrap())
}

/// The one column that `sql` reads in a store, sorted.
fn read(store: &Path, sql: &str) -> Vec<String> {
    let mut rows: Vec<String> = read_column(store, sql).unwrap();
    rows.sort();
    rows
}

/// The stores that lie on the hosts.
fn stores_on(hosts: &Hosts, count: usize) -> Vec<PathBuf> {
    let folders = (1..=count).map(|n| hosts.folder_of(n, "data").join("pgdyno/hosts"));
    let keys = folders.filter_map(|folder| std::fs::read_dir(folder).ok()).flatten();
    let stores = keys.map(|key| key.unwrap().path().join("store.sqlite3"));
    stores.filter(|store| store.exists()).collect()
}

fn assert_nothing_left(hosts: &Hosts) {
    for n in 1..=3 {
        let left: Vec<_> = std::fs::read_dir(hosts.folder_of(n, "disk")).unwrap().collect();
        assert!(left.is_empty(), "gen{n}: {left:?}");
    }
}

#[test]
fn an_experiment_runs_on_every_host_and_one_that_fails_is_named() {
    let Some(hosts) = Hosts::start(test_name!(), 2) else { return };
    let world = World::new();
    world.file("lab.toml", &experiment(&world, &hosts, 1));
    let store = world.store();

    // The plan of each host, and nothing more.
    let all = ["run", "lab.toml", "--hosts", "ssh:gen1,gen2"];
    let plan = run(&world, &hosts, &[&all[..], &["--dry-run"]].concat()).exits(0);
    for n in 1..=2 {
        plan.prints(format!("== gen{n}"));
        plan.prints(hosts.folder_of(n, "disk").display().to_string());
    }
    assert!(!hosts.cache().exists() && !store.exists());

    let done = run(&world, &hosts, &all).exits(0);
    done.says("gen2: ");
    let (_, all_hosts) = done.out.split_once("== all hosts\n").unwrap();
    assert!(all_hosts.contains("gen1") && all_hosts.contains("gen2"), "{}", done.out);
    let origins = "SELECT source FROM arrival";
    assert_eq!(read(&store, origins), ["ssh:gen1", "ssh:gen2"]);
    assert_eq!(read(&store, "SELECT run FROM trial").len(), 2);
    assert_eq!(stores_on(&hosts, 2), Vec::<PathBuf>::new());
    assert_nothing_left(&hosts);

    // Both stay side by side, and the host is a level of each.
    let by_host = "SELECT record FROM arrival ORDER BY source";
    let runs: Vec<String> = read_column(&store, by_host).unwrap();
    let shown = world.run(&["show", &runs[0], &runs[1]]);
    assert_eq!(shown.out, all_hosts, "{}", shown.err);
    world
        .run(&["compare", FORCE, &runs[0], &runs[1], "--by", "host"])
        .exits(0)
        .prints("host=gen1→gen2");
    let listed = world.run(&["list"]).out;
    assert!(["gen1", "gen2"].iter().all(|host| listed.contains(host)), "{listed}");
    world.run(&["verify"]).exits(0);

    // One is not there: it is named, and the other's run is kept. So is one that cannot run it.
    let set = format!("storage.disk.directory={}", hosts.folder_of(1, "disk").display());
    run(&world, &hosts, &["run", "lab.toml", "--hosts", "ssh:gen1,nowhere.invalid", "--set", &set])
        .exits(1)
        .says("host nowhere.invalid: FAILED")
        .says("failed on nowhere.invalid");
    assert_eq!(read(&store, origins), ["ssh:gen1", "ssh:gen1", "ssh:gen2"]);
    run(
        &world,
        &hosts,
        &["run", "lab.toml", "--hosts", "ssh:gen2", "--set", "storage.disk.directory=/proc/1/none"],
    )
    .exits(1)
    .says("host gen2: FAILED: ")
    .says("/proc/1/none");
    assert_eq!(read(&store, origins).len(), 3);
}

#[test]
#[ignore = "long: a run of three hosts, twice"]
fn interrupted_hosts_are_resumed_by_the_same_command() {
    let Some(hosts) = Hosts::start(test_name!(), 3) else { return };
    let world = World::new();
    world.file("lab.toml", &experiment(&world, &hosts, 5));
    let all = ["run", "lab.toml", "--hosts", "ssh:gen1,gen2,gen3"];
    let trials = |store: &PathBuf| read(store, "SELECT run FROM trial").len();
    let mut command = world.command(&all);
    command.env("PGDYNO_SSH", hosts.ssh()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let working = command.spawn().unwrap();
    world.until("a trial of each host", || {
        let stores = stores_on(&hosts, 3);
        stores.len() == 3 && stores.iter().all(|store| has_trial(store))
    });
    signal(i32::try_from(working.id()).unwrap(), "INT");
    finish(working).exits(130);
    let store = world.store();
    assert!(!store.exists());
    let on_hosts = stores_on(&hosts, 3);
    let ends = |store: &PathBuf| read(store, "SELECT state FROM session_end");
    world.until("the end of all sessions", || {
        on_hosts.iter().all(|store| ends(store) == ["interrupted"])
    });
    world.until("nothing left", || {
        (1..=3).all(|n| std::fs::read_dir(hosts.folder_of(n, "disk")).unwrap().next().is_none())
    });
    let done: usize = on_hosts.iter().map(trials).sum();
    assert!((3..15).contains(&done), "{done}");

    run(&world, &hosts, &all).exits(0);
    let states = "SELECT state FROM session_end";
    let expected = [["completed"; 3], ["interrupted"; 3]].concat();
    assert_eq!(read(&store, states), expected);
    assert_eq!(read(&store, "SELECT run FROM trial WHERE failure IS NULL").len(), 15);
    assert_eq!(read(&store, "SELECT id FROM run").len(), 3);
    assert_eq!(stores_on(&hosts, 3), Vec::<PathBuf>::new());
    assert_nothing_left(&hosts);
}

/// Whether a trial is stored, as far as can be read beside the process that writes.
fn has_trial(store: &Path) -> bool {
    let counts: rusqlite::Result<Vec<i64>> = read_column(store, "SELECT count(*) FROM trial");
    counts.is_ok_and(|counts| counts[0] > 0)
}
