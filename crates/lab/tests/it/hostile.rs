//! Works as a superuser in a database whose owner plants functions, operators, views and types.
//! pgdyno calls none of them, and the owner gains no rights.

use std::num::NonZeroU32;
use std::sync::atomic::AtomicBool;

use pgdyno_lab::load::{ConnectOptions, Existing, Load, load};
use pgdyno_lab::run;
use pgdyno_model::experiment::Loading;
use pgdyno_model::progress::Silent;
use pgdyno_model::record::SessionEnd;
use pgdyno_provision::BenchError;
use pgdyno_test_support::shop::Shop;

use crate::quickstart::quickstart_on;

static GO_ON: AtomicBool = AtomicBool::new(false);

/// Work that a superuser does with pgdyno in the shop's database.
trait Work {
    fn run(&self, sets: &[&str]) -> Result<run::Outcome, BenchError>;
    fn assert_runs(&self, sets: &[&str]);
    fn load(&self, workload: &str, partitions: u32, existing: Existing) -> Result<u64, BenchError>;
}

impl Work for Shop {
    fn run(&self, sets: &[&str]) -> Result<run::Outcome, BenchError> {
        let resolved = quickstart_on(&self.dsn(), &[&["experiment.seed=1"], sets].concat());
        run::run(&resolved, &self.home.path().join("store.sqlite3"), &Silent, &GO_ON)
    }

    fn assert_runs(&self, sets: &[&str]) {
        let outcome = self.run(sets).unwrap();
        assert_eq!((outcome.end, outcome.failed), (SessionEnd::Completed, 0), "{sets:?}");
        self.assert_unharmed(&format!("{sets:?}"));
    }

    fn load(&self, workload: &str, partitions: u32, existing: Existing) -> Result<u64, BenchError> {
        load_into(self.dsn(), workload, partitions, existing)
    }
}

/// Loads `workload` at scale 1 into the database of `dsn`. Returns how many rows it has.
pub(crate) fn load_into(
    dsn: String,
    workload: &str,
    partitions: u32,
    existing: Existing,
) -> Result<u64, BenchError> {
    let connect = ConnectOptions { dsn_or_dbname: Some(dsn), ..ConnectOptions::default() };
    let all = Load {
        workload: workload.to_owned(),
        scale: NonZeroU32::MIN,
        seed: 1,
        loading: Loading { partitions, ..Loading::default() },
        strategy: None,
        chunk: None,
        existing,
        connect,
    };
    load(&all, &Silent, &GO_ON).map(|loaded| loaded.rows)
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
        "telemetry.buffercache=true",
        "between.prewarm=true",
        "between.checkpoint=true",
        "factors={}",
        "factors.checkpoint_timeout=[\"10min\"]",
        "factors.synchronous_commit=[\"off\"]",
        "postgres.alter_system=true",
    ]);
    for workload in ["numbers", "user-login", "group-commit"] {
        shop.assert_runs(&["factors={}", &format!("workload.name=\"{workload}\"")]);
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
}
