//! Looks at a server after a fault, for the oracles.

use std::collections::BTreeMap;
use std::time::Duration;

use pgdyno_durability::{Found, Observed, Row, Unseen, Wal};
use pgdyno_host::postgres::control::said;
use pgdyno_host::postgres::{Checksums, Cluster, ControlError, StopMode};
use pgdyno_model::ledger::{Effect, Token};
use postgres::Client;

use super::ground::DATABASE;
use super::watcher::parse_lsn;
use crate::LabError;

/// What was known of the server before the fault.
#[derive(Clone, Debug)]
pub(super) struct Before {
    /// Its system identifier.
    pub(super) system_identifier: Observed<u64>,
    /// A position in its log behind which a commit was acknowledged; none with asynchronous commit.
    pub(super) acknowledged: Observed<u64>,
    /// Whether its pages have checksums.
    pub(super) checksums: bool,
}

/// What the settings say of durability.
#[derive(Clone, Copy, Debug)]
pub(super) struct Settings {
    /// What asynchronous commit may lose at most; none where commits are synchronous.
    pub(super) loses_at_most: Option<Duration>,
    pub(super) checksums: bool,
}

/// What the server says of its settings.
pub(super) fn settings(client: &mut Client) -> Result<Settings, LabError> {
    let sql = "SELECT pg_catalog.current_setting('synchronous_commit') = 'off', \
        (SELECT setting::int4 FROM pg_catalog.pg_settings WHERE name = 'wal_writer_delay'), \
        pg_catalog.current_setting('data_checksums') = 'on'";
    let wrong = |e| LabError::Sql { doing: "read the server's settings".into(), found: said(&e) };
    let row = client.query_one(sql, &[]).map_err(wrong)?;
    let (off, delay_ms, checksums): (bool, i32, bool) = (row.get(0), row.get(1), row.get(2));
    let delay = Duration::from_millis(u64::try_from(delay_ms).unwrap_or_default());
    Ok(Settings { loses_at_most: off.then_some(delay * 3), checksums })
}

/// The cluster's system identifier.
pub(super) fn system_identifier(client: &mut Client) -> Observed<u64> {
    let sql = "SELECT system_identifier::text FROM pg_catalog.pg_control_system()";
    let row = client.query_one(sql, &[]).map_err(|e| unseen(&e))?;
    let text: String = row.get(0);
    text.parse().map_err(|_| Unseen::CouldNotRun(format!("`{text}` is no system identifier")))
}

/// Everything that the oracles are given. The server, which runs, is stopped for the last of it.
pub(super) fn look(cluster: &mut Cluster, before: &Before, log_mark: u64) -> Found {
    let connected = cluster.control(DATABASE).map_err(|e| refused(&e));
    // A connection that broke fails each of what comes after it, as it should: none of that was seen.
    let (mut client, missing) = match connected {
        Ok(client) => (Some(client), None),
        Err(unseen) => (None, Some(unseen)),
    };
    let absent = || missing.clone().unwrap_or_else(|| Unseen::CouldNotRun("there is no connection".into()));
    fn ask<T>(
        client: &mut Option<Client>,
        absent: &dyn Fn() -> Unseen,
        look: impl FnOnce(&mut Client) -> Observed<T>,
    ) -> Observed<T> {
        client.as_mut().map_or_else(|| Err(absent()), look)
    }
    let balances = |client: &mut Option<Client>, table: &str, id: &str, balance: &str| {
        ask(client, &absent, |client| nonzero(client, table, id, balance))
    };
    let system_identifier = before
        .system_identifier
        .clone()
        .and_then(|was| ask(&mut client, &absent, system_identifier).map(|is| (was, is)));
    // Where the checkpoint at recovery's end found the log to end.
    let wal = before.acknowledged.clone().and_then(|acknowledged| {
        let recovered = ask(&mut client, &absent, recovered)?;
        Ok(Wal { acknowledged, recovered })
    });
    let rows = ask(&mut client, &absent, rows);
    let index = ask(&mut client, &absent, index);
    let accounts = balances(&mut client, "pgbench_accounts", "aid", "abalance");
    let tellers = balances(&mut client, "pgbench_tellers", "tid", "tbalance");
    let branches = balances(&mut client, "pgbench_branches", "bid", "bbalance");
    let btrees = ask(&mut client, &absent, btrees);
    let heaps = ask(&mut client, &absent, heaps);
    drop(client);
    let checksums = if before.checksums {
        cluster.stop(StopMode::Fast);
        match cluster.check_checksums() {
            Checksums::Checked(complaints) => Ok(complaints),
            Checksums::NotThere(why) => Err(Unseen::NotApplicable(why)),
            Checksums::CouldNotRun(why) => Err(Unseen::CouldNotRun(why)),
        }
    } else {
        Err(Unseen::NotApplicable("the cluster was made without page checksums".into()))
    };
    let log = Ok(damage(&cluster.log_since(log_mark)));
    Found { rows, index, accounts, tellers, branches, system_identifier, wal, log, btrees, heaps, checksums }
}

