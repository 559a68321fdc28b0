//! Filling a table's columns: generators of the workload, and types of the server.

use pgdyno_connect::control::{ControlClient, error_text};
use pgdyno_engine::copy::{ColumnKind, CopyError, Generator, Integers, RowWriter, Varying};
use pgdyno_model::experiment::Loading;
use pgdyno_model::load_strategy::LoadStrategy;

use crate::bulk_load::BulkLoad;
use crate::column_spec::{ColumnSpec, Values};
use crate::error::DatasetError;
use crate::pieces;
use crate::workload::TableSpec;

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
    /// Asks the server for the types of `table`'s columns, and decides how each is filled.
    ///
    /// Drawn and counted values are sent. A value that is alike in every row is sent too, unless
    /// the transaction that fills the table can alter the table.
    pub(crate) fn read(
        client: &mut ControlClient,
        load: &BulkLoad<'_>,
        table: &TableSpec,
        strategy: LoadStrategy,
    ) -> Result<Self, DatasetError> {
        let mut all = Vec::new();
        for column in &table.columns {
            let mut inquiry = ColumnInquiry { client, load, table, column };
            let (found, generator) = inquiry.look()?;
            let value = inquiry.value(&found, &generator)?;
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
        let writer = RowWriter::new(load.seed, &table.name, rows, &sent)
            .map_err(|error| unwritable(table, &sent, &error))?;
        let sent = sent.into_iter().map(|(name, ..)| name.to_owned()).collect();
        Ok(Self { writer, sent, alike })
    }

    /// Returns `COPY … FROM STDIN` for `target`, the table or a partition of it.
    pub(crate) fn copy_statement(&self, target: &str, freeze: bool) -> String {
        let freeze = if freeze { ", FREEZE" } else { "" };
        format!("COPY {target} ({}) FROM STDIN WITH (FORMAT binary{freeze})", self.sent.join(", "))
    }

    /// Returns SQL that has `target` fill the columns that are not sent.
    pub(crate) fn set_defaults(&self, target: &str) -> Option<String> {
        self.alter(target, |value| format!("SET DEFAULT {value}"))
    }

    /// Returns SQL that drops these defaults again.
    pub(crate) fn drop_defaults(&self, target: &str) -> Option<String> {
        self.alter(target, |_| "DROP DEFAULT".to_owned())
    }

    fn alter(&self, target: &str, what: impl Fn(&str) -> String) -> Option<String> {
        let each = |(name, value): &(String, String)| format!("ALTER {name} {}", what(value));
        let all: Vec<String> = self.alike.iter().map(each).collect();
        (!all.is_empty()).then(|| format!("ALTER TABLE {target} {}", all.join(", ")))
    }
}

/// Column that is sent: its name, what makes its values, and their format.
pub(crate) type SentColumn<'a> = (&'a str, Generator, ColumnKind);

/// Asks the server for the types of `table`'s columns. All of them are sent.
pub(crate) fn all_sent<'a>(
    client: &mut ControlClient,
    load: &BulkLoad<'_>,
    table: &'a TableSpec,
) -> Result<Vec<SentColumn<'a>>, DatasetError> {
    let sent = |column: &'a ColumnSpec| {
        let (found, generator) = ColumnInquiry { client, load, table, column }.look()?;
        Ok((column.name.as_str(), generator, ColumnKind::from_oid(found.oid)))
    };
    table.columns.iter().map(sent).collect()
}

/// Creates the error of the column among `sent` whose values cannot be made.
pub(crate) fn unwritable(
    table: &TableSpec,
    sent: &[SentColumn<'_>],
    (place, error): &(usize, CopyError),
) -> DatasetError {
    let name = sent[*place].0;
    wrong(table, name, format!("{error} ({name})"))
}

/// A column whose values are looked into, with the session that answers.
struct ColumnInquiry<'a> {
    client: &'a mut ControlClient,
    load: &'a BulkLoad<'a>,
    table: &'a TableSpec,
    column: &'a ColumnSpec,
}

