//! Loads on several servers of which any will do.
use std::fs;
use std::net::TcpListener;
use std::num::NonZeroU32;
use std::sync::atomic::AtomicBool;

use pgdyno_engine::{LoadError, LoadSpec, run_load};
use pgdyno_model::Advice;
use pgdyno_model::experiment::Length;
use pgdyno_model::target::{Address, LoadBalanceHosts, Secret, Servers, Target};
use pgdyno_postgres::{ExternalServer, ExternalServerError};
use pgdyno_test_support::load::{spec, unwatched};
use pgdyno_test_support::{PASSWORD, Server, Session};

static GO_ON: AtomicBool = AtomicBool::new(false);

const CLIENTS: u32 = 12;
const SEEN: &str = "INSERT INTO seen VALUES (pg_backend_pid());";

/// Transactions and sessions that each server has seen since it was last asked.
fn seen(sessions: &mut [Session; 2]) -> [(u64, u64); 2] {
    [0, 1].map(|i| {
        let counts = (
            sessions[i].count("SELECT count(*) FROM seen"),
            sessions[i].count("SELECT count(DISTINCT pid) FROM seen"),
        );
        sessions[i].ask("TRUNCATE seen");
        counts
    })
}

/// Twelve clients on `targets`, ten transactions each.
fn load(targets: &[Target], load_balance_hosts: LoadBalanceHosts) -> LoadSpec {
    let mut spec = spec(targets[0].clone(), SEEN);
    spec.servers = Servers { targets: targets.to_vec(), load_balance_hosts };
    spec.clients = NonZeroU32::new(CLIENTS).unwrap();
    spec.threads = NonZeroU32::new(2).unwrap();
    spec.length = Length::Transactions(10);
    spec
}

fn port(target: &Target) -> u16 {
    match target.address {
        Address::Tcp { port, .. } | Address::Unix { port, .. } => port,
    }
}

/// Two servers with a table that tells who was there, and how to reach them.
fn servers() -> ([Server; 2], [Session; 2], [Target; 2]) {
    let servers = [Server::start(), Server::start()];
    let mut sessions = servers.each_ref().map(|server| Session::new(&server.unix()));
    for session in &mut sessions {
        session.ask("CREATE TABLE seen (pid int)");
    }
    let targets = servers.each_ref().map(|server| server.tcp("postgres", Some(PASSWORD)));
    (servers, sessions, targets)
}

/// Transactions of a load.
const ALL: u64 = CLIENTS as u64 * 10;

#[test]
fn clients_go_to_the_first_that_serves_or_are_spread_over_all() {
    let (_servers, mut sessions, targets) = servers();
    run_load(&load(&targets, LoadBalanceHosts::Disable), &unwatched(&GO_ON)).unwrap();
    assert_eq!(seen(&mut sessions), [(ALL, CLIENTS.into()), (0, 0)]);

    run_load(&load(&targets, LoadBalanceHosts::Random), &unwatched(&GO_ON)).unwrap();
    let [first, second] = seen(&mut sessions);
    assert!(first.0 > 0 && second.0 > 0, "{first:?} {second:?}");
    assert_eq!((first.0 + second.0, first.1 + second.1), (ALL, CLIENTS.into()));

    // With a connection for each transaction each of these chooses.
    let mut each = load(&targets, LoadBalanceHosts::Random);
    (each.clients, each.options.reconnect) = (NonZeroU32::MIN, true);
    run_load(&each, &unwatched(&GO_ON)).unwrap();
    let [first, second] = seen(&mut sessions);
    assert!(first.0 > 0 && second.0 > 0 && first.0 + second.0 == 10, "{first:?} {second:?}");
}

#[test]
fn a_server_that_does_not_listen_is_passed_over_and_one_that_refuses_is_not() {
    let (_servers, mut sessions, targets) = servers();
    // Whatever the order.
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let nobody = Target {
        address: Address::Tcp { host: "127.0.0.1".into(), port: closed },
        ..targets[0].clone()
    };
    for way in [LoadBalanceHosts::Disable, LoadBalanceHosts::Random] {
        run_load(&load(&[nobody.clone(), targets[1].clone()], way), &unwatched(&GO_ON)).unwrap();
        assert_eq!(seen(&mut sessions)[1], (ALL, CLIENTS.into()), "{way:?}");
    }
    // One that answers and refuses is the last that is asked, as by libpq.
    let stranger = Target { database: "nowhere".into(), ..targets[0].clone() };
    let refused = load(&[stranger, targets[1].clone()], LoadBalanceHosts::Disable);
    let error = run_load(&refused, &unwatched(&GO_ON)).unwrap_err();
    assert!(
        matches!(&error, LoadError::Connect { cause, .. } if cause.sqlstate() == Some("3D000")),
        "{error}"
    );
    let error =
        run_load(&load(&[nobody.clone(), nobody], LoadBalanceHosts::Disable), &unwatched(&GO_ON));
    let error = error.unwrap_err();
    assert!(error.to_string().contains("none of 2 servers serves"), "{error}");
    assert!(error.help().unwrap().contains("is the server running"), "{error}");
}

#[test]
fn pgbench_names_several_hosts_and_an_experiment_does_not() {
    let (_servers, mut sessions, targets) = servers();
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("seen.sql");
    fs::write(&script, SEEN).unwrap();
    let dsn = format!(
        "host=127.0.0.1,127.0.0.1 port={},{} user=postgres password='{PASSWORD}' dbname=postgres \
         load_balance_hosts=random",
        port(&targets[0]),
        port(&targets[1])
    );
    let words =
        ["-n", "-c", "12", "-t", "10", "--random-seed=1", "-f", script.to_str().unwrap(), &dsn];
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let status = pgdyno_pgbench::main(
        &words.map(str::to_owned),
        &mut out,
        &mut err,
        &AtomicBool::new(false),
    );
    assert_eq!(status, 0, "{}", String::from_utf8_lossy(&err));
    let [first, second] = seen(&mut sessions);
    assert!(first.0 > 0 && second.0 > 0 && first.0 + second.0 == ALL, "{first:?} {second:?}");

    // An experiment watches and judges one server: it cannot be spread.
    let error = ExternalServer::connect(&Secret::new(dsn)).unwrap_err();
    assert!(matches!(error, ExternalServerError::Unsupported { .. }), "{error}");
    assert!(error.to_string().contains("load_balance_hosts"), "{error}");
}
