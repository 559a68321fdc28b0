//! Results in files: JSON, and HdrHistogram's interval log.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::{Duration, SystemTime};

use hdrhistogram::Histogram;
use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{IntervalLogWriterBuilder, Tag};
use pgdyno_model::{Latencies, Measurement};
use serde_json::{Map, Value, json};

use super::options::Run;
use super::refused::Refused;
use super::report::QUANTILES;
use super::scripts::system_words;
use super::tables::Tables;

/// `{"p50": 0.123, …, "max": 4.5}` in microseconds; nothing where nothing was measured.
fn quantiles(latency: &Latencies) -> Value {
    let mut map = Map::new();
    for (name, quantile) in QUANTILES {
        map.insert(name.to_owned(), json!(latency.quantile_us(quantile)));
    }
    map.insert("max".to_owned(), json!(latency.max_us()));
    Value::Object(map)
}

/// Writes the results as JSON to `file`, or to `out`.
#[allow(clippy::cast_precision_loss)]
pub(super) fn json(
    m: &Measurement,
    run: &Run,
    tables: &Tables,
    file: Option<&Path>,
    out: &mut dyn Write,
) -> Result<(), Refused> {
    let wrong = |e: &dyn std::fmt::Display| {
        let name = file.map_or_else(|| "standard output".to_owned(), |f| format!("\"{}\"", f.display()));
        Refused::new(format!("could not write the results to {name}: {e}"))
    };
    let mut measurement = serde_json::to_value(m).map_err(|e| wrong(&e))?;
    measurement["latency_us"] = quantiles(&m.latency);
    for (index, script) in m.scripts.iter().enumerate() {
        let value = &mut measurement["scripts"][index];
        value["latency_us"] = quantiles(&script.latency);
        for (n, statement) in script.statements.iter().enumerate() {
            value["statements"][n]["latency_us"] = quantiles(&statement.latency);
        }
    }
    let done = m.transactions + m.drained_transactions;
    let all = json!({
        "pgdyno": env!("CARGO_PKG_VERSION"),
        "clients": run.clients,
        "threads": run.threads,
        "protocol": run.protocol,
        "scale": tables.scale,
        "rate": run.rate,
        "tps": (m.total_s > 0.0).then(|| done as f64 / m.total_s),
        "measurement": measurement,
    });
    let text = format!("{all:#}\n");
    match file {
        None => out.write_all(text.as_bytes()).map_err(|e| wrong(&system_words(&e))),
        Some(path) => std::fs::write(path, text).map_err(|e| wrong(&system_words(&e))),
    }
}

/// Writes the latencies as an interval log with one interval: the whole run, and one more for each of several scripts.
pub(super) fn hdr_log(m: &Measurement, file: &Path) -> Result<(), Refused> {
    let wrong = |e: &dyn std::fmt::Display| {
        Refused::new(format!("could not write the histogram log \"{}\": {e}", file.display()))
    };
    let mut to = BufWriter::new(File::create(file).map_err(|e| wrong(&system_words(&e)))?);
    let length = Duration::from_secs_f64(m.measured_s.max(0.0));
    let began = SystemTime::now().checked_sub(length).unwrap_or(SystemTime::UNIX_EPOCH);
    let mut serializer = V2DeflateSerializer::new();
    let mut log = IntervalLogWriterBuilder::new()
        .add_comment("latencies in nanoseconds; pgdyno")
        .with_base_time(began)
        .with_start_time(began)
        // Written in milliseconds.
        .with_max_value_divisor(1e6)
        .begin_log_with(&mut to, &mut serializer)
        .map_err(|e| wrong(&format!("{e:?}")))?;
    let whole = [(None, &m.latency)];
    let several = m.scripts.len() > 1;
    let scripts = m.scripts.iter().filter(|_| several).enumerate();
    let scripts = scripts.map(|(n, s)| (Some(format!("script{}", n + 1)), &s.latency));
    for (tag, latency) in whole.into_iter().chain(scripts) {
        let histogram = histogram(latency).map_err(|e| wrong(&e))?;
        let tag = tag.as_deref().and_then(Tag::new);
        log.write_histogram(&histogram, Duration::ZERO, length, tag).map_err(|e| wrong(&format!("{e:?}")))?;
    }
    drop(log);
    to.flush().map_err(|e| wrong(&system_words(&e)))
}

fn histogram(latency: &Latencies) -> Result<Histogram<u64>, String> {
    let bytes = latency.to_bytes();
    hdrhistogram::serialization::Deserializer::new()
        .deserialize(&mut bytes.as_slice())
        .map_err(|e| format!("{e:?}"))
}
