//! `pgdyno pgbench` against every major version of PostgreSQL that can be had.

use std::sync::atomic::AtomicBool;

use pgdyno_model::target::Address;
use pgdyno_test_support::{Server, Session, assert_contains, install};

static GO_ON: AtomicBool = AtomicBool::new(false);

const PIPELINE: &str = "\
\\set aid random(1, 100000 * :scale)
\\startpipeline
UPDATE pgbench_accounts SET abalance = abalance + 1 WHERE aid = :aid;
\\syncpipeline
SELECT abalance FROM pgbench_accounts WHERE aid = :aid;
INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (1, 1, :aid, 1, CURRENT_TIMESTAMP);
\\endpipeline
";

#[test]
#[ignore = "long: a server of each major version, fetched"]
fn every_major_version_is_filled_and_driven_with_statements_one_by_one_and_in_pipelines() {
    for major in 15..=18 {
        let server = Server::with_install(install(Some(major)));
        let mut session = Session::new(&server.unix());
        let target = server.unix();
        let Address::Unix { directory, port } = &target.address else { panic!("no socket") };
        let script = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(script.path(), PIPELINE).unwrap();
        let pgbench = |options: &str| {
            let place = [directory.to_str().unwrap(), &port.to_string(), &target.user];
            let place = ["-h", place[0], "-p", place[1], "-U", place[2], &target.database];
            let arguments: Vec<String> =
                options.split_whitespace().chain(place).map(str::to_owned).collect();
            let (mut out, mut err) = (Vec::new(), Vec::new());
            let status = pgdyno_pgbench::main(&arguments, &mut out, &mut err, &GO_ON);
            let (out, err) = (String::from_utf8(out).unwrap(), String::from_utf8(err).unwrap());
            assert_eq!(status, 0, "PostgreSQL {major}, {options}: {out}{err}");
            out
        };
        pgbench("-i -s 1 -q --foreign-keys");
        let mut rows = 0;
        for protocol in ["simple", "extended", "prepared"] {
            let out = pgbench(&format!("-n -b tpcb-like -c 4 -j 2 -t 25 -r -M {protocol}"));
            assert_contains(
                &out,
                &[
                    &format!("server {major}."),
                    "number of transactions actually processed: 100/100",
                ],
            );
            rows += 100;
            assert_eq!(session.count("SELECT count(*) FROM pgbench_history"), rows);
            for table in ["accounts WHERE abalance <> 0", "tellers", "branches"] {
                let column = format!("{}balance", &table[..1]);
                let same = format!(
                    "SELECT ((SELECT sum(delta) FROM pgbench_history) = (SELECT sum({column}) FROM \
                     pgbench_{table}))::text"
                );
                assert_eq!(
                    session.ask(&same).as_deref(),
                    Some("true"),
                    "PostgreSQL {major}: {table}"
                );
            }
        }
        for protocol in ["extended", "prepared"] {
            let file = script.path().display();
            let out = pgbench(&format!("-n -f {file} -c 4 -t 25 -M {protocol}"));
            assert!(out.contains("number of transactions actually processed: 100/100"), "{out}");
            rows += 100;
            assert_eq!(session.count("SELECT count(*) FROM pgbench_history"), rows);
        }
        let added = "SELECT (sum(abalance) = (SELECT sum(delta) FROM pgbench_history))::text FROM \
            pgbench_accounts";
        assert_eq!(session.ask(added).as_deref(), Some("true"), "PostgreSQL {major}");
    }
}
