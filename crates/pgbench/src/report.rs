//! pgbench's report.

use std::fmt::{self, Write as _};

use pgdyno_model::Measurement;
use pgdyno_model::experiment::{Protocol, ReconnectLost};
use pgdyno_model::measurement::{ScriptMeasurement, Sums};

use crate::request::Run;
use crate::tables::Tables;

/// A number as C's `printf` of PostgreSQL writes it.
pub(crate) struct Number(f64, usize);

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            x if x.is_nan() => f.write_str("NaN"),
            x if x.is_infinite() => f.write_str(if x > 0.0 { "Infinity" } else { "-Infinity" }),
            x => write!(f, "{x:.*}", self.1),
        }
    }
}

pub(crate) fn three(x: f64) -> Number {
    Number(x, 3)
}

/// Returns the share of `part` in `whole` (percent). NaN if both are 0.
fn percent(part: u64, whole: u64) -> f64 {
    100.0 * part as f64 / whole as f64
}

/// Counts as pgbench reports them.
struct Counts<'a> {
    done: u64,
    failed: u64,
    /// Failures beside serialization and deadlock that are failed transactions.
    others: u64,
    sums: &'a Sums,
}

impl<'a> Counts<'a> {
    fn new(done: u64, sums: &'a Sums, run: &Run) -> Self {
        // Other errors are failed transactions only where they do not end the client.
        let goes_on = run.continue_on_error || run.reconnect_lost != ReconnectLost::Never;
        let others = if goes_on { sums.other_failures } else { 0 };
        let failed = sums.serialization_failures + sums.deadlock_failures + others;
        Self { done, failed, others, sums }
    }

    fn all(&self) -> u64 {
        self.done + self.failed + self.sums.skipped
    }

    /// The lines on failures and retries, each begun with `mark`.
    fn failure_lines(&self, text: &mut String, mark: &str, run: &Run) {
        let mut line = |what: &str, count| {
            let share = three(percent(count, self.all()));
            let _ = writeln!(text, "{mark}number of {what}: {count} ({share}%)");
        };
        line("failed transactions", self.failed);
        if run.failures_detailed {
            line("serialization failures", self.sums.serialization_failures);
            line("deadlock failures", self.sums.deadlock_failures);
            if run.continue_on_error {
                line("other failures", self.others);
            }
        }
        if run.max_tries != 1 {
            line("transactions retried", self.sums.retried);
            let _ = writeln!(text, "{mark}total number of retries: {}", self.sums.retries);
        }
    }

    fn skipped_line(&self, text: &mut String, mark: &str, run: &Run) {
        if run.skips_late() {
            let skipped = self.sums.skipped;
            let share = three(percent(skipped, self.all()));
            let _ = writeln!(text, "{mark}number of transactions skipped: {skipped} ({share}%)");
        }
    }
}

/// Mean and standard deviation of `count` latencies in milliseconds; nothing where there is none.
fn latency_lines(text: &mut String, mark: &str, count: u64, sums: &Sums) {
    if count == 0 {
        return;
    }
    let mean = sums.latency_sum_ns as f64 / 1e3 / count as f64;
    let squares = sums.latency_sum_squares_ns2 as f64 / 1e6 / count as f64;
    let stddev = (squares - mean * mean).max(0.0).sqrt();
    let _ = writeln!(text, "{mark}latency average = {} ms", three(mean / 1000.0));
    let _ = writeln!(text, "{mark}latency stddev = {} ms", three(stddev / 1000.0));
}

/// pgbench's report.
pub(crate) fn pgbench(m: &Measurement, run: &Run, tables: &Tables) -> String {
    let mut text = String::new();
    let counts = Counts::new(m.transactions, &m.sums, run);
    header(&mut text, run, tables);
    let _ = match run.transactions {
        Some(each) => {
            let wanted = u64::from(each) * u64::from(run.clients);
            writeln!(text, "number of transactions actually processed: {}/{wanted}", counts.done)
        }
        None => writeln!(text, "number of transactions actually processed: {}", counts.done),
    };
    let all_count = run.dialect.reports_all_transactions();
    // What follows would be about nothing.
    if all_count && counts.all() == 0 {
        return text;
    }
    counts.failure_lines(&mut text, "", run);
    if !all_count && counts.done == 0 {
        return text;
    }
    counts.skipped_line(&mut text, "", run);
    if let Some(limit) = run.latency_limit_ms {
        let (late, done) = (m.sums.late, counts.done);
        let share = three(if done > 0 { percent(late, done) } else { 0.0 });
        let _ = writeln!(
            text,
            "number of transactions above the {limit:.1} ms latency limit: {late}/{done} ({share}%)"
        );
    }
    let tps = counts.done as f64 / m.total_s;
    if run.rate.is_some() || run.progress.is_some() || run.latency_limit_ms.is_some() {
        latency_lines(&mut text, "", counts.done, &m.sums);
    } else {
        let mean = 1000.0 * m.total_s * f64::from(run.clients) / counts.all() as f64;
        let with = if counts.failed > 0 { " (including failures)" } else { "" };
        let _ = writeln!(text, "latency average = {} ms{with}", three(mean));
    }
    if run.rate.is_some() {
        let _ = writeln!(
            text,
            "rate limit schedule lag: avg {} (max {}) ms",
            three(m.sums.lag_sum_ns as f64 / counts.done as f64 / 1e6),
            three(m.sums.lag_max_ns as f64 / 1e6)
        );
    }
    if run.reconnect {
        let mean = m.counters.reconnect_s * 1000.0 / m.counters.reconnections as f64;
        let _ = writeln!(text, "average connection time = {} ms", three(mean));
        let _ = writeln!(text, "tps = {} (including reconnection times)", Number(tps, 6));
    } else {
        let _ = writeln!(text, "initial connection time = {} ms", three(m.connect_s * 1000.0));
        let _ = writeln!(text, "tps = {} (without initial connection time)", Number(tps, 6));
    }
    scripts(&mut text, m, run, &counts);
    text
}

