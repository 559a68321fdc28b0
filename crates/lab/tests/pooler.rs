//! Loads through PgBouncer.

#![allow(clippy::unwrap_used)]

mod server;

use std::fs;
use std::io::Write as _; // past the test runner, which keeps what passing tests print to itself
use std::net::{TcpListener, TcpStream};
use std::num::NonZeroU32;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use pgdyno_engine::drive;
use pgdyno_host::postgres::{ControlError, Given};
use pgdyno_host::server_account;
use pgdyno_lab::load::{ConnectOptions, Existing, Load, Loaded};
use pgdyno_lab::pgbench::{CalledAs, Invocation};
use pgdyno_lab::progress::Silent;
use pgdyno_lab::{LabError, Loading};
use pgdyno_model::experiment::{Length, Protocol};
use pgdyno_model::target::{Address, Secret, SslMode, Target, Tls};
use rcgen::{CertificateParams, KeyPair};
use server::{PASSWORD, Server, Session, TPCB, TPCB_TABLES, spec, unwatched};

static GO_ON: AtomicBool = AtomicBool::new(false);

/// PgBouncer before a server, for this test alone.
struct Pooler {
    process: Child,
    port: u16,
    _home: tempfile::TempDir,
}

impl Drop for Pooler {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn program() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    folders.push("/usr/sbin".into());
    folders.into_iter().map(|folder| folder.join("pgbouncer")).find(|program| program.is_file())
}

/// Whether it has prepared statements in transaction mode: from 1.21 on.
fn keeps_prepared(program: &PathBuf) -> bool {
    let told = Command::new(program).arg("--version").output().unwrap();
    let told = String::from_utf8(told.stdout).unwrap();
    let version = told.split_whitespace().nth(1).unwrap_or_default();
    let mut numbers = version.split('.').map(|n| n.parse::<u32>().unwrap());
    (numbers.next().unwrap(), numbers.next().unwrap()) >= (1, 21)
}

impl Pooler {
    /// Database `postgres` with a server connection a transaction, `session` with one a session.
    fn start(program: &PathBuf, server: &Server) -> Self {
        Self::with(program, server, "")
    }

    /// With these lines in its configuration.
    fn with(program: &PathBuf, server: &Server, lines: &str) -> Self {
        let home = tempfile::tempdir().unwrap();
        fs::set_permissions(home.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let Address::Unix { directory, port: behind } = server.unix().address else {
            panic!("a socket")
        };
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        drop(listener);
        let key = KeyPair::generate().unwrap();
        let cert =
            CertificateParams::new(vec!["localhost".into()]).unwrap().self_signed(&key).unwrap();
        let path = |name: &str| home.path().join(name).display().to_string();
        let to = format!("host={} port={behind} dbname=postgres", directory.display());
        // Since 1.21 it keeps track of prepared statements itself.
        let prepared = if keeps_prepared(program) { "max_prepared_statements = 50\n" } else { "" };
        let config = format!(
            "[databases]\nshop = host={} port={behind} dbname=shop pool_size=8\npostgres = {to} pool_size=2\nsession = {to} pool_mode=session pool_size=8\n\
             [pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\n\
             pool_mode = transaction\nauth_type = scram-sha-256\nauth_file = {}\nmax_client_conn = 100\n\
             client_tls_sslmode = allow\nclient_tls_cert_file = {}\nclient_tls_key_file = {}\n{prepared}{lines}",
            directory.display(),
            path("users"),
            path("cert"),
            path("key"),
        );
        let account = server_account().unwrap();
        let users = format!("\"postgres\" \"{PASSWORD}\"\n");
        for (name, text) in [
            ("config", config),
            ("users", users),
            ("cert", cert.pem()),
            ("key", key.serialize_pem()),
        ] {
            fs::write(path(name), text).unwrap();
            fs::set_permissions(path(name), fs::Permissions::from_mode(0o600)).unwrap();
            chown(path(name), Some(account.uid), Some(account.gid)).unwrap();
        }
        let mut command = Command::new(program);
        command
            .arg(path("config"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        if !account.is_ours() {
            command.uid(account.uid).gid(account.gid);
        }
        let mut process = command.spawn().unwrap();
        let began = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            let ended = process.try_wait().unwrap();
            assert!(
                ended.is_none() && began.elapsed() < Duration::from_secs(30),
                "no PgBouncer: {ended:?}"
            );
            std::thread::sleep(Duration::from_millis(20));
        }
        Self { process, port, _home: home }
    }

    fn target(&self, database: &str, mode: SslMode) -> Target {
        let address = Address::Tcp { host: "127.0.0.1".into(), port: self.port };
        Target {
            password: Some(Secret::new(PASSWORD.into())),
            tls: Tls { mode, ..Tls::default() },
            ..Target::new(address, "postgres", database)
        }
    }
}

#[test]
fn more_clients_than_server_connections_are_served_through_a_pooler() {
    let Some(program) = program() else {
        let _ = writeln!(
            std::io::stderr(),
            "\nskipped: more_clients_than_server_connections_are_served_through_a_pooler: no pgbouncer here"
        );
        return;
    };
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
            let m = drive(&spec, &unwatched(&GO_ON)).unwrap();
            let found = (m.transactions, m.failed, m.aborted_clients);
            assert_eq!(found, (180, 0, 0), "{database} {protocol:?} {mode}: {:?}", m.abort_reasons);
            let rows = session.count("SELECT count(*) FROM history");
            assert_eq!(rows - before, 180, "{database} {protocol:?} {mode}");
            before = rows;
        }
    }
}

