//! `pgdyno pgbench --store`: runs of the drop-in are kept, and known as such.
use std::path::PathBuf;
use std::process::Stdio;

use crate::pgbench_support::{self, Server};
use crate::support::{finish, signal};
use pgdyno_test_support::{test_name, wait_for};

#[test]
fn a_run_is_kept_and_shown_as_ad_hoc() {
    let Some(server) = Server::newest(test_name!()) else { return };
    server.run("our", "-i -q --store=kept").exits(0).says("nothing is stored");
    let store: PathBuf = server.directory("our").join("kept");
    assert!(!store.exists(), "an initialization stores nothing");

    let plain = server.run("our", "-n -S -c 2 -t 50");
    for _ in 0..2 {
        let kept = server.run("our", "-n -S -c 2 -t 50 --store=kept").exits(0);
        let lines = |text: &str| text.lines().count();
        assert_eq!(lines(&kept.out), lines(&plain.out), "the report is pgbench's");
        kept.says("stored as pgbench-");
    }
    let listed = server.pgdyno("list --store kept");
    assert_eq!(listed.out.matches("completed, ad hoc").count(), 2, "{}", listed.out);
    let runs = server.pgdyno("list --json --store kept").json();
    assert!(runs[0]["ad_hoc"] == true && runs[0]["recipe"] == "pgbench", "{runs}");
    let shown = server.pgdyno("show latest --json --store kept").json();
    assert!(shown["ad_hoc"] == true, "{shown}");
    assert_eq!(shown["trials"][0]["transactions"], 100);
    assert!(shown["servers"][0]["version_num"].as_u64().unwrap() >= 150_000);
    server.pgdyno("show latest --store kept").prints("ad hoc").prints("Ad hoc: ");
    server.pgdyno("report latest -o page.html --store kept").exits(0);

    let (a, b) = (runs[0]["id"].as_str().unwrap(), runs[1]["id"].as_str().unwrap());
    server.pgdyno(&format!("compare {a} {b} --store kept")).exits(0).prints("is ad hoc");
    server.pgdyno(&format!("run --resume {a} --store kept")).exits(1).says("ad hoc run");
    server.pgdyno("verify --store kept").exits(0);
}

#[test]
fn a_run_that_a_signal_ends_is_kept_as_interrupted() {
    let Some(server) = Server::newest(test_name!()) else { return };
    server.run("our", "-i -q").exits(0);
    let mut command = server.command("our");
    command.args(["-n", "-S", "-T", "600", "--store=kept"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let load = "select count(*) from pg_stat_activity where query like 'SELECT abalance%'";
    wait_for("the load", || (server.ask("our", load) != "0").then_some(()));
    signal(child.id().cast_signed(), "INT");
    finish(child).exits(130);
    let shown = server.pgdyno("show latest --json --store kept").json();
    assert_eq!((&shown["run"]["state"], &shown["ad_hoc"]), (&"interrupted".into(), &true.into()));
    let failure = shown["trials"][0]["failure"].as_str().unwrap();
    assert!(failure.starts_with("a signal ended it"), "{failure}");
}

#[test]
fn the_password_of_a_dsn_never_reaches_the_store() {
    const PASSWORD: &str = "correct-horse-battery";
    let Some(server) = Server::newest(test_name!()) else { return };
    server.run("our", "-i -q").exits(0);
    server.ask("our", &format!("CREATE ROLE kept SUPERUSER LOGIN PASSWORD '{PASSWORD}'"));
    server.ask_for_passwords("kept");
    let mut command = server.command("our");
    let dsn = format!("dbname=our user=kept password={PASSWORD}");
    let output = command.args(["-n", "-S", "-t", "5", "--store=kept", &dsn]).output().unwrap();
    pgbench_support::ended(output).exits(0);
    let bytes = std::fs::read(server.directory("our").join("kept")).unwrap();
    let needle = PASSWORD.as_bytes();
    assert!(!bytes.windows(needle.len()).any(|window| window == needle));
    assert!(bytes.windows(8).any(|window| window == b"pgbench-"), "it is kept at all");
}

#[test]
fn a_run_that_cannot_be_kept_is_not_begun() {
    let Some(server) = Server::newest(test_name!()) else { return };
    server.run("our", "-i -q").exits(0);
    std::fs::write(server.directory("our").join("taken"), "text").unwrap();
    let refused = server.run("our", "-n -S -t 5 --store=taken");
    assert_eq!((refused.code, refused.out.as_str()), (Some(1), ""), "{}", refused.err);
    refused.says("not a pgdyno store");
}
