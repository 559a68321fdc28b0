//! How a table's columns are filled: the workload's word, and the types that the server has for
//! them.

use pgdyno_connect::control::ControlClient;
use pgdyno_engine::copy::{ColumnKind, Generator, RowWriter};
use pgdyno_model::experiment::Loading;
use pgdyno_model::load_strategy::LoadStrategy;

use crate::bulk_load::BulkLoad;
use crate::error::DatasetError;
use crate::pieces;
use crate::workload::{ColumnSpec, TableSpec, Values};

/// `char(n)`: the server itself adds blanks, so that they need not be sent.
const BPCHAR: u32 = 1042;

/// A column as the server knows it.
struct Type {
    oid: u32,
    /// As SQL spells it, with its modifier.
    spelled: String,
    /// The function that gives the binary form.
    send: String,
    /// Whether it gets values without being named: a default, an identity, a generated one.
    fills_itself: bool,
}

/// How a table's columns get their values.
pub(crate) struct Columns {
    /// Writes what is sent of each row.
    pub(crate) writer: RowWriter,
    /// The names of what is sent.
    sent: Vec<String>,
    /// Columns that are alike in every row, with the value in SQL: a default until the rows are
    /// there. A default that is a constant costs the server less than a field that it has to read.
    alike: Vec<(String, String)>,
}

impl Columns {
    /// Of `table`, whose columns' types are asked of the server. What is drawn or counted is sent;
    /// what is alike in every row is sent too unless the transaction that fills the table can alter
    /// it.
    pub(crate) fn of(
        client: &mut ControlClient,
        load: &BulkLoad<'_>,
        table: &TableSpec,
        strategy: LoadStrategy,
    ) -> Result<Self, DatasetError> {
        let mut all = Vec::new();
        for column in &table.columns {
            let found = of_type(client, load, table, column)?;
            let generator = generator(client, load, table, column, &found)?;
            let value = value(client, table, column, &found, &generator)?;
            all.push((column, generator, ColumnKind::from_oid(found.oid), value));
        }
        // A row has at least one field.
        let alters =
            strategy != LoadStrategy::Chunks && all.iter().any(|(.., value)| value.is_none());
        let (mut sent, mut alike) = (Vec::new(), Vec::new());
        for (column, generator, kind, value) in all {
            match value.filter(|_| alters) {
                Some(value) => alike.push((column.name.clone(), value)),
                None => sent.push((column.name.as_str(), generator, kind)),
            }
        }
        let rows = pieces::rows(load, table);
        let writer =
            RowWriter::new(load.seed, &table.name, rows, &sent).map_err(|(place, e)| {
                let name = sent[place].0;
                DatasetError::Column {
                    table: table.name.clone(),
                    column: name.to_owned(),
                    found: format!("{e} ({name})"),
                }
            })?;
        Ok(Self {
            writer,
            sent: sent.into_iter().map(|(name, ..)| name.to_owned()).collect(),
            alike,
        })
    }

    /// `COPY … FROM STDIN` for `target`, the table or a partition of it.
    pub(crate) fn copy_statement(&self, target: &str, freeze: bool) -> String {
        let freeze = if freeze { ", FREEZE" } else { "" };
        format!("COPY {target} ({}) FROM STDIN WITH (FORMAT binary{freeze})", self.sent.join(", "))
    }

    /// SQL that has `target` fill the columns that are not sent.
    pub(crate) fn set_defaults(&self, target: &str) -> Option<String> {
        self.alter(target, |value| format!("SET DEFAULT {value}"))
    }

    /// SQL that ends it.
    pub(crate) fn drop_defaults(&self, target: &str) -> Option<String> {
        self.alter(target, |_| "DROP DEFAULT".to_owned())
    }

    fn alter(&self, target: &str, what: impl Fn(&str) -> String) -> Option<String> {
        let each = |(name, value): &(String, String)| format!("ALTER {name} {}", what(value));
        let all: Vec<String> = self.alike.iter().map(each).collect();
        (!all.is_empty()).then(|| format!("ALTER TABLE {target} {}", all.join(", ")))
    }
}

/// The value that `column` has in every row, in SQL; none where rows differ, or where a default of
/// pgdyno's is no help: the column has its own, or its type is one whose text might not give back
/// each bit of it.
fn value(
    client: &mut ControlClient,
    table: &TableSpec,
    column: &ColumnSpec,
    found: &Type,
    generator: &Generator,
) -> Result<Option<String>, DatasetError> {
    let kind = ColumnKind::from_oid(found.oid);
    let suits =
        matches!(kind, ColumnKind::Int2 | ColumnKind::Int4 | ColumnKind::Int8 | ColumnKind::Text)
            && !found.fills_itself;
    Ok(match (&column.values, generator) {
        _ if !suits => None,
        (Values::Constant(text), _) => {
            let asked = "SELECT pg_catalog.quote_literal($1::text)";
            let row = client
                .query_one(asked, &[text])
                .map_err(|e| wrong(table, column, pgdyno_connect::control::error_text(&e)))?;
            Some(row.get(0))
        }
        (_, Generator::Filler { bytes, drawn: 0 }) if kind == ColumnKind::Text => {
            Some(format!("pg_catalog.repeat(' ', {bytes})"))
        }
        _ => None,
    })
}

