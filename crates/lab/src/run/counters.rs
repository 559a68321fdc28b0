//! Reads the server's counters around a trial, to check the acknowledgements of clients against the
//! server's work.

use std::time::Duration;

use pgdyno_dataset::workload::Workload;
use pgdyno_model::record::ServerCount;
use postgres_protocol::escape::escape_literal;

use super::server::Server;
use pgdyno_provision::sql::query_number;
use pgdyno_provision::{BenchError, Context};

/// Counters of the server, read while no client of pgdyno's is connected to the loaded database.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counters {
    xact_commit: i64,
    rows: Option<i64>,
}

/// Reads the counters that a trial is checked against.
pub(super) fn read_counters(
    server: &Server,
    workload: &Workload,
    context: Context<'_>,
) -> Result<Counters, BenchError> {
    let rows = workload.count.as_ref().map(|count| {
        query_number(&mut server.connect_to_data()?, "count the workload's rows", &count.query)
    });
    let rows = rows.transpose()?;
    let mut aside = server.connect_aside()?;
    let database = escape_literal(&server.database());
    if matches!(server, Server::Managed(_)) {
        // A backend adds what it did to the statistics as it exits, which is after its client has
        // seen it go.
        let clients = format!(
            "SELECT pg_catalog.count(*) FROM pg_catalog.pg_stat_activity \
             WHERE datname = {database} AND backend_type = 'client backend'"
        );
        context.poll(Duration::from_secs(10), Duration::from_millis(5), || {
            let left = query_number(&mut aside, "wait for the clients to leave", &clients)?;
            Ok((left == 0).then_some(()))
        })?;
    }
    let commits =
        format!("SELECT xact_commit FROM pg_catalog.pg_stat_database WHERE datname = {database}");
    let xact_commit = query_number(&mut aside, "read pg_stat_database", &commits)?;
    Ok(Counters { xact_commit, rows })
}

impl Counters {
    /// Returns the server's counts between `self` and `after`, beside those that `acknowledged`
    /// transactions should have brought.
    pub(super) fn until(self, after: Self, workload: &Workload, acknowledged: u64) -> ServerCount {
        let rows_each = workload.count.as_ref().map(|c| i64::from(c.rows_per_transaction));
        let acknowledged = i64::try_from(acknowledged).unwrap_or(i64::MAX);
        ServerCount {
            xact_commit: after.xact_commit - self.xact_commit,
            rows: self.rows.zip(after.rows).map(|(before, after)| after - before),
            rows_expected: rows_each.map(|each| each * acknowledged),
        }
    }
}
