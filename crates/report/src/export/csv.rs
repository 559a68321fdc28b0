//! Tables as CSV (RFC 4180): a header, commas, quotes where needed, lines that end with LF. A
//! missing value is empty, an empty text is `""`.

use std::io::Write;

use super::ExportError;
use super::table::{Column, TableSink, Value};

/// A table in CSV.
pub(super) struct Csv<W: Write>(W);

impl<W: Write> Csv<W> {
    /// Writes the header of `columns`.
    pub(super) fn new(out: W, columns: &[Column]) -> Result<Self, ExportError> {
        let mut csv = Self(out);
        csv.line(columns.iter().map(|column| quoted(&column.name)))?;
        Ok(csv)
    }

    fn line(&mut self, cells: impl Iterator<Item = String>) -> Result<(), ExportError> {
        let line = cells.collect::<Vec<_>>().join(",");
        writeln!(self.0, "{line}").map_err(ExportError::Table)
    }
}

impl<W: Write> TableSink for Csv<W> {
    fn row(&mut self, row: &[Value]) -> Result<(), ExportError> {
        self.line(row.iter().map(|value| match value {
            Value::Missing => String::new(),
            Value::Integer(number) => number.to_string(),
            Value::Real(number) => number.to_string(),
            Value::Text(text) => quoted(text),
        }))
    }

    fn finish(mut self: Box<Self>) -> Result<(), ExportError> {
        self.0.flush().map_err(ExportError::Table)
    }
}

fn quoted(text: &str) -> String {
    if text.is_empty() || text.contains(['"', ',', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::super::table::Kind;
    use super::*;

    #[test]
    fn cells_with_commas_quotes_and_newlines_are_quoted_and_missing_ones_empty() {
        let mut out = Vec::new();
        let columns = ["a", "b,c"].map(|name| Column { name: name.to_owned(), kind: Kind::Text });
        let mut csv = Csv::new(&mut out, &columns).unwrap();
        csv.row(&[Value::Text("say \"x\"\nthen".into()), Value::Missing]).unwrap();
        csv.row(&[Value::Text(String::new()), Value::Real(0.5)]).unwrap();
        Box::new(csv).finish().unwrap();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "a,\"b,c\"\n\"say \"\"x\"\"\nthen\",\n\"\",0.5\n"
        );
    }
}
