//! The JSON document of a page, schema `pgdyno.page/1`.

use serde::Serialize;
use serde_json::{Map, Value};

use super::environment::{Difference, Environment};
use super::steadiness::Row;
use crate::headline::{Caution, Headline};
use pgdyno_analysis::PairsView;

/// Schema of the document.
pub(crate) const SCHEMA: &str = "pgdyno.page/1";

/// Kind of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub(super) enum Kind {
    /// A run.
    Run,
    /// Crash tests.
    Crash,
    /// A probe.
    Probe,
    /// Two runs, or two treatments.
    Compare,
    /// A run beside imported figures.
    Beside,
    /// Imported figures.
    Import,
}

/// The data of a page.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct PageDocument {
    #[cfg_attr(feature = "schema", schemars(extend("const" = SCHEMA)))]
    schema: &'static str,
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub(super) kind: Kind,
    pub(super) pgdyno_version: &'static str,
    pub(super) title: String,
    pub(super) headline: Headline,
    pub(super) cautions: Vec<Caution>,
    pub(super) view: Value,
    pub(super) environment: Vec<Environment>,
    pub(super) pairs: Option<PairsView>,
    pub(super) steadiness: Option<Vec<Row>>,
    pub(super) differences: Option<Vec<Difference>>,
}

impl PageDocument {
    /// Creates the document of a page that shows `view`.
    pub(super) fn new(kind: Kind, title: String, headline: Headline, view: Value) -> Self {
        Self {
            schema: SCHEMA,
            kind,
            pgdyno_version: env!("CARGO_PKG_VERSION"),
            title,
            headline,
            cautions: Vec::new(),
            view: with_seeds_as_text(view),
            environment: Vec::new(),
            pairs: None,
            steadiness: None,
            differences: None,
        }
    }
}

/// Turns seeds into texts: a browser keeps 53 bits of a number.
fn with_seeds_as_text(value: Value) -> Value {
    match value {
        Value::Object(map) => {
            let text = |(key, value): (String, Value)| match value {
                Value::Number(number) if key == "seed" || key.ends_with("_seed") => {
                    (key, Value::String(number.to_string()))
                }
                value => (key, with_seeds_as_text(value)),
            };
            Value::Object(map.into_iter().map(text).collect::<Map<_, _>>())
        }
        Value::Array(all) => Value::Array(all.into_iter().map(with_seeds_as_text).collect()),
        value => value,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn seeds_keep_all_their_digits() {
        let value = json!({ "seed": u64::MAX, "plan": [{ "data_seed": 7, "clients": 8 }] });
        assert_eq!(
            with_seeds_as_text(value),
            json!({ "seed": "18446744073709551615", "plan": [{ "data_seed": "7", "clients": 8 }] })
        );
    }
}
