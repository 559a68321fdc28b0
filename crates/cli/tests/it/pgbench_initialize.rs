//! `-i` leaves the tables, keys and rows that pgbench leaves.

use std::process::Stdio;

use crate::pgbench_support::{Server, signal};
use crate::support::finish;
use pgdyno_test_support::{test_name, wait_for};

/// Everything that tells one set of tables from another.
pub const SHAPE: &[&str] = &[
    "select c.relname, c.relkind, c.relpersistence, c.reloptions, c.relispartition, t.spcname, \
        pg_get_expr(c.relpartbound, c.oid), pg_get_partkeydef(c.oid) \
     from pg_class c left join pg_tablespace t on t.oid = c.reltablespace \
     where c.relname like 'pgbench%' order by 1",
    "select a.attrelid::regclass::text, a.attnum, a.attname, format_type(a.atttypid, a.atttypmod), \
     a.attnotnull from pg_attribute a join pg_class c on c.oid = a.attrelid \
     where c.relname like 'pgbench%' and a.attnum > 0 order by 1, 2",
    "select conrelid::regclass::text, conname, contype, pg_get_constraintdef(oid) from \
     pg_constraint where conrelid::regclass::text like 'pgbench%' order by 1, 2",
];

/// Everything that tells one set of rows from another.
pub const ROWS: &[&str] = &[
    "select count(*), sum(aid), sum(bid), sum(abalance), min(filler), max(length(filler)), \
     count(filler), sum(hashtext(aid || '-' || bid)) from pgbench_accounts",
    "select count(*), sum(tid), sum(bid), sum(tid * bid), sum(tbalance), count(filler) from \
     pgbench_tellers",
    "select count(*), sum(bid), sum(bbalance), count(filler) from pgbench_branches",
    "select count(*) from pgbench_history",
];

pub fn assert_same(server: &Server, args: &str, queries: &[&str]) {
    for query in queries {
        assert_eq!(server.ask("ref", query), server.ask("our", query), "`{args}`: {query}");
    }
}

#[test]
fn tables_keys_and_rows_are_pgbenchs() {
    for server in Server::each(test_name!()) {
        let always = "done in ";
        for (args, phrases) in [
            (
                "-i -F 70",
                vec![
                    "dropping old tables...",
                    "creating tables...",
                    "generating data (client-side)...",
                    "100000 of 100000 tuples (100%)",
                    "vacuuming...",
                    "creating primary keys...",
                ],
            ),
            ("-i -q --foreign-keys", vec!["creating foreign keys...", "foreign keys "]),
            ("-i -I dtGvp", vec!["generating data (server-side)...", "server-side generate "]),
            ("-i -I dtp --partitions=3 --unlogged-tables -F 80", vec!["creating 3 partitions..."]),
            (
                "-i -I dtpfg --partitions=7 --partition-method=hash",
                vec!["creating 7 partitions...", "client-side generate "],
            ),
            ("-i --partitions=1 -I dt", vec!["creating 1 partitions..."]),
            ("-i -I dtp --unlogged-tables -n", vec!["primary keys "]),
            (
                "-i -I dtpf --unlogged-tables --partitions=2 --foreign-keys",
                vec!["creating foreign keys..."],
            ),
            ("-i -I dt --partition-method=HASH --partitions=2", vec!["creating 2 partitions..."]),
            ("-i -I dtp --partitions=", vec!["primary keys "]),
            ("-i -I d", vec!["drop tables "]),
            ("-i -I d", vec!["NOTICE:  table \"pgbench_accounts\" does not exist, skipping"]),
            (
                "-i -I dtp --tablespace=pg_default --index-tablespace=pg_default",
                vec!["primary keys "],
            ),
            ("-i -I 'd' ", vec!["drop tables "]),
            ("-i -I t --scale=20000", vec!["create tables "]),
        ] {
            let phrases: Vec<&str> = phrases.into_iter().chain([always]).collect();
            server.same(args, &phrases).with_case(args).exits(0);
            assert_same(&server, args, SHAPE);
            if server.ask("our", "select count(*) from pg_class where relname = 'pgbench_accounts'")
                == "1"
            {
                assert_same(&server, args, ROWS);
            }
        }
        // What is unlogged is the dialect's to say, not the server's.
        for (dialect, unlogged) in [(17, "7"), (18, "3")] {
            let args = format!("-i -I dt --unlogged-tables --partitions=3 --dialect={dialect}");
            let made = server.run_undialected(&args);
            if (dialect, server.major) == (17, 18) {
                assert_eq!(made.code, Some(1), "{}", made.err);
                made.says("cannot be unlogged");
                continue;
            }
            assert_eq!(made.code, Some(0), "{}", made.err);
            let count = "select count(*) from pg_class where relname like 'pgbench%' \
                         and relkind in ('r', 'p') and relpersistence = 'u'";
            assert_eq!(server.ask("our", count), unlogged, "{args}");
        }
        // Into the tables of another load; the filling is one transaction.
        server.same("-i -I dtG", &[always]);
        server.same("-i -I g", &["client-side generate "]);
        assert_same(&server, "-i -I g", ROWS);
        server.same("-i -I tt", &["already exists"]).exits(1);
    }
}

