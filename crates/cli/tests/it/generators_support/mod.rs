//! Loads of several generators on a server of the test's own, by TCP.

use std::process::{Command, Stdio};

use pgdyno_model::target::Address;
use pgdyno_test_support::{PASSWORD, Server, Session};

use crate::support::ended;

/// Tests share their machine with others: when a load begins is not their subject.
pub const ANY_SKEW: &str = "--max-start-skew=60000";
/// Counts the clients of a load.
pub const CLIENTS: &str =
    "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'pgbench'";

/// A command for `pgdyno pgbench` with a server by TCP.
pub fn pgbench(server: &Server) -> Command {
    let Address::Tcp { host, port } = server.tcp("postgres", None).address else {
        panic!("the server listens on TCP");
    };
    let mut command = Command::new(env!("CARGO_BIN_EXE_pgdyno"));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("PG") {
            command.env_remove(name);
        }
    }
    command
        .env("PGPASSWORD", PASSWORD)
        .args(["pgbench", "-h", &host, "-p", &port.to_string(), "-U", "postgres", "-d", "postgres"])
        .stdin(Stdio::null());
    command
}

/// A server with pgbench's tables.
pub fn server_with_tables() -> Server {
    let server = Server::start();
    // Without accounts: what a load does with them is not the subject of these tests. The branch
    // says the scale.
    ended(pgbench(&server).args(["-i", "-q", "-I", "dtp"]).output().unwrap()).exits(0);
    Session::new(&server.unix()).ask("INSERT INTO pgbench_branches VALUES (1, 0)");
    server
}
