//! A database whose owner plants functions, operators, views and types against whoever has more
//! rights: `pgdyno pgbench` works in it as a superuser and calls none of them.

use std::sync::atomic::AtomicBool;

use pgdyno_pgbench::{CalledAs, Invocation};
use pgdyno_test_support::pgbouncer::{
    self, Pooler, STARTUP_PARAMETERS, in_shop, program_or_skip, trapped_shop,
};
use pgdyno_test_support::shop::{Shop, TRAPS};
use pgdyno_test_support::test_name;

static GO_ON: AtomicBool = AtomicBool::new(false);

/// Runs `pgdyno pgbench` with `arguments` and returns its exit status and all that it printed.
fn pgbench(arguments: &[&str]) -> (i32, String) {
    let args: Vec<String> = arguments.iter().map(|&a| a.to_owned()).collect();
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let invocation = Invocation::read(&args, CalledAs::Pgdyno, &mut err).unwrap();
    let status = invocation.run(&mut out, &mut err, &GO_ON);
    (status, String::from_utf8(out).unwrap() + &String::from_utf8(err).unwrap())
}

#[test]
fn a_databases_owner_gets_no_superuser_out_of_initialization_or_a_run() {
    let shop = Shop::start(None);
    // The traps work: whoever asks without care has called them.
    let careless = "SELECT count(*) FROM pg_settings WHERE name = 'fsync' AND setting::text = 'on'";
    let _ = shop.plain("postgres", &shop.password()).batch_execute(careless);
    assert!(shop.struck("%").1);
    shop.forget();

    // Initialization, and what precedes a run; the user's scripts then have the user's search_path.
    for steps in ["dtgvpf", "dtGvp"] {
        let (status, said) = pgbench(&["-i", "-I", steps, "--partitions=2", &shop.dsn()]);
        assert_eq!(status, 0, "{said}");
        shop.assert_unharmed(steps);
    }
    // The load itself calls the owner's operator for every row of accounts.
    shop.as_superuser("TRUNCATE evil.pgbench_accounts");
    let (status, said) = pgbench(&["-S", "-v", "-t", "1", &shop.dsn()]);
    assert_eq!(status, 0, "{said}");
    assert_eq!(shop.struck("pgdyno control").0, Vec::<String>::new());
    shop.forget();
}

#[test]
fn a_databases_owner_gets_no_superuser_out_of_initialization_through_a_pooler() {
    let Some(program) = program_or_skip(test_name!()) else { return };
    let server = trapped_shop(TRAPS);
    for lines in STARTUP_PARAMETERS {
        let pooler = Pooler::with(&program, &server, lines);
        let dsn = pooler.shop_dsn();
        for steps in ["dtgvpf", "dtGvp"] {
            let (status, said) = pgbench(&["-i", "-I", steps, "--partitions=2", &dsn]);
            assert_eq!(status, 0, "{lines} {said}");
            pgbouncer::assert_unharmed(&server, &format!("{lines}{steps}"));
        }
        let rows = in_shop(&server, "postgres", "SELECT count(*) FROM evil.pgbench_accounts");
        assert_eq!(rows, ["100000"]);
    }
}
