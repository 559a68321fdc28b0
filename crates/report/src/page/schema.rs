//! JSON Schemas of the documents that pages and `show --json` hold. Only tests ask for them.

use pgdyno_audit::ImportedRun;
use pgdyno_model::ProbeRecord;
use pgdyno_model::json::Document;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use super::detail::TrialDetail;
use super::document::{Kind, PageDocument};
use crate::{CompareReport, CrashView, RunReport, SideBySideReport};

/// Describes a document with its key `schema`.
pub fn versioned<T: Document + JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    let document = generator.subschema_for::<T>();
    let key = json_schema!({
        "type": "object",
        "properties": { "schema": { "const": T::SCHEMA } },
        "required": ["schema"],
    });
    json_schema!({ "allOf": [document, key] })
}

/// Describes what `pgdyno show --json` prints.
pub fn show_document(generator: &mut SchemaGenerator) -> Schema {
    let kinds = [
        versioned::<RunReport>(generator),
        versioned::<CrashView>(generator),
        versioned::<ProbeRecord>(generator),
        versioned::<ImportedRun>(generator),
    ];
    json_schema!({ "anyOf": kinds })
}

/// Describes the document of the page of one result.
pub fn page(generator: &mut SchemaGenerator) -> Schema {
    let kinds = [
        page_of::<RunReport>("RunPage", Kind::Run, generator),
        page_of::<CrashView>("CrashPage", Kind::Crash, generator),
        page_of::<ProbeRecord>("ProbePage", Kind::Probe, generator),
        page_of::<ImportedRun>("ImportPage", Kind::Import, generator),
    ];
    json_schema!({ "anyOf": kinds })
}

/// Describes the document of the page of a comparison.
pub fn comparison(generator: &mut SchemaGenerator) -> Schema {
    let kinds = [
        page_of::<CompareReport>("ComparePage", Kind::Compare, generator),
        page_of::<SideBySideReport<'_>>("BesidePage", Kind::Beside, generator),
    ];
    json_schema!({ "anyOf": kinds })
}

/// Describes the seconds and telemetry of a trial.
pub fn trial(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<TrialDetail>()
}

/// Describes a page of `kind` with the view `T`, and names it `name`.
fn page_of<T: JsonSchema>(name: &str, kind: Kind, generator: &mut SchemaGenerator) -> Schema {
    let mut page = PageDocument::json_schema(generator);
    if let Some(properties) = page.get_mut("properties") {
        properties["kind"] = serde_json::json!({ "const": kind });
        properties["view"] = generator.subschema_for::<T>().to_value();
    }
    generator.definitions_mut().insert(name.to_owned(), page.to_value());
    Schema::new_ref(format!("#/definitions/{name}"))
}
