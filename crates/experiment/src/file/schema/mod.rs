//! The JSON Schema of experiment files, made from the types that read them.
//!
//! It is made in tests only, and kept in `schema/experiment.json`: [`super::SCHEMA`]. What the
//! parser reads by hand is described by hand here; `tests.rs` holds both against each other.

use std::borrow::Cow;

use pgdyno_model::Fault;
use pgdyno_model::experiment::{OnError, Protocol, ReconnectLost};
use pgdyno_model::level::{Key, LevelValue};
use pgdyno_model::raid::WritePolicy;
use pgdyno_model::units::Span;
use pgdyno_storage::filesystem::FILESYSTEMS;
use schemars::generate::SchemaSettings;
use schemars::transform::transform_subschemas;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value, json};

use super::factors::Factors;
use super::raw::File;
use super::storage::ByteSize;

#[cfg(test)]
mod tests;

/// The schema as it is printed. Draft 7 is what editors of TOML understand.
fn generated() -> String {
    let mut settings = SchemaSettings::draft07();
    settings.inline_subschemas = true;
    let settings = settings.with_transform(without_null).with_transform(with_default_in_words);
    let mut schema = settings.into_generator().into_root_schema_for::<File>();
    schema.insert("title".into(), "Experiment of pgdyno".into());
    serde_json::to_string_pretty(&schema).unwrap() + "\n"
}

/// Removes `null`, which TOML does not have, and the sizes of Rust's integers.
fn without_null(schema: &mut Schema) {
    transform_subschemas(&mut without_null, schema);
    let Some(map) = schema.as_object_mut() else { return };
    map.remove("format");
    if map.get("default").is_some_and(Value::is_null) {
        map.remove("default");
    }
    if let Some(Value::Array(types)) = map.get_mut("type") {
        types.retain(|name| name != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            map.insert("type".into(), only);
        }
    }
    if let Some(Value::Array(kinds)) = map.get_mut("anyOf") {
        kinds.retain(|kind| *kind != json!({ "type": "null" }));
        if let [Value::Object(only)] = kinds.as_slice() {
            let only = only.clone();
            map.remove("anyOf");
            for (key, value) in only {
                map.entry(key).or_insert(value);
            }
        }
    }
}

/// Puts descriptions on one line, and ends them with the default, which few editors show by
/// themselves.
fn with_default_in_words(schema: &mut Schema) {
    transform_subschemas(&mut with_default_in_words, schema);
    let Some(map) = schema.as_object_mut() else { return };
    if let Some(Value::String(text)) = map.get_mut("description") {
        *text = text.replace('\n', " ");
    }
    let is_empty = |value: &&Value| **value == json!([]) || **value == json!({});
    let Some(default) = map.get("default").filter(|value| !is_empty(value)) else { return };
    let default = default.to_string();
    if let Some(Value::String(text)) = map.get_mut("description") {
        text.push_str(&format!(" Default: `{default}`."));
    }
}

/// A table of PostgreSQL's settings or of factors, whose names may have dots.
pub(super) struct FreeTable;

impl JsonSchema for FreeTable {
    fn schema_name() -> Cow<'static, str> {
        "FreeTable".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let value = generator.subschema_for::<FreeValue>();
        json_schema!({ "type": "object", "additionalProperties": value })
    }
}

/// A value, or a table: the rest of a name with dots.
struct FreeValue;

impl JsonSchema for FreeValue {
    fn schema_name() -> Cow<'static, str> {
        "FreeValue".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let value = generator.subschema_for::<Self>();
        json_schema!({
            "type": ["string", "number", "boolean", "object"],
            "additionalProperties": value,
        })
    }
}

impl JsonSchema for ByteSize {
    fn schema_name() -> Cow<'static, str> {
        "Size".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        size(generator)
    }
}

/// A size with its unit.
pub(super) fn size(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "string",
        "pattern": r"^[0-9]+\s*(B|kB|MB|GB|TB|KiB|MiB|GiB|TiB)\s*$",
        "examples": ["8GB", "512MiB"],
    })
}

/// A share in percent.
pub(super) fn percentage(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "string",
        "pattern": r"^\s*\+?[0-9.]+([eE][+-]?[0-9]+)?\s*%\s*$",
        "examples": ["3%", "0.5%"],
    })
}

/// A rate: a number, or a text that is one, stages, or a series' file.
pub(super) fn rate(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": ["number", "string"],
        "exclusiveMinimum": 0,
        "pattern": r"^\+?[0-9.]+([eE][+-]?[0-9]+)?$| for |\.csv$",
        "examples": [500, "500 for 60s, 500 to 2000 for 30s", "series.csv"],
    })
}

