//! Runs: report, exit status and what is left in the tables, beside the installed pgbench.

use std::process::Stdio;

use crate::pgbench_support::{Server, numbers_as_n, signal};
use crate::support::{finish, read_json};
use pgdyno_test_support::{assert_contains, test_name, wait_for};

/// Servers with both databases filled.
fn filled(test: &str) -> impl Iterator<Item = Server> {
    Server::each(test).inspect(fill)
}

/// The newest of them.
fn filled_newest(test: &str) -> Option<Server> {
    Server::newest(test).inspect(fill)
}

fn fill(server: &Server) {
    server.fill();
    server.script("one.sql", "SELECT 1;\n");
    server.script("two@2.sql", "\\set x random(1, 10)\nSELECT :x;\nSELECT  2,\n  3;\n");
    server.script("wrong.sql", "SELECT 1;\nSELECT 1/0;\n");
    // Always the same: what numbers do not tell is compared to the letter.
    let serialization = "DO $$ BEGIN RAISE EXCEPTION 'meant' USING ERRCODE = '40001'; END $$;\n";
    server.script("serialization.sql", serialization);
    server.script("slow-failure.sql", &format!("SELECT pg_sleep(0.02);\n{serialization}"));
    let deadlock = "DO $$ BEGIN RAISE EXCEPTION 'meant' USING ERRCODE = '40P01'; END $$;\n";
    server.script("deadlock.sql", deadlock);
    server.script("ends-inside.sql", "BEGIN;\nSELECT 1;\n");
    server.script("sleep.sql", "\\sleep 20 ms\n");
    server.script("shell.sql", "\\shell sleep 0.05\n");
    server.script("compute.sql", "\\set x 1\n");
    server.script("broken.sql", "\\set x 1 +\n");
    server.script("unknown.sql", "\\foo\n");
    server.script("empty.sql", "");
    let pipeline = "\\startpipeline\n\\set a 5\n\\if :a > 3\nSELECT :a;\n\\else\nSELECT 0;\n\
        \\endif\nSELECT 2 AS b;\n\\endpipeline\n";
    server.script(
        "pipeline.sql",
        &format!("{pipeline}\\sleep 100 us\nSELECT 3 AS c \\gset p_\nSELECT :p_c \\; SELECT 4;\n"),
    );
}

#[test]
fn reports_have_pgbenchs_lines_in_pgbenchs_order() {
    for server in filled(test_name!()) {
        for args in [
            "-t 3",
            "-n -t 3 -S",
            "-n -t 3 -N",
            "-n -S -t 2 -c 3 -j 2",
            "-n -S -t 2 -c 2 -j 5",
            "-n -T 1 -f sleep.sql",
            "-n -S -t 2 -M extended",
            "-n -S -t 2 -M prepared -c 2",
            "-n -t 2 -r",
            "-n -t 2 -r --max-tries=3",
            "-n -t 2 -r -M prepared",
            "-n -t 2 -C -S",
            "-n -t 2 -C -S -r -c 2",
            "-n -S -t 2 --failures-detailed",
            "-n -S -t 2 --max-tries=2 --failures-detailed",
            "-n -T 1 -f sleep.sql --max-tries=0",
            "-n -S -t 5 -L 10000",
            "-n -S -t 5 -R 1000",
            "-n -S -t 5 -R 1000 -L 10000",
            "-n -S -t 2 -L 10000 --max-tries=0",
            "-n -t 2 -f one.sql",
            "-n -t 2 -f two@2.sql@3 -r",
            "-n -t 2 -f one.sql -s 5",
            "-n -t 2 -f one.sql -D scale=7",
            "-n -t 2 -S -D scale=1 -D other=text",
            "-n -t 2 -f serialization.sql",
            "-n -t 2 -f serialization.sql -r --failures-detailed",
            "-n -t 2 -f serialization.sql -r --failures-detailed --max-tries=3",
            "-n -t 2 -f deadlock.sql --max-tries=2 --failures-detailed",
            "-n -t 2 -S --random-seed=time",
            "-t 2 -v -S",
            "-n -S -t 2 -P 3",
            "-n -t 3 -r -c 2 -M extended -f pipeline.sql",
            "-n -t 3 -r -M prepared -f pipeline.sql",
            "-n -t 3 -f serialization.sql -L 1000",
            "-n -t 3 -f serialization.sql -P 5",
            "-n -t 3 -f serialization.sql -r -L 1000 -R 1000 --failures-detailed --max-tries=2",
            "-n -t 2 -f serialization.sql -r -C",
            "-n -T 1 -f slow-failure.sql --max-tries=0",
            "-n -t 3 -f ends-inside.sql -r",
            "-n -t 3 -f ends-inside.sql -C",
            "-n -t 3 -f wrong.sql -r",
            "-n -t 3 -f sleep.sql -r",
            "-n -t 3 -f shell.sql -r",
            "-n -t 3 -f compute.sql -r -c 2",
        ] {
            server.same(args, &[]);
        }
        // With several scripts, the one that is drawn is a matter of chance: enough transactions
        // that each is.
        for args in [
            "-n -t 60 -S -f one.sql",
            "-n -t 60 -S -f one.sql -r -C",
            "-n -t 60 -b tpcb@2 -b se@3 -r --max-tries=2 --failures-detailed",
            "-n -t 200 -R 3000 -L 10000 -f one.sql@1 -S",
            "-n -t 5 -f one.sql@1 -f wrong.sql@0 -r",
            "-n -t 60 -P 9 -f one.sql -f serialization.sql -r",
        ] {
            server.same(args, &[]);
        }
    }
}

