//! A write, a clean stop and a second start of the server that came back.
//!
//! The order: [`write()`] by the connection that read all, then [`look`], which stops the server.

use std::collections::BTreeMap;

use pgdyno_connect::control::{Client, error_text};
use pgdyno_durability::{Contents, Objects, Observed, Unseen, refuses_writes};
use pgdyno_postgres::{Checksums, Cluster, ClusterError, StopMode};

use super::session::{PLAIN, Terms, VerifySession, unseen};
use super::watchdog::Watchdog;
use super::{census, contents};
use crate::workload::CrashLoad;

/// The row of the tokens' table that is written again with the values that it has. What tells the
/// new version is the transaction that left it.
const TOKEN: (&str, &str, &str) = (
    "pgdyno_token",
    "delta",
    "(client, sequence) = (SELECT client, sequence FROM pgdyno_token \
     ORDER BY client, sequence LIMIT 1)",
);

/// A row that was written last.
#[derive(Clone, Debug)]
pub(super) struct Written {
    table: &'static str,
    condition: String,
    /// The transaction that did.
    transaction: String,
}

/// Findings after the write and the restart.
pub(super) struct AfterWrite {
    pub(super) checksums: Observed<Vec<String>>,
    /// The contents after the second start, or why there was none.
    pub(super) contents: Observed<Contents>,
    pub(super) unwritten: Observed<Vec<String>>,
    /// The objects of all databases.
    pub(super) objects: Observed<BTreeMap<String, Observed<Objects>>>,
    /// Complaints about the databases beside the load's.
    pub(super) others: Observed<Vec<String>>,
}

/// Writes to every table in one transaction and commits it.
pub(super) fn write(client: &mut Client, load: &CrashLoad) -> Observed<Vec<Written>> {
    client.batch_execute(PLAIN).map_err(|e| refusal(&e))?;
    let mut transaction = client.transaction().map_err(|e| refusal(&e))?;
    let mut written = Vec::new();
    for &(table, column, condition) in load.rewritten.iter().chain([&TOKEN]) {
        let sql = format!(
            "UPDATE {table} SET {column} = {column} WHERE {condition} RETURNING xmin::text"
        );
        // A row that is missing is another oracle's.
        for row in transaction.query(&sql, &[]).map_err(|e| refusal(&e))? {
            written.push(Written {
                table,
                condition: condition.to_owned(),
                transaction: row.get(0),
            });
        }
    }
    transaction.commit().map_err(|e| refusal(&e))?;
    Ok(written)
}

/// Says what a failed write means for the verdict.
fn refusal(error: &tokio_postgres::Error) -> Unseen {
    match error.code() {
        Some(code) if refuses_writes(code.code()) => Unseen::Damaged(format!(
            "it takes no writes: {} (SQLSTATE {})",
            error_text(error),
            code.code()
        )),
        _ => unseen(error),
    }
}

/// Stops the server cleanly, has its pages' checksums verified if there are any, starts it again,
/// and reads whether what was `written` last is there, and the whole contents.
pub(super) fn look(
    cluster: &mut Cluster,
    has_checksums: bool,
    written: &Observed<Vec<Written>>,
    terms: &Terms<'_>,
    watchdog: &Watchdog<'_>,
) -> AfterWrite {
    let stopped = watchdog.step("stopping the server", || {
        cluster.stop(StopMode::Fast);
        if watchdog.has_fired() { Err(Unseen::CouldNotRun("it was killed".into())) } else { Ok(()) }
    });
    let checksums = match &stopped {
        Err(unseen) => Err(unseen.clone()),
        Ok(()) if has_checksums => watchdog.step("pg_checksums", || {
            match cluster.check_checksums(&|| watchdog.has_fired()) {
                Checksums::Checked(complaints) => Ok(complaints),
                Checksums::NotThere(why) => Err(Unseen::NotApplicable(why)),
                Checksums::CouldNotRun(why) => Err(Unseen::CouldNotRun(why)),
            }
        }),
        Ok(()) => Err(Unseen::NotApplicable("the cluster was made without page checksums".into())),
    };
    let restarted = stopped.and_then(|()| {
        watchdog.step("starting the server again", || {
            match cluster.start_within(terms.limit, terms.stop) {
                Ok(()) => Ok(()),
                Err(_) if watchdog.has_fired() => Err(Unseen::CouldNotRun("it was killed".into())),
                Err(e @ ClusterError::Interrupted) => Err(Unseen::CouldNotRun(e.to_string())),
                Err(e) => {
                    Err(Unseen::Damaged(e.to_string().lines().collect::<Vec<_>>().join("; ")))
                }
            }
        })
    });
    let mut session = match &restarted {
        Ok(()) => VerifySession::open(cluster, watchdog),
        // That it does not run is told; that its rows cannot be seen then follows.
        Err(unseen) => VerifySession { client: Err(not_started(unseen)), watchdog },
    };
    let unwritten = match written {
        Ok(written) => {
            session.ask("looking for the last write", |client| unwritten(client, written))
        }
        Err(Unseen::Damaged(_)) => Err(Unseen::NotApplicable("the server took no write".into())),
        Err(unseen) => Err(unseen.clone()),
    };
    let runs = restarted.as_ref().map_err(not_started).copied();
    let contents = restarted.map(|()| contents::whole(&mut session, terms));
    let objects = runs.clone().and_then(|()| {
        watchdog.step("taking a census of all databases", || census::objects(cluster))
    });
    let others = runs.and_then(|()| {
        watchdog.step("checking the other databases", || census::complaints(cluster))
    });
    AfterWrite { checksums, contents, unwritten, objects, others }
}

/// Why nothing more is seen of a server that did not start again.
fn not_started(unseen: &Unseen) -> Unseen {
    match unseen {
        Unseen::Damaged(_) => Unseen::NotApplicable("the server did not start again".into()),
        other => other.clone(),
    }
}

/// The tables that lack what was written.
fn unwritten(client: &mut Client, written: &[Written]) -> Observed<Vec<String>> {
    let mut lacking = Vec::new();
    for Written { table, condition, transaction } in written {
        let sql = format!("SELECT count(*) FROM {table} WHERE {condition} AND xmin::text = $1");
        let there: i64 = client.query_one(&sql, &[transaction]).map_err(|e| unseen(&e))?.get(0);
        if there == 0 {
            lacking.push((*table).to_owned());
        }
    }
    Ok(lacking)
}
