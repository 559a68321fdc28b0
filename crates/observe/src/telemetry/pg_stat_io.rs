//! I/O by backend type, object and context, from `pg_stat_io` (PostgreSQL 16 and later).
//! Combinations without I/O have no columns.

use pgdyno_model::telemetry::{Kind, STATS_RESET};

use super::columns::growing_columns;
use super::context::TelemetryContext;
use super::pg_stat::unit;
use super::probe::ProbeResult;

/// Returns none before PostgreSQL 16.
pub(super) fn make(context: &TelemetryContext) -> ProbeResult {
    let session = context.session()?.clone();
    // op_bytes (16 and 17) is a block's size and not a counter.
    let rows = session.rows_once(
        "SELECT attname::text FROM pg_catalog.pg_attribute \
         WHERE attrelid = pg_catalog.to_regclass('pg_catalog.pg_stat_io') AND attnum > 0 \
         AND attname <> 'op_bytes' \
         AND atttypid IN ('int8'::regtype, 'float8'::regtype, 'numeric'::regtype) \
         ORDER BY attnum",
        &[],
    )?;
    if rows.is_empty() {
        return Ok(None);
    }
    let names: Vec<String> = rows.iter().map(|r| r.try_get(0)).collect::<Result<_, _>>()?;
    let values = names.iter().map(|n| format!("{n}::float8")).collect::<Vec<_>>().join(", ");
    let mut query = session.prepare(format!(
        "SELECT backend_type || '.' || object || '.' || context, \
         extract(epoch FROM stats_reset)::float8, {values} \
         FROM pg_catalog.pg_stat_io WHERE greatest({values}) > 0"
    ))?;
    Ok(growing_columns(move |row| {
        for found in session.rows(&mut query, &[])? {
            let which: String = found.try_get(0)?;
            let reset = found.try_get::<_, Option<f64>>(1)?.unwrap_or(0.0);
            row.set(STATS_RESET, "s", Kind::Gauge, reset);
            for (i, name) in names.iter().enumerate() {
                if let Some(value) = found.try_get::<_, Option<f64>>(i + 2)? {
                    row.set(&format!("{which}.{name}"), unit(name), Kind::Counter, value);
                }
            }
        }
        Ok(())
    }))
}
