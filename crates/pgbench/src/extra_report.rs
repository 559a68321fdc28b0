//! Lines that pgdyno adds to pgbench's report.

use std::fmt::Write as _;

use pgdyno_model::measurement::{GeneratorLimit, ScriptMeasurement, TELLING_WINDOW_S};
use pgdyno_model::{Latencies, Measurement};

use crate::report::three;
use crate::request::Run;

/// The quantiles that are printed.
pub(crate) const QUANTILES: [(&str, f64); 6] = [
    ("p50", 0.5),
    ("p90", 0.9),
    ("p95", 0.95),
    ("p99", 0.99),
    ("p99.9", 0.999),
    ("p99.99", 0.9999),
];

/// Returns the lines that pgdyno adds; each begins with `pgdyno:`.
pub(crate) fn text(m: &Measurement, run: &Run) -> String {
    let mut text = String::new();
    if m.latency.count() > 0 {
        let _ = writeln!(text, "pgdyno: latency{}: {}", since(run), quantiles(&m.latency));
    }
    if run.rate.is_some() {
        let _ = writeln!(
            text,
            "pgdyno: latency counts from when a transaction was due, not from when it was sent"
        );
    }
    if let Some(service) = &m.service {
        let _ = writeln!(text, "pgdyno: service time (from sent): {}", quantiles(service));
    }
    for (index, script) in m.scripts.iter().enumerate() {
        if m.scripts.len() > 1 {
            let _ = writeln!(
                text,
                "pgdyno: script {} latency: {}",
                index + 1,
                quantiles(&script.latency)
            );
        }
        if run.per_command {
            statements(&mut text, index + 1, script);
        }
    }
    text.push_str(&load_lines(m, run));
    generators(&mut text, m);
    text
}

/// A table of the generators, one line each: one that is far away or slow is seen by its latency.
fn generators(text: &mut String, m: &Measurement) {
    let widest = m.generators.iter().map(|g| g.name.chars().count()).max();
    let Some(width) = widest.map(|width| width.max("generator".len())) else { return };
    let _ = writeln!(
        text,
        "pgdyno: {:width$} {:>7} {:>7} {:>11} {:>9} {:>9} {:>9} {:>6} {:>17}",
        "generator", "clients", "threads", "tps", "mean ms", "p50 ms", "p99 ms", "CPU", "start ms"
    );
    let ms = |us: Option<f64>| three(us.unwrap_or(f64::NAN) / 1000.0).to_string();
    for g in &m.generators {
        let share = |part: f64| if m.measured_s > 0.0 { part / m.measured_s } else { 0.0 };
        let start =
            format!("{:+.3} ±{:.3}", g.start_skew_us / 1000.0, g.clock_uncertainty_us / 1000.0);
        let _ = writeln!(
            text,
            "pgdyno: {:width$} {:>7} {:>7} {:>11.1} {:>9} {:>9} {:>9} {:>5.0}% {start:>17}",
            g.name,
            g.clients,
            g.threads,
            share(g.transactions as f64),
            ms(g.latency_us_mean),
            ms(g.latency_us_p50),
            ms(g.latency_us_p99),
            share(g.cpu_s) * 100.0,
        );
    }
}

/// Returns the lines about errors, lost connections and the generator of the load.
fn load_lines(m: &Measurement, run: &Run) -> String {
    let mut text = String::new();
    for (sqlstate, count) in &m.counters.failures {
        let _ = writeln!(text, "pgdyno: errors of SQLSTATE {sqlstate}: {count}");
    }
    if m.counters.lost_connections > 0 {
        let _ = writeln!(
            text,
            "pgdyno: lost connections that were made anew: {}",
            m.counters.lost_connections
        );
    }
    if m.measured_s > 0.0 {
        let each = match m.transactions {
            0 => String::new(),
            done => format!(", {:.1} us a transaction", m.generator_cpu_s * 1e6 / done as f64),
        };
        let cores = m.generator_cpu_s / m.measured_s;
        let share = match m.measured_s < TELLING_WINDOW_S {
            true => String::new(),
            false => format!(", {:.0}% of one core", cores * 100.0),
        };
        let _ = writeln!(text, "pgdyno: generator CPU: {:.3} s{each}{share}", m.generator_cpu_s);
    }
    if !m.reactor.is_empty() {
        let _ = writeln!(text, "pgdyno: bytes carried by {}", m.carried_by());
    }
    if let Some(lag) = &m.event_loop_lag {
        let ms = |us: f64| three(us / 1000.0);
        let _ = writeln!(
            text,
            "pgdyno: event loop lag: p50 = {} ms, p99 = {} ms, max = {} ms",
            ms(lag.p50_us),
            ms(lag.p99_us),
            ms(lag.max_us)
        );
    }
    if let Some(limit) = m.generator_limit() {
        let remedy = match limit {
            GeneratorLimit::HeldBack(_) => "let it have more, or use fewer clients".to_owned(),
            _ if run.threads < run.clients => {
                format!("use more threads (-j {})", run.clients.min(run.threads * 2))
            }
            _ => "use fewer clients, or spread the load over more generators".to_owned(),
        };
        let _ = writeln!(text, "pgdyno: warning: {limit}, so it may be the limit: {remedy}");
    }
    text
}

/// A table of the latencies of script `number`'s statements, one line each.
fn statements(text: &mut String, number: usize, script: &ScriptMeasurement) {
    const SHOWN: [(&str, f64); 4] = [("p50", 0.5), ("p95", 0.95), ("p99", 0.99), ("p99.9", 0.999)];
    let measured = || script.statements.iter().filter(|statement| statement.latency.count() > 0);
    if measured().next().is_none() {
        return;
    }
    let _ = write!(text, "pgdyno: script {number} (ms)");
    for (name, _) in SHOWN {
        let _ = write!(text, " {name:>9}");
    }
    let _ = writeln!(text, " {:>9}", "max");
    let ms = |us: Option<f64>| three(us.unwrap_or(f64::NAN) / 1000.0).to_string();
    for statement in measured() {
        let _ = write!(text, "pgdyno: line {:<8}", statement.line);
        for (_, quantile) in SHOWN {
            let _ = write!(text, " {:>9}", ms(statement.latency.quantile_us(quantile)));
        }
        let _ = writeln!(text, " {:>9}", ms(statement.latency.max_us()));
    }
    let sql = script.commands.iter().filter(|command| command.kind == "sql").count();
    if sql > script.statements.len() {
        let kept = script.statements.len();
        let _ = writeln!(
            text,
            "pgdyno: script {number}: such latencies are kept of its first {kept} statements, not \
             of all {sql}"
        );
    }
}

fn since(run: &Run) -> &'static str {
    if run.rate.is_some() { " (from due)" } else { "" }
}

/// `p50 = 0.123 ms, …, max = 4.5 ms`.
fn quantiles(latency: &Latencies) -> String {
    let ms =
        |us: Option<f64>| us.map_or_else(|| "-".to_owned(), |us| format!("{:.3} ms", us / 1000.0));
    let mut parts: Vec<String> = QUANTILES
        .iter()
        .map(|(name, q)| format!("{name} = {}", ms(latency.quantile_us(*q))))
        .collect();
    parts.push(format!("max = {}", ms(latency.max_us())));
    parts.join(", ")
}
