//! Whole loads against a real server.

use std::num::NonZeroU32;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use pgdyno_engine::script::Script;
use pgdyno_engine::{LoadError, LoadObserver, Phase, WeightedScript, run_load};
use pgdyno_model::experiment::{Length, OnError, Protocol, ReconnectLost};
use pgdyno_model::load_rate::LoadRate;
use pgdyno_model::{Advice, Measurement};
use pgdyno_test_support::load::{
    TPCB, TPCB_TABLES, assert_aborted, assert_counts, lasting, spec, unwatched,
};
use pgdyno_test_support::{PASSWORD, Server, Session, assert_contains, wait_for};

static RUNNING: AtomicBool = AtomicBool::new(false);

fn count(n: u32) -> NonZeroU32 {
    NonZeroU32::new(n).unwrap()
}

/// Asserts that the counts and series of a measurement agree, as they must in any.
fn adds_up(m: &Measurement) {
    assert_eq!(m.series.iter().map(|s| s.transactions).sum::<u64>(), m.transactions, "{m:?}");
    assert_eq!(m.series.iter().map(|s| s.failed).sum::<u64>(), m.failed, "{m:?}");
    assert_eq!(m.scripts.iter().map(|s| s.transactions).sum::<u64>(), m.transactions);
    assert_eq!(m.counters.failures.values().sum::<u64>(), m.failed, "{m:?}");
    assert_eq!(m.latency.count(), m.transactions);
    let length: f64 = m.series.iter().map(|s| s.length_s).sum();
    assert!((length - m.measured_s).abs() < 1e-6, "{length} of {}", m.measured_s);
    assert!(m.series.iter().zip(0..).all(|(s, n)| s.t_s == n), "{:?}", m.series);
}

#[test]
fn every_acknowledged_transaction_is_in_the_database_and_in_the_series() {
    let server = Server::start();
    let mut session = Session::new(&server.unix());
    session.ask(TPCB_TABLES);
    let mut before = 0;
    // One of them is as fast as it can be.
    for (protocol, threads, rate) in [
        (Protocol::Simple, 2, Some(500.0)),
        (Protocol::Extended, 1, Some(500.0)),
        (Protocol::Prepared, 2, None),
    ] {
        let mut spec = spec(server.unix(), TPCB);
        spec.protocol = protocol;
        spec.clients = count(5);
        spec.threads = count(threads);
        spec.options.rate = rate.map(LoadRate::Constant);
        spec.warm_up = Duration::from_millis(300);
        spec.length = lasting(Duration::from_millis(1200));
        let m = run_load(&spec, &unwatched(&RUNNING)).unwrap();
        adds_up(&m);
        let rows = session.count("SELECT count(*) FROM history");
        assert_eq!(rows - before, m.acknowledged(), "{protocol:?}, {threads} threads");
        before = rows;
        assert!(m.transactions > 0 && m.counters.warm_up_transactions > 0, "{m:?}");
        assert_eq!(m.series.len(), 2);
        assert_eq!(
            (m.failed, m.counters.aborted_clients),
            (0, 0),
            "{:?}",
            m.counters.abort_reasons
        );
        assert_eq!(m.scripts[0].statements.len(), 7);
        assert!(m.scripts[0].statements.iter().all(|s| s.latency.count() >= m.transactions / 2));
        assert!(m.generator_cpu_s > 0.0);
    }
    let sums = session.ask(
        "SELECT (SELECT sum(abalance) FROM accounts) = (SELECT sum(delta) FROM history)
            AND (SELECT sum(bbalance) FROM branches) = (SELECT sum(delta) FROM history)",
    );
    assert_eq!(sums.as_deref(), Some("t"));
}

