//! Logs of a real server, read and replayed.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use pgdyno_connect::control;
use pgdyno_replay::{ReadOptions, Recording, ReplayEnd, ReplayError, ReplayOptions, Speed, replay};
use pgdyno_test_support::{RUN, Session, wait_for};

use crate::allocations::a_statement_allocates_nothing;
use crate::server::{LoggingServer, render};

/// How a database's statements are logged: at their begin, at their end, or both times.
const WAYS: [(&str, &[(&str, &str)]); 3] = [
    ("begun", &[("log_statement", "all")]),
    ("ended", &[("log_min_duration_statement", "0")]),
    ("twice", &[("log_statement", "all"), ("log_min_duration_statement", "0")]),
];

/// A text with all that a log must quote.
const HARD: &str = "it's \"quoted\",\nwith $1 = 'x', \\ and \\' and é日, NULL ...'";

/// Executes statements whose parameters are hard to read, and two that fail.
fn run_hard_statements(server: &LoggingServer, database: &str) {
    let mut client = control::connect_to_own(&server.target(database)).unwrap();
    let insert = "INSERT INTO texts VALUES ($1, $2)";
    for (id, value) in [(1, Some(HARD)), (2, None), (3, Some("")), (4, Some("'"))] {
        client.execute(insert, &[&id, &value]).unwrap();
    }
    client.simple_query("INSERT INTO texts VALUES (5, E'a\\'b\n''c')").unwrap();
    client.simple_query("SELECT no_such_column FROM texts").unwrap_err();
    client.execute("SELECT $1::int / (id - id) FROM texts", &[&7]).unwrap_err();
}

fn options(database: &str, speed: Speed) -> ReplayOptions {
    ReplayOptions { speed, database: Some(database.to_owned()), ..ReplayOptions::default() }
}

#[test]
fn a_log_of_each_kind_is_read_alike_and_its_replay_leaves_equal_rows() {
    let server = LoggingServer::start();
    for (name, settings) in WAYS {
        server.create_logged(name, settings);
        server.run_tpcb(name, 5);
        run_hard_statements(&server, name);
    }
    for (name, _) in WAYS {
        let [csv, json] = server.recordings(name);
        assert_eq!(render(&csv), render(&json), "{name}");
        assert_eq!((csv.obstacles.count(), csv.counts.missing), (0, 0), "{name}");
        let summary = csv.summary();
        // Seven statements of 5 transactions, 3 clients, 3 protocols, and the hard ones.
        assert_eq!((summary.statements, summary.failed), (7 * 45 + 7, 2), "{name}");
        let with_duration = if name == "begun" { 0 } else { summary.statements - 2 };
        assert_eq!((summary.with_duration, summary.under_way), (with_duration, 0), "{name}");

        let copy = format!("copy_{name}");
        let speed = if name == "ended" { Speed::Factor(20.0) } else { Speed::Max };
        let played =
            replay(&csv, &server.options(), &options(&copy, speed), &RUN, &mut |_| {}).unwrap();
        assert_eq!((played.end, played.new_errors()), (ReplayEnd::Completed, 0), "{played:?}");
        assert_eq!((played.statements, played.errors_as_in_log()), (summary.statements, 2));
        assert_eq!(played.sessions, summary.sessions);
        assert_eq!(played.logged.map_or(0, |logged| logged.count), summary.with_duration);
        assert_eq!(server.sums(name), server.sums(&copy), "{name}");
    }
}

/// Returns a recording of one session's simple statements, all due at once.
fn recording(database: &str, sessions: &[&[&str]]) -> Recording {
    let mut text = String::new();
    for (session, statements) in sessions.iter().enumerate() {
        for (number, statement) in (1..).zip(*statements) {
            text.push_str(&format!(
                "{{\"timestamp\":\"2026-11-30 22:00:00.000 UTC\",\"dbname\":\"{database}\",\
                 \"session_id\":\"{session}\",\"line_num\":{number},\"error_severity\":\"LOG\",\
                 \"message\":\"statement: {statement}\"}}\n"
            ));
        }
        let number = statements.len() + 1;
        text.push_str(&format!(
            "{{\"timestamp\":\"2026-11-30 22:00:01.000 UTC\",\"dbname\":\"{database}\",\
             \"session_id\":\"{session}\",\"line_num\":{number},\"error_severity\":\"LOG\",\
             \"message\":\"disconnection: \"}}\n"
        ));
    }
    let options = ReadOptions::default();
    Recording::from_source(Path::new("made"), text.as_bytes(), &options).unwrap()
}

