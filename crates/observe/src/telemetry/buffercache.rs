//! How full and how dirty the shared buffers are, from `pg_buffercache`, if the experiment wants
//! it.

use pgdyno_model::telemetry::Kind;

use super::context::TelemetryContext;
use super::probe::{ProbeError, ProbeResult, SLOW, column, fixed_columns};

const NAME: &str = "pg_buffercache";

/// Whether the function belongs to the extension. Anybody may create one of that name in its
/// schema.
const HAS_SUMMARY: &str = "SELECT count(*) > 0 FROM pg_catalog.pg_depend AS d \
    JOIN pg_catalog.pg_extension AS e ON e.oid = d.refobjid \
    JOIN pg_catalog.pg_proc AS p ON p.oid = d.objid \
    WHERE d.deptype = 'e' AND d.refclassid = 'pg_catalog.pg_extension'::regclass \
    AND d.classid = 'pg_catalog.pg_proc'::regclass AND e.extname = 'pg_buffercache' \
    AND p.proname = 'pg_buffercache_summary' AND p.pronargs = 0";

/// Returns none if the experiment does not want it.
pub(super) fn make(context: &TelemetryContext) -> ProbeResult {
    if !context.wanted.buffercache {
        return Ok(None);
    }
    let (session, schema) = context.with_extension(NAME)?;
    // From PostgreSQL 16 on there is a function that takes no locks. The view visits every buffer.
    let summary = format!("{schema}.pg_buffercache_summary()");
    let has_summary: bool = session.row_once(HAS_SUMMARY, &[])?.try_get(0)?;
    let query = if has_summary {
        format!(
            "SELECT buffers_used::float8, buffers_dirty::float8, buffers_pinned::float8, \
             usagecount_avg::float8 \
             FROM {summary}"
        )
    } else {
        format!(
            "SELECT count(relfilenode)::float8, count(*) FILTER (WHERE isdirty)::float8, \
             count(*) FILTER (WHERE pinning_backends > 0)::float8, avg(usagecount)::float8 \
             FROM {schema}.{NAME}"
        )
    };
    let mut query = session.prepare(query)?;
    let columns = [
        ("used", "buffers"),
        ("dirty", "buffers"),
        ("pinned", "buffers"),
        ("usagecount_avg", "count"),
    ]
    .into_iter()
    .map(|(name, unit)| column(name, unit, Kind::Gauge))
    .collect();
    Ok(fixed_columns(SLOW, columns, move || {
        let rows = session.rows(&mut query, &[])?;
        let row = rows.first().ok_or(ProbeError::NoRow(NAME))?;
        Ok((0..row.len()).map(|i| row.try_get(i)).collect::<Result<_, _>>()?)
    }))
}