#[test]
fn all_protocols_write_the_same_data_for_the_same_seed() {
    let server = Server::start();
    let mut session = Session::new(&server.unix());
    let mut digests = Vec::new();
    for protocol in [Protocol::Simple, Protocol::Extended, Protocol::Prepared] {
        session
            .ask("DROP TABLE IF EXISTS seen; CREATE TABLE seen (client int, n bigint, x float8)");
        let mut spec = spec(
            server.unix(),
            "\\set n random_zipfian(1, 1000000, 1.2) * 2 - :scale\n\\set x exp(random(1, 9)) / 3\n\
             INSERT INTO seen VALUES (:client_id, :n, :x);",
        );
        spec.protocol = protocol;
        spec.clients = count(3);
        spec.length = Length::Transactions(40);
        let m = run_load(&spec, &unwatched(&RUNNING)).unwrap();
        adds_up(&m);
        assert_eq!(m.transactions, 120);
        digests.push(
            session.ask("SELECT md5(string_agg(s::text, ';' ORDER BY client, n, x)) FROM seen s"),
        );
    }
    assert!(digests[0].is_some());
    assert_eq!(digests[0], digests[1]);
    assert_eq!(digests[1], digests[2]);
}

#[test]
fn every_way_of_authentication_works_and_a_wrong_password_is_named() {
    let server = Server::start();
    let mut session = Session::new(&server.unix());
    session.ask("SET password_encryption = md5");
    session.ask(&format!("CREATE ROLE md5user LOGIN PASSWORD '{PASSWORD}'"));
    session.ask("SET password_encryption = 'scram-sha-256'");
    session.ask(&format!("CREATE ROLE plain LOGIN PASSWORD '{PASSWORD}'"));
    for user in ["postgres", "md5user", "plain"] {
        // Over TCP no password is sent in clear unless that is asked for by name.
        let target = |password| {
            let mut target = server.tcp(user, password);
            if user == "plain" {
                target.require_auth = "password".parse().unwrap();
            }
            target
        };
        let mut good = spec(target(Some(PASSWORD)), "SELECT 1;");
        good.servers.targets[0].settings.push(("work_mem".into(), "7MB".into()));
        assert_eq!(run_load(&good, &unwatched(&RUNNING)).unwrap().transactions, 10);
        let asked = Session::new(&good.servers.targets[0]).ask("SHOW work_mem");
        assert_eq!(asked.as_deref(), Some("7MB"));

        let wrong = spec(target(Some("wrong")), "SELECT 1;");
        let error = run_load(&wrong, &unwatched(&RUNNING)).unwrap_err();
        assert!(error.to_string().contains("28P01"), "{error}");
        assert!(error.help().unwrap().contains("password"), "{error}");

        let none = spec(target(None), "SELECT 1;");
        let error = run_load(&none, &unwatched(&RUNNING)).unwrap_err();
        assert!(error.to_string().contains("none is given"), "{error}");
        assert!(error.help().unwrap().contains("PGPASSWORD"), "{error}");
    }
    let mut nowhere = spec(server.unix(), "SELECT 1;");
    nowhere.servers.targets[0].database = "nowhere".into();
    let error = run_load(&nowhere, &unwatched(&RUNNING)).unwrap_err();
    assert_contains(error.to_string(), &["3D000", "nowhere"]);
}

#[test]
fn a_killed_server_ends_the_load_with_what_was_measured() {
    let mut server = Server::start();
    let mut spec = spec(server.unix(), "SELECT 1;");
    spec.clients = count(4);
    spec.threads = count(2);
    spec.length = lasting(Duration::from_secs(600));
    let (seconds, told) = std::sync::mpsc::channel();
    let m = std::thread::scope(|scope| {
        let server = &mut server;
        scope.spawn(move || {
            told.recv().unwrap();
            server.kill();
        });
        let seconds = Mutex::new(seconds);
        let watch = LoadObserver {
            stop: &RUNNING,
            on_open: &|_| {},
            on_second: &|live| {
                assert_eq!(live.phase, Phase::Measuring);
                let _ = seconds.lock().unwrap().send(());
            },
        };
        run_load(&spec, &watch).unwrap()
    });
    adds_up(&m);
    assert!(m.transactions > 0);
    assert_eq!(m.counters.aborted_clients, 4);
    assert_eq!(m.counters.failures.get("08006"), Some(&4), "{:?}", m.counters.failures);
    assert_eq!(m.counters.abort_reasons.len(), 4);
    assert_aborted(&m, "08006");
    assert!(m.measured_s < 600.0);
}

