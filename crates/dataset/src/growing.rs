//! Tables that `\copyfrom` fills while a load runs.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use pgdyno_connect::control::ControlClient;
use pgdyno_engine::WeightedScript;
use pgdyno_engine::copy::{CopyError, GrowingTable, RowWriter};
use pgdyno_model::target::Target;
use postgres_protocol::escape::escape_literal;

use crate::bulk_load::BulkLoad;
use crate::column_spec::Values;
use crate::columns::{all_sent, unwritable};
use crate::error::DatasetError;
use crate::pieces;
use crate::workload::TableSpec;

/// Highest numbers of rows that are tried: what a day at ten million rows a second takes, and what
/// columns of four and of two bytes hold.
const HIGHEST: [u64; 3] = [1 << 40, i32::MAX as u64, i16::MAX as u64];

/// Returns the tables of `load` that the scripts fill by `\copyfrom`, each with the number of its
/// last row in the database at `target`.
///
/// A column with the row's number, or with a timestamp by row, tells that number. In a table
/// without either it is the number of rows that were loaded.
///
/// # Errors
/// There is no connection. The server lacks a table or column, or the type of a column does not
/// hold its values.
pub fn growing_tables(
    load: &BulkLoad<'_>,
    target: &Target,
    scripts: &[WeightedScript],
) -> Result<Vec<Arc<GrowingTable>>, DatasetError> {
    let named = scripts.iter().flat_map(|weighted| weighted.script.copied_tables());
    let named: BTreeSet<&str> = named.map(|(_, table)| table).collect();
    if named.is_empty() {
        return Ok(Vec::new());
    }
    let mut client = ControlClient::connect(target, None)
        .map_err(|e| DatasetError::Connect { data: load.identity(), source: Box::new(e) })?;
    let tables = load.data.tables.iter().filter(|table| named.contains(table.name.as_str()));
    tables.map(|table| growing(&mut client, load, table).map(Arc::new)).collect()
}

fn growing(
    client: &mut ControlClient,
    load: &BulkLoad<'_>,
    table: &TableSpec,
) -> Result<GrowingTable, DatasetError> {
    let sent = all_sent(client, load, table)?;
    let writer = |highest| RowWriter::new(load.seed, &table.name, highest, &sent);
    let is_narrow =
        |made: &Result<_, (usize, CopyError)>| matches!(made, Err((_, CopyError::TooBig { .. })));
    let mut highest = HIGHEST[0];
    let mut made = writer(highest);
    for narrower in &HIGHEST[1..] {
        if !is_narrow(&made) {
            break;
        }
        highest = *narrower;
        made = writer(highest);
    }
    let writer = made.map_err(|error| unwritable(table, &sent, &error))?;
    let last = last_row(client, load, table)?;
    let names: Vec<&str> = sent.iter().map(|(name, ..)| *name).collect();
    let (target, names) = (load.table(&table.name), names.join(", "));
    let statement = format!("COPY {target} ({names}) FROM STDIN WITH (FORMAT binary)");
    Ok(GrowingTable::new(&table.name, statement, writer, last, highest))
}

/// Returns the number of the last row of `table`.
fn last_row(
    client: &mut ControlClient,
    load: &BulkLoad<'_>,
    table: &TableSpec,
) -> Result<u64, DatasetError> {
    let loaded = pieces::rows(load, table);
    let target = load.table(&table.name);
    let numbered = table.columns.iter().find(|column| column.is_row_number());
    let timed = table.columns.iter().find_map(|column| match &column.values {
        Values::Timestamp(from, every) if column.null == 0.0 => Some((&column.name, from, every)),
        _ => None,
    });
    let asked = match (numbered, timed) {
        (Some(column), _) => {
            let asked = format!("SELECT pg_catalog.max({})::bigint FROM {target}", column.name);
            client.query_one(&asked, &[])
        }
        (None, Some((column, from, every))) => {
            let asked = format!(
                "SELECT pg_catalog.round(EXTRACT(epoch FROM pg_catalog.max({column}) - {}) \
                 * 1000000 / $1::bigint)::bigint + 1 FROM {target}",
                escape_literal(from)
            );
            client.query_one(&asked, &[&microseconds(*every)])
        }
        (None, None) => return Ok(loaded),
    };
    let row = asked.map_err(|e| {
        DatasetError::sql(load, &format!("asking for the last row of {}", table.name), &e)
    })?;
    let last: Option<i64> = row.get(0);
    Ok(last.map_or(loaded, |last| u64::try_from(last).unwrap_or(0).max(loaded)))
}

fn microseconds(every: Duration) -> i64 {
    i64::try_from(every.as_micros()).unwrap_or(i64::MAX).max(1)
}
