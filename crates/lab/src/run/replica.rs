//! Replicas that groups of clients use.

use std::time::Duration;

use pgdyno_model::progress::Activity;
use pgdyno_postgres::ExternalServer;
use pgdyno_provision::sql::{query_number, query_text};
use pgdyno_provision::{BenchError, Context};
use postgres_protocol::escape::escape_literal;

use super::server::Server;
use crate::error::LabError;

/// Time that a replica may take to catch up.
const LIMIT: Duration = Duration::from_secs(60);
/// Interval between two looks at it.
const TICK: Duration = Duration::from_millis(20);

/// Waits until `beside` has replayed what `primary` has written so far, if it is a replica; `name`
/// is what messages call it.
///
/// # Errors
/// [`LabError::Behind`], or a server does not answer.
pub(super) fn await_replay(
    primary: &Server,
    beside: &ExternalServer,
    name: &str,
    context: Context<'_>,
) -> Result<(), BenchError> {
    const DOING: &str = "ask how far the replica is";
    let mut replica = beside.control()?;
    let is_replica = "SELECT pg_catalog.pg_is_in_recovery()::int::int8";
    if query_number(&mut replica, DOING, is_replica)? == 0 {
        return Ok(());
    }
    let written = "SELECT pg_catalog.pg_current_wal_lsn()::text";
    let written = query_text(&mut primary.connect_aside()?, DOING, written)?;
    let behind = format!(
        "SELECT pg_catalog.pg_wal_lsn_diff({}, coalesce(pg_catalog.pg_last_wal_replay_lsn(), \
         '0/0'))::int8",
        escape_literal(&written)
    );
    let (mut left, mut is_told) = (0, false);
    let caught_up = context.poll(LIMIT, TICK, || {
        left = query_number(&mut replica, DOING, &behind)?;
        if left > 0 && !std::mem::replace(&mut is_told, true) {
            context.begin(Activity::AwaitingReplica { server: name.to_owned(), behind: left });
        }
        Ok((left <= 0).then_some(()))
    })?;
    let behind = || LabError::Behind { server: name.to_owned(), behind: left, waited: LIMIT };
    caught_up.ok_or_else(|| behind().into())
}
