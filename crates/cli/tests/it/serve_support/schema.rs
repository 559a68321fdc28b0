//! The server's answers beside the JSON Schema of the API.

use std::cell::RefCell;
use std::sync::LazyLock;

use boon::{Compiler, Schemas};
use serde_json::Value;

use super::Answer;

static SCHEMA: LazyLock<Value> = LazyLock::new(|| {
    serde_json::from_str(include_str!("../../../../web/schema/api.json")).unwrap()
});

thread_local! {
    /// Parts of the schema that were asked for are compiled once.
    static VALIDATOR: RefCell<(Compiler, Schemas)> = RefCell::new({
        let mut compiler = Compiler::new();
        compiler.add_resource("api.json", SCHEMA.clone()).unwrap();
        (compiler, Schemas::new())
    });
}

/// Fails if an answer of the API is not as the schema describes it. Answers to requests that no
/// client of the API sends are left alone: those to other paths, and plain texts of the HTTP
/// library.
pub(super) fn assert_described(target: &str, answer: &Answer) {
    let path = target.split('?').next().unwrap();
    if !path.starts_with("/api/") || !answer.head.contains("content-type: application/json") {
        return;
    }
    let document = serde_json::from_str(&answer.body).unwrap();
    if path == "/api/schema" {
        assert_eq!(document, *SCHEMA);
    } else if answer.status >= 400 {
        assert_valid(&["error"], &document);
    } else {
        let key = described(path).unwrap_or_else(|| panic!("{path} is not in the schema"));
        assert_valid(&[key], &document);
    }
}

/// Fails if an event of a run is not as the schema describes it.
pub(super) fn assert_event_described(name: &str, data: &Value) {
    assert_valid(&["/api/live/{run}", name], data);
}

/// Returns the schema's key for `path`: `{id}` and its like stand for one segment.
fn described(path: &str) -> Option<&'static str> {
    let keys = SCHEMA["properties"].as_object().unwrap().keys();
    keys.map(String::as_str).find(|key| {
        let (mut of_key, mut of_path) = (key.split('/'), path.split('/'));
        let alike =
            of_key.by_ref().zip(of_path.by_ref()).all(|(a, b)| a == b || a.starts_with('{'));
        alike && of_key.next().is_none() && of_path.next().is_none()
    })
}

fn assert_valid(properties: &[&str], document: &Value) {
    let pointer: String = properties
        .iter()
        .map(|name| format!("/properties/{}", name.replace('~', "~0").replace('/', "~1")))
        .collect();
    let place = format!("api.json#{}", pointer.replace('{', "%7B").replace('}', "%7D"));
    VALIDATOR.with_borrow_mut(|(compiler, schemas)| {
        let index = compiler.compile(&place, schemas).unwrap_or_else(|e| panic!("{e:#}"));
        schemas.validate(document, index).unwrap_or_else(|e| panic!("{properties:?}: {e:#}"));
    });
}