fn wrong(table: &TableSpec, column: &ColumnSpec, found: impl Into<String>) -> DatasetError {
    DatasetError::Column {
        table: table.name.clone(),
        column: column.name.clone(),
        found: found.into(),
    }
}

fn of_type(
    client: &mut ControlClient,
    load: &BulkLoad<'_>,
    table: &TableSpec,
    column: &ColumnSpec,
) -> Result<Type, DatasetError> {
    const ASKED: &str = "SELECT a.atttypid::oid::int8, pg_catalog.format_type(a.atttypid, a.atttypmod), t.typsend::text, \
        a.atthasdef OR a.attidentity <> '' FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_type t ON t.oid = a.atttypid \
        WHERE a.attrelid = $1::text::regclass AND a.attname = $2 AND a.attnum > 0 AND NOT a.attisdropped";
    let row = client
        .query_opt(ASKED, &[&load.table(&table.name), &column.name])
        .map_err(|e| {
            DatasetError::sql(load, &format!("asking for the columns of {}", table.name), &e)
        })?
        .ok_or_else(|| wrong(table, column, "the workload's schema makes no such column"))?;
    let oid: i64 = row.get(0);
    let oid = u32::try_from(oid).unwrap_or(0);
    Ok(Type { oid, spelled: row.get(1), send: row.get(2), fills_itself: row.get(3) })
}

fn generator(
    client: &mut ControlClient,
    load: &BulkLoad<'_>,
    table: &TableSpec,
    column: &ColumnSpec,
    found: &Type,
) -> Result<Generator, DatasetError> {
    Ok(match &column.values {
        Values::RowNumber => Generator::RowNumber,
        Values::GroupOf(of) => Generator::GroupOf(*of),
        Values::Uniform(low, high) => Generator::Uniform { low: *low, high: *high },
        Values::Filler(bytes) => filler(*bytes, found.oid, load.loading),
        Values::Numbered(before, after) => {
            Generator::Numbered { before: before.clone(), after: after.clone() }
        }
        Values::Constant(text) if ColumnKind::from_oid(found.oid) == ColumnKind::Text => {
            Generator::Constant(text.clone().into_bytes())
        }
        Values::Constant(text) => Generator::Constant(sent(client, table, column, text, found)?),
        Values::Timestamp(from, every) => {
            if ColumnKind::from_oid(found.oid) != ColumnKind::Timestamp {
                return Err(wrong(
                    table,
                    column,
                    format!("timestamp does not fill {}", found.spelled),
                ));
            }
            let bytes = sent(client, table, column, from, found)?;
            let from_us =
                <[u8; 8]>::try_from(bytes.as_slice()).map(i64::from_be_bytes).map_err(|_| {
                    wrong(table, column, "the server's timestamps do not have eight bytes")
                })?;
            Generator::Moment {
                from_us,
                step_us: i64::try_from(every.as_micros()).unwrap_or(i64::MAX),
            }
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
    client: &mut ControlClient,
    table: &TableSpec,
    column: &ColumnSpec,
    text: &str,
    found: &Type,
) -> Result<Vec<u8>, DatasetError> {
    let Type { spelled, send, .. } = found;
    let asked = format!("SELECT {send}(($1::text)::{spelled})");
    let row = client.query_one(&asked, &[&text]).map_err(|e| {
        let said = pgdyno_connect::control::error_text(&e);
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
    fn what_is_not_sent_is_a_default_until_the_rows_are_there() {
        let id = [("id", Generator::RowNumber, ColumnKind::Int4)];
        let mut columns = Columns {
            writer: RowWriter::new(1, "t", 1, &id).unwrap(),
            sent: vec!["id".into(), "of".into()],
            alike: vec![
                ("zero".into(), "'0'".into()),
                ("filler".into(), "pg_catalog.repeat(' ', 0)".into()),
            ],
        };
        assert_eq!(
            columns.copy_statement("child", true),
            "COPY child (id, of) FROM STDIN WITH (FORMAT binary, FREEZE)"
        );
        assert_eq!(
            columns.set_defaults("child").unwrap(),
            "ALTER TABLE child ALTER zero SET DEFAULT '0', ALTER filler SET DEFAULT pg_catalog.repeat(' ', 0)"
        );
        assert_eq!(
            columns.drop_defaults("child").unwrap(),
            "ALTER TABLE child ALTER zero DROP DEFAULT, ALTER filler DROP DEFAULT"
        );
        columns.alike.clear();
        assert_eq!(columns.set_defaults("child"), None);
    }
}
