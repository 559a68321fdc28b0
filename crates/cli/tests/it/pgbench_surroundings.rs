//! Surroundings in which a run may be started: limits, ignored signals, names of files.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::pgbench_support::{Ended, Server, ended, signal};
use crate::support::finish;
use pgdyno_test_support::{test_name, wait_for};

/// Returns a shell that executes `before`, then becomes `pgdyno pgbench` with `args`.
fn shell(server: &Server, before: &str, args: &str) -> Command {
    let mut shell = server.command_of(Path::new("sh"));
    let words = format!("{before}; exec \"$0\" pgbench {args}");
    shell.env("PGDATABASE", "our").args(["-c", &words, env!("CARGO_BIN_EXE_pgdyno")]);
    shell
}

fn run(server: &Server, before: &str, args: &str) -> Ended {
    ended(shell(server, before, args).output().unwrap())
}

#[test]
fn a_run_has_the_open_files_that_it_needs_or_says_how_many_that_are() {
    let Some(server) = Server::newest("a_run_has_the_open_files_that_it_needs") else { return };
    server.script("one.sql", "SELECT 1;\n");
    for args in [
        "-n -f one.sql -c 20 -t 2",
        "-n -f one.sql -c 20 -j 3 -t 2 -C",
        "-n -f one.sql -c 20 -j 4 -t 2 -l --hdr-log=hdr --json=json --reactor=epoll",
        "-n -f one.sql -c 20 -t 2 --reactor=io_uring",
    ] {
        run(&server, "ulimit -Sn 20", args).with_case(args).exits(0);
        let refused = run(&server, "ulimit -n 25", args).with_case(args).exits(1);
        let needed = refused.err.split("need at least ").nth(1);
        let needed = needed.and_then(|text| text.split(' ').next()?.parse::<u32>().ok());
        let needed = needed.unwrap_or_else(|| panic!("{args}: {}", refused.err));
        refused.says("open files, but system limit is 25");
        run(&server, &format!("ulimit -n {needed}"), args)
            .with_case(format!("{args}, {needed}"))
            .exits(0);
    }
}

#[test]
fn a_signal_that_was_ignored_at_the_start_stays_ignored() {
    let Some(server) = Server::newest(test_name!()) else { return };
    server.script("sleep.sql", "SELECT pg_sleep(0.1);\n");
    // As a shell without job control starts what it leaves in the background.
    let mut command = shell(&server, "trap '' INT HUP", "-n -f sleep.sql -t 15");
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let running = "select count(*) from pg_stat_activity where query = 'SELECT pg_sleep(0.1);'";
    wait_for("a running load", || (server.ask("ref", running) != "0").then_some(()));
    signal(child.id(), "INT");
    signal(child.id(), "HUP");
    finish(child).exits(0).prints("actually processed: 15/15");
}

#[test]
fn names_of_files_may_hold_any_bytes() {
    let Some(server) = Server::newest(test_name!()) else { return };
    let folder = server.directory("our");
    let name = OsStr::from_bytes(b"caf\xe9.sql");
    std::fs::write(folder.join(name), "SELECT 1;\n").unwrap();
    let mut command = server.command("our");
    let weighted = OsStr::from_bytes(b"caf\xe9.sql@3");
    let json = OsStr::from_bytes(b"--json=caf\xe9.json");
    command.args(["-n", "-t", "2", "-l"]).arg("-f").arg(weighted).arg(json);
    command.arg(OsStr::from_bytes(b"--log-prefix=caf\xe9"));
    ended(command.output().unwrap()).exits(0).prints("actually processed: 2/2");
    assert!(folder.join(OsStr::from_bytes(b"caf\xe9.json")).exists());
    let entries = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name());
    let is_log = |name: &std::ffi::OsString| {
        let number = name.as_bytes().strip_prefix(b"caf\xe9.");
        number.is_some_and(|number| number.iter().all(u8::is_ascii_digit))
    };
    assert_eq!(entries.filter(is_log).count(), 1);
}