/// All relations of the schemas that tests use.
const EVERYTHING: &str = "select c.oid::regclass::text, c.relkind from pg_class c join \
    pg_namespace n on n.oid = c.relnamespace where n.nspname in ('public', 'first', 'second') \
    order by 1";

/// Asks both databases.
fn both(server: &Server, sql: &str) -> [String; 2] {
    ["ref", "our"].map(|database| server.ask(database, sql))
}

#[test]
fn dropping_drops_what_pgbench_drops_and_no_more() {
    for server in Server::each(test_name!()) {
        let tables = "create table pgbench_other (a int); create table pgbench_accounts (aid int); \
            create table pgbench_history (aid int); create table pgbench_branches (bid int)";
        for (what, made, says, code) in [
            ("another's table beside them", "", "does not exist, skipping", 0),
            (
                "a view upon one",
                "create view upon as select * from pgbench_branches",
                "because other objects depend on",
                1,
            ),
            (
                "a view in place of one",
                "create view pgbench_tellers as select 1 as tid",
                "is not a table",
                1,
            ),
            (
                "a foreign table in place of one",
                "create foreign data wrapper w; create server s foreign data wrapper w; \
                 create foreign table pgbench_tellers (tid int) server s",
                "is not a table",
                1,
            ),
            ("a sequence in place of one", "create sequence pgbench_tellers", "is not a table", 1),
            (
                "partitions, and one of another's",
                "drop table pgbench_accounts; create table pgbench_accounts (aid int) partition by \
                 range (aid); create table mine partition of pgbench_accounts default",
                "does not exist, skipping",
                0,
            ),
            (
                "a key of another's table",
                "alter table pgbench_branches add primary key (bid); \
                create table mine (bid int references pgbench_branches)",
                "because other objects depend on",
                1,
            ),
        ] {
            both(
                &server,
                "drop schema public cascade; create schema public; drop foreign data wrapper if \
                 exists w cascade",
            );
            both(&server, &format!("{tables}; {made}"));
            server.same("-i -I d", &[says]).with_case(what).exits(code);
            assert_same(&server, what, &[EVERYTHING]);
            let other =
                server.ask("our", "select count(*) from pg_class where relname = 'pgbench_other'");
            assert_eq!(other, "1", "{what}");
        }
    }
}

#[test]
fn tables_are_found_and_made_by_the_search_path_as_pgbench_does() {
    for server in Server::each(test_name!()) {
        // Names are found by the user's own search_path, and made where its first schema is.
        both(
            &server,
            "drop schema public cascade; create schema public; create schema first; create schema \
             second",
        );
        for database in ["ref", "our"] {
            server.ask(
                database,
                &format!("alter database {database} set search_path = gone, first, second"),
            );
        }
        both(
            &server,
            "create table second.pgbench_accounts (a int); create table public.pgbench_accounts (a \
             int); create table first.pgbench_tellers (a int); create table second.pgbench_tellers \
             (a int)",
        );
        for (args, code) in
            [("-i -I d", 0), ("-i -I t", 0), ("-i -I g", 0), ("-i -I dtGvpf", 0), ("-S -t 1", 0)]
        {
            server.same(args, &[]).with_case(args).exits(code);
            assert_same(&server, args, &[EVERYTHING]);
        }
        for database in ["ref", "our"] {
            server.ask(database, &format!("alter database {database} set search_path = gone"));
        }
        server.same("-i -I t", &["no schema has been selected to create in"]).exits(1);
        server.same("-S -t 1", &["relation \"pgbench_branches\" does not exist"]);
    }
}

