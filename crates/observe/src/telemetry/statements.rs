//! The costliest statements of the loaded database, from `pg_stat_statements`, if the experiment
//! wants it.

use std::time::Duration;

use pgdyno_model::telemetry::{Column, Kind};

use super::columns::Columns;
use super::context::TelemetryContext;
use super::pg_stat::unit;
use super::probe::{Probe, ProbeError, ProbeResult, SLOW};
use super::session::{Query, TelemetrySession};

const WANTED: &[&str] = &[
    "calls",
    "total_exec_time",
    "rows",
    "shared_blks_hit",
    "shared_blks_read",
    "shared_blks_dirtied",
    "shared_blks_written",
    "temp_blks_written",
    "wal_bytes",
];

struct Statements {
    session: TelemetrySession,
    query: Query,
    database: String,
    columns: Columns,
}

/// Returns none if the experiment does not want it.
pub(super) fn make(context: &TelemetryContext) -> ProbeResult {
    const NAME: &str = "pg_stat_statements";
    if !context.wanted.statements {
        return Ok(None);
    }
    let (session, schema) = context.with_extension(NAME)?;
    // Utility commands are stored literally and may hold a password, so that their text is left
    // out.
    let query = format!(
        "SELECT queryid::text || CASE \
           WHEN min(query) ~* '^\\s*(select|insert|update|delete|merge|with|begin|commit|end)\\M' \
           THEN ' ' || regexp_replace(left(min(query), 80), '\\s+', ' ', 'g') ELSE '' END, {} \
         FROM {schema}.{NAME} s JOIN pg_catalog.pg_database d ON d.oid = s.dbid \
         WHERE d.datname = $1 AND queryid IS NOT NULL GROUP BY queryid \
         ORDER BY sum(total_exec_time) DESC LIMIT 50",
        WANTED.iter().map(|c| format!("sum({c})::float8")).collect::<Vec<_>>().join(", ")
    );
    let query = session.prepare(query)?;
    let database = context.server.loaded.database.clone();
    Ok(Some(Box::new(Statements { session, query, database, columns: Columns::default() })))
}

impl Probe for Statements {
    fn columns(&self) -> &[Column] {
        self.columns.all()
    }

    fn sample(&mut self) -> Result<Vec<Option<f64>>, ProbeError> {
        let rows = self.session.rows(&mut self.query, &[&self.database])?;
        // A statement that is not among the costliest has no value in this sample.
        let mut row = self.columns.row_unknown();
        for found in rows {
            let statement: String = found.try_get(0)?;
            for (i, name) in WANTED.iter().enumerate() {
                if let Some(value) = found.try_get::<_, Option<f64>>(i + 1)? {
                    row.set(&format!("{statement}.{name}"), unit(name), Kind::Counter, value);
                }
            }
        }
        Ok(row.values())
    }

    fn interval(&self) -> Duration {
        SLOW
    }
}