#[test]
#[ignore = "long: two runs for each of some thirty combinations"]
fn options_combine_as_in_pgbench() {
    for server in filled(test_name!()) {
        let dimensions: [&[&str]; 8] = [
            &["-S", "-N", "-f one.sql", "-S -f two@2.sql@2"],
            &["-M simple", "-M extended", "-M prepared"],
            &["", "-r"],
            &["", "-C"],
            &["", "--max-tries=2", "--failures-detailed"],
            &["", "-L 10000", "-R 4000", "-R 4000 -L 10000"],
            &["-c 1", "-c 3 -j 2"],
            &["-t 20", "-t 20 -P 60"],
        ];
        let all: usize = dimensions.iter().map(|d| d.len()).product();
        // Every 83rd: a prime, so that nearly every level meets every other. Each version has
        // others.
        let first = usize::try_from(server.major).unwrap() * 10;
        for mut number in (first % 83..all).step_by(83) {
            let mut words = vec!["-n"];
            for dimension in dimensions {
                words.push(dimension[number % dimension.len()]);
                number /= dimension.len();
            }
            // Of twenty draws one script may get none, and then has other lines; a seed makes both
            // draw alike.
            if words.contains(&"-c 1") {
                words.push("--random-seed=7");
            }
            server.same(&words.join(" "), &[]);
        }
    }
}

#[test]
fn what_goes_wrong_goes_wrong_as_in_pgbench() {
    for server in filled(test_name!()) {
        for (args, status, phrases) in [
            (
                "-n -t 2 -c 2 -f wrong.sql",
                2,
                vec!["aborted in command 1", "division by zero", "Run was aborted"],
            ),
            (
                "-n -T 2 -f wrong.sql -r",
                2,
                vec!["Run was aborted; the above results are incomplete"],
            ),
            ("-n -t 2 -M prepared -f wrong.sql", 2, vec!["division by zero"]),
            ("-n -t 2 -f wrong.sql --max-tries=5", 2, vec!["client 0 script 0 aborted"]),
            (
                "-n -t 2 -f serialization.sql --verbose-errors",
                0,
                vec!["client 0 got an error in command 0 (SQL) of script 0"],
            ),
            (
                "-n -t 1 -f serialization.sql --verbose-errors --max-tries=2",
                0,
                vec!["(try 1/2)", "(try 2/2)"],
            ),
            ("-n -f broken.sql", 1, vec!["broken.sql:1", "syntax error", "in command \"set\""]),
            ("-n -f unknown.sql", 1, vec!["unknown.sql:1", "invalid command"]),
            ("-n -f empty.sql", 1, vec!["empty command list for script \"empty.sql\""]),
            ("-n -S -c 29 -j 2 -t 1 -U missing", 1, vec!["role \"missing\" does not exist"]),
            (
                "-n -S -c 60 -t 1",
                1,
                vec!["too many clients", "could not create connection for client"],
            ),
            (
                "-n -S -t 1 -l --log-prefix=/nonexistent/x",
                1,
                vec!["could not open logfile \"/nonexistent/x."],
            ),
            ("-n -S -t 1 --random-seed=42", 0, vec!["setting random seed to 42"]),
            (
                "-S -t 1 -s 9",
                0,
                vec![
                    "scale option ignored, using count from pgbench_branches table (1)",
                    "starting vacuum...end.",
                ],
            ),
            (
                "-v -S -t 1",
                0,
                vec!["starting vacuum...end.", "starting vacuum pgbench_accounts...end."],
            ),
        ] {
            server.same(args, &phrases).with_case(args).exits(status);
        }
    }
}