#[test]
fn a_stop_ends_a_long_statement_at_the_server_too() {
    let server = Server::start();
    let mut spec = spec(server.unix(), "SELECT pg_sleep(600);");
    spec.length = lasting(Duration::from_secs(600));
    let stop = AtomicBool::new(false);
    let watch = LoadObserver {
        stop: &stop,
        on_open: &|_| {},
        on_second: &|_| stop.store(true, Ordering::Relaxed),
    };
    let begun = Instant::now();
    let m = run_load(&spec, &watch).unwrap();
    // Not 600 s; how fast depends on the machine.
    assert!(begun.elapsed() < Duration::from_secs(60));
    adds_up(&m);
    assert_counts(&m, (0, 0, 0));
    assert!(m.measured_s >= 1.0 && m.measured_s < 60.0, "{}", m.measured_s);
    let mut session = Session::new(&server.unix());
    let sleeping = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep%' \
                    AND pid <> pg_backend_pid()";
    wait_for("the statement to end", || (session.count(sleeping) == 0).then_some(()));
}

#[test]
fn a_stop_ends_a_command_line_that_a_script_waits_for() {
    let server = Server::start();
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("process");
    for meta in ["\\shell", "\\setshell x"] {
        let line = format!("{meta} sh -c 'echo $$ > {}; exec sleep 600' && true", file.display());
        let spec = spec(server.unix(), &line);
        let stop = AtomicBool::new(false);
        let process = std::thread::scope(|scope| {
            let load = scope.spawn(|| run_load(&spec, &unwatched(&stop)));
            let process = wait_for("the command line to run", || {
                let text = std::fs::read_to_string(&file).ok()?;
                text.ends_with('\n').then(|| text.trim().to_owned())
            });
            stop.store(true, Ordering::Relaxed);
            assert_eq!(load.join().unwrap().unwrap().transactions, 0);
            process
        });
        // It goes with its group, as soon as somebody has taken note of its end.
        let stat = format!("/proc/{process}/stat");
        wait_for("the command line to end", || {
            std::fs::read_to_string(&stat).map_or(true, |stat| stat.contains(") Z ")).then_some(())
        });
        std::fs::remove_file(&file).unwrap();
    }
}

#[test]
fn a_client_that_ends_the_load_during_the_warm_up_says_why() {
    let server = Server::start();
    let mut spec = spec(server.unix(), "SELECT 1 / 0;");
    spec.clients = count(3);
    spec.warm_up = Duration::from_secs(60);
    spec.options.on_error = OnError::AbortAll;
    let error = run_load(&spec, &unwatched(&RUNNING)).unwrap_err();
    assert!(matches!(error, LoadError::Aborted { clients: 3, .. }), "{error:?}");
    assert!(error.to_string().contains("division by zero"), "{error}");
}

#[test]
fn a_stop_before_the_window_measures_nothing() {
    let server = Server::start();
    let mut spec = spec(server.unix(), "SELECT 1;");
    spec.warm_up = Duration::from_secs(600);
    let stop = AtomicBool::new(false);
    let watch = LoadObserver {
        stop: &stop,
        on_open: &|_| panic!("the window never opens"),
        on_second: &|live| {
            assert_eq!(live.phase, Phase::WarmUp);
            assert!(live.tps > 0.0);
            stop.store(true, Ordering::Relaxed);
        },
    };
    assert!(matches!(run_load(&spec, &watch), Err(LoadError::Interrupted)));
}

