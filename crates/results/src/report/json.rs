//! JSON as pgdyno prints it: every document says by its first key, `schema`, what it is.
//!
//! A schema is a name and a version, such as `pgdyno.run/1`. Keys are added without a new version;
//! the version rises when a key goes away or changes its meaning. Lists stay arrays, as they were
//! before there were schemas: each of their elements is a document. docs/json.md has all names.

use std::fmt::Write as _;

use pgdyno_audit::ImportedRun;
use pgdyno_model::printable::is_hazard;
use serde::Serialize;

use super::audit::AuditView;
use super::{CrashView, ProbeView};
use crate::RunView;
use crate::analysis::compare_runs::CompareView;
use crate::analysis::side_by_side::SideBySideView;
use crate::store::{CrashSummary, ImportSummary, ProbeSummary, RunSummary, Verification};

/// What is printed as a JSON object of its own. It serializes as a map, without a key `schema`.
pub trait Document: Serialize {
    /// The schema's name and version.
    const SCHEMA: &'static str;
}

macro_rules! documents {
    ($($what:ty => $schema:literal),* $(,)?) => {
        $(impl Document for $what {
            const SCHEMA: &'static str = $schema;
        })*

        /// The schemas of this crate's documents.
        #[cfg(test)]
        const SCHEMAS: &[&str] = &[$($schema),*];
    };
}

documents! {
    RunView => "pgdyno.run/1",
    CompareView => "pgdyno.compare/1",
    SideBySideView => "pgdyno.beside/1",
    ProbeView<'_> => "pgdyno.probe/1",
    CrashView => "pgdyno.crash/1",
    ImportedRun => "pgdyno.import/1",
    AuditView<'_> => "pgdyno.audit/1",
    RunSummary => "pgdyno.listed-run/1",
    ProbeSummary => "pgdyno.listed-probe/1",
    CrashSummary => "pgdyno.listed-crash/1",
    ImportSummary => "pgdyno.listed-import/1",
    Verification => "pgdyno.verify/1",
}

/// A document under its schema.
#[derive(Serialize)]
struct Versioned<'a, T> {
    schema: &'static str,
    #[serde(flatten)]
    document: &'a T,
}

impl<'a, T: Document> Versioned<'a, T> {
    fn new(document: &'a T) -> Self {
        Self { schema: T::SCHEMA, document }
    }
}

/// `document` as an object, on as many lines as it takes.
///
/// # Errors
/// It cannot be put into JSON: a fault of pgdyno's.
pub fn json<T: Document>(document: &T) -> Result<String, serde_json::Error> {
    serde_json::to_string_pretty(&Versioned::new(document)).map(escape)
}

/// `documents` as an array of objects.
///
/// # Errors
/// As [`json`].
pub fn json_list<T: Document>(documents: &[T]) -> Result<String, serde_json::Error> {
    serde_json::to_string_pretty(&documents.iter().map(Versioned::new).collect::<Vec<_>>())
        .map(escape)
}

/// `json` with what a terminal would obey as JSON's own escapes: strings read back as they are.
/// Outside of strings there is none of it, and serde escapes what is below a blank.
fn escape(json: String) -> String {
    if !json.chars().any(is_hazard) {
        return json;
    }
    let mut out = String::with_capacity(json.len() + 16);
    for c in json.chars() {
        if is_hazard(c) {
            // None of them is beyond the first 65,536 characters.
            let _ = write!(out, "\\u{:04x}", u32::from(c));
        } else {
            out.push(c);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Serialize)]
    struct Reading {
        value: Option<f64>,
    }

    impl Document for Reading {
        const SCHEMA: &'static str = "pgdyno.reading/1";
    }

    #[test]
    fn the_schema_comes_before_what_was_there_and_lists_stay_lists() {
        let one = json(&Reading { value: None }).unwrap();
        assert_eq!(one, "{\n  \"schema\": \"pgdyno.reading/1\",\n  \"value\": null\n}");
        let listed: serde_json::Value =
            serde_json::from_str(&json_list(&[Reading { value: Some(0.5) }]).unwrap()).unwrap();
        assert_eq!(listed, serde_json::json!([{ "schema": "pgdyno.reading/1", "value": 0.5 }]));
        assert_eq!(json_list::<Reading>(&[]).unwrap(), "[]");
    }

    #[derive(Serialize)]
    struct Named {
        name: &'static str,
    }

    impl Document for Named {
        const SCHEMA: &'static str = "pgdyno.named/1";
    }

    #[test]
    fn what_a_terminal_would_obey_is_escaped_and_reads_back() {
        let name = "a\u{1b}[2J\u{7f}\u{9b}\u{202e}\u{2028}é";
        let text = json(&Named { name }).unwrap();
        assert!(!text.chars().any(is_hazard), "{text}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap()["name"], name);
    }

    #[test]
    fn schemas_are_told_apart_and_the_docs_have_them() {
        let docs =
            std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/json.md"))
                .unwrap();
        for (n, schema) in SCHEMAS.iter().enumerate() {
            assert!(!SCHEMAS[..n].contains(schema), "{schema} twice");
            assert!(docs.contains(&format!("| `{schema}` |")), "docs/json.md lacks {schema}");
        }
    }
}
