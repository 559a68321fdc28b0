//! Results as JSON.

use std::io::Write;
use std::path::Path;

use pgdyno_model::json::Document;
use pgdyno_model::{Latencies, Measurement};
use serde_json::{Map, Value, json};

use crate::extra_report::QUANTILES;
use crate::request::Run;
use crate::server_messages::system_words;
use crate::tables::Tables;
use crate::usage_error::UsageError;

/// `{"p50": 0.123, …, "max": 4.5}` in microseconds; nothing where nothing was measured.
fn quantiles(latency: &Latencies) -> Value {
    let mut map = Map::new();
    for (name, quantile) in QUANTILES {
        map.insert(name.to_owned(), json!(latency.quantile_us(quantile)));
    }
    map.insert("max".to_owned(), json!(latency.max_us()));
    Value::Object(map)
}

/// The document that `--json` prints.
#[derive(serde::Serialize)]
#[serde(transparent)]
struct Results(Value);

impl Document for Results {
    const SCHEMA: &'static str = "pgdyno.pgbench/1";
}

/// Writes the results as JSON to `file`, or to `out`.
pub(crate) fn json(
    m: &Measurement,
    run: &Run,
    tables: &Tables,
    file: Option<&Path>,
    out: &mut dyn Write,
) -> Result<(), UsageError> {
    let wrong = |e: &dyn std::fmt::Display| {
        let name =
            file.map_or_else(|| "standard output".to_owned(), |f| format!("\"{}\"", f.display()));
        UsageError::new(format!("could not write the results to {name}: {e}"))
    };
    let mut measurement = serde_json::to_value(m).map_err(|e| wrong(&e))?;
    measurement["latency_us"] = quantiles(&m.latency);
    measurement["service_us"] = m.service.as_ref().map_or(Value::Null, quantiles);
    for (index, script) in m.scripts.iter().enumerate() {
        let value = &mut measurement["scripts"][index];
        value["latency_us"] = quantiles(&script.latency);
        value["service_us"] = script.service.as_ref().map_or(Value::Null, quantiles);
        for (n, statement) in script.statements.iter().enumerate() {
            value["statements"][n]["latency_us"] = quantiles(&statement.latency);
            value["statements"][n]["first_byte_us"] = quantiles(&statement.first_byte);
        }
    }
    let all = Results(json!({
        "pgdyno": env!("CARGO_PKG_VERSION"),
        "clients": run.clients,
        "threads": run.threads,
        "protocol": run.protocol,
        "scale": tables.scale,
        "rate": run.rate,
        "tps": (m.total_s > 0.0).then(|| m.transactions as f64 / m.total_s),
        "measurement": measurement,
    }));
    let text = format!("{}\n", pgdyno_model::json::json(&all).map_err(|e| wrong(&e))?);
    match file {
        None => out.write_all(text.as_bytes()).map_err(|e| wrong(&system_words(&e))),
        Some(path) => std::fs::write(path, text).map_err(|e| wrong(&system_words(&e))),
    }
}