/// A rate, or a list of its stages.
pub(super) fn rate_over_time(generator: &mut SchemaGenerator) -> Schema {
    let length = generator.subschema_for::<Span>();
    let rate = json!({ "type": "number", "minimum": 0 });
    let stage = json!({
        "type": "array",
        "items": [length, rate, rate],
        "minItems": 2,
        "maxItems": 3,
        "examples": [["60s", 500], ["30s", 500, 2000]],
    });
    let stages = json!({ "type": "array", "items": stage, "minItems": 1 });
    json_schema!({ "anyOf": [self::rate(generator), stages] })
}

/// A whole number of at least `least`; texts that are one are taken, too.
fn count(least: u32) -> Schema {
    json_schema!({ "type": ["integer", "string"], "minimum": least, "pattern": r"^\+?[0-9]+$" })
}

/// A major version of PostgreSQL.
pub(super) fn major(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": ["integer", "string"],
        "minimum": 9,
        "maximum": 99,
        "pattern": "^[0-9]{1,2}$",
        "examples": [17, "17"],
    })
}

/// A built-in workload or a folder.
pub(super) fn workload(_: &mut SchemaGenerator) -> Schema {
    let names = pgdyno_dataset::workload::names();
    json_schema!({
        "anyOf": [
            { "enum": names },
            { "type": "string", "pattern": "/", "description": "A folder of your own." },
        ],
    })
}

pub(super) fn filesystem(_: &mut SchemaGenerator) -> Schema {
    let names: Vec<&str> = FILESYSTEMS.iter().map(|filesystem| filesystem.name()).collect();
    json_schema!({ "enum": names })
}

/// Faults by their names, those of earlier versions among them.
pub(super) fn faults(_: &mut SchemaGenerator) -> Schema {
    let faults = Fault::ALL.iter().map(|fault| (fault.name(), fault.models()));
    let earlier = ("lying-disk", "the name of `emulated-lie` in earlier versions");
    let kinds = faults.chain([earlier]);
    let kinds: Vec<Value> =
        kinds.map(|(name, models)| json!({ "const": name, "description": models })).collect();
    let fault = json!({ "oneOf": kinds });
    json_schema!({ "type": "array", "items": fault, "minItems": 1, "uniqueItems": true })
}

/// A storage is a directory or has a backing; some keys are for a filesystem.
pub(super) fn storage_rules(schema: &mut Schema) {
    schema.insert("not".into(), json!({ "required": ["directory", "backing"] }));
    let filesystem = ["mkfs", "mount", "pool", "dataset"].map(|key| (key, json!(["filesystem"])));
    schema.insert("dependencies".into(), filesystem.into_iter().collect());
}

/// A backing is of exactly one kind.
pub(super) fn backing_rules(schema: &mut Schema) {
    let kinds = ["directory", "loop", "emulated", "device", "ram", "raid0"];
    let kinds = kinds.map(|kind| json!({ "required": [kind] }));
    schema.insert("oneOf".into(), kinds.into_iter().collect());
    schema.insert("dependencies".into(), json!({ "raid0_by": ["raid0"], "chunk": ["raid0"] }));
}

/// A trial ends by time or by count; a search has an objective and finds the rate.
pub(super) fn load_rules(schema: &mut Schema) {
    let both = [["duration", "transactions"], ["find", "rate"], ["find", "transactions"]];
    let both = both.map(|keys| json!({ "not": { "required": keys } }));
    schema.insert("allOf".into(), both.into_iter().collect());
    schema.insert("dependencies".into(), json!({ "find": ["slo"], "slo": ["find"] }));
}

