//! Plants damage in a server that recovered well. Verification sees it, or calls unknown what it
//! cannot see.
//!
//! The first tests plant damage that shows only in the number of rows, the index entries or the
//! visibility map. Each asserts that every other oracle passes.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pgdyno_connect::control::{self, Client};
use pgdyno_crash::{AfterRecovery, Interference, crash};
use pgdyno_model::crash::{CheckOutcome, Failing};
use pgdyno_model::progress::Silent;
use pgdyno_model::target::Target;
use pgdyno_model::{CrashRecord, Verdict};
use pgdyno_provision::BenchError;
use pgdyno_test_support::{assert_contains, install, wait_for, wrap_postgres};

use super::{home, judged, remove_kept, resolved};

/// Size of PostgreSQL's pages (bytes).
const PAGE: usize = 8192;

/// Size of a page's header (bytes).
const HEADER: usize = 24;

/// Oracles that look at the number and the constants of rows, at index entries, at the visibility
/// map, and beyond a clean stop.
const COUNTING: [&str; 7] = [
    "every loaded row is there once, by a scan",
    "every loaded row is there once, by its key",
    "index entries lead to tuples",
    "the visibility map tells the truth",
    "the server takes writes",
    "the server starts again after a clean stop",
    "the last write is there after a clean stop",
];

/// Runs one round after which `damage` is done, with `limit` for recovery and for each step of
/// verification.
fn round_with(
    limit: &str,
    stop: &AtomicBool,
    damage: AfterRecovery,
) -> Result<CrashRecord, BenchError> {
    round_of(&install(None).bindir, limit, stop, damage)
}

/// Runs a round like [`round_with`], with the programs in `bindir`.
fn round_of(
    bindir: &Path,
    limit: &str,
    stop: &AtomicBool,
    damage: AfterRecovery,
) -> Result<CrashRecord, BenchError> {
    let (home, disk) = home();
    // Few buffers, so that a file can be changed under the server; no checksums, so that rows alone
    // tell of it.
    let text = format!(
        "[experiment]\nrepeats = 1\n[postgres]\nbindir = {bindir:?}\n\
         initdb = [\"--no-data-checksums\"]\n\
         settings = {{ shared_buffers = \"1MB\", autovacuum = \"off\", fsync = \"off\" }}\n\
         [crash]\nfaults = [\"process\"]\nrounds = 1\nclients = 4\nload = \"100ms\"\n\
         controls = false\nrecovery_limit = \"{limit}\"\n"
    );
    let prepared = resolved(&disk, &text);
    let interference = Interference { through: None, after_recovery: Some(damage) };
    let record = crash(&prepared, interference, &home.path().join("store.sqlite3"), &Silent, stop)?;
    remove_kept(&record);
    Ok(record)
}

/// Returns the verdict of one round after `damage`, its reason, and the oracles that failed.
fn judged_after(
    damage: impl Fn(&mut Client, &Path) + Send + Sync + 'static,
) -> (Verdict, String, Vec<String>) {
    let damage: AfterRecovery = Arc::new(move |target: &Target, data: &Path| {
        damage(&mut control::connect_to_own(target).unwrap(), data);
    });
    let record = round_with("60s", &AtomicBool::new(false), damage).unwrap();
    judged(&record.outcome.faults[0].rounds[0])
}

/// Asserts that `damage` fails the round, and that only oracles of [`COUNTING`] see it, those in
/// `by` among them.
fn only_counting_sees(by: &[&str], damage: impl Fn(&mut Client, &Path) + Send + Sync + 'static) {
    let (verdict, reason, failed) = judged_after(damage);
    assert!(verdict.is_failure(), "{verdict}: {reason}");
    for name in by {
        assert!(failed.iter().any(|f| f == name), "{name} did not see it: {reason}");
    }
    // What the log tells here, the scans by the keys have brought about.
    let ours =
        |name: &str| COUNTING.contains(&name) || name == "the server's log tells of no damage";
    let others: Vec<&String> = failed.iter().filter(|name| !ours(name)).collect();
    assert!(others.is_empty(), "{others:?} sees it too: {reason}");
}

fn execute(client: &mut Client, sql: &str) {
    client.batch_execute(sql).unwrap();
}

/// Writes all pages out and fills the few buffers with another table's pages.
fn evict(client: &mut Client) {
    execute(
        client,
        "CREATE TABLE others AS SELECT n, repeat('x', 800) AS x FROM generate_series(1, 5000) n; \
         CREATE INDEX ON others (n); CHECKPOINT; SET enable_seqscan = off; \
         SET enable_bitmapscan = off",
    );
    for _ in 0..3 {
        client.query_one("SELECT count(x) FROM others WHERE n > 0", &[]).unwrap();
    }
    execute(client, "RESET ALL; DROP TABLE others");
}

