//! A database whose owner plants functions, operators, views and types against whoever has more
//! rights: pgdyno works in it as a superuser, calls none of them, and the owner stays what it was.

#![allow(clippy::unwrap_used)] // helpers of tests fail as tests do

mod server;

use std::num::NonZeroU32;
use std::sync::atomic::AtomicBool;

use pgdyno_host::postgres::Cluster;
use pgdyno_lab::file::Override;
use pgdyno_lab::load::{ConnectOptions, Existing, Load, load};
use pgdyno_lab::pgbench::{CalledAs, Invocation};
use pgdyno_lab::progress::Silent;
use pgdyno_lab::{LabError, Loading, Prepared, SessionEnd, recipes, run};
use pgdyno_model::target::{Address, Target};
use server::{install, made};

static GO_ON: AtomicBool = AtomicBool::new(false);
/// The password of the database's owner.
const MALLORY: &str = "mallory";

/// A server with the database `shop`, which mallory owns and has prepared.
struct Shop {
    cluster: Cluster,
    home: pgdyno_test_support::Scratch,
}

impl Shop {
    fn start(major: Option<u32>) -> Self {
        let (mut cluster, home) = made(install(major));
        cluster.start(&GO_ON).unwrap();
        let mut client = cluster.control("postgres").unwrap();
        client.batch_execute(&format!("CREATE ROLE mallory LOGIN PASSWORD '{MALLORY}'")).unwrap();
        client.batch_execute("CREATE DATABASE shop OWNER mallory").unwrap();
        let shop = Self { cluster, home };
        // Extensions that a superuser made where everybody's tables are.
        shop.as_superuser(
            "CREATE EXTENSION pg_buffercache SCHEMA public; CREATE EXTENSION pg_prewarm SCHEMA public",
        );
        let mut mallory = shop.plain("mallory", MALLORY);
        mallory.batch_execute(include_str!("hostile.sql")).unwrap();
        shop
    }

    fn superuser(&self) -> Target {
        self.cluster.target("shop")
    }

    /// A session as a client that knows nothing of traps has it.
    fn plain(&self, user: &str, password: &str) -> postgres::Client {
        self.session(user, password, "")
    }

    /// The test's own look, past the traps.
    fn careful(&self) -> postgres::Client {
        self.session("postgres", &self.password(), "-c search_path=pg_catalog")
    }

    fn session(&self, user: &str, password: &str, options: &str) -> postgres::Client {
        let Address::Tcp { host, port } = self.superuser().address else { panic!("asked for TCP") };
        let mut config = postgres::Config::new();
        config.host(&host).port(port).user(user).password(password).dbname("shop").options(options);
        config.connect(postgres::NoTls).unwrap()
    }

    fn password(&self) -> String {
        self.superuser().password.unwrap().reveal().to_owned()
    }

    fn as_superuser(&self, sql: &str) {
        self.cluster.control("shop").unwrap().batch_execute(sql).unwrap();
    }

    fn dsn(&self) -> String {
        let Address::Tcp { host, port } = self.superuser().address else { panic!("asked for TCP") };
        format!("postgresql://postgres:{}@{host}:{port}/shop", self.password())
    }

    /// What of mallory's was called by sessions of that name, and whether mallory is a superuser
    /// now.
    fn struck(&self, application: &str) -> (Vec<String>, bool) {
        let mut client = self.careful();
        let sql = "SELECT DISTINCT object FROM evil.calls WHERE application LIKE $1 ORDER BY 1";
        let calls = client.query(sql, &[&application]).unwrap();
        let sql = "SELECT rolsuper FROM pg_catalog.pg_roles WHERE rolname = 'mallory'";
        let is_superuser = client.query_one(sql, &[]).unwrap().get(0);
        (calls.iter().map(|row| row.get(0)).collect(), is_superuser)
    }

    fn assert_unharmed(&self, what: &str) {
        assert_eq!(self.struck("%"), (Vec::new(), false), "{what}");
    }

    fn forget(&self) {
        let mut client = self.careful();
        client.batch_execute("ALTER ROLE mallory NOSUPERUSER; TRUNCATE evil.calls").unwrap();
    }

    fn run(&self, sets: &[&str]) -> Result<run::Outcome, LabError> {
        let dsn = self.dsn();
        let mut overrides =
            vec![Override::text("postgres.dsn", &dsn, &format!("postgres.dsn={dsn}"))];
        let short = [
            "load.duration=1s",
            "load.warm_up=100ms",
            "workload.scale=1",
            "experiment.repeats=1",
            "experiment.seed=1",
        ];
        overrides.extend(short.iter().chain(sets).map(|set| Override::parse(set).unwrap()));
        let prepared = Prepared::new(recipes::source("quickstart").unwrap(), overrides).unwrap();
        run::run(&prepared, &self.home.path().join("store.sqlite3"), &Silent, &GO_ON)
    }

