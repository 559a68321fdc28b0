//! `\copyfrom`: scripts that add rows to tables while a load runs.

use std::num::NonZeroU32;
use std::sync::atomic::AtomicBool;

use pgdyno_dataset::workload::{self, Workload};
use pgdyno_dataset::{BulkLoad, bulk_load, growing_tables};
use pgdyno_engine::{LoadSpec, run_load};
use pgdyno_model::Measurement;
use pgdyno_model::experiment::{Length, Loading, OnError, Protocol};
use pgdyno_model::progress::Silent;
use pgdyno_test_support::load::{assert_counts, spec, unwatched};
use pgdyno_test_support::{Scratch, Server, Session};

static RUNNING: AtomicBool = AtomicBool::new(false);

const FOLDER: [(&str, &str); 3] = [
    (
        "workload.toml",
        "description = \"events\"\ndata.schema = \"schema.sql\"\nscript = [{ file = \"q.sql\" }]\n\
         [[data.table]]\nname = \"events\"\nrows = 10\n\
         columns = [{ name = \"id\", row_number = true },\n\
         { name = \"words\", letters = [0, 900] }]\n\
         [[data.table]]\nname = \"moments\"\nrows = 10\n\
         columns = [{ name = \"at\", timestamp = { from = \"2026-01-01\", every = \"7us\" } }]\n",
    ),
    (
        "schema.sql",
        "CREATE TABLE events (id integer PRIMARY KEY, words text CHECK (length(words) < 1000));\n\
         CREATE TABLE moments (at timestamp UNIQUE);\n",
    ),
    ("q.sql", "SELECT 1;\n"),
];

/// Runs `script`, five times by each of four clients in two threads.
fn run(server: &Server, workload: &Workload, script: &str, protocol: Protocol) -> Measurement {
    let (loading, target) = (Loading::default(), server.unix());
    let usual = spec(target.clone(), script);
    let load = BulkLoad::new(&workload.data, 1, 1, &loading);
    let tables = growing_tables(&load, &target, &usual.scripts).unwrap();
    let (clients, threads) = (NonZeroU32::new(4).unwrap(), NonZeroU32::new(2).unwrap());
    let length = Length::Transactions(5);
    let mut spec = LoadSpec { tables, clients, threads, length, protocol, ..usual };
    spec.options.on_error = OnError::Continue;
    run_load(&spec, &unwatched(&RUNNING)).unwrap()
}

#[test]
fn rows_go_on_behind_those_that_are_there() {
    let (server, folder) = (Server::start(), Scratch::new());
    for (file, text) in FOLDER {
        std::fs::write(folder.path().join(file), text).unwrap();
    }
    let workload = workload::load(&format!("{}/", folder.path().display()), &[]).unwrap();
    let loading = Loading::default();
    let load = BulkLoad::new(&workload.data, 1, 1, &loading);
    bulk_load(&load, &server.unix(), &Silent, &RUNNING).unwrap();
    let mut session = Session::new(&server.unix());
    let mut ids = || session.ask("SELECT concat(count(*), ' ', min(id), ' ', max(id)) FROM events");

    let small = run(&server, &workload, "\\copyfrom events 3 * :scale", Protocol::Extended);
    assert_counts(&small, (20, 0, 0));
    assert_eq!(ids().unwrap(), "70 1 70");
    // Some 450 kB each, so that a connection takes them in several pieces.
    let text = "BEGIN;\n\\copyfrom events 1000\n\\copyfrom moments 2\nEND;";
    let large = run(&server, &workload, text, Protocol::Simple);
    assert_counts(&large, (20, 0, 0));
    assert_eq!(large.scripts[0].statements.len(), 4);
    assert_eq!(ids().unwrap(), "20070 1 20070");
    let behind = run(&server, &workload, "\\copyfrom moments 1", Protocol::Prepared);
    assert_counts(&behind, (20, 0, 0));
    let last = "SELECT concat(count(*), ' ', max(at)) FROM moments";
    // 70 of them, the last one 69 times 7 microseconds after the first.
    assert_eq!(session.ask(last).unwrap(), "70 2026-01-01 00:00:00.000483");

    // All but the first COPY are refused, and the clients go on.
    session.ask("ALTER TABLE events ADD CHECK (id < 30000)");
    let broken = run(&server, &workload, "\\copyfrom events 5000", Protocol::Prepared);
    assert_eq!((broken.transactions, broken.failed, broken.counters.aborted_clients), (1, 19, 0));
    assert_eq!(broken.counters.failures["23514"], 19);
    assert_eq!(session.ask("SELECT count(*) FROM events").unwrap(), "25070");
}