/// One server for what needs no log of its own.
#[test]
fn refusals_a_stop_and_a_statement_without_end() {
    let server = LoggingServer::start();
    what_cannot_be_replayed_there_is_refused_before_anything_is_sent(&server);
    a_stop_cancels_what_runs_and_tells_of_what_was_not_sent(&server);
    a_statement_that_takes_too_long_is_cancelled_and_its_session_goes_on(&server);
    a_statement_allocates_nothing(&server);
}

fn what_cannot_be_replayed_there_is_refused_before_anything_is_sent(server: &LoggingServer) {
    let two: &[&[&str]] = &[&["CREATE TABLE sent ()"], &["SELECT 1"]];
    let other = recording("no_such_database", two);
    let connect = server.options();
    let error = replay(&other, &connect, &ReplayOptions::default(), &RUN, &mut |_| {}).unwrap_err();
    let ReplayError::NoDatabase { missing, .. } = error else { panic!("{error}") };
    assert_eq!(missing, ["no_such_database"]);

    let here = recording("postgres", two);
    let few = ReplayOptions { max_connections: Some(1), ..ReplayOptions::default() };
    let error = replay(&here, &connect, &few, &RUN, &mut |_| {}).unwrap_err();
    assert!(matches!(error, ReplayError::TooManySessions { needed: 2, limit: 1, .. }), "{error:?}");
    let many = recording("postgres", &vec![&["SELECT 1"][..]; 60]);
    let error = replay(&many, &connect, &ReplayOptions::default(), &RUN, &mut |_| {}).unwrap_err();
    assert!(
        matches!(error, ReplayError::TooManySessions { needed: 60, is_by_server: true, .. }),
        "{error:?}"
    );
    // As fast as possible, fewer at a time will do.
    let fast = ReplayOptions { speed: Speed::Max, max_connections: Some(7), ..few };
    let played = replay(&many, &connect, &fast, &RUN, &mut |_| {}).unwrap();
    assert_eq!((played.sessions, played.statements), (60, 60), "{played:?}");
    assert!(played.peak_sessions <= 7);
    let sent = "SELECT count(*) FROM pg_class WHERE relname = 'sent'";
    assert_eq!(Session::new(&server.target("postgres")).count(sent), 0);
}

fn a_stop_cancels_what_runs_and_tells_of_what_was_not_sent(server: &LoggingServer) {
    let waits = recording("postgres", &[&["SELECT pg_sleep(1000)", "SELECT 2"], &["SELECT 3"]]);
    let stop = AtomicBool::new(false);
    let sleepers = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep%' \
        AND state = 'active'";
    let played = std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut session = Session::new(&server.target("postgres"));
            wait_for("the statement", || (session.count(sleepers) == 1).then_some(()));
            stop.store(true, Ordering::Relaxed);
        });
        let options = ReplayOptions::default();
        replay(&waits, &server.options(), &options, &stop, &mut |_| {}).unwrap()
    });
    assert_eq!(played.end, ReplayEnd::Interrupted);
    assert_eq!((played.statements, played.unanswered, played.unsent), (1, 1, 1), "{played:?}");
    let mut session = Session::new(&server.target("postgres"));
    wait_for("the statement's end", || (session.count(sleepers) == 0).then_some(()));
}

fn a_statement_that_takes_too_long_is_cancelled_and_its_session_goes_on(server: &LoggingServer) {
    let slow = recording("postgres", &[&["SELECT pg_sleep(1000)", "SELECT 2"]]);
    let statement_timeout = std::time::Duration::from_millis(100);
    let options = ReplayOptions { statement_timeout, ..ReplayOptions::default() };
    let played = replay(&slow, &server.options(), &options, &RUN, &mut |_| {}).unwrap();
    assert_eq!(played.end, ReplayEnd::Completed);
    assert_eq!((played.statements, played.timed_out, played.new_errors()), (2, 1, 0));
    assert_eq!((played.unanswered, played.lost_sessions), (0, 0), "{played:?}");
}