#[test]
fn serialization_failures_are_counted_and_the_client_goes_on() {
    let server = Server::start();
    let mut session = Session::new(&server.unix());
    session.ask("CREATE TABLE counter (n int); INSERT INTO counter VALUES (0)");
    for protocol in [Protocol::Simple, Protocol::Prepared] {
        session.ask("UPDATE counter SET n = 0");
        let mut spec = spec(
            server.unix(),
            "BEGIN ISOLATION LEVEL REPEATABLE READ;\nSELECT n FROM counter;\n\\sleep 1 ms\n\
             UPDATE counter SET n = n + 1;\nCOMMIT;",
        );
        spec.protocol = protocol;
        spec.clients = count(4);
        spec.length = Length::Transactions(50);
        let m = run_load(&spec, &unwatched(&RUNNING)).unwrap();
        adds_up(&m);
        assert_eq!(m.transactions + m.failed, 200);
        assert!(m.failed > 0);
        assert_eq!(m.counters.failures.get("40001"), Some(&m.failed));
        assert_eq!(m.scripts[0].statements[2].failed, m.failed);
        assert_eq!(m.counters.aborted_clients, 0, "{:?}", m.counters.abort_reasons);
        assert_eq!(session.count("SELECT n FROM counter"), m.transactions);
    }
}

#[test]
fn another_error_ends_its_client_and_only_that() {
    let server = Server::start();
    let mut spec = spec(server.unix(), "SELECT 1 / :client_id;");
    spec.clients = count(3);
    spec.length = Length::Transactions(20);
    for protocol in [Protocol::Simple, Protocol::Extended, Protocol::Prepared] {
        spec.protocol = protocol;
        let m = run_load(&spec, &unwatched(&RUNNING)).unwrap();
        adds_up(&m);
        assert_counts(&m, (40, 1, 1));
        assert_eq!(m.counters.failures.get("22012"), Some(&1));
        assert_eq!(
            m.counters.abort_reasons,
            ["client 0: test:1: `SELECT 1 / :client_id`: ERROR 22012: division by zero"]
        );
    }
    spec.warm_up = Duration::from_secs(600);
    spec.clients = count(1);
    let error = run_load(&spec, &unwatched(&RUNNING)).unwrap_err();
    assert!(matches!(error, LoadError::Aborted { clients: 1, .. }), "{error}");
    assert!(error.to_string().contains("division by zero"), "{error}");
}

#[test]
fn what_scripts_cannot_do_ends_the_client_with_a_reason() {
    let server = Server::start();
    for (script, code, words) in [
        ("COPY (SELECT 1) TO STDOUT;", "0A000", "COPY is not supported"),
        ("\\set x 1 / 0\nSELECT 1;", "22000", "test:1: `\\set x 1 / 0`: division by zero"),
        ("\\set x :y\nSELECT 1;", "22000", "undefined variable \"y\""),
        ("SELEKT 1;", "42601", "syntax error"),
        ("SELECT pg_terminate_backend(pg_backend_pid());", "08006", "57P01"),
    ] {
        let m = run_load(&spec(server.unix(), script), &unwatched(&RUNNING)).unwrap();
        adds_up(&m);
        assert_eq!(m.counters.failures.get(code), Some(&1), "{script}: {m:?}");
        assert_aborted(&m, words);
    }
    // As in pgbench, a transaction that a script leaves open counts.
    let m = run_load(&spec(server.unix(), "BEGIN;"), &unwatched(&RUNNING)).unwrap();
    adds_up(&m);
    assert_counts(&m, (1, 0, 1));
    assert_aborted(&m, "inside a transaction block (SQLSTATE 25001)");
}

#[test]
fn scripts_are_chosen_by_weight() {
    let server = Server::start();
    let mut spec = spec(server.unix(), "SELECT 1;");
    let script = |name: &str, weight| {
        let script = Script::parse(name, "SELECT 'a;b' AS \":nothing\"; -- and\nSELECT 2").unwrap();
        WeightedScript::new(script.into(), weight)
    };
    spec.scripts = vec![script("often", 3), script("never", 0), script("rarely", 1)];
    spec.length = Length::Transactions(2000);
    let m = run_load(&spec, &unwatched(&RUNNING)).unwrap();
    adds_up(&m);
    assert_eq!(m.transactions, 2000);
    assert_eq!(m.scripts[1].transactions, 0);
    // Ten standard deviations of a draw with p = 1/4.
    assert!((306..694).contains(&m.scripts[2].transactions), "{}", m.scripts[2].transactions);
}

