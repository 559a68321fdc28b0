//! JSON Schemas of values that pages write otherwise than records do: a seed as text, and the
//! command of a round.

use schemars::{JsonSchema, Schema};

/// A seed in a document: a number, and in a page a text, since a browser keeps 53 bits of a number.
#[derive(JsonSchema)]
#[schemars(untagged)]
#[allow(dead_code, reason = "only its schema is used")]
pub enum Seed {
    /// The number.
    Number(u64),
    /// Decimal digits, in a page.
    Text(String),
}

/// Adds to a round the command that repeats it, which pages have.
pub(crate) fn add_command(round: &mut Schema) {
    if let Some(properties) = round.get_mut("properties") {
        properties["command"] = serde_json::json!({
            "description": "Command that repeats the round. Pages alone have it.",
            "type": ["string", "null"],
        });
    }
}
