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

use crate::printable::is_hazard;

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

/// Writes `documents` as one indented JSON array.
///
/// # Errors
/// A document's serializer fails.
pub fn json_list<T: Document>(documents: &[T]) -> Result<String, serde_json::Error> {
    serde_json::to_string_pretty(&documents.iter().map(Versioned::new).collect::<Vec<_>>())
        .map(escape)
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