/// The lines of a server's log that tell of damage.
pub(super) fn damage(log: &str) -> Vec<String> {
    const SIGNS: [&str; 4] = ["PANIC:", "invalid page", "could not read", "page verification failed"];
    let bad = |line: &&str| SIGNS.iter().any(|sign| line.contains(sign));
    log.lines().filter(bad).map(|line| line.trim().to_owned()).collect()
}

fn recovered(client: &mut Client) -> Observed<u64> {
    let sql = "SELECT redo_lsn::text FROM pg_catalog.pg_control_checkpoint()";
    let row = client.query_one(sql, &[]).map_err(|e| unseen(&e))?;
    let text: String = row.get(0);
    parse_lsn(&text).ok_or_else(|| Unseen::CouldNotRun(format!("`{text}` is no position in the log")))
}

/// Sees to it that `sql` is executed by `node`, and by nothing else that would read the tokens.
fn plan(client: &mut Client, settings: &str, sql: &str, node: &str) -> Observed<()> {
    client.batch_execute(settings).map_err(|e| unseen(&e))?;
    let lines = client.query(&format!("EXPLAIN {sql}"), &[]).map_err(|e| unseen(&e))?;
    let plan: Vec<String> = lines.iter().map(|row| row.get(0)).collect();
    if plan.iter().any(|line| line.contains(node)) {
        return Ok(());
    }
    Err(Unseen::CouldNotRun(format!("the planner gives no {node}: {}", plan.join("; "))))
}

fn rows(client: &mut Client) -> Observed<Vec<Row>> {
    let sql = "SELECT client, sequence, aid, tid, bid, delta FROM pgdyno_token";
    let settings = "SET enable_indexscan = off; SET enable_indexonlyscan = off; SET enable_bitmapscan = off; \
                    SET enable_seqscan = on; SET max_parallel_workers_per_gather = 0";
    plan(client, settings, sql, "Seq Scan on pgdyno_token")?;
    let rows = client.query(sql, &[]).map_err(|e| unseen(&e))?;
    let int = |row: &postgres::Row, column: usize| i64::from(row.get::<_, i32>(column));
    rows.iter()
        .map(|row| {
            Ok(Row {
                token: token(row)?,
                effect: Effect {
                    account: int(row, 2),
                    teller: int(row, 3),
                    branch: int(row, 4),
                    delta: int(row, 5),
                },
            })
        })
        .collect()
}

fn index(client: &mut Client) -> Observed<Vec<Token>> {
    let sql = "SELECT client, sequence FROM pgdyno_token ORDER BY client, sequence";
    let settings = "SET enable_indexscan = on; SET enable_indexonlyscan = off; SET enable_bitmapscan = off; \
                    SET enable_seqscan = off; SET enable_sort = off";
    plan(client, settings, sql, "Index Scan using pgdyno_token_pkey")?;
    client.query(sql, &[]).map_err(|e| unseen(&e))?.iter().map(token).collect()
}

fn token(row: &postgres::Row) -> Observed<Token> {
    let (client, sequence): (i32, i64) = (row.get(0), row.get(1));
    match (u32::try_from(client), u64::try_from(sequence)) {
        (Ok(client), Ok(sequence)) => Ok(Token { client, sequence }),
        _ => Err(Unseen::Damaged(format!("a row bears the token ({client}, {sequence})"))),
    }
}

fn nonzero(client: &mut Client, table: &str, id: &str, balance: &str) -> Observed<BTreeMap<i64, i64>> {
    let settings = "SET enable_indexscan = off; SET enable_indexonlyscan = off; SET enable_bitmapscan = off; \
                    SET enable_seqscan = on; SET max_parallel_workers_per_gather = 0";
    let sql = format!("SELECT {id}, {balance} FROM {table} WHERE {balance} <> 0");
    plan(client, settings, &sql, &format!("Seq Scan on {table}"))?;
    let mut balances = BTreeMap::new();
    for row in client.query(&sql, &[]).map_err(|e| unseen(&e))? {
        let (id, balance): (i32, i32) = (row.get(0), row.get(1));
        if balances.insert(i64::from(id), i64::from(balance)).is_some() {
            return Err(Unseen::Damaged(format!("{table} holds {id} twice")));
        }
    }
    Ok(balances)
}

