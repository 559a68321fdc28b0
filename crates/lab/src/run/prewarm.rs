//! Reads a workload's tables into shared buffers by the extension `pg_prewarm`.

use crate::error::LabError;
use pgdyno_connect::control::Client;
use pgdyno_dataset::workload::Workload;
use pgdyno_provision::sql::{SqlError, execute, query_number};
use postgres_protocol::escape::{escape_identifier, escape_literal};

use super::server::Server;
use pgdyno_provision::BenchError;

/// Checks that the server has the extension `pg_prewarm`.
///
/// # Errors
/// [`LabError::NoPrewarm`]; the server does not answer.
pub(super) fn check_prewarm(server: &Server) -> Result<(), BenchError> {
    let mut client = server.connect_aside()?;
    let asked = "SELECT pg_catalog.count(*) FROM pg_catalog.pg_available_extensions \
                 WHERE name = 'pg_prewarm'";
    if query_number(&mut client, "look for the extension pg_prewarm", asked)? > 0 {
        return Ok(());
    }
    let version = server.facts()?.version;
    Err(LabError::NoPrewarm { version }.into())
}

/// Reads the whole of the workload's tables and their indexes into shared buffers.
pub(super) fn prewarm(server: &Server, workload: &Workload) -> Result<(), BenchError> {
    let mut client = server.connect_to_data()?;
    let extension = prewarm_extension(server, &mut client)?;
    for name in workload.data.table_names() {
        // All five arguments with their types: no other function of that name in the extension's
        // schema fits better.
        let sql = format!(
            "SELECT coalesce(pg_catalog.sum({extension}.pg_prewarm(r, 'buffer'::pg_catalog.text, \
             'main'::pg_catalog.text, NULL::pg_catalog.int8, NULL::pg_catalog.int8)), \
             0)::pg_catalog.int8 \
             FROM (WITH leaf AS (SELECT oid FROM pg_catalog.pg_class \
             WHERE oid = '{name}'::regclass AND relkind = 'r' UNION ALL \
             SELECT relid FROM pg_catalog.pg_partition_tree('{name}') WHERE isleaf) \
             SELECT oid::regclass AS r FROM leaf UNION ALL \
             SELECT indexrelid::regclass FROM pg_catalog.pg_index JOIN leaf \
             ON leaf.oid = indrelid) AS relations"
        );
        query_number(&mut client, &format!("read {name} into shared buffers"), &sql)?;
    }
    Ok(())
}

/// Returns the quoted schema of the extension `pg_prewarm`. Makes the extension if it is missing;
/// it is then dropped with everything that the run made.
fn prewarm_extension(server: &Server, client: &mut Client) -> Result<String, BenchError> {
    const ASKED: &str = "SELECT n.nspname::text FROM pg_catalog.pg_extension AS e \
        JOIN pg_catalog.pg_namespace AS n ON n.oid = e.extnamespace WHERE e.extname = 'pg_prewarm'";
    let doing = "look for the extension pg_prewarm";
    let found = client.query_opt(ASKED, &[]).map_err(|e| SqlError::new(doing, e))?;
    if let Some(row) = found {
        return Ok(escape_identifier(row.get(0)));
    }
    let schema = escape_identifier(server.schema());
    let mut sql = format!("CREATE EXTENSION pg_prewarm SCHEMA {schema}");
    if let Some(mark) = server.mark() {
        sql = format!("{sql}; COMMENT ON EXTENSION pg_prewarm IS {}", escape_literal(&mark));
    }
    execute(client, "make the extension pg_prewarm", &sql)?;
    Ok(schema)
}