/// Opens the file of the accounts table, or of its map `fork`. Returns the path too.
fn accounts(client: &mut Client, data: &Path, fork: &str) -> (PathBuf, File) {
    let path: String =
        client.query_one("SELECT pg_relation_filepath('pgbench_accounts')", &[]).unwrap().get(0);
    let path = data.join(format!("{path}{fork}"));
    let file = OpenOptions::new().read(true).write(true).open(&path).unwrap();
    (path, file)
}

#[test]
fn eleven_pages_of_zeros_without_a_balance_are_seen() {
    const PAGES: usize = 11;
    let seen_by = [COUNTING[0], COUNTING[1], COUNTING[2]];
    only_counting_sees(&seen_by, |client, data| {
        let sql = "SELECT (ctid::text::point)[0]::int4 FROM pgbench_accounts GROUP BY 1 \
                   HAVING max(abs(abalance)) = 0 ORDER BY 1";
        let zero: Vec<i32> = client.query(sql, &[]).unwrap().iter().map(|row| row.get(0)).collect();
        let run =
            zero.windows(PAGES).find(|run| run[0] > 0 && run[PAGES - 1] - run[0] == 10).unwrap();
        evict(client);
        let at = u64::try_from(run[0]).unwrap() * PAGE as u64;
        accounts(client, data, "").1.write_all_at(&[0; PAGES * PAGE], at).unwrap();
    });
}

#[test]
#[ignore = "long: one of several damages that a scan and an index miss"]
fn a_table_cut_by_forty_blocks_is_seen() {
    only_counting_sees(&[COUNTING[0], COUNTING[1], COUNTING[2]], |client, data| {
        // What lies last has no balance, so that no sum tells.
        execute(
            client,
            "UPDATE pgbench_accounts SET filler = filler \
             WHERE abalance = 0 AND aid BETWEEN 50000 AND 60000",
        );
        evict(client);
        let (_, file) = accounts(client, data, "");
        file.set_len(file.metadata().unwrap().len() - 40 * PAGE as u64).unwrap();
    });
}

#[test]
fn an_overwritten_filler_is_seen() {
    only_counting_sees(&[COUNTING[0], COUNTING[1]], |client, _| {
        execute(client, "UPDATE pgbench_accounts SET filler = 'overwritten' WHERE aid = 77");
    });
}

#[test]
fn a_visibility_map_of_all_ones_and_an_index_entry_that_leads_to_no_tuple_are_seen() {
    only_counting_sees(&[COUNTING[2], COUNTING[3]], |client, data| {
        execute(client, "VACUUM pgbench_accounts");
        let sql = "INSERT INTO pgbench_accounts VALUES (100001, 2, 0, '') \
                   RETURNING (ctid::text::point)[0]::int4, (ctid::text::point)[1]::int4";
        let row = client.query_one(sql, &[]).unwrap();
        execute(client, "DELETE FROM pgbench_accounts WHERE aid = 100001");
        // Leaves the entry in the index, and a dead line pointer for it in the table.
        execute(client, "VACUUM (INDEX_CLEANUP off) pgbench_accounts");
        execute(
            client,
            "UPDATE pgbench_accounts SET abalance = abalance WHERE aid BETWEEN 100 AND 110",
        );
        evict(client);
        let (_, map) = accounts(client, data, "_vm");
        map.write_all_at(&[0xff; PAGE - HEADER], HEADER as u64).unwrap();
        let (block, pointer): (i32, i32) = (row.get(0), row.get(1));
        let at = u64::try_from(block).unwrap() * PAGE as u64
            + HEADER as u64
            + 4 * (u64::try_from(pointer).unwrap() - 1);
        let (_, table) = accounts(client, data, "");
        let mut was = [0; 4];
        table.read_exact_at(&mut was, at).unwrap();
        assert_ne!(was, [0; 4]);
        table.write_all_at(&[0; 4], at).unwrap();
    });
}

