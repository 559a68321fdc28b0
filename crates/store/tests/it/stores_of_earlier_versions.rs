//! Stores that earlier versions made open in this one, and show the figures that they showed.

use std::io::Read;
use std::path::Path;

use pgdyno_model::json::json;
use pgdyno_report::RunReport;
use pgdyno_store::Store;
use serde_json::{Map, Value};

fn fixture(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/store").join(name);
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).unwrap();
    lzma_rust2::XzReader::new(file, false).read_to_end(&mut bytes).unwrap();
    bytes
}

/// `value` with every sentence blanked: wording may change, keys and figures may not.
fn without_sentences(value: Value) -> Value {
    match value {
        Value::String(text) if text.contains(' ') => Value::String("a sentence".into()),
        Value::Array(all) => all.into_iter().map(without_sentences).collect(),
        Value::Object(map) => {
            map.into_iter().map(|(key, value)| (key, without_sentences(value))).collect()
        }
        other => other,
    }
}

/// Keys that later versions added, within objects that 0.1.0 had.
const LATER_KEYS: [&str; 18] = [
    "pauses",
    "stddev",
    "groups",
    "device_type",
    "errors_logged",
    "report",
    "filesystems",
    "generators",
    "crashed",
    "not_crashed",
    "beneath",
    "attributes",
    "shown",
    "may_be_best",
    "noise_prior",
    "conditioning",
    "failure_kind",
    "stages",
];

/// Figures of a ratio that are judgements: later versions judge the same measurements by other
/// methods.
const JUDGED_KEYS: [&str; 7] =
    ["ci95", "detectable", "method", "p", "p_together", "told_apart", "value"];

/// Whether `key` of a report's `object` is a judgement.
fn is_judged(object: &Map<String, Value>, key: &str) -> bool {
    let is_ratio = object.contains_key("p_together")
        || (object.contains_key("percentile") && object.contains_key("method"));
    key == "holm" || (is_ratio && JUDGED_KEYS.contains(&key))
}

/// `now` without what later versions added, and with the judgements of `then`: `LATER_KEYS`, and
/// charts of telemetry whose group `then` has not.
fn without_additions(now: &Value, then: &Value) -> Value {
    match (now, then) {
        (Value::Object(now), Value::Object(then)) => {
            let inside = |(key, value): (&String, &Value)| {
                let then_value = then.get(key).unwrap_or(&Value::Null);
                let value = if is_judged(then, key) {
                    then_value.clone()
                } else {
                    without_additions(value, then_value)
                };
                (key.clone(), value)
            };
            let is_known = |(key, _): &(&String, &Value)| {
                then.contains_key(*key) || !LATER_KEYS.contains(&key.as_str())
            };
            now.iter().filter(is_known).map(inside).collect()
        }
        (Value::Array(now), Value::Array(then)) if now.len() == then.len() => {
            now.iter().zip(then).map(|(now, then)| without_additions(now, then)).collect()
        }
        (Value::Array(now), Value::Array(then))
            if then.iter().any(|t| t.get("group").is_some()) =>
        {
            let is_known = |chart: &&Value| then.iter().any(|t| t["group"] == chart["group"]);
            now.iter().filter(is_known).cloned().collect()
        }
        _ => now.clone(),
    }
}

#[test]
fn a_store_of_0_1_0_shows_the_keys_and_figures_that_it_showed_then() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.sqlite3");
    std::fs::write(&path, fixture("0.1.0.sqlite3.xz")).unwrap();
    let store = Store::open_existing(&path).unwrap();
    let report = RunReport::read(&store, &store.runs().unwrap()[0].id).unwrap();
    let now: Value = serde_json::from_str(&json(&report).unwrap()).unwrap();
    let then: Value = serde_json::from_slice(&fixture("0.1.0.json.xz")).unwrap();
    let (Value::Object(now), Value::Object(then)) =
        (without_sentences(now), without_sentences(then))
    else {
        panic!("a report is an object");
    };
    // What is explained are the differences that this version finds significant: those of then are
    // a part of them.
    assert!(then["why"].as_array().is_some_and(Vec::is_empty) && now["why"].is_array());
    // Later versions say more.
    let longer = ["answer", "notes"];
    for key in longer {
        let sentences = |report: &Map<String, Value>| report[key].as_array().map(Vec::len);
        assert!(sentences(&then).is_some() && sentences(&now) >= sentences(&then), "{key}");
    }
    let is_equal = |key: &str| key != "why" && !longer.contains(&key);
    for (key, then) in then.into_iter().filter(|(key, _)| is_equal(key)) {
        let now = now.get(&key).map(|now| without_additions(now, &then));
        assert!(now.as_ref() == Some(&then), "{key} is not what it was");
    }
    let verification = store.verify(&[]).unwrap();
    assert!(verification.sound && verification.records[0].rows > 0, "{verification:?}");
    let seconds: Vec<_> = store
        .trials(&report.view.run.id)
        .unwrap()
        .into_iter()
        .flat_map(|trial| trial.measurement.unwrap().series)
        .collect();
    assert!(!seconds.is_empty() && seconds.iter().all(|second| second.latencies.is_none()));
}