/// Why amcheck cannot be asked, if it cannot.
fn has_amcheck(client: &mut Client) -> Observed<()> {
    let sql = "SELECT count(*) > 0 FROM pg_catalog.pg_extension WHERE extname = 'amcheck'";
    match client.query_one(sql, &[]).map_err(|e| unseen(&e))?.get(0) {
        true => Ok(()),
        false => Err(Unseen::NotApplicable("this installation lacks the extension amcheck".into())),
    }
}

/// Every B-tree of the database, each key of its table looked for in it, each page against its parent.
fn btrees(client: &mut Client) -> Observed<Vec<String>> {
    has_amcheck(client)?;
    client.batch_execute("RESET ALL; SET max_parallel_maintenance_workers = 0").map_err(|e| unseen(&e))?;
    let all = "SELECT c.oid, c.oid::regclass::text FROM pg_catalog.pg_class c \
        JOIN pg_catalog.pg_index i ON i.indexrelid = c.oid JOIN pg_catalog.pg_am a ON a.oid = c.relam \
        WHERE a.amname = 'btree' AND c.relkind = 'i' AND c.relpersistence = 'p' AND i.indisvalid AND i.indisready";
    let mut complaints = Vec::new();
    for row in client.query(all, &[]).map_err(|e| unseen(&e))? {
        let (oid, name): (u32, String) = (row.get(0), row.get(1));
        match client.execute("SELECT bt_index_parent_check($1::oid::regclass, true, true)", &[&oid]) {
            Ok(_) => {}
            Err(e) => match unseen(&e) {
                Unseen::Damaged(what) => complaints.push(format!("{name}: {what}")),
                other => return Err(other),
            },
        }
    }
    Ok(complaints)
}

/// Every table of the database.
fn heaps(client: &mut Client) -> Observed<Vec<String>> {
    has_amcheck(client)?;
    let there = "SELECT count(*) > 0 FROM pg_catalog.pg_proc WHERE proname = 'verify_heapam'";
    if !client.query_one(there, &[]).map_err(|e| unseen(&e))?.get::<_, bool>(0) {
        return Err(Unseen::NotApplicable("amcheck before PostgreSQL 14 has no verify_heapam".into()));
    }
    let all = "SELECT c.oid, c.oid::regclass::text FROM pg_catalog.pg_class c \
        JOIN pg_catalog.pg_am a ON a.oid = c.relam \
        WHERE a.amname = 'heap' AND c.relkind IN ('r', 't', 'm') AND c.relpersistence = 'p'";
    let mut complaints = Vec::new();
    for row in client.query(all, &[]).map_err(|e| unseen(&e))? {
        let (oid, name): (u32, String) = (row.get(0), row.get(1));
        let sql = "SELECT blkno, offnum, msg FROM verify_heapam($1::oid::regclass, check_toast => true)";
        match client.query(sql, &[&oid]) {
            Ok(found) => complaints.extend(found.iter().map(|row| {
                let (block, offset): (Option<i64>, Option<i32>) = (row.get(0), row.get(1));
                let message: String = row.get(2);
                let (block, offset) = (block.unwrap_or(-1), offset.unwrap_or(-1));
                format!("{name}, block {block}, tuple {offset}: {message}")
            })),
            Err(e) => match unseen(&e) {
                Unseen::Damaged(what) => complaints.push(format!("{name}: {what}")),
                other => return Err(other),
            },
        }
    }
    Ok(complaints)
}

/// What an error means: the server itself refusing to read what was durably there is damage; a lost connection, a lack of
/// memory or an operator are not.
fn unseen(error: &postgres::Error) -> Unseen {
    match error.code() {
        Some(code) if !["08", "53", "57"].iter().any(|class| code.code().starts_with(class)) => {
            Unseen::Damaged(format!("{} (SQLSTATE {})", said(error), code.code()))
        }
        _ => Unseen::CouldNotRun(said(error)),
    }
}

/// The same of a connection.
fn refused(error: &ControlError) -> Unseen {
    match error.sqlstate() {
        Some(code) if !["08", "53", "57"].iter().any(|class| code.starts_with(class)) => {
            Unseen::Damaged(error.to_string())
        }
        _ => Unseen::CouldNotRun(error.to_string()),
    }
}