fn header(text: &mut String, run: &Run, tables: &Tables) {
    let kind = match run.scripts.as_slice() {
        [one] => one.script.name.as_str(),
        _ => "multiple scripts",
    };
    let _ = writeln!(text, "transaction type: {kind}\nscaling factor: {}", tables.scale);
    if let Some((method, number)) = &tables.partitions {
        let _ = writeln!(text, "partition method: {method}\npartitions: {number}");
    }
    let protocol = match run.protocol {
        Protocol::Simple => "simple",
        Protocol::Extended => "extended",
        Protocol::Prepared => "prepared",
    };
    let _ = writeln!(text, "query mode: {protocol}");
    let _ =
        writeln!(text, "number of clients: {}\nnumber of threads: {}", run.clients, run.threads);
    if run.max_tries > 0 {
        let _ = writeln!(text, "maximum number of tries: {}", run.max_tries);
    }
    let _ = match (run.transactions, run.seconds) {
        (Some(each), _) => writeln!(text, "number of transactions per client: {each}"),
        (None, seconds) => writeln!(text, "duration: {} s", seconds.unwrap_or(0)),
    };
}

/// The sections for each script and each command.
fn scripts(text: &mut String, m: &Measurement, run: &Run, all: &Counts<'_>) {
    let several = run.scripts.len() > 1;
    let weights: u64 = run.scripts.iter().map(|s| u64::from(s.weight)).sum();
    for (index, (chosen, script)) in run.scripts.iter().zip(&m.scripts).enumerate() {
        if several {
            let share = percent(chosen.weight.into(), weights);
            let _ = writeln!(text, "SQL script {}: {}", index + 1, script.name);
            let _ = writeln!(text, " - weight: {} (targets {share:.1}% of total)", chosen.weight);
            one_script(text, m, script, run, all);
        }
        if run.per_command {
            commands(text, if several { " - " } else { "" }, script, chosen, run);
        }
    }
}

/// The lines on one of several scripts, whose transactions are among `all`.
fn one_script(
    text: &mut String,
    m: &Measurement,
    script: &ScriptMeasurement,
    run: &Run,
    all: &Counts<'_>,
) {
    const MARK: &str = " - ";
    let counts = Counts::new(script.sums.latency_count, &script.sums, run);
    let tps = Number(counts.done as f64 / m.total_s, 6);
    if run.dialect.reports_all_transactions() {
        let share = Number(percent(counts.all(), all.all()), 1);
        let _ = writeln!(text, "{MARK}{} transactions ({share}% of total)", counts.all());
        if counts.all() == 0 {
            return;
        }
        let _ = writeln!(
            text,
            "{MARK}number of transactions actually processed: {} (tps = {tps})",
            counts.done
        );
    } else {
        let share = Number(percent(counts.done, all.done), 1);
        let _ =
            writeln!(text, "{MARK}{} transactions ({share}% of total, tps = {tps})", counts.done);
    }
    counts.failure_lines(text, MARK, run);
    counts.skipped_line(text, MARK, run);
    latency_lines(text, MARK, counts.done, &script.sums);
}

fn commands(
    text: &mut String,
    mark: &str,
    script: &ScriptMeasurement,
    chosen: &crate::scripts::Chosen,
    run: &Run,
) {
    let with = if run.max_tries == 1 { " and failures" } else { ", failures and retries" };
    let _ = writeln!(text, "{mark}statement latencies in milliseconds{with}:");
    let lines = chosen.script.commands.iter().map(|command| &command.summary);
    for (command, line) in script.commands.iter().zip(lines) {
        let mean = if command.count > 0 {
            command.latency_sum_us / command.count as f64 / 1000.0
        } else {
            0.0
        };
        let gap = if run.dialect.reports_all_transactions() { " " } else { "  " };
        let _ = write!(text, "   {mean:11.3}  {:10}", command.failures);
        if run.max_tries != 1 {
            let _ = write!(text, "{gap}{:10}", command.retries);
        }
        let _ = writeln!(text, "{gap}{line}");
    }
}
