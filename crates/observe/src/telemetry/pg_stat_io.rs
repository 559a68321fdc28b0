//! `pg_stat_io` (PostgreSQL 16 and later): I/O by who does it, on what, and in what context.
//! Combinations that never did any have no columns.

use postgres::Statement;

use pgdyno_model::telemetry::{Column, Kind, STATS_RESET};

use super::columns::Columns;
use super::pg_stat::unit;
use super::session::Session;
use super::{Probe, Watched};
use pgdyno_connect::control::error_text;

struct StatIo {
    session: Session,
    query: Statement,
    names: Vec<String>,
    columns: Columns,
}

/// None before PostgreSQL 16.
pub(super) fn make(watched: &Watched) -> Result<Option<Box<dyn Probe>>, String> {
    let session = watched.session()?.clone();
    let mut client = session.client();
    // op_bytes (16 and 17) is the size of a block and no counter.
    let rows = client
        .query(
            "SELECT attname::text FROM pg_catalog.pg_attribute \
             WHERE attrelid = pg_catalog.to_regclass('pg_catalog.pg_stat_io') AND attnum > 0 AND attname <> 'op_bytes' \
             AND atttypid IN ('int8'::regtype, 'float8'::regtype, 'numeric'::regtype) ORDER BY attnum",
            &[],
        )
        .map_err(|e| error_text(&e))?;
    if rows.is_empty() {
        return Ok(None);
    }
    let names: Vec<String> = rows.iter().map(|r| r.get(0)).collect();
    let values = names.iter().map(|n| format!("{n}::float8")).collect::<Vec<_>>().join(", ");
    let query = client
        .prepare(&format!(
            "SELECT backend_type || '.' || object || '.' || context, extract(epoch FROM stats_reset)::float8, {values} \
             FROM pg_catalog.pg_stat_io WHERE greatest({values}) > 0"
        ))
        .map_err(|e| error_text(&e))?;
    drop(client);
    Ok(Some(Box::new(StatIo { session, query, names, columns: Columns::default() })))
}

impl Probe for StatIo {
    fn name(&self) -> &'static str {
        "pg_stat_io"
    }

    fn columns(&self) -> &[Column] {
        self.columns.all()
    }

    fn sample(&mut self) -> Result<Vec<Option<f64>>, String> {
        let rows = self.session.client().query(&self.query, &[]).map_err(|e| error_text(&e))?;
        let mut row = self.columns.row();
        for found in rows {
            let which: String = found.get(0);
            row.set(STATS_RESET, "s", Kind::Gauge, found.get::<_, Option<f64>>(1).unwrap_or(0.0));
            for (i, name) in self.names.iter().enumerate() {
                if let Some(value) = found.get::<_, Option<f64>>(i + 2) {
                    row.set(&format!("{which}.{name}"), unit(name), Kind::Counter, value);
                }
            }
        }
        Ok(row.values())
    }
}
