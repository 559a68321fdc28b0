//! `-i --init-batch-size`: rows are committed in batches, and a lost connection is replaced.

use std::io::{Read as _, Write as _};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Stdio};

use pgdyno_test_support::{test_name, wait_for};

use crate::pgbench_initialize::{ROWS, SHAPE, assert_same};
use crate::pgbench_support::{Server, signal, words};
use crate::support::finish;

/// All sessions of pgdyno in the database.
const OURS: &str = "pg_stat_activity where application_name = 'pgdyno control' and datname = 'our'";
/// Rows that have been committed.
const COMMITTED: &str = "select count(*) from pgbench_accounts";

/// Begins an initialization without keys, in batches of 5,000 rows.
fn begin(server: &Server, scale: u32, options: &str) -> Child {
    // Rows of another one would be taken for those of this.
    server.ask("our", "drop table if exists pgbench_accounts");
    let mut command = server.command("our");
    command.args(["-i", "-I", "dtg", "--init-batch-size=5000", "-s", &scale.to_string()]);
    command.args(options.split_whitespace());
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Waits until others see rows of an initialization that goes on.
fn wait_for_rows(server: &Server, child: &mut Child) {
    let there = "select count(*) from pg_class where relname = 'pgbench_accounts'";
    wait_for("rows that are committed", || {
        assert!(child.try_wait().unwrap().is_none(), "it ended by itself");
        (server.ask("our", there) == "1" && server.ask("our", COMMITTED) != "0").then_some(())
    });
}

/// Ends the session of an initialization.
fn terminate(server: &Server) {
    server.asked("our", &format!("select pg_terminate_backend(pid) from {OURS}"));
}

/// Reads until the loss of the connection is told of.
fn wait_for_loss(err: &mut ChildStderr) {
    let mut said = String::new();
    while !said.ends_with("connecting again") {
        let mut byte = [0];
        assert_eq!(err.read(&mut byte).unwrap(), 1, "{said}");
        said.push(byte[0].into());
    }
}

/// Asserts that each row is there once, in its batch.
#[track_caller]
fn assert_rows(server: &Server, scale: u64, batch: u64, what: &str) {
    for (table, key, rows) in [("branches", "bid", 1), ("tellers", "tid", 10)] {
        let rows = rows * scale;
        let ask =
            format!("select count({key}), count(distinct {key}), max({key}) from pgbench_{table}");
        assert_eq!(server.ask("our", &ask), format!("{rows}|{rows}|{rows}"), "{what}: {table}");
    }
    let rows = 100_000 * scale;
    let ask = "select count(aid), count(distinct aid), max(aid), count(distinct xmin::text), \
               bool_and(bid = (aid - 1) / 100000 + 1) from pgbench_accounts";
    let expected = format!("{rows}|{rows}|{rows}|{}|t", rows / batch);
    assert_eq!(server.ask("our", ask), expected, "{what}");
}

#[test]
fn batches_leave_what_pgbench_leaves_and_are_committed_one_by_one() {
    let Some(server) = Server::newest(test_name!()) else { return };
    let theirs = server.run("ref", "-i -s 2").exits(0);
    let ours = server.run("our", "-i -s 2 --init-batch-size=3777").exits(0);
    assert_eq!(words(&ours.err), words(&theirs.err));
    assert_same(&server, "batches", SHAPE);
    assert_same(&server, "batches", ROWS);
    let transactions = "select count(distinct xmin::text) from pgbench_accounts";
    assert_eq!(server.ask("our", transactions), "53");
    // What the server refuses is no lost connection, and batches before it stay.
    server.run("our", "-i -I dt").exits(0);
    server.ask("our", "alter table pgbench_accounts add check (aid <> 40000)");
    let refused = server.run("our", "-i -I g --init-batch-size=15000").exits(1);
    refused.says("violates check constraint").says("Query was: copy ");
    assert!(!refused.err.contains("lost"), "{}", refused.err);
    assert_eq!(server.ask("our", COMMITTED), "30000");
}

#[test]
fn a_terminated_backend_is_replaced_unless_the_tables_have_changed() {
    let Some(server) = Server::newest(test_name!()) else { return };
    let mut child = begin(&server, 3, "");
    wait_for_rows(&server, &mut child);
    terminate(&server);
    let ended = finish(child).exits(0);
    ended.says("pgbench: warning: lost the connection during rows ");
    ended.says("terminating connection due to administrator command");
    ended.says("going on after row ");
    assert_rows(&server, 3, 5000, &ended.err);

    for (change, error) in [
        ("insert into pgbench_accounts values (299999, 1)", "hold rows that no batch has left"),
        ("drop table pgbench_accounts", "pgbench_accounts"),
    ] {
        let mut child = begin(&server, 3, "");
        wait_for_rows(&server, &mut child);
        // The next batch waits for the lock when its session is ended.
        server.asked(
            "our",
            &format!(
                "begin; lock table pgbench_accounts; {change}; \
                 select pg_terminate_backend(pid) from {OURS}; commit"
            ),
        );
        let ended = finish(child).with_case(change).exits(1);
        ended.says(error).says("could not go on after row ");
    }
}

#[test]
#[ignore = "long: three loads during which the server crashes"]
fn a_server_that_crashed_is_waited_for_and_asked_what_is_left() {
    let Some(mut server) = Server::newest(test_name!()) else { return };
    for options in ["", "--unlogged-tables", "--partitions=3"] {
        let mut child = begin(&server, 10, options);
        wait_for_rows(&server, &mut child);
        server.crash();
        server = server.start_again();
        let ended = finish(child).with_case(options).exits(0);
        ended.says("pgbench: warning: lost the connection during rows ");
        // Recovery empties unlogged tables.
        let lost = ended.err.contains("the server lost rows that it had committed");
        assert_eq!(lost, options == "--unlogged-tables", "{}", ended.err);
        assert_rows(&server, 10, 5000, options);
    }
}

#[test]
#[ignore = "long: a server that stays away for a minute"]
fn a_server_that_stays_away_is_given_up_and_a_signal_ends_the_wait() {
    let Some(mut server) = Server::newest(test_name!()) else { return };
    let mut patient = begin(&server, 100, "");
    wait_for_rows(&server, &mut patient);
    server.crash();
    let ended = finish(patient).exits(1);
    ended.says("connecting again, for 60 s at most...").says("no connection after ");
    ended.says("pgbench: error: no connection within 60s: connection to server on socket ");
    ended.says("could not go on after row ");

    server = server.start_again();
    let mut child = begin(&server, 100, "");
    wait_for_rows(&server, &mut child);
    server.crash();
    let mut err = child.stderr.take().unwrap();
    wait_for_loss(&mut err);
    let mut said = String::new();
    signal(child.id(), "INT");
    err.read_to_string(&mut said).unwrap();
    finish(child).exits(130);
    assert!(said.ends_with("pgbench: error: interrupted\n"), "{said}");
}

#[test]
#[ignore = "long: a server that is silent for more than a minute"]
fn a_silent_server_is_a_lost_connection() {
    let Some(server) = Server::newest(test_name!()) else { return };
    let mut child = begin(&server, 100, "");
    wait_for_rows(&server, &mut child);
    let postmaster = server.process_id();
    let backend: u32 = server.ask("our", &format!("select pid from {OURS}")).parse().unwrap();
    for process in [postmaster, backend] {
        signal(process, "STOP");
    }
    let mut err = child.stderr.take().unwrap();
    wait_for_loss(&mut err);
    let mut said = String::new();
    for process in [postmaster, backend] {
        signal(process, "CONT");
    }
    err.read_to_string(&mut said).unwrap();
    finish(child).exits(0);
    assert!(said.contains("going on after row "), "{said}");
    assert_rows(&server, 100, 5000, "a silent server");
}

/// Carries bytes to a server's socket and back. Once told to cut, it hangs up on whoever is
/// connected, and the server is not told.
fn hangs_up_on_the_first(folder: &Path, server: PathBuf) -> UnixStream {
    let name = ".s.PGSQL.5432";
    let listener = UnixListener::bind(folder.join(name)).unwrap();
    let (sender, cut) = UnixStream::pair().unwrap();
    let mut cut = Some(cut);
    std::thread::spawn(move || {
        for client in listener.incoming() {
            let client = client.unwrap();
            let server = UnixStream::connect(server.join(name)).unwrap();
            let (to_server, to_client) = (server.try_clone().unwrap(), client.try_clone().unwrap());
            let is_cut = cut.take();
            let is_first = is_cut.is_some();
            if let Some(mut cut) = is_cut {
                let client = client.try_clone().unwrap();
                std::thread::spawn(move || {
                    let _ = cut.read(&mut [0]);
                    let _ = client.shutdown(Shutdown::Both);
                });
            }
            for (mut from, mut to, tells) in
                [(client, to_server, !is_first), (server, to_client, true)]
            {
                std::thread::spawn(move || {
                    let _ = std::io::copy(&mut from, &mut to);
                    if tells {
                        let _ = to.shutdown(Shutdown::Write);
                    } else {
                        // The server's end of the connection stays open.
                        std::mem::forget(to);
                    }
                });
            }
        }
    });
    sender
}

#[test]
#[ignore = "long: the lost session lives on at the server"]
fn a_session_that_lives_on_at_the_server_is_ended_before_it_is_asked_what_is_left() {
    let Some(server) = Server::newest(test_name!()) else { return };
    let folder = tempfile::tempdir().unwrap();
    let mut cut = hangs_up_on_the_first(folder.path(), server.socket_folder());
    let mut command = server.command("our");
    // Nearly all of the time a batch is on its way.
    command.args(["-i", "-I", "dtg", "--init-batch-size=200000", "-s", "10"]);
    command.env("PGHOST", folder.path()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    wait_for_rows(&server, &mut child);
    cut.write_all(&[0]).unwrap();
    let ended = finish(child).exits(0);
    ended.says("pgbench: warning: lost the connection during rows ");
    assert_rows(&server, 10, 200_000, &ended.err);
    wait_for("the end of the lost session", || {
        (server.ask("our", &format!("select count(*) from {OURS}")) == "0").then_some(())
    });
}
