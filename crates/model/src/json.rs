//! JSON documents: every document that pgdyno prints says by its first key, `schema`, what it is.
//!
//! A schema is a name and a version, such as `pgdyno.run/1`. Adding keys keeps the version. The
//! version rises when a key goes away or changes its meaning. A list is an array of documents.
//! `docs/json.md` lists every schema.
//!
//! ```
//! use pgdyno_model::json::{Document, json};
//!
//! #[derive(serde::Serialize)]
//! struct Reading {
//!     value: f64,
//! }
//!
//! impl Document for Reading {
//!     const SCHEMA: &'static str = "pgdyno.reading/1";
//! }
//!
//! assert!(json(&Reading { value: 0.5 })?.contains("\"schema\": \"pgdyno.reading/1\""));
//! # Ok::<(), serde_json::Error>(())
//! ```

use std::fmt::Write as _;

use serde::Serialize;

use pgdyno_text::printable::{escape_text, is_hazard};

/// A JSON object with a schema of its own. It serializes as a map without a key `schema`.
pub trait Document: Serialize {
    /// The schema's name and version.
    const SCHEMA: &'static str;
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

/// Writes `document` as one indented JSON object.
///
/// # Errors
/// The document's serializer fails.
pub fn json<T: Document>(document: &T) -> Result<String, serde_json::Error> {
    serde_json::to_string_pretty(&Versioned::new(document)).map(escape)
}

/// Writes `document` as one JSON object without indentation, for programs.
///
/// # Errors
/// The document's serializer fails.
pub fn compact<T: Document>(document: &T) -> Result<String, serde_json::Error> {
    serde_json::to_string(&Versioned::new(document))
}

/// Writes `documents` as one indented JSON array.
///
/// # Errors
/// A document's serializer fails.
pub fn json_list<T: Document>(documents: &[T]) -> Result<String, serde_json::Error> {
    serde_json::to_string_pretty(&documents.iter().map(Versioned::new).collect::<Vec<_>>())
        .map(escape)
}

/// Writes a record as JSON on one line.
///
/// # Errors
/// The record's serializer fails.
pub fn json_line<T: Serialize>(record: &T) -> Result<String, serde_json::Error> {
    serde_json::to_string(record).map(escape)
}

/// Replaces characters that a terminal would obey by JSON escapes; a reader gets them back.
///
/// Such characters stand in strings only, and serde escapes control characters below a blank.
fn escape(json: String) -> String {
    if !json.chars().any(is_hazard) {
        return json;
    }
    let mut out = String::with_capacity(json.len() + 16);
    for c in json.chars() {
        if is_hazard(c) {
            // Every hazard lies in the basic multilingual plane, so four digits suffice.
            let _ = write!(out, "\\u{:04x}", u32::from(c));
        } else {
            out.push(c);
        }
    }
    out
}

/// Escapes JSON so that an HTML parser reads it as text only, and a page that shows its texts holds
/// nothing that is obeyed.
pub fn for_browser(json: &str) -> String {
    let is_escaped = |c: char| matches!(c, '<' | '>' | '&') || is_hazard(c);
    let mut out = String::with_capacity(json.len() + json.len() / 16);
    let mut rest = json;
    while let Some(at) = rest.find(is_escaped) {
        let (plain, from) = rest.split_at(at);
        out.push_str(plain);
        let mut chars = from.chars();
        match chars.next() {
            Some('<') => out.push_str("\\u003c"),
            Some('>') => out.push_str("\\u003e"),
            Some('&') => out.push_str("\\u0026"),
            // The page shows it: written out as it is on a terminal.
            Some(c) => out.push_str(&escape_text(&c.to_string()).replace('\\', "\\\\")),
            None => {}
        }
        rest = chars.as_str();
    }
    out.push_str(rest);
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
    fn data_end_no_script_and_hold_nothing_that_is_obeyed() {
        let json = serde_json::to_string("a</script><!--\u{202e}\u{9b}\u{1b}\u{2028}&é").unwrap();
        let escaped = for_browser(&json);
        assert!(!escaped.contains('<') && !escaped.chars().any(is_hazard), "{escaped}");
        let read: String = serde_json::from_str(&escaped).unwrap();
        assert_eq!(read, "a</script><!--\\u{202e}\\x9b\u{1b}\\u{2028}&é");
    }
}