#[test]
fn two_rows_of_one_account_are_seen() {
    only_counting_sees(&[COUNTING[0], COUNTING[1]], |client, _| {
        let unique = |client: &mut Client, is: bool| {
            let sql = "UPDATE pg_index SET indisunique = $1 \
                       WHERE indexrelid = 'pgbench_accounts_pkey'::regclass";
            client.execute(sql, &[&is]).unwrap();
        };
        unique(client, false);
        execute(
            client,
            "INSERT INTO pgbench_accounts SELECT * FROM pgbench_accounts WHERE aid = 78",
        );
        execute(client, "UPDATE pgbench_accounts SET abalance = 0 WHERE aid = 78");
        unique(client, true);
    });
}

#[test]
fn a_server_that_is_read_only_after_recovery_is_seen() {
    let (verdict, reason, failed) = judged_after(|client, _| {
        execute(client, "ALTER SYSTEM SET default_transaction_read_only = on");
        client.query_one("SELECT pg_reload_conf()", &[]).unwrap();
        let shows = |client: &mut Client| -> String {
            client.query_one("SHOW default_transaction_read_only", &[]).unwrap().get(0)
        };
        while shows(client) == "off" {
            std::thread::sleep(Duration::from_millis(10));
        }
    });
    assert_eq!(verdict, Verdict::Fail(Failing::NoWrites), "{reason}");
    assert_eq!(failed, ["the server takes writes"]);
}

#[test]
fn a_server_that_does_not_start_a_second_time_is_seen() {
    let (verdict, reason, failed) =
        judged_after(|client, _| execute(client, "ALTER SYSTEM SET shared_buffers = '4TB'"));
    assert_eq!(verdict, Verdict::Fail(Failing::WillNotStart), "{reason}");
    assert_eq!(failed, ["the server starts again after a clean stop"]);
}

/// Runs a round in which files change between the clean stop and the second start: by the
/// statements `sql` of a single-user server, then by the commands `shell` in PGDATA.
fn lied_to(sql: &str, shell: &str) -> CrashRecord {
    let (programs, installed) = (tempfile::tempdir().unwrap(), install(None).bindir);
    let text = format!(
        "#!/bin/sh\nsql=$2/before-start.sql\n\
         if [ \"$1\" = -D ] && [ -f \"$sql\" ]; then\n\
         {0} --single -O -D \"$2\" pgdyno < \"$sql\" > /dev/null || exit 1\n\
         (cd \"$2\" && sh -e before-start.sh && rm before-start.*) || exit 1\nfi\n\
         exec {0} \"$@\"\n",
        installed.join("postgres").display()
    );
    wrap_postgres(&installed, programs.path(), &text);
    let files = [("before-start.sh", shell), ("before-start.sql", sql)];
    let files = files.map(|(name, text)| (name, format!("{text}\n")));
    let plant: AfterRecovery = Arc::new(move |_: &Target, data: &Path| {
        files.iter().for_each(|(name, text)| std::fs::write(data.join(name), text).unwrap());
    });
    round_of(programs.path(), "60s", &AtomicBool::new(false), plant).unwrap()
}

#[test]
fn what_is_lost_with_the_clean_stop_is_seen() {
    let sql = "DELETE FROM pgdyno_token WHERE sequence = (SELECT min(sequence) FROM pgdyno_token)\n\
               UPDATE pgbench_tellers SET tbalance = 0\n";
    let record = lied_to(sql, "");
    let round = &record.outcome.faults[0].rounds[0];
    assert_eq!(round.verdict, Verdict::Fail(Failing::Corrupt), "{}", round.reason);
    for name in [
        "acknowledged transactions are there",
        "every transaction is there whole",
        "a clean stop takes and adds no transaction",
    ] {
        let check = round.checks.iter().find(|check| check.name == name).unwrap();
        assert!(matches!(check.outcome, CheckOutcome::Failed(_)), "{check:?}");
    }
    assert!(round.reason.contains("after a clean stop and a second start: "), "{}", round.reason);
    assert!(round.lost > 0, "{round:?}");
}

