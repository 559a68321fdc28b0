//! A captured load, replayed beside its original.

use std::fs;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use pgdyno_capture::document::{Obstacle, Part, Reason};
use pgdyno_capture::{
    CaptureError, CaptureOptions, Captured, ReplayOptions, ReplayRate, capture, read, replay,
};
use pgdyno_dataset::{BulkLoad, bulk_load, workload};
use pgdyno_model::experiment::{Loading, Protocol};
use pgdyno_model::progress::Silent;
use pgdyno_test_support::RUN;

use crate::watched_server::WatchedServer;

const OPTIONS: CaptureOptions =
    CaptureOptions { schema: String::new(), top: 100, watch: Some(Duration::from_secs(2)) };

fn options() -> CaptureOptions {
    CaptureOptions { schema: "public".into(), ..OPTIONS }
}

/// Captures the load of `server` into `folder` while it runs.
fn capture_load(server: &WatchedServer, folder: &Path) -> Captured {
    std::thread::scope(|scope| {
        scope.spawn(|| server.run_load(Duration::from_secs(3)));
        std::thread::sleep(Duration::from_millis(500));
        let reader = server.options("original", Some("reader"));
        capture(&reader, folder, &options(), &AtomicBool::new(false)).unwrap()
    })
}

/// Asserts that no file of `folder` has a value of the original's.
fn assert_no_values(folder: &Path) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let text = fs::read_to_string(&path).unwrap().to_lowercase();
        // Of a moment, the month may be there.
        for value in ["canary", "98765", "06-05", "06-07", "06-09"] {
            assert!(!text.contains(value), "`{value}` in {}:\n{text}", path.display());
        }
    }
}

fn load(server: &WatchedServer, folder: &Path) {
    let workload = workload::load(&format!("{}/", folder.display()), &[]).unwrap();
    let loading = Loading::default();
    let filling = BulkLoad::new(&workload.data, 1, 1, &loading);
    bulk_load(&filling, &server.target("twin"), &Silent, &RUN).unwrap();
}

#[test]
fn a_captured_load_holds_no_values_and_its_replay_does_what_the_original_did() {
    capture_and_replay(&WatchedServer::start(None));
}

#[test]
#[ignore = "long: every major version, fetched"]
fn every_major_version_is_captured() {
    for major in 15..=18 {
        capture_and_replay(&WatchedServer::start(Some(major)));
    }
}

fn capture_and_replay(server: &WatchedServer) {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("captured");
    let captured = capture_load(server, &folder);
    assert_eq!(read(&folder).unwrap().statements.len(), captured.statements.len());
    assert_no_values(&folder);
    assert_captured(&captured);
    let keys = fs::read_to_string(folder.join("keys.sql")).unwrap();
    for key in [
        "CREATE INDEX visits_at ON visits USING btree (at);",
        "ADD CONSTRAINT visits_person_fkey FOREIGN KEY (person) REFERENCES people(id);",
    ] {
        assert!(keys.contains(key), "{key} in {keys}");
    }
    let tpcb = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    let tpcb: Vec<_> = tpcb.filter(|path| path.ends_with("01-transaction.sql")).collect();
    let text = fs::read_to_string(&tpcb[0]).unwrap();
    assert_eq!(text.matches("captured").count(), 5, "{text}");
    assert!(text.starts_with("BEGIN;\n") && text.ends_with("END;\n"), "{text}");

    load(server, &folder);
    let how = ReplayOptions {
        clients: None,
        rate: ReplayRate::Original,
        warm_up: Duration::from_millis(500),
        length: Duration::from_secs(2),
        protocol: Protocol::Prepared,
        seed: 1,
    };
    let twin = server.options("twin", None);
    let (fidelity, measured) = replay(&folder, &twin, &how, &RUN).unwrap();
    assert_eq!((measured.failed, measured.counters.aborted_clients), (0, 0), "{measured:?}");
    assert!(fidelity.calls.agreement > 0.9 && fidelity.rows.agreement > 0.9, "{fidelity:?}");
    assert!((0.5..=1.0).contains(&fidelity.score), "{fidelity:?}");
    let by_uuid = fidelity.statements.iter().find(|one| one.text.contains("WHERE id = $1"));
    // The original asked for a row that is not there.
    assert_eq!(by_uuid.unwrap().rows.replay, Some(1.0), "{by_uuid:?}");
    assert!(fidelity.statements.iter().all(|one| one.calls.replay > Some(0.0)), "{fidelity:?}");

    refusals(server, home.path(), &folder, &how);
}