#[test]
fn a_run_that_is_ended_and_one_without_tables_say_what_pgbench_says() {
    for server in filled(test_name!()) {
        // What ends the whole run says where it was.
        if server.major >= 17 {
            let ended = server.same(
                "-n -t 2 -f wrong.sql --exit-on-abort",
                &[
                    "division by zero",
                    "pgbench: error: Run was aborted due to an error in thread 0",
                ],
            );
            assert_eq!((ended.code, ended.out.lines().count()), (Some(2), 1), "{}", ended.out);
        }
        // With empty tables clients end, and there is a report of nothing.
        for who in ["ref", "our"] {
            server.ask(who, "truncate pgbench_branches");
        }
        for args in ["-n -S -t 1", "-n -t 1", "-N -t 1 -c 2 -s 3"] {
            server
                .same(args, &["empty range given to random", "Run was aborted"])
                .with_case(args)
                .exits(2);
        }
        // Without its tables a run of own scripts goes on; its vacuum is told to have failed.
        for who in ["ref", "our"] {
            server.run(who, "-i -I d").exits(0);
        }
        server.same(
            "-t 1 -f one.sql",
            &["relation \"pgbench_branches\" does not exist", "(ignoring this error"],
        );
    }
}

#[test]
fn the_same_seed_leaves_the_same_rows() {
    for server in filled(test_name!()) {
        for args in [
            "-n -t 40 --random-seed=7",
            "-n -t 25 --random-seed=8 -M prepared -c 4 -j 4",
            "-n -t 20 --random-seed=9 -N -c 3 -j 3 -M extended",
        ] {
            server.same(args, &[]);
            for query in [
                "select sum(abalance), count(*) filter (where abalance <> 0), sum(abalance::bigint \
                 * aid) from pgbench_accounts",
                "select sum(tbalance), sum(tbalance::bigint * tid) from pgbench_tellers",
                "select count(*), sum(delta), sum(aid::bigint * delta), sum(tid * delta) from \
                 pgbench_history",
            ] {
                assert_eq!(server.ask("ref", query), server.ask("our", query), "`{args}`: {query}");
            }
        }
    }
}

#[test]
fn progress_is_told_in_pgbenchs_shape() {
    Server::each_at_once(test_name!(), |server| {
        fill(&server);
        for args in [
            "-n -T 2 -P 1 -f sleep.sql",
            "-n -T 2 -P 1 -R 200 -L 900 --max-tries=2",
            "-n -T 2 -P 1 --progress-timestamp -C -f sleep.sql",
        ] {
            let (theirs, ours) = std::thread::scope(|scope| {
                let theirs = scope.spawn(|| server.run("ref", args));
                let ours = server.run("our", args);
                (theirs.join().unwrap(), ours)
            });
            server.assert_same(args, &["progress: "], &theirs, &ours);
            let lines = |err: &str| err.lines().filter(|l| l.starts_with("progress: ")).count();
            if args.contains("-P 1 -f sleep.sql") {
                assert_eq!(lines(&ours.err), 2, "{}", ours.err);
            }
            let first = |err: &str| {
                numbers_as_n(err.lines().find(|l| l.starts_with("progress: ")).unwrap())
            };
            assert_eq!(first(&ours.err), first(&theirs.err), "{args}");
        }
    });
}