impl ColumnInquiry<'_> {
    /// Returns the column's type, and what makes its values.
    fn look(&mut self) -> Result<(Type, Generator), DatasetError> {
        let found = self.of_type()?;
        let generator = self.generator(&found)?;
        Ok((found, generator))
    }

    fn wrong(&self, found: impl Into<String>) -> DatasetError {
        wrong(self.table, &self.column.name, found)
    }

    /// Returns the value that the column has in every row, in SQL.
    ///
    /// None if rows differ, or if a default of pgdyno's does not help: the column has its own, or
    /// the text of its type might not give back each bit.
    fn value(
        &mut self,
        found: &Type,
        generator: &Generator,
    ) -> Result<Option<String>, DatasetError> {
        use ColumnKind::{Int2, Int4, Int8, Text};
        let kind = ColumnKind::from_oid(found.oid);
        let suits = matches!(kind, Int2 | Int4 | Int8 | Text)
            && !found.fills_itself
            && self.column.null == 0.0;
        Ok(match (&self.column.values, generator) {
            _ if !suits => None,
            (Values::Constant(text), _) => {
                let asked = "SELECT pg_catalog.quote_literal($1::text)";
                let row = self.client.query_one(asked, &[text]);
                Some(row.map_err(|e| self.wrong(error_text(&e)))?.get(0))
            }
            (_, Generator::Filler { bytes, drawn: 0 }) if kind == Text => {
                Some(format!("pg_catalog.repeat(' ', {bytes})"))
            }
            _ => None,
        })
    }

    /// Asks the server for the column's type.
    fn of_type(&mut self) -> Result<Type, DatasetError> {
        const ASKED: &str = "SELECT a.atttypid::oid::int8, \
            pg_catalog.format_type(a.atttypid, a.atttypmod), t.typsend::text, \
            a.atthasdef OR a.attidentity <> '' FROM pg_catalog.pg_attribute a \
            JOIN pg_catalog.pg_type t ON t.oid = a.atttypid \
            WHERE a.attrelid = $1::text::regclass AND a.attname = $2 AND a.attnum > 0 \
            AND NOT a.attisdropped";
        let table = &self.table.name;
        let row = self
            .client
            .query_opt(ASKED, &[&self.load.table(table), &self.column.name])
            .map_err(|e| {
                DatasetError::sql(self.load, &format!("asking for the columns of {table}"), &e)
            })?
            .ok_or_else(|| self.wrong("the workload's schema makes no such column"))?;
        let oid: i64 = row.get(0);
        let oid = u32::try_from(oid).unwrap_or(0);
        Ok(Type { oid, spelled: row.get(1), send: row.get(2), fills_itself: row.get(3) })
    }

    fn generator(&mut self, found: &Type) -> Result<Generator, DatasetError> {
        let generator = self.generator_of(&self.column.values, found)?;
        Ok(nullable(generator, self.column.null))
    }

    fn generator_of(&mut self, values: &Values, found: &Type) -> Result<Generator, DatasetError> {
        let kind = ColumnKind::from_oid(found.oid);
        Ok(match values {
            Values::RowNumber => Generator::ROW_NUMBER,
            Values::Generated(generator) => generator.clone(),
            Values::Constant(text) => Generator::Constant(self.binary(text, found)?),
            Values::Choice(values) => {
                let value =
                    |(weight, text): &(u32, String)| Ok((*weight, self.binary(text, found)?));
                let values = values.iter().map(value).collect::<Result<_, DatasetError>>()?;
                Generator::Varying(Varying::Choice(values))
            }
            Values::Filler(bytes) => filler(*bytes, found.oid, self.load.loading),
            Values::Timestamp(from, every) => {
                let from_us = self.time(from, found)?;
                let step_us = i64::try_from(every.as_micros()).unwrap_or(i64::MAX);
                match kind {
                    ColumnKind::Date => Generator::Day { from: from_us, step_us },
                    _ => Generator::Moment { from_us, step_us },
                }
            }
            Values::Between(from, to) => {
                let (low, high) = (self.time(from, found)?, self.time(to, found)?);
                if low > high {
                    return Err(self.wrong(format!("there is nothing from {from} to {to}")));
                }
                Generator::Time { low, high }
            }
            Values::References(table) => {
                let tables = &mut self.load.data.tables.iter();
                let rows = tables.find(|known| known.name == *table);
                let rows = rows.map_or(0, |table| pieces::rows(self.load, table));
                let high = i64::try_from(rows).unwrap_or(i64::MAX).max(1);
                Generator::Integer(Integers::Uniform { low: 1, high })
            }
            Values::Array { least, most, values, null } => {
                let of = self.type_of_elements(found)?;
                let element = Box::new(nullable(self.generator_of(values, &of)?, *null));
                let (least, most, oid) = (*least, *most, of.oid);
                Generator::Varying(Varying::Array { least, most, oid, element })
            }
            Values::First { place, first, rest } => {
                let mut one = |values: &Option<Box<Values>>| match values {
                    Some(values) => self.generator_of(values, found).map(Box::new).map(Some),
                    None => Ok(None),
                };
                let (first, rest) = (one(first)?, one(rest)?);
                Generator::Varying(Varying::First { place: place.clone(), first, rest })
            }
        })
    }

    /// Returns the time `text`, in the units of its type: days or microseconds since 2000-01-01.
    fn time(&mut self, text: &str, found: &Type) -> Result<i64, DatasetError> {
        let bytes = match ColumnKind::from_oid(found.oid) {
            ColumnKind::Date | ColumnKind::Timestamp => self.sent(text, found)?,
            _ => return Err(self.wrong(format!("timestamp does not fill {}", found.spelled))),
        };
        match *bytes {
            [a, b, c, d] => Ok(i32::from_be_bytes([a, b, c, d]).into()),
            _ => <[u8; 8]>::try_from(bytes)
                .map(i64::from_be_bytes)
                .map_err(|_| self.wrong("the server's timestamps do not have eight bytes")),
        }
    }

    /// Asks the server for the type of an array's elements.
    fn type_of_elements(&mut self, found: &Type) -> Result<Type, DatasetError> {
        const ASKED: &str = "SELECT e.oid::int8, pg_catalog.format_type(e.oid, NULL), \
            e.typsend::text FROM pg_catalog.pg_type t JOIN pg_catalog.pg_type e \
            ON e.oid = t.typelem WHERE t.oid = $1::int8::oid AND t.typcategory = 'A'";
        let row = self
            .client
            .query_opt(ASKED, &[&i64::from(found.oid)])
            .map_err(|e| self.wrong(error_text(&e)))?
            .ok_or_else(|| self.wrong(format!("array does not fill {}", found.spelled)))?;
        let oid: i64 = row.get(0);
        let oid = u32::try_from(oid).unwrap_or(0);
        Ok(Type { oid, spelled: row.get(1), send: row.get(2), fills_itself: false })
    }

    /// Returns the binary form of the value `text`. That of a text type is the text itself.
    fn binary(&mut self, text: &str, found: &Type) -> Result<Vec<u8>, DatasetError> {
        match ColumnKind::from_oid(found.oid) {
            ColumnKind::Text => Ok(text.as_bytes().to_vec()),
            _ => self.sent(text, found),
        }
    }

    /// Returns the binary form of the value `text`, as the server sends it.
    fn sent(
        &mut self,
        text: &str,
        Type { spelled, send, .. }: &Type,
    ) -> Result<Vec<u8>, DatasetError> {
        let asked = format!("SELECT {send}(($1::text)::{spelled})");
        let row = self
            .client
            .query_one(&asked, &[&text])
            .map_err(|e| self.wrong(format!("`{text}` is no {spelled}: {}", error_text(&e))))?;
        Ok(row.get(0))
    }
}