    fn assert_runs(&self, sets: &[&str]) {
        let outcome = self.run(sets).unwrap();
        assert_eq!((outcome.end, outcome.failed), (SessionEnd::Completed, 0), "{sets:?}");
        self.assert_unharmed(&format!("{sets:?}"));
    }

    /// `pgdyno pgbench` with these arguments, as the superuser: its exit status and what it said.
    fn pgbench(&self, arguments: &[&str]) -> (i32, String) {
        let mut args: Vec<String> = arguments.iter().map(|&a| a.to_owned()).collect();
        args.push(self.dsn());
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let invocation = Invocation::read(&args, CalledAs::Pgdyno, &mut err).unwrap();
        let status = invocation.run(&mut out, &mut err, &GO_ON);
        (status, String::from_utf8(out).unwrap() + &String::from_utf8(err).unwrap())
    }

    fn load(&self, workload: &str, partitions: u32, existing: Existing) -> Result<u64, LabError> {
        let connect =
            ConnectOptions { dsn_or_dbname: Some(self.dsn()), ..ConnectOptions::default() };
        let load_ = Load {
            workload: workload.to_owned(),
            scale: NonZeroU32::MIN,
            seed: 1,
            loading: Loading { partitions, ..Loading::default() },
            strategy: None,
            chunk: None,
            existing,
            connect,
        };
        load(&load_, &Silent, &GO_ON).map(|loaded| loaded.rows)
    }
}

#[test]
fn a_databases_owner_gets_no_superuser_out_of_what_it_plants() {
    let shop = Shop::start(None);

    // The traps work: whoever asks without care has called them.
    let careless = "SELECT count(*) FROM pg_settings WHERE name = 'fsync' AND setting::text = 'on'";
    let _ = shop.plain("postgres", &shop.password()).batch_execute(careless);
    let (calls, is_superuser) = shop.struck("%");
    assert!(is_superuser && !calls.is_empty(), "{calls:?}");
    shop.forget();

    // A whole run, with everything that asks the server.
    shop.assert_runs(&[
        "factors.clients=[2]",
        "telemetry.buffercache=true",
        "between.prewarm=true",
        "between.checkpoint=true",
    ]);
    shop.assert_runs(&[
        "factors={}",
        "factors.checkpoint_timeout=[\"10min\"]",
        "factors.synchronous_commit=[\"off\"]",
        "postgres.alter_system=true",
    ]);
    for workload in ["numbers", "user-login", "group-commit"] {
        shop.assert_runs(&["factors.clients=[1]", &format!("workload.name=\"{workload}\"")]);
    }

    // Into a schema of the owner's a superuser's session puts nothing.
    for refused in [
        shop.run(&["factors.clients=[1]", "postgres.schema=public"]).unwrap_err(),
        shop.load("tpcb-like", 0, Existing::Keep).unwrap_err(),
    ] {
        assert!(refused.to_string().contains("mallory") && refused.help().is_some(), "{refused}");
    }
    shop.assert_unharmed("refused loads");
    // Into one of its own it does.
    shop.as_superuser(
        "CREATE SCHEMA ours; ALTER ROLE postgres SET search_path = ours, evil, pg_catalog",
    );
    assert_eq!(shop.load("tpcb-like", 0, Existing::Keep).unwrap(), 100_011);
    assert_eq!(shop.load("tpcb-like", 2, Existing::ReplaceOurs).unwrap(), 100_011);
    shop.assert_unharmed("loads");
    shop.as_superuser("ALTER ROLE postgres RESET search_path");

    // Initialization, and what precedes a run; the user's scripts then have the user's search_path.
    for steps in ["dtgvpf", "dtGvp"] {
        let (status, said) = shop.pgbench(&["-i", "-I", steps, "--partitions=2"]);
        assert_eq!(status, 0, "{said}");
        shop.assert_unharmed(steps);
    }
    // The load itself calls the owner's operator for every row of accounts.
    shop.as_superuser("TRUNCATE evil.pgbench_accounts");
    let (status, said) = shop.pgbench(&["-S", "-v", "-t", "1"]);
    assert_eq!(status, 0, "{said}");
    assert_eq!(shop.struck("pgdyno control").0, Vec::<String>::new());
    shop.forget();
}
