//! The JSON Schema of the API, made from the types of its documents.
//!
//! It is made in tests only, and kept in `schema/api.json`: [`SCHEMA`]. It describes an object
//! whose keys are the API's paths: each value is what its path answers. The front end's types come
//! from it.

#![allow(clippy::unwrap_used)] // helpers of tests fail as tests do

use std::collections::BTreeSet;

use pgdyno_report::live::LiveRecord;
use pgdyno_report::schema::{comparison, page, show_document, trial, versioned};
use schemars::generate::SchemaSettings;
use schemars::transform::transform_subschemas;
use schemars::{Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

use crate::api::SCHEMA;
use crate::api::documents::{History, Info, LiveRuns, NoteHistory, Runs, StopAsked};
use crate::live::LiveDocument;
use crate::response::ApiError;

/// Returns the schema as it is committed. Draft 7 is what generators of types understand.
fn generated() -> String {
    let mut generator = SchemaSettings::draft07().for_serialize().into_generator();
    let answers = answers(&mut generator);
    let keys: Vec<&String> = answers.keys().collect();
    let schema = json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Api",
        "description": "Answers of `pgdyno serve` by path.",
        "type": "object",
        "required": keys,
        "properties": answers,
        "definitions": generator.definitions(),
    });
    let mut schema = Schema::try_from(schema).unwrap();
    for transform in generator.transforms_mut() {
        transform.transform(&mut schema);
    }
    in_plain_words(&mut schema);
    serde_json::to_string_pretty(&schema).unwrap() + "\n"
}

/// Describes the answer of each path, and under `error` that of a request that failed.
fn answers(generator: &mut SchemaGenerator) -> Map<String, Value> {
    let events = json!({
        "description": "Data of each event, by the event's name.",
        "type": "object",
        "properties": {
            "state": versioned::<LiveDocument<'_>>(generator),
            "record": generator.subschema_for::<LiveRecord>(),
            "died": { "type": "object" },
        },
    });
    let answers = [
        ("/api/info", versioned::<Info>(generator)),
        ("/api/runs", versioned::<Runs>(generator)),
        ("/api/page/{id}", page(generator)),
        ("/api/page/{id}/trials/{index}", trial(generator)),
        ("/api/show/{id}", show_document(generator)),
        ("/api/compare", comparison(generator)),
        ("/api/history", versioned::<History>(generator)),
        ("/api/notes/{id}", versioned::<NoteHistory>(generator)),
        ("/api/live", versioned::<LiveRuns>(generator)),
        ("/api/live/{run}", events.try_into().unwrap()),
        ("/api/live/{run}/stop", versioned::<StopAsked>(generator)),
        ("error", generator.subschema_for::<ApiError>()),
    ];
    answers.into_iter().map(|(path, schema)| (path.to_owned(), schema.to_value())).collect()
}

/// Puts descriptions on one line without links between Rust's items, and removes the sizes of
/// Rust's numbers.
fn in_plain_words(schema: &mut Schema) {
    transform_subschemas(&mut in_plain_words, schema);
    schema.remove("format");
    if let Some(Value::String(text)) = schema.get_mut("description") {
        let mut parts = text.split("`](");
        let mut plain = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            plain.push('`');
            plain.push_str(part.split_once(')').map_or(part, |(_, rest)| rest));
        }
        *text = plain.replace("[`", "`").replace("`]", "`").replace('\n', " ");
    }
}

#[test]
fn the_committed_schema_is_the_one_that_the_types_give() {
    let generated = generated();
    if std::env::var_os("PGDYNO_SCHEMA_WRITE").is_some() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/schema/api.json");
        std::fs::write(path, &generated).unwrap();
        return;
    }
    // Not the two texts: they are long, and `git diff` shows more.
    assert!(SCHEMA == generated, "the schema is of other types: `just schema` writes it anew");
}

#[test]
fn every_path_of_the_docs_is_described() {
    let docs = include_str!("../../../docs/serve.md");
    let paths = docs.lines().filter_map(|line| line.strip_prefix("| `")?.split(['`', '?']).next());
    let documented: BTreeSet<String> = paths
        .filter_map(|path| path.strip_prefix("GET ").or_else(|| path.strip_prefix("POST ")))
        .map(|path| path.replace("ID", "{id}").replace("RUN", "{run}").replace("INDEX", "{index}"))
        .filter(|path| path != "/api/schema")
        .collect();
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    let described = schema["properties"].as_object().unwrap().keys().cloned();
    let described: BTreeSet<String> = described.filter(|path| path != "error").collect();
    assert_eq!(described, documented);
}
