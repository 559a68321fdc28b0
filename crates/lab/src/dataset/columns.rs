//! How a table's columns are filled: the workload's word, and the types that the server has for them.

use pgdyno_engine::copy::{Generator, Kind, RowWriter};
use pgdyno_model::experiment::Loading;
use postgres::Client;

use super::{DatasetError, Filling, shape};
use crate::workload::{ColumnSpec, TableSpec, Values};

/// `char(n)`: the server itself adds blanks, so that they need not be sent.
const BPCHAR: u32 = 1042;

/// A column's type.
struct Type {
    oid: u32,
    /// As SQL spells it, with its modifier.
    spelled: String,
    /// The function that gives the binary form.
    send: String,
}

/// Writes the rows of `table`, whose columns' types are asked of the server.
pub(super) fn writer(
    client: &mut Client,
    filling: &Filling<'_>,
    table: &TableSpec,
) -> Result<RowWriter, DatasetError> {
    let mut columns = Vec::new();
    for column in &table.columns {
        let found = of_type(client, filling, table, column)?;
        let kind = Kind::of(found.oid);
        let generator = generator(client, filling, table, column, &found)?;
        columns.push((column.name.as_str(), generator, kind));
    }
    let rows = shape::rows(filling, table);
    RowWriter::new(filling.seed, &table.name, rows, &columns)
        .map_err(|(place, e)| wrong(table, &table.columns[place], format!("{e} ({})", columns[place].0)))
}

/// `COPY … FROM STDIN` for `target`, the table or a partition of it.
pub(super) fn copy_statement(table: &TableSpec, target: &str, freeze: bool) -> String {
    let columns: Vec<&str> = table.columns.iter().map(|c| c.name.as_str()).collect();
    let freeze = if freeze { ", FREEZE" } else { "" };
    format!("COPY {target} ({}) FROM STDIN WITH (FORMAT binary{freeze})", columns.join(", "))
}

fn wrong(table: &TableSpec, column: &ColumnSpec, found: impl Into<String>) -> DatasetError {
    DatasetError::Column { table: table.name.clone(), column: column.name.clone(), found: found.into() }
}

fn of_type(
    client: &mut Client,
    filling: &Filling<'_>,
    table: &TableSpec,
    column: &ColumnSpec,
) -> Result<Type, DatasetError> {
    const ASKED: &str = "SELECT a.atttypid::oid::int8, pg_catalog.format_type(a.atttypid, a.atttypmod), t.typsend::text \
        FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_type t ON t.oid = a.atttypid \
        WHERE a.attrelid = $1::text::regclass AND a.attname = $2 AND a.attnum > 0 AND NOT a.attisdropped";
    let row = client
        .query_opt(ASKED, &[&table.name, &column.name])
        .map_err(|e| DatasetError::sql(filling, &format!("asking for the columns of {}", table.name), &e))?
        .ok_or_else(|| wrong(table, column, "the workload's schema makes no such column"))?;
    let oid: i64 = row.get(0);
    Ok(Type { oid: u32::try_from(oid).unwrap_or(0), spelled: row.get(1), send: row.get(2) })
}

fn generator(
    client: &mut Client,
    filling: &Filling<'_>,
    table: &TableSpec,
    column: &ColumnSpec,
    found: &Type,
) -> Result<Generator, DatasetError> {
    Ok(match &column.values {
        Values::RowNumber => Generator::RowNumber,
        Values::GroupOf(of) => Generator::GroupOf(*of),
        Values::Uniform(low, high) => Generator::Uniform { low: *low, high: *high },
        Values::Filler(bytes) => filler(*bytes, found.oid, filling.loading),
        Values::Numbered(before, after) => {
            Generator::Numbered { before: before.clone(), after: after.clone() }
        }
        Values::Constant(text) if Kind::of(found.oid) == Kind::Text => {
            Generator::Constant(text.clone().into_bytes())
        }
        Values::Constant(text) => Generator::Constant(sent(client, table, column, text, found)?),
        Values::Timestamp(from, every) => {
            if Kind::of(found.oid) != Kind::Timestamp {
                return Err(wrong(table, column, format!("timestamp does not fill {}", found.spelled)));
            }
            let bytes = sent(client, table, column, from, found)?;
            let from_us = <[u8; 8]>::try_from(bytes.as_slice())
                .map(i64::from_be_bytes)
                .map_err(|_| wrong(table, column, "the server's timestamps do not have eight bytes"))?;
            Generator::Moment { from_us, step_us: i64::try_from(every.as_micros()).unwrap_or(i64::MAX) }
        }
    })
}

/// Filler of so many bytes.
fn filler(bytes: u32, oid: u32, loading: &Loading) -> Generator {
    let blanks = u64::from(loading.filler_compress_percentage.min(100));
    let drawn = u32::try_from(u64::from(bytes) * (100 - blanks) / 100).unwrap_or(bytes);
    Generator::Filler { bytes: if oid == BPCHAR { drawn } else { bytes }, drawn }
}

/// The binary form of the value `text`, as the server sends it.
fn sent(
    client: &mut Client,
    table: &TableSpec,
    column: &ColumnSpec,
    text: &str,
    found: &Type,
) -> Result<Vec<u8>, DatasetError> {
    let Type { spelled, send, .. } = found;
    let asked = format!("SELECT {send}(($1::text)::{spelled})");
    let row = client.query_one(&asked, &[&text]).map_err(|e| {
        let said = pgdyno_host::postgres::control::said(&e);
        wrong(table, column, format!("`{text}` is no {spelled}: {said}"))
    })?;
    Ok(row.get(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blanks_are_sent_only_where_the_server_does_not_add_them() {
        let loading = |blanks| Loading { filler_compress_percentage: blanks, ..Loading::default() };
        assert_eq!(filler(84, BPCHAR, &loading(100)), Generator::Filler { bytes: 0, drawn: 0 });
        assert_eq!(filler(84, BPCHAR, &loading(50)), Generator::Filler { bytes: 42, drawn: 42 });
        assert_eq!(filler(84, 25, &loading(50)), Generator::Filler { bytes: 84, drawn: 42 });
        assert_eq!(filler(84, 25, &loading(0)), Generator::Filler { bytes: 84, drawn: 84 });
    }

    #[test]
    fn the_statement_names_the_columns_that_are_filled() {
        let data = crate::workload::load("tpcb-like", &[]).unwrap().data;
        assert_eq!(
            copy_statement(&data.tables[0], "child", true),
            "COPY child (bid, bbalance) FROM STDIN WITH (FORMAT binary, FREEZE)"
        );
    }
}