#[test]
#[ignore = "long: a round for each lie; the first tier has one of them"]
fn every_lie_that_comes_with_the_second_start_is_seen() {
    let path_of = |relation: &str| {
        format!("COPY (SELECT pg_relation_filepath('{relation}')) TO PROGRAM 'cat > path'")
    };
    let template1 = "SELECT 'base/' || oid || '/1255' FROM pg_database WHERE datname = 'template1'";
    let statements = [
        "DELETE FROM pgdyno_token WHERE client = 0",
        "DROP TABLE pgbench_history",
        "UPDATE pgbench_accounts SET abalance = 0 WHERE aid > 1",
        "UPDATE pgbench_branches SET bbalance = bbalance + 1",
        "UPDATE pgbench_accounts SET filler = 'x' WHERE aid = 7",
        "DELETE FROM pgbench_accounts WHERE aid = 7",
        "ALTER TABLE pgbench_accounts DROP CONSTRAINT pgbench_accounts_pkey",
        "ALTER TABLE pgdyno_token ALTER number DROP DEFAULT",
        "SELECT setval('pgdyno_token_number_seq', 1)",
        "DELETE FROM pg_proc WHERE proname = 'cosd'",
        "DROP TABLE pgbench_tellers",
        "CREATE TABLE not_ours (n int)",
    ];
    let pages = [
        (path_of("pgdyno_token"), "dd if=/dev/zero of=$(cat path) bs=8192 count=1 conv=notrunc"),
        (path_of("pgdyno_token"), "truncate -s -8192 $(cat path)"),
        (
            path_of("pgbench_accounts_pkey"),
            "dd if=/dev/zero of=$(cat path) bs=8192 seek=3 count=4 conv=notrunc",
        ),
        (
            format!("COPY ({template1}) TO PROGRAM 'cat > path'"),
            "dd if=/dev/zero of=$(cat path) bs=8192 seek=10 count=20 conv=notrunc",
        ),
    ];
    let statements = statements.map(|sql| (sql.to_owned(), ""));
    for (sql, shell) in statements.into_iter().chain(pages) {
        let record = lied_to(&sql, shell);
        let round = &record.outcome.faults[0].rounds[0];
        let found = format!("{sql} {shell}: {}: {}", round.verdict, round.reason);
        assert!(round.verdict.is_failure(), "{found}");
        println!("{found}");
    }
}

#[test]
fn an_object_that_is_gone_is_missed_and_a_damaged_database_beside_the_loads_is_named() {
    let damage: AfterRecovery = Arc::new(|target: &Target, data: &Path| {
        let of = |database: &str| {
            let target = Target { database: database.to_owned(), ..target.clone() };
            control::connect_to_own(&target).unwrap()
        };
        execute(
            &mut of(&target.database),
            "ALTER TABLE pgbench_tellers DROP CONSTRAINT pgbench_tellers_pkey",
        );
        execute(
            &mut of("template1"),
            "SET allow_system_table_mods = on; DELETE FROM pg_proc WHERE proname = 'cosd'",
        );
        let sql = "SELECT oid::text FROM pg_database WHERE datname = 'postgres'";
        let oid: String = of("template1").query_one(sql, &[]).unwrap().get(0);
        std::fs::remove_file(data.join("base").join(oid).join("PG_VERSION")).unwrap();
    });
    let record = round_with("60s", &AtomicBool::new(false), damage).unwrap();
    let round = &record.outcome.faults[0].rounds[0];
    assert_eq!(round.verdict, Verdict::Fail(Failing::Corrupt), "{}", round.reason);
    let outcome = |name: &str| {
        let check = round.checks.iter().find(|check| check.name == name).unwrap();
        let CheckOutcome::Failed(what) = &check.outcome else { panic!("{check:?}") };
        what.clone()
    };
    assert!(outcome("the other databases are whole").contains("database postgres: "), "{round:?}");
    let objects = outcome("no object is gone, new or changed");
    assert_contains(
        &objects,
        &[
            "constraint pgbench_tellers_pkey",
            "template1: gone or changed: rows of pg_proc",
            "database postgres: ",
        ],
    );
}

#[test]
fn a_segmentation_fault_in_the_log_is_damage() {
    let damage: AfterRecovery = Arc::new(|target: &Target, _: &Path| {
        let checkpointer = || -> Option<i32> {
            let mut client = control::connect_to_own(target).ok()?;
            let sql = "SELECT pid FROM pg_stat_activity WHERE backend_type = 'checkpointer'";
            client.query_opt(sql, &[]).ok()?.map(|row| row.get(0))
        };
        let before = checkpointer().unwrap();
        let mut victim = control::connect_to_own(target).unwrap();
        let pid: i32 = victim.query_one("SELECT pg_backend_pid()", &[]).unwrap().get(0);
        send("-SEGV", pid);
        // The server resets itself with all its processes. Until it sees the end of this one it
        // takes connections, and breaks them then.
        wait_for("the server to reset itself", || checkpointer().filter(|pid| *pid != before));
    });
    let record = round_with("60s", &AtomicBool::new(false), damage).unwrap();
    let round = &record.outcome.faults[0].rounds[0];
    let failed: Vec<&str> = round
        .checks
        .iter()
        .filter(|check| matches!(check.outcome, CheckOutcome::Failed(_)))
        .map(|check| check.name.as_str())
        .collect();
    assert_eq!(failed, ["the server's log tells of no damage"], "{}", round.reason);
    assert!(round.reason.contains("signal 11"), "{}", round.reason);
}

