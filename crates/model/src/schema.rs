//! JSON Schemas of the values that are read or written by hand. All others are derived.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use crate::crash::Verdict;
use crate::experiment::ReconnectLost;
use crate::level::{LevelValue, Levels};
use crate::load_rate::LoadRate;
use crate::search::Slo;
use crate::units::Span;

impl JsonSchema for Span {
    fn schema_name() -> Cow<'static, str> {
        "Span".into()
    }

    /// The units are those of the crate `humantime`, which reads the text.
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        const UNIT: &str = "nanos|nsec|ns|usec|us|µs|millis|msec|ms|seconds|second|secs|sec|s|\
            minutes|minute|mins|min|m|hours|hour|hrs|hr|h|days|day|d|weeks|week|wks|wk|w|\
            months|month|M|years|year|yrs|yr|y";
        json_schema!({
            "type": "string",
            "pattern": format!(r"^\s*([0-9][0-9\s]*(\.[0-9][0-9\s]*)?({UNIT})\s*)+$"),
            "examples": ["5s", "250ms", "2m 30s"],
        })
    }
}

impl JsonSchema for LevelValue {
    fn schema_name() -> Cow<'static, str> {
        "LevelValue".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["string", "number", "boolean"] })
    }
}

impl JsonSchema for ReconnectLost {
    fn schema_name() -> Cow<'static, str> {
        "ReconnectLost".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "anyOf": [
                { "const": "never", "description": "The client ends, and the trial is failed." },
                { "const": "always", "description": "The client connects again, without a limit." },
                { "type": ["integer", "string"], "minimum": 0, "pattern": r"^\+?[0-9]+$" },
            ]
        })
    }
}

impl JsonSchema for LoadRate {
    fn schema_name() -> Cow<'static, str> {
        "LoadRate".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "Transactions per second, or the stages of a rate as text.",
            "type": ["number", "string"],
            "exclusiveMinimum": 0,
            "examples": [500, "500 for 1m, 500 to 2000 for 30s"],
        })
    }
}

impl JsonSchema for Levels {
    fn schema_name() -> Cow<'static, str> {
        "Levels".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let level = generator.subschema_for::<LevelValue>();
        json_schema!({
            "description": "Factors and their levels, in the order of the experiment.",
            "type": "object",
            "additionalProperties": level,
        })
    }
}

impl JsonSchema for Slo {
    fn schema_name() -> Cow<'static, str> {
        "Slo".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "examples": ["p99 < 20ms, failed < 0.1%"] })
    }
}

impl JsonSchema for Verdict {
    fn schema_name() -> Cow<'static, str> {
        "Verdict".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let names: Vec<&str> = Verdict::ALL.iter().map(|verdict| verdict.name()).collect();
        json_schema!({ "description": "Verdict of crash tests.", "enum": names })
    }
}