#[test]
fn load_leaves_the_tables_keys_and_rows_that_pgbench_leaves() {
    if let Some(server) = Server::newest(test_name!()) {
        for (scale, theirs, ours) in [
            (1, "", "--jobs 1"),
            (2, "", "--jobs 3 --strategy chunks"),
            (1, " --partitions=3", "--jobs 2 --partitions 3"),
        ] {
            server.run("ref", &format!("-i -q -s {scale}{theirs}")).exits(0);
            let load = format!("load tpcb-like -s {scale} {ours} --replace -d our");
            let loaded = server.pgdyno(&load).with_case(ours).exits(0);
            let begins = format!("tpcb-like at scale {scale}, seed 1");
            assert!(loaded.out.starts_with(&begins), "{}", loaded.out);
            let rows = format!(": {} rows in ", scale * 100_011);
            loaded.prints(&rows);
            assert_same(&server, ours, SHAPE);
            assert_same(&server, ours, ROWS);
        }
        // What pgbench made is not pgdyno's to drop.
        server.run("our", "-i -q");
        server
            .pgdyno("load tpcb-like --replace -d our")
            .exits(1)
            .says("it is there already, not made by pgdyno");
        assert_eq!(server.ask("our", "select count(*) from pgbench_accounts"), "100000");
        server
            .pgdyno("load tpcb-like -s 1000000 -d ref")
            .exits(1)
            .says("it takes about 16.0 TB, and the server's disk has");
    }
}

#[test]
fn a_load_that_a_signal_ends_leaves_what_is_loaded_and_is_gone_on_with_or_replaced() {
    if let Some(server) = Server::newest(test_name!()) {
        let args = "load tpcb-like -s 400 --jobs 2 --strategy chunks -d our";
        let mut command = server.pgdyno_command();
        command.args(args.split_whitespace()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().unwrap();
        let loaded = "select count(*) from pgdyno_load where piece like '%chunk%'";
        let there = "select count(*) from pg_class where relname = 'pgdyno_load'";
        let is_begun = || server.ask("our", there) != "0" && server.ask("our", loaded) != "0";
        wait_for("a chunk that is loaded", || is_begun().then_some(()));
        signal(child.id(), "INT");
        finish(child).exits(130).says("the same command goes on from what is loaded");
        let pieces: u64 = server.ask("our", loaded).parse().unwrap();
        assert_eq!(
            server.ask("our", "select count(*) from pgbench_accounts"),
            (pieces * 500_000).to_string()
        );
        server.pgdyno("load tpcb-like -s 1 -d our").exits(1).says("was begun here and not ended");
        server.pgdyno("load tpcb-like -s 1 -d our --replace").exits(0);
        assert_eq!(server.ask("our", "select count(*) from pgbench_accounts"), "100000");
        assert_eq!(server.ask("our", there), "0");
    }
}

#[test]
fn an_interrupted_initialization_ends_at_once_and_leaves_no_rows() {
    if let Some(server) = Server::newest(test_name!()) {
        // Of rows that the server makes, and of rows that are sent: more than a test would wait
        // for.
        for steps in ["dtG", "dtg"] {
            let mut command = server.command("our");
            command.args(["-i", "-s", "5000", "-q", "-I", steps]);
            let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
            let filling = "select count(*) from pg_stat_activity where datname = 'our' \
                           and query ~ '^(insert into|copy) [^ ]*pgbench_accounts'";
            wait_for("the tables to be filled", || {
                assert!(child.try_wait().unwrap().is_none(), "{steps}: it ended by itself");
                (server.ask("our", filling) != "0").then_some(())
            });
            signal(child.id(), "INT");
            finish(child).with_case(steps).exits(130).says("interrupted");
            assert_eq!(server.ask("our", "select count(*) from pgbench_branches"), "0", "{steps}");
        }
    }
}
