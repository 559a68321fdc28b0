//! PgBouncer for tests, where there is one.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use pgdyno_exec::account::server_account;
use pgdyno_model::target::{Address, Secret, SslMode, Target, Tls};
use rcgen::{CertificateParams, KeyPair};

use crate::server::{PASSWORD, Server, Session};
use crate::skip::skip;

/// PgBouncer before a server, for this test alone.
pub struct Pooler {
    process: Child,
    /// The TCP port that it listens on, on 127.0.0.1.
    pub port: u16,
    _home: tempfile::TempDir,
}

impl Drop for Pooler {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Returns the path of PgBouncer, if it is installed.
pub fn program() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    folders.push("/usr/sbin".into());
    folders.into_iter().map(|folder| folder.join("pgbouncer")).find(|program| program.is_file())
}

/// Returns the path of PgBouncer. Where it is not installed, says that `test` is skipped.
pub fn program_or_skip(test: &str) -> Option<PathBuf> {
    let found = program();
    if found.is_none() {
        skip(test, "no pgbouncer here");
    }
    found
}

/// Whether it has prepared statements in transaction mode: from 1.21 on.
pub fn keeps_prepared(program: &PathBuf) -> bool {
    let told = Command::new(program).arg("--version").output().unwrap();
    let told = String::from_utf8(told.stdout).unwrap();
    let version = told.split_whitespace().nth(1).unwrap_or_default();
    let mut numbers = version.split('.').map(|n| n.parse::<u32>().unwrap());
    (numbers.next().unwrap(), numbers.next().unwrap()) >= (1, 21)
}

/// Lines of configuration: refuse start-up parameters that PgBouncer does not know, or drop some.
pub const STARTUP_PARAMETERS: [&str; 2] = ["", "ignore_startup_parameters = options,search_path\n"];

/// A server with the database `shop`, in which its owner mallory set `traps`.
pub fn trapped_shop(traps: &str) -> Server {
    let server = Server::start();
    let mut session = Session::new(&server.unix());
    session.ask("CREATE ROLE mallory LOGIN");
    session.ask("CREATE DATABASE shop OWNER mallory");
    in_shop(&server, "mallory", traps);
    server
}

impl Pooler {
    /// The superuser's way to the database `shop`.
    pub fn shop_dsn(&self) -> String {
        format!("host=127.0.0.1 port={} user=postgres password='{PASSWORD}' dbname=shop", self.port)
    }

    /// Database `postgres` with a server connection a transaction, `session` with one a session.
    pub fn start(program: &PathBuf, server: &Server) -> Self {
        Self::with(program, server, "")
    }

    /// With these lines in its configuration.
    pub fn with(program: &PathBuf, server: &Server, lines: &str) -> Self {
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
            "[databases]\n\
             shop = host={} port={behind} dbname=shop pool_size=8\n\
             postgres = {to} pool_size=2\n\
             session = {to} pool_mode=session pool_size=8\n\
             [pgbouncer]\n\
             listen_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\n\
             pool_mode = transaction\nauth_type = scram-sha-256\n\
             auth_file = {}\nmax_client_conn = 100\n\
             client_tls_sslmode = allow\n\
             client_tls_cert_file = {}\n\
             client_tls_key_file = {}\n\
             {prepared}{lines}",
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

    /// Returns the target for the superuser in `database` through the pooler.
    pub fn target(&self, database: &str, mode: SslMode) -> Target {
        let address = Address::Tcp { host: "127.0.0.1".into(), port: self.port };
        Target {
            password: Some(Secret::new(PASSWORD.into())),
            tls: Tls { mode, ..Tls::default() },
            ..Target::new(address, "postgres", database)
        }
    }
}

/// `sql` in database `shop`, as `user`; of the server itself, past the pooler and past traps.
pub fn in_shop(server: &Server, user: &str, sql: &str) -> Vec<String> {
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

/// Asserts that no trap was called and that mallory did not become a superuser.
pub fn assert_unharmed(server: &Server, what: &str) {
    let called = in_shop(
        server,
        "postgres",
        "SELECT DISTINCT object || ' of ' || application FROM evil.calls",
    );
    assert_eq!(called, Vec::<String>::new(), "{what}");
    let sql = "SELECT rolname FROM pg_roles WHERE rolsuper AND rolname = 'mallory'";
    assert_eq!(in_shop(server, "postgres", sql), Vec::<String>::new(), "{what}");
}