/// A meaning and the schema of one level, for a key that is no PostgreSQL setting.
fn level(key: &Key, generator: &mut SchemaGenerator) -> (&'static str, Schema) {
    let text = || json_schema!({ "type": "string", "minLength": 1 });
    match key {
        Key::Clients => ("Connections.", count(1)),
        Key::Threads => ("Threads of the load generator.", count(1)),
        Key::Protocol => ("How statements are sent.", generator.subschema_for::<Protocol>()),
        Key::Scale => ("The data set's size.", count(1)),
        Key::Rate => ("Transactions per second over all clients.", rate(generator)),
        Key::Pauses => (
            "Multiplies the keying and think times of the workload's scripts.",
            json_schema!({ "type": "number", "minimum": 0, "maximum": 1000 }),
        ),
        Key::LatencyLimit => {
            ("The latency beyond which a transaction is late.", generator.subschema_for::<Span>())
        }
        Key::MaxTries => ("Tries of a transaction. 0: no limit.", count(0)),
        Key::OnError => ("Effect of an error.", generator.subschema_for::<OnError>()),
        Key::Reconnect => {
            ("Open a connection for each transaction.", generator.subschema_for::<bool>())
        }
        Key::ReconnectLost => {
            ("Effect of a lost connection.", generator.subschema_for::<ReconnectLost>())
        }
        Key::Workload => ("A built-in workload, or a folder of your own.", workload(generator)),
        Key::PostgresVersion => ("The server's major version.", major(generator)),
        Key::PostgresBindir => ("The folder of the server's programs.", text()),
        Key::PostgresDsn => ("A running server: a URI or `keyword=value` words.", text()),
        Key::Storage => ("A name of `[storage.NAME]`.", text()),
        Key::DeviceScheduler => ("The device's I/O scheduler.", text()),
        Key::DeviceReadAhead => ("The device's read-ahead (KiB).", count(0)),
        Key::DeviceRequests => ("The length of the device's request queue.", count(1)),
        Key::DeviceWriteCache => {
            ("The drive's volatile write cache.", generator.subschema_for::<bool>())
        }
        Key::DeviceRaidCache => {
            ("The RAID controller's write cache.", generator.subschema_for::<WritePolicy>())
        }
        Key::Generators => {
            ("Who offers the load: `none` (this process alone), or as `launch` has it.", text())
        }
        Key::Group(..) => ("A key of a group of clients.", generator.subschema_for::<LevelValue>()),
        Key::Setting(_) => ("A PostgreSQL setting.", generator.subschema_for::<LevelValue>()),
    }
}

/// The known keys as properties, each made by `property` of its meaning and its levels. Those with
/// dots are there twice: in quotes, and in tables that `table` makes of the rests of their names.
fn properties(
    generator: &mut SchemaGenerator,
    property: impl Fn(&str, Schema) -> Value,
    table: impl Fn(Value) -> Value,
) -> Map<String, Value> {
    let (mut all, mut tables) = (Map::new(), Map::new());
    for name in Key::NAMES {
        let (meaning, level) = level(&Key::parse(name), generator);
        let property = property(meaning, level);
        if let Some((first, rest)) = name.split_once('.') {
            tables.entry(first).or_insert_with(|| json!({}))[rest] = property.clone();
        }
        all.insert((*name).to_owned(), property);
    }
    all.extend(tables.into_iter().map(|(name, rests)| (name, table(rests))));
    all
}

/// Keys and values that one level of a bundle sets.
struct Bundle;

impl JsonSchema for Bundle {
    fn schema_name() -> Cow<'static, str> {
        "Bundle".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let other = generator.subschema_for::<FreeValue>();
        let described = |meaning: &str, mut level: Schema| {
            level.insert("description".into(), meaning.into());
            level.to_value()
        };
        let table =
            |rests| json!({ "type": "object", "properties": rests, "additionalProperties": other });
        let properties = properties(generator, described, table);
        json_schema!({ "properties": properties, "additionalProperties": other })
    }
}

/// Keys of groups of clients below their names; `levels` is the schema of a list or a table.
fn groups(levels: &Value) -> Value {
    json!({
        "description": "Keys of the workload's groups of clients: `groups.NAME.KEY`, each a list \
                        of levels. The keys are those of `[groups.NAME]`.",
        "type": "object",
        "additionalProperties": {
            "type": "object",
            "additionalProperties": { "anyOf": [levels, { "type": ["string", "number"] }] },
        },
    })
}

impl JsonSchema for Factors {
    fn schema_name() -> Cow<'static, str> {
        "Factors".into()
    }

    /// A factor is a list of levels, or a table: of bundles, or of the rests of a name with dots.
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let setting = generator.subschema_for::<LevelValue>().to_value();
        // Each factor may have bundles, so they are described once.
        let bundle = Bundle::json_schema(generator).to_value();
        generator.definitions_mut().insert("Bundle".into(), bundle);
        let in_table = json!({
            "type": ["array", "object"],
            "items": setting,
            "minItems": 1,
            "allOf": [{ "$ref": "#/definitions/Bundle" }],
        });
        let factor = |meaning: &str, level: Value, rests: Value| {
            json!({
                "description": format!("{meaning} A list of levels, or a table of bundles."),
                "type": ["array", "object"],
                "items": level,
                "minItems": 1,
                "uniqueItems": true,
                "minProperties": 1,
                "properties": rests,
                "additionalProperties": in_table,
            })
        };
        let known = |meaning: &str, level: Schema| factor(meaning, level.to_value(), json!({}));
        let any = |rests| factor("PostgreSQL settings.", setting.clone(), rests);
        let mut properties = properties(generator, known, any);
        properties.insert("groups".to_owned(), groups(&in_table));
        json_schema!({
            "type": "object",
            "properties": properties,
            "additionalProperties": any(json!({})),
        })
    }
}