#[test]
fn a_rate_is_kept_and_every_transaction_can_have_its_own_connection() {
    let server = Server::start();
    let mut session = Session::new(&server.unix());
    session.ask("CREATE TABLE backends (pid int)");
    let mut spec = spec(server.unix(), "INSERT INTO backends VALUES (pg_backend_pid());");
    spec.clients = count(3);
    spec.threads = count(2);
    spec.length = Length::Transactions(10);
    spec.options.reconnect = true;
    let m = run_load(&spec, &unwatched(&RUNNING)).unwrap();
    adds_up(&m);
    assert_eq!((m.transactions, m.counters.reconnections), (30, 30));
    assert!(m.counters.reconnect_s > 0.0);
    assert_eq!(session.count("SELECT count(DISTINCT pid) FROM backends"), 30);

    spec.options.reconnect = false;
    spec.options.rate = Some(LoadRate::Constant(50.0));
    spec.length = lasting(Duration::from_secs(2));
    let m = run_load(&spec, &unwatched(&RUNNING)).unwrap();
    adds_up(&m);
    // 100 are due, give or take ten standard deviations; a slow machine does less, none does more.
    let begun = m.transactions + m.counters.drained_transactions;
    assert!(begun < 200, "{begun}");
    assert!(m.sums.lag_sum_ns > 0 && m.sums.lag_max_ns > 0);
    // Closed, the same server does far more.
    spec.options.rate = None;
    spec.length = lasting(Duration::from_secs(1));
    let closed = run_load(&spec, &unwatched(&RUNNING)).unwrap();
    assert!(closed.transactions > m.transactions);
    assert_eq!(closed.sums.lag_sum_ns, 0);
}

#[test]
fn a_killed_backend_costs_one_transaction_where_lost_connections_are_made_anew() {
    let server = Server::start();
    let mut session = Session::new(&server.unix());
    session.ask("CREATE TABLE rows (n int)");
    let mut spec = spec(server.unix(), "INSERT INTO rows VALUES (1);\nSELECT pg_sleep(0.005);");
    spec.servers.targets[0].settings.push(("application_name".into(), "victims".into()));
    spec.clients = count(3);
    spec.length = lasting(Duration::from_secs(3));
    spec.options.reconnect_lost = ReconnectLost::UpTo(2);
    let ended = AtomicBool::new(false);
    let m = std::thread::scope(|scope| {
        let killer = scope.spawn(|| {
            let mut killed = 0_u64;
            while killed < 5 && !ended.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(200));
                killed += session.count(
                    "SELECT count(*) FROM (SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                     WHERE application_name = 'victims' LIMIT 1) t",
                );
            }
            killed
        });
        let m = run_load(&spec, &unwatched(&RUNNING)).unwrap();
        ended.store(true, Ordering::Relaxed);
        let killed = killer.join().unwrap();
        assert!(killed > 0);
        assert!(
            m.counters.lost_connections > 0 && m.counters.lost_connections <= killed,
            "{} of {killed}",
            m.counters.lost_connections
        );
        m
    });
    assert_eq!(m.counters.aborted_clients, 0, "{:?}", m.counters.abort_reasons);
    assert_eq!(m.counters.reconnections, m.counters.lost_connections);
    assert_eq!(m.counters.failures.get("08006").copied().unwrap_or(0), m.failed);
    // The row of a lost transaction is there, unless the INSERT itself was hit.
    let rows = session.count("SELECT count(*) FROM rows");
    let sure = m.acknowledged();
    assert!((sure..=sure + m.counters.lost_connections).contains(&rows), "{rows} rows for {sure}");
}
