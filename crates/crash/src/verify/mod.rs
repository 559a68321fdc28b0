//! Looks at a server after a fault, for the oracles.
//!
//! First the rows are read, then something is written; at last the server is stopped cleanly and
//! started again, and everything is read: [`look`]. Each step has a time limit, after which the
//! server is killed and the rest could not be observed: [`watchdog`].

pub(super) mod census;
mod conditions;
mod contents;
mod restart;
mod rows;
mod session;
mod structure;
mod watchdog;

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::Duration;

use pgdyno_connect::control::Client;
use pgdyno_durability::{Census, Found, Objects, Observed, Unseen, Wal, damage_in};
use pgdyno_postgres::Cluster;
use pgdyno_provision::sql::SqlError;
pub(super) use session::Terms;
use session::{VerifySession, unseen};
use watchdog::Watchdog;

use super::wal_watcher::parse_lsn;
use pgdyno_provision::BenchError;

/// The server before the fault.
#[derive(Clone, Debug)]
pub(super) struct Before {
    /// The cluster's system identifier.
    pub(super) system_identifier: Observed<u64>,
    /// A position in its log behind which a commit was acknowledged; none with asynchronous commit.
    pub(super) acknowledged: Observed<u64>,
    /// Whether its pages have checksums.
    pub(super) checksums: bool,
    /// The objects of all databases.
    pub(super) objects: Observed<BTreeMap<String, Objects>>,
}

/// Settings that durability depends on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Settings {
    /// How long the WAL writer sleeps, where commits are asynchronous; none where they are
    /// synchronous.
    pub(super) wal_writer_delay: Option<Duration>,
    pub(super) checksums: bool,
    /// Whether the postmaster restarts by itself once a backend has crashed.
    pub(super) restarts_after_crash: bool,
}

/// Reads the settings that durability depends on.
pub(super) fn settings(client: &mut Client) -> Result<Settings, BenchError> {
    let sql = "SELECT pg_catalog.current_setting('synchronous_commit') = 'off', \
        (SELECT setting::int4 FROM pg_catalog.pg_settings WHERE name = 'wal_writer_delay'), \
        pg_catalog.current_setting('data_checksums') = 'on', \
        pg_catalog.current_setting('restart_after_crash') = 'on'";
    let row = client.query_one(sql, &[]);
    let row = row.map_err(|e| SqlError::new("read the server's settings", e))?;
    let (off, delay_ms, checksums): (bool, i32, bool) = (row.get(0), row.get(1), row.get(2));
    let delay = Duration::from_millis(u64::try_from(delay_ms).unwrap_or_default());
    Ok(Settings {
        wal_writer_delay: off.then_some(delay),
        checksums,
        restarts_after_crash: row.get(3),
    })
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

/// How much of a server is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Depth {
    /// Everything that the oracles are given.
    Thorough,
    /// As quick, then the other conditions, the server's own checks of tables and indexes, and
    /// where entries lead to.
    Structure,
    /// The tokens, the amounts, quick conditions, and every row by a scan. The rest is not
    /// applicable.
    Quick,
}

/// Looks at a recovered server for the oracles, as thoroughly as `depth` says. A thorough look
/// stops and starts the server; it may run when this returns.
pub(super) fn look(
    cluster: &mut Cluster,
    before: &Before,
    log_mark: u64,
    depth: Depth,
    terms: &Terms<'_>,
) -> Result<Found, BenchError> {
    let watchdog = Watchdog::new(terms.limit, terms.stop, cluster.kill_switch());
    let mut found = watchdog.guard(|| {
        let mut session = VerifySession::open(cluster, &watchdog);
        let found = read_recovered(&mut session, before, terms);
        match depth {
            Depth::Quick => found,
            Depth::Structure => Found {
                recovered: contents::with_structure(found.recovered, &mut session, terms),
                ..found
            },
            Depth::Thorough => read_rest(found, session, cluster, before, terms),
        }
    });
    if terms.stop.load(Ordering::Relaxed) {
        return Err(BenchError::Interrupted);
    }
    found.log = Ok(damage_in(&cluster.log_since(log_mark)));
    Ok(found)
}

/// Reads what takes little time once recovery has ended.
fn read_recovered(session: &mut VerifySession<'_>, before: &Before, terms: &Terms<'_>) -> Found {
    let system_identifier = before.system_identifier.clone().and_then(|was| {
        Ok((was, session.ask("reading the system identifier", system_identifier)?))
    });
    // Where the checkpoint at recovery's end found the log to end.
    let wal = before.acknowledged.clone().and_then(|acknowledged| {
        let recovered = session.ask("reading where recovery ended", recovered)?;
        Ok(Wal { acknowledged, recovered })
    });
    Found {
        recovered: contents::quick(session, terms),
        system_identifier,
        wal,
        log: Ok(Vec::new()),
        writes: Err(contents::later()),
        checksums: Err(contents::later()),
        restarted: Err(contents::later()),
        unwritten: Err(contents::later()),
        objects: Err(contents::later()),
        others: Err(contents::later()),
    }
}

/// Reads everything else, after `found`. The structure is looked at after the second start: what
/// the clean stop wrote to disk is what users live with.
fn read_rest(
    found: Found,
    mut session: VerifySession<'_>,
    cluster: &mut Cluster,
    before: &Before,
    terms: &Terms<'_>,
) -> Found {
    let written = session.ask("writing to each table", |client| restart::write(client, terms.load));
    let watchdog = session.watchdog;
    drop(session);
    let after = restart::look(cluster, before.checksums, &written, terms, watchdog);
    Found {
        writes: written.map(drop),
        checksums: after.checksums,
        restarted: after.contents,
        unwritten: after.unwritten,
        objects: before
            .objects
            .clone()
            .and_then(|before| Ok(Census { before, after: after.objects? })),
        others: after.others,
        ..found
    }
}