/// Returns `generator` with nulls in a `share` of the values.
fn nullable(generator: Generator, share: f64) -> Generator {
    if share == 0.0 {
        return generator;
    }
    let other = Box::new(generator);
    Generator::Varying(Varying::Nullable { share, other })
}

fn wrong(table: &TableSpec, column: &str, found: impl Into<String>) -> DatasetError {
    DatasetError::Column {
        table: table.name.clone(),
        column: column.to_owned(),
        found: found.into(),
    }
}

/// Returns the generator of a filler of `bytes` bytes.
fn filler(bytes: u32, oid: u32, loading: &Loading) -> Generator {
    let blanks = u64::from(loading.filler_compress_percentage.min(100));
    let drawn = u32::try_from(u64::from(bytes) * (100 - blanks) / 100).unwrap_or(bytes);
    Generator::Filler { bytes: if oid == BPCHAR { drawn } else { bytes }, drawn }
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
        let id = [("id", Generator::ROW_NUMBER, ColumnKind::Int4)];
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
            "ALTER TABLE child ALTER zero SET DEFAULT '0', ALTER filler \
             SET DEFAULT pg_catalog.repeat(' ', 0)"
        );
        assert_eq!(
            columns.drop_defaults("child").unwrap(),
            "ALTER TABLE child ALTER zero DROP DEFAULT, ALTER filler DROP DEFAULT"
        );
        columns.alike.clear();
        assert_eq!(columns.set_defaults("child"), None);
    }
}