#[test]
fn an_interrupted_run_tells_what_was_measured() {
    if let Some(server) = filled_newest(test_name!()) {
        let mut command = server.command("our");
        let args = ["-n", "-S", "-R", "200", "-T", "600", "-P", "1"];
        let child =
            command.args(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // It runs when its connection does something.
        let running = "select count(*) from pg_stat_activity where datname = 'our' and query like \
            'SELECT abalance%'";
        wait_for("a running load", || (server.ask("ref", running) != "0").then_some(()));
        signal(child.id(), "INT");
        finish(child)
            .exits(130)
            .prints("number of transactions actually processed: ")
            .prints("tps = ");
    }
}

#[test]
fn what_is_under_way_when_the_time_is_over_counts_alike_everywhere() {
    let Some(server) = Server::newest("what_is_under_way_when_the_time_is_over") else { return };
    server.script("slow.sql", "SELECT pg_sleep(1.5);\n");
    let args = "-n -T 1 -c 2 -f slow.sql --json=- --hdr-log=slow.hlog --store=slow";
    let run = server.run("our", args).exits(0);
    let (text, json) = run.out.split_at(run.out.find("\n{").unwrap());
    let json: serde_json::Value = serde_json::from_str(json).unwrap();
    assert!(text.contains("actually processed: 2\n"), "{text}");
    assert!(text.contains("pgdyno: latency: p50 = ") && !text.contains("p50 = -"), "{text}");
    let m = &json["measurement"];
    assert_eq!((&m["transactions"], &m["drained_transactions"]), (&2.into(), &0.into()));
    for quantile in ["p50", "p99.99", "max"] {
        let us = m["latency_us"][quantile].as_f64().unwrap();
        assert!(us >= 1.5e6, "{quantile}: {json}");
    }
    let tps = text.split("tps = ").nth(1).and_then(|tps| tps.split(' ').next()).unwrap();
    let tps: f64 = tps.parse().unwrap();
    assert!((json["tps"].as_f64().unwrap() - tps).abs() < 1e-6, "{tps}: {json}");
    let shown = server.pgdyno("show latest --json --store slow").json();
    assert_eq!(shown["trials"][0]["transactions"], 2);
    assert!((shown["trials"][0]["tps"].as_f64().unwrap() - tps).abs() < 0.01, "{tps}: {shown}");
    let log = std::fs::read_to_string(server.directory("our").join("slow.hlog")).unwrap();
    assert!(log.lines().filter(|line| line.contains(",HIST")).count() >= 2, "{log}");
    // Late and skipped ones too.
    let run = server.run("our", "-n -T 1 -c 2 -R 9 -L 0.001 -f slow.sql --json=-");
    let (text, json) = run.out.split_at(run.out.find("\n{").unwrap());
    let json: serde_json::Value = serde_json::from_str(json).unwrap();
    let (done, late) = (&json["measurement"]["transactions"], &json["measurement"]["late"]);
    assert!(text.contains(&format!("actually processed: {done}\n")), "{text}{json}");
    assert!(text.contains(&format!("latency limit: {late}/{done} (100.000%)")), "{text}{json}");
}

#[test]
fn more_than_pgbench_is_kept_apart() {
    if let Some(server) = filled_newest(test_name!()) {
        let run = server
            .run("our", "-n -t 20 -r -S -f one.sql --json=out.json --hdr-log=out.hlog")
            .exits(0);
        let own = run.out.lines().position(|l| l.starts_with("pgdyno: ")).unwrap();
        assert!(
            run.out.lines().skip(own).all(|l| l.starts_with("pgdyno: ")),
            "after pgbench's lines: {}",
            run.out
        );
        assert_contains(&run.out, &["p50 = ", "p99.99 = ", "max = ", "generator CPU: "]);
        let json = read_json(server.directory("our").join("out.json"));
        assert_eq!(json["schema"], "pgdyno.pgbench/1");
        assert_eq!(json["measurement"]["transactions"], 20);
        assert!(json["measurement"]["latency_us"]["p99"].as_f64().unwrap() > 0.0, "{json}");
        assert!(json["tps"].as_f64().unwrap() > 0.0);
        let log = std::fs::read_to_string(server.directory("our").join("out.hlog")).unwrap();
        let histograms: Vec<&str> = log.lines().filter(|l| l.contains(",HIST")).collect();
        assert_eq!(histograms.len(), 3, "one interval and each script: {log}");
        assert!(histograms[1].starts_with("Tag=script1,"), "{log}");
        let run =
            server.run("our", "-n -T 3 -S -R 200 --hdr-log=seconds.hlog --json=rate.json").exits(0);
        assert_contains(&run.out, &["service time (from sent): p50", "event loop lag: p50"]);
        let log = std::fs::read_to_string(server.directory("our").join("seconds.hlog")).unwrap();
        let begins: Vec<&str> = log
            .lines()
            .filter(|l| l.contains(",HIST"))
            .filter_map(|l| l.split(',').next())
            .collect();
        // What was under way after three seconds has an interval of its own.
        assert!(begins.len() <= 4 && begins[..3] == ["0.000", "1.000", "2.000"], "{log}");
        let json = read_json(server.directory("our").join("rate.json"));
        let us = |what: &str| json["measurement"][what]["p50"].as_f64().unwrap();
        assert!(us("service_us") <= us("latency_us"), "{json}");
        assert!(json["measurement"]["event_loop_lag"]["p99_us"].as_f64().is_some(), "{json}");
    }
}

#[test]
fn a_transaction_that_only_waits_takes_as_long_as_it_waits() {
    let Some(server) = filled_newest(test_name!()) else { return };
    for script in ["sleep.sql", "shell.sql"] {
        server.run("our", &format!("-n -t 5 -f {script} --json=waits.json")).exits(0);
        let json = read_json(server.directory("our").join("waits.json"));
        let least_us = if script == "sleep.sql" { 20_000.0 } else { 50_000.0 };
        assert!(
            json["measurement"]["latency_us"]["p50"].as_f64().unwrap() >= 0.99 * least_us,
            "{json}"
        );
    }
}

#[test]
fn scripts_of_the_old_language_run_and_it_is_said() {
    for server in filled(test_name!()) {
        server.script(
            "login.sql",
            "\\setrandom aid 1 100000\nSELECT abalance FROM pgbench_accounts WHERE aid = :aid\n\
             SELECT 1\n",
        );
        let run = server.run_undialected("-n -t 3 -r -f login.sql").exits(0);
        run.says("login.sql is read in the language of pgbench up to 9.5");
        run.prints("number of transactions actually processed: 3/3");
        server.run("our", "-n -t 3 -f login.sql --dialect=15").exits(1);
        server.run("ref", "-n -t 3 -f login.sql").exits(1);
    }
}

#[test]
fn the_database_may_be_a_connection_string() {
    for server in filled(test_name!()) {
        server.same("-n -S -t 1 dbname=our", &[]);
        server.same("-n -S -t 1 postgresql:///our", &[]);
        server.same(
            "-n -S -t 1 postgresql:///our?port=1",
            &["could not create connection for setup"],
        );
        server.same("-n -S -t 1 postgresql:///nowhere", &["database \"nowhere\" does not exist"]);
    }
}

/// Returns the lines of clients on their steps, with one name for prepared statements. Lines on
/// receiving are left out: their number depends on how replies arrive.
fn told(err: &str) -> Vec<String> {
    err.lines()
        .filter(|line| !line.ends_with(" receiving"))
        .filter(|line| ["client ", "nclients"].iter().any(|word| line.contains(word)))
        .map(|line| {
            let words = line.split_whitespace().map(|word| match word {
                _ if word.starts_with("P_") || word.starts_with("pgdyno_") => "NAME",
                word => word,
            });
            let line = words.collect::<Vec<_>>().join(" ");
            line.replace("dbName: our", "dbName: ref")
        })
        .collect()
}

#[test]
fn with_debug_every_step_is_told_as_pgbench_tells_it() {
    for server in Server::each(test_name!()) {
        server.script(
            "steps.sql",
            "\\set a random(1, 10)\n\\if :a > 20\nSELECT 0;\n\\elif :a < 11\n\
             SELECT :a + 1 AS x \\gset\n\\else\n\
             SELECT 2;\n\\endif\n\\sleep 1 us\nSELECT 1;\nSELECT :x;\n",
        );
        for protocol in ["simple", "extended", "prepared"] {
            let debug = if server.major < 17 { "-d" } else { "--debug" };
            let args = format!("{debug} -n -t 2 --random-seed=1 -M {protocol} -f steps.sql -c 1");
            let (theirs, ours) = (server.run("ref", &args), server.run("our", &args));
            assert_eq!((theirs.code, ours.code), (Some(0), Some(0)), "{}", ours.err);
            assert_eq!(told(&theirs.err), told(&ours.err), "{protocol}");
            assert!(told(&ours.err).len() > 12, "{}", ours.err);
            ours.says("pgbench: client 0 receiving\n");
        }
        let quiet = server.run("our", "-n -t 2 -f steps.sql");
        assert!(!quiet.err.contains("client 0"), "{}", quiet.err);
    }
}
