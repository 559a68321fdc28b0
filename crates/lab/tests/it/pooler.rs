//! Loads through PgBouncer.

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::hostile::load_into;
use pgdyno_connect::control::ControlError;
use pgdyno_engine::run_load;
use pgdyno_lab::load::Existing;
use pgdyno_model::Advice;
use pgdyno_model::experiment::{Length, Protocol};
use pgdyno_model::target::{Secret, SslMode};
use pgdyno_postgres::ExternalServer;
use pgdyno_test_support::load::{TPCB, TPCB_TABLES, assert_counts, spec, unwatched};
use pgdyno_test_support::pgbouncer::{
    Pooler, STARTUP_PARAMETERS, assert_unharmed, in_shop, keeps_prepared, program, program_or_skip,
    trapped_shop,
};
use pgdyno_test_support::shop::TRAPS;
use pgdyno_test_support::{Server, Session, skip, test_name};

static GO_ON: AtomicBool = AtomicBool::new(false);

#[test]
fn more_clients_than_server_connections_are_served_through_a_pooler() {
    let Some(program) = program_or_skip(test_name!()) else { return };
    let server = Server::start();
    let mut session = Session::new(&server.unix());
    session.ask(TPCB_TABLES);
    let pooler = Pooler::start(&program, &server);
    let mut before = 0;
    for (database, protocol) in [
        ("postgres", Protocol::Simple),
        ("postgres", Protocol::Extended),
        ("session", Protocol::Simple),
        ("session", Protocol::Extended),
        ("session", Protocol::Prepared),
    ] {
        for mode in [SslMode::Disable, SslMode::Require] {
            let mut spec = spec(pooler.target(database, mode), TPCB);
            spec.protocol = protocol;
            spec.clients = NonZeroU32::new(6).unwrap();
            spec.threads = NonZeroU32::new(2).unwrap();
            spec.length = Length::Transactions(30);
            let m = run_load(&spec, &unwatched(&GO_ON)).unwrap();
            assert_counts(&m, (180, 0, 0));
            let rows = session.count("SELECT count(*) FROM history");
            assert_eq!(rows - before, 180, "{database} {protocol:?} {mode}");
            before = rows;
        }
    }
}

#[test]
fn a_load_that_is_stopped_leaves_no_statement_active() {
    let Some(program) = program_or_skip(test_name!()) else { return };
    let server = Server::start();
    let mut session = Session::new(&server.unix());
    let pooler = Pooler::start(&program, &server);
    let mut comes_to = |wanted: u64| {
        let active = "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' \
             AND query LIKE '%pg_sleep(600)%' AND pid <> pg_backend_pid()";
        let patience = Instant::now() + Duration::from_secs(60);
        while session.count(active) != wanted && Instant::now() < patience {
            std::thread::sleep(Duration::from_millis(20));
        }
        session.count(active) == wanted
    };
    for target in [server.unix(), pooler.target("postgres", SslMode::Disable)] {
        for reconnects in [false, true] {
            let mut spec = spec(target.clone(), "SELECT pg_sleep(600);");
            spec.clients = NonZeroU32::new(2).unwrap();
            spec.options.reconnect = reconnects;
            let stop = AtomicBool::new(false);
            let is_begun = std::thread::scope(|scope| {
                let load = scope.spawn(|| run_load(&spec, &unwatched(&stop)));
                let is_begun = comes_to(2);
                stop.store(true, Ordering::Relaxed);
                let _ = load.join().unwrap();
                is_begun
            });
            assert!(is_begun && comes_to(0), "reconnects: {reconnects}, {:?}", target.address);
        }
    }
}

#[test]
fn prepared_statements_go_through_a_pooler_in_transaction_mode() {
    let Some(program) = program().filter(keeps_prepared) else {
        skip(test_name!(), "no pgbouncer of 1.21 or later here");
        return;
    };
    let server = Server::start();
    let mut session = Session::new(&server.unix());
    session.ask(TPCB_TABLES);
    let pooler = Pooler::start(&program, &server);
    let mut spec = spec(pooler.target("postgres", SslMode::Disable), TPCB);
    spec.protocol = Protocol::Prepared;
    spec.clients = NonZeroU32::new(6).unwrap();
    spec.length = Length::Transactions(30);
    let m = run_load(&spec, &unwatched(&GO_ON)).unwrap();
    assert_counts(&m, (180, 0, 0));
    assert_eq!(session.count("SELECT count(*) FROM history"), 180);
}

#[test]
fn a_databases_owner_gets_no_superuser_through_a_pooler_either() {
    let Some(program) = program_or_skip(test_name!()) else { return };
    let server = trapped_shop(TRAPS);
    for lines in STARTUP_PARAMETERS {
        let pooler = Pooler::with(&program, &server, lines);
        let dsn = pooler.shop_dsn();
        // Not into a schema of the owner's; into one of its own.
        assert!(
            load_into(dsn.clone(), "tpcb-like", 2, Existing::ReplaceOurs)
                .unwrap_err()
                .to_string()
                .contains("mallory")
        );
        in_shop(&server, "postgres", "CREATE SCHEMA IF NOT EXISTS ours");
        in_shop(
            &server,
            "postgres",
            "ALTER ROLE postgres SET search_path = ours, evil, pg_catalog",
        );
        // The pooler's sessions have it from their beginning.
        drop(pooler);
        let pooler = Pooler::with(&program, &server, lines);
        let dsn = pooler.shop_dsn();
        assert_eq!(load_into(dsn.clone(), "tpcb-like", 2, Existing::ReplaceOurs).unwrap(), 100_011);
        assert_unharmed(&server, &format!("{lines}load"));
        in_shop(&server, "postgres", "ALTER ROLE postgres RESET search_path");

        // A run wants sessions of its own.
        let error =
            ExternalServer::connect(&Secret::new(dsn)).unwrap().control().map(drop).unwrap_err();
        assert!(matches!(error, ControlError::Pooled { .. }) && error.help().is_some(), "{error}");
    }
}
