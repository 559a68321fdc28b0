//! Looks at a server after a fault, for the oracles.
//!
//! First all is read, then something is written, at last the server is stopped cleanly and started
//! again: [`look`]. Each step has a time limit, after which the server is killed and the rest could
//! not be observed: [`watchdog`].

mod restart;
mod rows;
mod structure;
mod watchdog;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use pgdyno_durability::{Found, Observed, Unseen, Wal, damage_in, is_damage};
use pgdyno_host::postgres::Client;
use pgdyno_host::postgres::control::said;
use pgdyno_host::postgres::{Cluster, ControlError};

use super::ground::DATABASE;
use super::watcher::parse_lsn;
use crate::LabError;
use watchdog::Watchdog;

/// A session as it was begun, without just-in-time compilation, which takes longer than the short
/// queries that it is begun for: their costs are overrated.
const PLAIN: &str = "RESET ALL; SET jit = off";

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
    /// How long the WAL writer sleeps, where commits are asynchronous; none where they are
    /// synchronous.
    pub(super) wal_writer_delay: Option<Duration>,
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
    Ok(Settings { wal_writer_delay: off.then_some(delay), checksums })
}

/// The cluster's system identifier.
pub(super) fn system_identifier(client: &mut Client) -> Observed<u64> {
    let sql = "SELECT system_identifier::text FROM pg_catalog.pg_control_system()";
    let row = client.query_one(sql, &[]).map_err(|e| unseen(&e))?;
    let text: String = row.get(0);
    text.parse().map_err(|_| Unseen::CouldNotRun(format!("`{text}` is no system identifier")))
}

fn recovered(client: &mut Client) -> Observed<u64> {
    let sql = "SELECT redo_lsn::text FROM pg_catalog.pg_control_checkpoint()";
    let row = client.query_one(sql, &[]).map_err(|e| unseen(&e))?;
    let text: String = row.get(0);
    parse_lsn(&text)
        .ok_or_else(|| Unseen::CouldNotRun(format!("`{text}` is no position in the log")))
}

/// What verification goes by.
#[derive(Clone, Copy, Debug)]
pub(super) struct Terms<'a> {
    /// The data set's scale.
    pub(super) scale: u32,
    /// How long each step may take.
    pub(super) limit: Duration,
    pub(super) stop: &'a AtomicBool,
}

/// Everything that the oracles are given. The server, which runs, is stopped and started for the
/// last of it; it may run when this returns.
pub(super) fn look(
    cluster: &mut Cluster,
    before: &Before,
    log_mark: u64,
    terms: &Terms<'_>,
) -> Result<Found, LabError> {
    let watchdog = Watchdog::new(terms.limit, terms.stop, cluster.kill_switch());
    let mut found = watchdog.guard(|| read_all(cluster, before, terms, &watchdog));
    if terms.stop.load(Ordering::Relaxed) {
        return Err(LabError::Interrupted);
    }
    found.log = Ok(damage_in(&cluster.log_since(log_mark)));
    Ok(found)
}

fn read_all(
    cluster: &mut Cluster,
    before: &Before,
    terms: &Terms<'_>,
    watchdog: &Watchdog<'_>,
) -> Found {
    let connected =
        watchdog.step("connecting", || cluster.control(DATABASE).map_err(|e| refused(&e)));
    // A connection that broke fails each of what comes after it, as it should: none of that was
    // seen.
    let mut session = Session { client: connected, watchdog };
    let system_identifier = before.system_identifier.clone().and_then(|was| {
        Ok((was, session.ask("reading the system identifier", system_identifier)?))
    });
    // Where the checkpoint at recovery's end found the log to end.
    let wal = before.acknowledged.clone().and_then(|acknowledged| {
        let recovered = session.ask("reading where recovery ended", recovered)?;
        Ok(Wal { acknowledged, recovered })
    });
    let mut balances = |table: &str, id: &str, balance: &str| {
        session.ask(&format!("reading {table}"), |client| rows::nonzero(client, table, id, balance))
    };
    let accounts = balances("pgbench_accounts", "aid", "abalance");
    let tellers = balances("pgbench_tellers", "tid", "tbalance");
    let branches = balances("pgbench_branches", "bid", "bbalance");
    let rows = session.ask("reading the tokens", rows::tokens);
    let index = session.ask("reading the tokens by their index", rows::tokens_by_key);
    let by_scan = rows::count(&mut session, terms.scale, rows::Access::Scan);
    let by_key = rows::count(&mut session, terms.scale, rows::Access::Key);
    let btrees = structure::btrees(&mut session);
    let heaps = structure::heaps(&mut session);
    let pointers = structure::pointers(&mut session);
    let visibility = structure::visibility(&mut session);
    let written = session.ask("writing to each table", restart::write);
    drop(session);
    let after = restart::look(cluster, before.checksums, &written, terms, watchdog);
    Found {
        rows,
        index,
        accounts,
        tellers,
        branches,
        system_identifier,
        wal,
        log: Ok(Vec::new()),
        btrees,
        heaps,
        checksums: after.checksums,
        by_scan,
        by_key,
        pointers,
        visibility,
        writes: written.map(drop),
        restarted: after.restarted,
        unwritten: after.unwritten,
        after_restart: after.rows,
    }
}

/// A connection to the server under verification, each question of which has a time limit.
struct Session<'a> {
    /// Or why there is none.
    client: Observed<Client>,
    watchdog: &'a Watchdog<'a>,
}

impl Session<'_> {
    /// What `look` sees by the connection, within the limit; `name` says what it does.
    fn ask<T>(&mut self, name: &str, look: impl FnOnce(&mut Client) -> Observed<T>) -> Observed<T> {
        match &mut self.client {
            Ok(client) => self.watchdog.step(name, || look(client)),
            Err(unseen) => Err(unseen.clone()),
        }
    }
}

/// What an error means: the server itself refusing to read what was durably there is damage.
/// Anything else, as a lost connection, a lack of memory or an operator, says nothing of it.
fn unseen(error: &postgres::Error) -> Unseen {
    match error.code() {
        Some(code) if is_damage(code.code()) => {
            Unseen::Damaged(format!("{} (SQLSTATE {})", said(error), code.code()))
        }
        Some(code) => Unseen::CouldNotRun(format!("{} (SQLSTATE {})", said(error), code.code())),
        None => Unseen::CouldNotRun(said(error)),
    }
}

/// What it means that there is no connection.
fn refused(error: &ControlError) -> Unseen {
    if error.sqlstate().is_some_and(is_damage) {
        Unseen::Damaged(error.to_string())
    } else {
        Unseen::CouldNotRun(error.to_string())
    }
}
