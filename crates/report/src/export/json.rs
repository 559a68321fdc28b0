//! One JSON document: the analysed run, and the tables as arrays of objects.

use std::fmt::Write as _;

use serde_json::{Map, Value as Json};
use strum::VariantArray as _;

use super::table::{TableName, Value};
use super::{Export, ExportError};

/// Schema of the document.
const SCHEMA: &str = "pgdyno.export/1";

impl Export<'_> {
    /// Renders the run as one JSON document.
    pub fn json(&self) -> Result<String, ExportError> {
        let columns: Vec<_> = TableName::VARIANTS.iter().map(|t| self.columns(*t)).collect();
        let mut tables = vec![String::new(); columns.len()];
        self.rows(&mut |table, row| {
            let cells = columns[table as usize].iter().zip(row);
            let object: Map<String, Json> =
                cells.map(|(column, value)| (column.name.clone(), cell(value))).collect();
            let text = &mut tables[table as usize];
            let separator = if text.is_empty() { "\n" } else { ",\n" };
            let _ = write!(text, "{separator}{}", Json::Object(object));
            Ok(())
        })?;
        let redacted = self.redaction.is_some();
        let run = self.run_json()?;
        let mut out = format!("{{\"schema\":\"{SCHEMA}\",\"redacted\":{redacted},\n\"run\":{run}");
        for (table, rows) in TableName::VARIANTS.iter().zip(&tables) {
            let _ = write!(out, ",\n\"{table}\":[{rows}]");
        }
        out.push_str("}\n");
        Ok(out)
    }

    /// Renders the run as `show --json` does, without what the tables hold.
    fn run_json(&self) -> Result<Json, ExportError> {
        let mut run = serde_json::to_value(&self.report)?;
        if let Some(trials) = run["trials"].as_array_mut() {
            for trial in trials.iter_mut().filter_map(Json::as_object_mut) {
                trial.remove("series");
                trial.remove("telemetry");
            }
        }
        Ok(match &self.redaction {
            None => run,
            Some(redaction) => redaction.json(&run),
        })
    }
}

fn cell(value: &Value) -> Json {
    match value {
        Value::Missing => Json::Null,
        Value::Integer(number) => (*number).into(),
        Value::Real(number) => (*number).into(),
        Value::Text(text) => text.as_str().into(),
    }
}
