//! JSON objects: their members are described as columns are.

use pgdyno_engine::copy::{Generator, JsonMember, JsonValue, Varying};

use super::{ColumnError, ColumnTable, TableContext};
use crate::column_spec::{ColumnSpec, Values};

/// Returns the object of `members`.
pub(super) fn object(
    members: Vec<ColumnTable>,
    context: &TableContext<'_>,
) -> Result<Vec<JsonMember>, ColumnError> {
    members.into_iter().map(|table| member(table.into_spec(context)?)).collect()
}

fn member(column: ColumnSpec) -> Result<JsonMember, ColumnError> {
    let ColumnSpec { name, values, null } = column;
    let value = match values {
        Values::RowNumber => {
            let Generator::Integer(row) = Generator::ROW_NUMBER else { return Err(cannot(name)) };
            JsonValue::Integer(row)
        }
        Values::Constant(text) => JsonValue::Choice(vec![(1, quoted(&text))]),
        Values::Choice(values) => {
            let quote = |(weight, text): (u32, String)| (weight, quoted(&text));
            JsonValue::Choice(values.into_iter().map(quote).collect())
        }
        Values::Generated(generator) => match generator {
            Generator::Integer(integers) => JsonValue::Integer(integers),
            Generator::Decimal { low, high, digits } => JsonValue::Decimal { low, high, digits },
            Generator::Varying(Varying::Letters { least, most, within: None }) => {
                JsonValue::Letters { least, most }
            }
            Generator::Varying(Varying::Json(members)) => JsonValue::Object(members),
            _ => return Err(cannot(name)),
        },
        _ => return Err(cannot(name)),
    };
    Ok(JsonMember { name: quoted(&name), value, null })
}

fn cannot(name: String) -> ColumnError {
    ColumnError::Json { name }
}

/// Returns `text` as JSON spells it.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