#[test]
#[ignore = "long: one of several objects that are gone"]
fn a_table_that_is_gone_is_damage() {
    let (verdict, reason, _) =
        judged_after(|client, _| execute(client, "DROP TABLE pgbench_tellers"));
    assert_eq!(verdict, Verdict::Fail(Failing::Corrupt), "{reason}");
}

/// Sends a signal to a process of this test's server.
fn send(signal: &str, pid: i32) {
    assert!(Command::new("kill").arg(signal).arg(pid.to_string()).status().unwrap().success());
}

#[test]
fn a_lock_that_is_held_makes_the_round_unknown_within_the_limit() {
    let holder: Arc<Mutex<Option<Client>>> = Arc::default();
    let held = Arc::clone(&holder);
    let lock: AfterRecovery = Arc::new(move |target: &Target, _: &Path| {
        let mut client = control::connect_to_own(target).unwrap();
        execute(&mut client, "BEGIN; LOCK TABLE pgbench_accounts IN ACCESS EXCLUSIVE MODE");
        *held.lock().unwrap() = Some(client);
    });
    let record = round_with("5s", &AtomicBool::new(false), lock).unwrap();
    let round = &record.outcome.faults[0].rounds[0];
    assert_eq!(round.verdict, Verdict::Unknown, "{}", round.reason);
    assert!(round.reason.contains("did not end within 5 s"), "{}", round.reason);
    drop(holder);
}

#[test]
#[ignore = "long: another way to wait until the limit"]
fn a_server_that_stands_still_makes_the_round_unknown() {
    let stall: AfterRecovery = Arc::new(|_: &Target, data: &Path| {
        let lock = std::fs::read_to_string(data.join("postmaster.pid")).unwrap();
        send("-STOP", lock.lines().next().unwrap().parse().unwrap());
    });
    let record = round_with("5s", &AtomicBool::new(false), stall).unwrap();
    let round = &record.outcome.faults[0].rounds[0];
    assert_eq!(round.verdict, Verdict::Unknown, "{}", round.reason);
}

#[test]
fn a_backend_that_stands_still_holds_the_clean_stop_no_longer_than_the_limit() {
    let holder: Mutex<Option<Client>> = Mutex::default();
    let stall: AfterRecovery = Arc::new(move |target: &Target, _: &Path| {
        let mut client = control::connect_to_own(target).unwrap();
        send("-STOP", client.query_one("SELECT pg_backend_pid()", &[]).unwrap().get(0));
        *holder.lock().unwrap() = Some(client);
    });
    let record = round_with("5s", &AtomicBool::new(false), stall).unwrap();
    let round = &record.outcome.faults[0].rounds[0];
    assert_eq!(round.verdict, Verdict::Unknown, "{}", round.reason);
    assert!(round.reason.contains("stopping the server"), "{}", round.reason);
    // All that was read before it was seen.
    let read = round.checks.iter().find(|check| check.name == COUNTING[0]).unwrap();
    assert_eq!(read.outcome, CheckOutcome::Passed);
}

#[test]
fn a_signal_ends_a_verification_that_waits_for_a_lock() {
    let stop = Arc::new(AtomicBool::new(false));
    let (told, holder) = (Arc::clone(&stop), Mutex::new(None));
    let lock: AfterRecovery = Arc::new(move |target: &Target, _: &Path| {
        let mut client = control::connect_to_own(target).unwrap();
        execute(&mut client, "BEGIN; LOCK TABLE pgbench_accounts IN ACCESS EXCLUSIVE MODE");
        *holder.lock().unwrap() = Some(client);
        let (told, target) = (Arc::clone(&told), target.clone());
        std::thread::spawn(move || {
            // Not before verification waits.
            let sql = "SELECT count(*) FROM pg_locks WHERE NOT granted";
            let mut client = control::connect_to_own(&target).unwrap();
            while client.query_one(sql, &[]).is_ok_and(|row| row.get::<_, i64>(0) == 0) {
                std::thread::sleep(Duration::from_millis(10));
            }
            told.store(true, Ordering::Relaxed);
        });
    });
    // An hour: only the signal can end it.
    let ended = round_with("1h", &stop, lock);
    assert!(matches!(ended, Err(BenchError::Interrupted)), "{ended:?}");
}
