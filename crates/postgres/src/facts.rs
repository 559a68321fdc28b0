//! Facts about a running server: version and settings.

use pgdyno_connect::control::{Client, ControlError};
use pgdyno_model::facts::{BuildSource, ServerFacts, Setting};
use tokio_postgres::Row;

/// Settings that every report shows, whatever their source.
pub const ALWAYS: &[&str] = &[
    "autovacuum",
    "block_size",
    "checkpoint_completion_target",
    "checkpoint_timeout",
    "commit_delay",
    "commit_siblings",
    "data_checksums",
    "fsync",
    "full_page_writes",
    "huge_pages",
    "io_method",
    "max_wal_size",
    "shared_buffers",
    "synchronous_commit",
    "wal_block_size",
    "wal_compression",
    "wal_level",
    "wal_segment_size",
    "wal_sync_method",
];

/// Settings that can hold passwords: their values are not stored.
const SECRET: &[&str] = &["primary_conninfo", "ssl_passphrase_command"];

/// Reads the facts of the server that `client` is connected to.
///
/// # Errors
/// [`ControlError::Query`].
pub fn read(client: &mut Client, build: BuildSource) -> Result<ServerFacts, ControlError> {
    let failed = |e: tokio_postgres::Error| {
        ControlError::query("read the server's version and settings", &e)
    };
    let row = client
        .query_one(
            "SELECT pg_catalog.version(), pg_catalog.current_setting('server_version_num')::bigint",
            &[],
        )
        .map_err(failed)?;
    // Settings of this connection are not the server's.
    let rows = client
        .query(
            "SELECT name, setting, unit, source FROM pg_catalog.pg_settings \
             WHERE source NOT IN ('default', 'client', 'session', 'interactive') \
             OR name = ANY ($1) ORDER BY lower(name)",
            &[&ALWAYS],
        )
        .map_err(failed)?;
    let settings = rows.iter().map(setting).collect::<Result<_, _>>().map_err(failed)?;
    let version_num: i64 = row.try_get(1).map_err(failed)?;
    let version_num = u32::try_from(version_num).unwrap_or_default();
    Ok(ServerFacts { version: row.try_get(0).map_err(failed)?, version_num, build, settings })
}

/// Reads a row of name, value, unit and source.
fn setting(row: &Row) -> Result<Setting, tokio_postgres::Error> {
    let (name, mut value): (String, String) = (row.try_get(0)?, row.try_get(1)?);
    if SECRET.contains(&name.as_str()) && !value.is_empty() {
        value = "(set; not stored)".into();
    }
    Ok(Setting { name, value, unit: row.try_get(2)?, source: row.try_get(3)? })
}