fn assert_captured(captured: &Captured) {
    let texts: Vec<&str> = captured.statements.iter().map(|one| one.text.as_str()).collect();
    let expected = [
        "INSERT INTO history (tid, bid, aid, delta, mtime) \
         VALUES ($1, $2, $3, $4, CURRENT_TIMESTAMP)",
        "INSERT INTO people (name, born) VALUES ($1, $2)",
        "INSERT INTO visits (id, person) VALUES (gen_random_uuid(), $1)",
        "SELECT abalance FROM accounts WHERE aid = $1",
        "SELECT at FROM visits WHERE id = $1",
        "SELECT count(*) FROM people WHERE name = $1 AND born BETWEEN $2 AND $3",
        "SELECT name, born FROM people WHERE code = $1",
        "UPDATE accounts SET abalance = abalance + $1 WHERE aid = $2",
        "UPDATE branches SET bbalance = bbalance + $1 WHERE bid = $2",
        "UPDATE tellers SET tbalance = tbalance + $1 WHERE tid = $2",
    ];
    let mut sorted = texts.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, expected);
    let reasons = captured.statements_left_out.iter().map(|one| &one.reason);
    let reasons: Vec<_> = reasons.filter(|reason| **reason != Reason::Utility).collect();
    let function = Reason::Function { name: "greeting".into() };
    let relation = Reason::Relation { name: "moods".into() };
    assert!(reasons.len() == 2 && reasons.contains(&&function), "{reasons:?}");
    assert!(reasons.contains(&&relation), "{reasons:?}");
    let obstacles: Vec<_> = captured.tables_left_out.iter().map(|one| &one.obstacle).collect();
    let of_column = Obstacle::Column { column: "mood".into(), r#type: "public.mood".into() };
    assert_eq!(obstacles, [&of_column]);
    let parts: Vec<_> = captured.omissions.iter().map(|one| &one.part).collect();
    for part in [Part::IndexExpression, Part::Check, Part::Default] {
        assert!(parts.contains(&&part), "{part:?} in {parts:?}");
    }
    assert!(captured.sessions.looks > 10 && captured.database.commits > 10, "{captured:?}");
}

/// Asserts what is refused, and that nothing is written then.
fn refusals(server: &WatchedServer, home: &Path, folder: &Path, how: &ReplayOptions) {
    let refused = |database: &str, role: Option<&str>, folder: &Path, schema: &str| {
        let options = CaptureOptions {
            schema: schema.into(),
            watch: Some(Duration::from_millis(100)),
            ..OPTIONS
        };
        let error = capture(&server.options(database, role), folder, &options, &RUN).unwrap_err();
        error.to_string()
    };
    let new = home.join("new");
    assert!(refused("original", None, folder, "public").ends_with("it is not empty"));
    assert_eq!(
        refused("postgres", None, &new, "public"),
        "cannot capture: the database has no extension pg_stat_statements"
    );
    assert_eq!(
        refused("original", Some("stranger"), &new, "public"),
        "cannot capture: role stranger may not read the statistics of other roles"
    );
    assert_eq!(
        refused("original", None, &new, "missing"),
        "cannot capture schema missing: the database has no such schema"
    );
    assert_eq!(
        refused("original", None, &new, "public"),
        "cannot capture schema public: none of 0 statements can be replayed"
    );
    assert!(!new.exists());
    let stopped = capture(&server.options("original", None), &new, &options(), &true.into());
    assert!(matches!(stopped, Err(CaptureError::Interrupted)) && !new.exists());

    let again = |database: &str, folder: &Path| {
        replay(folder, &server.options(database, None), how, &RUN).unwrap_err().to_string()
    };
    server.ask("twin", "DROP TABLE history");
    assert_eq!(again("twin", folder), "cannot replay: the database has no table history");
    assert!(again("twin", home).starts_with("cannot read "));
}