#[test]
fn prepared_statements_go_through_a_pooler_in_transaction_mode() {
    const NAME: &str = "prepared_statements_go_through_a_pooler_in_transaction_mode";
    let Some(program) = program().filter(keeps_prepared) else {
        let _ =
            writeln!(std::io::stderr(), "\nskipped: {NAME}: no pgbouncer of 1.21 or later here");
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
    let m = drive(&spec, &unwatched(&GO_ON)).unwrap();
    assert_eq!((m.transactions, m.failed, m.aborted_clients), (180, 0, 0), "{:?}", m.abort_reasons);
    assert_eq!(session.count("SELECT count(*) FROM history"), 180);
}

/// `sql` in database `shop`, as `user`; of the server itself, past the pooler and past traps.
fn in_shop(server: &Server, user: &str, sql: &str) -> Vec<String> {
    let Address::Unix { directory, port } = server.unix().address else { panic!("a socket") };
    let mut config = postgres::Config::new();
    config
        .host_path(directory)
        .port(port)
        .user(user)
        .dbname("shop")
        .options("-c search_path=pg_catalog");
    let answers = config.connect(postgres::NoTls).unwrap().simple_query(sql).unwrap();
    let first = |answer: &postgres::SimpleQueryMessage| match answer {
        postgres::SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
        _ => None,
    };
    answers.iter().filter_map(first).collect()
}

fn load(dsn: &str) -> Result<Loaded, LabError> {
    let load = Load {
        workload: "tpcb-like".into(),
        scale: NonZeroU32::MIN,
        seed: 1,
        loading: Loading { partitions: 2, ..Loading::default() },
        strategy: None,
        chunk: None,
        existing: Existing::ReplaceOurs,
        connect: ConnectOptions {
            dsn_or_dbname: Some(dsn.to_owned()),
            ..ConnectOptions::default()
        },
    };
    pgdyno_lab::load::load(&load, &Silent, &GO_ON)
}

#[test]
fn a_databases_owner_gets_no_superuser_through_a_pooler_either() {
    const NAME: &str = "a_databases_owner_gets_no_superuser_through_a_pooler_either";
    let Some(program) = program() else {
        let _ = writeln!(std::io::stderr(), "\nskipped: {NAME}: no pgbouncer here");
        return;
    };
    let server = Server::start();
    let mut session = Session::new(&server.unix());
    session.ask("CREATE ROLE mallory LOGIN");
    session.ask("CREATE DATABASE shop OWNER mallory");
    in_shop(&server, "mallory", include_str!("hostile.sql"));
    let unharmed = |what: &str| {
        let called = in_shop(
            &server,
            "postgres",
            "SELECT DISTINCT object || ' of ' || application FROM evil.calls",
        );
        assert_eq!(called, Vec::<String>::new(), "{what}");
        let sql = "SELECT rolname FROM pg_roles WHERE rolsuper AND rolname = 'mallory'";
        assert_eq!(in_shop(&server, "postgres", sql), Vec::<String>::new(), "{what}");
    };
    // PgBouncer refuses start-up parameters that it does not know, or drops those that it is told
    // to.
    for lines in ["", "ignore_startup_parameters = options,search_path\n"] {
        let pooler = Pooler::with(&program, &server, lines);
        let dsn = format!(
            "host=127.0.0.1 port={} user=postgres password='{PASSWORD}' dbname=shop",
            pooler.port
        );
        for steps in ["dtgvpf", "dtGvp"] {
            let args = ["-i", "-I", steps, "--partitions=2", &dsn].map(str::to_owned);
            let (mut out, mut err) = (Vec::new(), Vec::new());
            let asked = Invocation::read(&args, CalledAs::Pgdyno, &mut err).unwrap();
            let status = asked.run(&mut out, &mut err, &GO_ON);
            assert_eq!(status, 0, "{lines} {}", String::from_utf8_lossy(&err));
            unharmed(&format!("{lines}{steps}"));
        }
        let rows = in_shop(&server, "postgres", "SELECT count(*) FROM evil.pgbench_accounts");
        assert_eq!(rows, ["100000"]);

        // Not into a schema of the owner's; into one of its own.
        assert!(load(&dsn).unwrap_err().to_string().contains("mallory"));
        in_shop(&server, "postgres", "CREATE SCHEMA IF NOT EXISTS ours");
        in_shop(
            &server,
            "postgres",
            "ALTER ROLE postgres SET search_path = ours, evil, pg_catalog",
        );
        // The pooler's sessions have it from their beginning.
        drop(pooler);
        let pooler = Pooler::with(&program, &server, lines);
        let dsn = format!(
            "host=127.0.0.1 port={} user=postgres password='{PASSWORD}' dbname=shop",
            pooler.port
        );
        assert_eq!(load(&dsn).unwrap().rows, 100_011);
        unharmed(&format!("{lines}load"));
        in_shop(&server, "postgres", "ALTER ROLE postgres RESET search_path");

        // A run wants sessions of its own.
        let error = Given::connect(&Secret::new(dsn)).unwrap().control().map(drop).unwrap_err();
        assert!(matches!(error, ControlError::Pooled { .. }) && error.help().is_some(), "{error}");
    }
}
