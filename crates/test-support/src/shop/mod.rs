//! A server with a database whose owner plants functions, operators, views and types against
//! whoever has more rights.

use std::sync::atomic::AtomicBool;

use pgdyno_model::target::{Address, Target};
use pgdyno_postgres::Cluster;

use crate::server::{create_cluster, install};

static GO_ON: AtomicBool = AtomicBool::new(false);
/// SQL by which the owner plants its traps.
pub const TRAPS: &str = include_str!("hostile.sql");
/// The password of the database's owner.
const MALLORY: &str = "mallory";

/// A server with the database `shop`, which mallory owns and has prepared.
pub struct Shop {
    /// The server.
    pub cluster: Cluster,
    /// The folder that holds it.
    pub home: crate::scratch::Scratch,
}

impl Shop {
    /// Starts a server of `major`, or of any version.
    pub fn start(major: Option<u32>) -> Self {
        let (mut cluster, home) = create_cluster(install(major));
        cluster.start(&GO_ON).unwrap();
        let mut client = cluster.control("postgres").unwrap();
        client.batch_execute(&format!("CREATE ROLE mallory LOGIN PASSWORD '{MALLORY}'")).unwrap();
        client.batch_execute("CREATE DATABASE shop OWNER mallory").unwrap();
        let shop = Self { cluster, home };
        // Extensions that a superuser made where everybody's tables are.
        shop.as_superuser(
            "CREATE EXTENSION pg_buffercache SCHEMA public; \
             CREATE EXTENSION pg_prewarm SCHEMA public",
        );
        let mut mallory = shop.plain("mallory", MALLORY);
        mallory.batch_execute(TRAPS).unwrap();
        shop
    }

    /// Returns the target of a superuser in the database.
    pub fn superuser(&self) -> Target {
        self.cluster.target("shop")
    }

    /// A session as a client that knows nothing of traps has it.
    pub fn plain(&self, user: &str, password: &str) -> postgres::Client {
        self.session(user, password, "")
    }

    /// The test's own look, past the traps.
    pub fn careful(&self) -> postgres::Client {
        self.session("postgres", &self.password(), "-c search_path=pg_catalog")
    }

    /// Connects with `options` as libpq has them.
    pub fn session(&self, user: &str, password: &str, options: &str) -> postgres::Client {
        let Address::Tcp { host, port } = self.superuser().address else { panic!("asked for TCP") };
        let mut config = postgres::Config::new();
        config.host(&host).port(port).user(user).password(password).dbname("shop").options(options);
        config.connect(postgres::NoTls).unwrap()
    }

    /// Returns the superuser's password.
    pub fn password(&self) -> String {
        self.superuser().password.unwrap().reveal().to_owned()
    }

    /// Runs `sql` as the superuser, past the traps.
    pub fn as_superuser(&self, sql: &str) {
        self.cluster.control("shop").unwrap().batch_execute(sql).unwrap();
    }

    /// Returns the superuser's connection string.
    pub fn dsn(&self) -> String {
        let Address::Tcp { host, port } = self.superuser().address else { panic!("asked for TCP") };
        format!("postgresql://postgres:{}@{host}:{port}/shop", self.password())
    }

    /// Returns mallory's objects that sessions of the name `application` called, and whether
    /// mallory is a superuser now.
    pub fn struck(&self, application: &str) -> (Vec<String>, bool) {
        let mut client = self.careful();
        let sql = "SELECT DISTINCT object FROM evil.calls WHERE application LIKE $1 ORDER BY 1";
        let calls = client.query(sql, &[&application]).unwrap();
        let sql = "SELECT rolsuper FROM pg_catalog.pg_roles WHERE rolname = 'mallory'";
        let is_superuser = client.query_one(sql, &[]).unwrap().get(0);
        (calls.iter().map(|row| row.get(0)).collect(), is_superuser)
    }

    /// Panics where mallory has become a superuser; `what` was done before.
    pub fn assert_unharmed(&self, what: &str) {
        assert_eq!(self.struck("%"), (Vec::new(), false), "{what}");
    }

    /// Takes back what a trap gave.
    pub fn forget(&self) {
        let mut client = self.careful();
        client.batch_execute("ALTER ROLE mallory NOSUPERUSER; TRUNCATE evil.calls").unwrap();
    }
}
