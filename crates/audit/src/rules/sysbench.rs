//! Whether the figures of one report of sysbench agree with each other.

use serde_json::json;

use super::rule::{Rule, Verdicts, exact, weight};
use crate::figure::Figure;
use crate::finding::Confidence::Certain;
use crate::finding::Severity::Warning;
use crate::recognise::{Evidence, SysbenchRun};

/// What clocks and the edges of a run may take, beside rounding.
const EDGES: f64 = 0.01;

pub(super) const RULES: &[Rule] = &[ARITHMETIC, CAPPED, COMMAND];

const COMMAND: Rule = Rule {
    name: "sysbench-command",
    looks_for: "the only command of sysbench above a report whose threads are not those of the report, or whose time the report exceeds by \
                more than 5%",
    source: "sysbench, its options on threads and time (0.5 calls them num-threads and max-time)",
    judge: command,
};

const CAPPED: Rule = Rule {
    name: "capped-percentile",
    looks_for: "a percentile of sysbench's of 100000.00 ms, the greatest that its histogram knows",
    source: "sysbench, sb_histogram: latencies beyond its range count as its greatest",
    judge: |evidence, verdicts| {
        for figure in &evidence.capped {
            let message = "a percentile of 100000 ms is the greatest that sysbench's histogram knows: the true one may be any that is longer";
            let computed = json!({ "printed": figure.value });
            verdicts.found(Warning, Certain, &[figure.line], message, computed);
        }
    },
};

const ARITHMETIC: Rule = Rule {
    name: "sysbench-arithmetic",
    looks_for: "sysbench's transactions and queries ÷ total time that are not what it prints per second, queries that are not their sum, mean \
                latency × events that is not the sum of latencies, events and time of a thread × threads that are not the whole: by more than \
                rounding and 1%",
    source: "sysbench, lib/db_common: what each line is computed of",
    judge: arithmetic,
};

/// A sum that is printed, and the figures that make it.
struct Sum {
    what: &'static str,
    computed: (f64, f64),
    printed: Option<Figure>,
    lines: Vec<usize>,
}

fn product(a: Figure, b: Figure, by: f64) -> (f64, f64) {
    (a.low() * b.low() * by, a.high() * b.high() * by)
}

fn quotient(a: Figure, b: Figure) -> (f64, f64) {
    (a.low() / b.high(), a.high() / b.low())
}

/// All that can be computed twice of what was printed.
fn sums(run: &SysbenchRun) -> Vec<Sum> {
    let mut sums = Vec::new();
    let mut add = |what, computed, printed: Option<Figure>, lines: &[Figure]| {
        let lines = printed.iter().chain(lines).map(|f| f.line).collect();
        sums.push(Sum { what, computed, printed, lines });
    };
    let time = run.total_time_s.filter(|t| t.low() > 0.0);
    if let (Some(done), Some(time)) = (run.transactions, time) {
        add("transactions ÷ total time", quotient(done, time), run.per_second, &[done, time]);
    }
    if let (Some(queries), Some(time)) = (run.queries, time) {
        add(
            "queries ÷ total time",
            quotient(queries, time),
            run.queries_per_second,
            &[queries, time],
        );
    }
    if let (Some(reads), Some(writes), Some(others)) = (run.reads, run.writes, run.others) {
        let whole = reads.value + writes.value + others.value;
        add("read + write + other", (whole, whole), run.total, &[reads]);
    }
    if let (Some(mean), Some(events)) = (run.latency_average_ms, run.events) {
        add(
            "mean latency × events",
            product(mean, events, 1.0),
            run.latency_sum_ms,
            &[mean, events],
        );
    }
    if let (Some(each), Some(threads)) = (run.events_per_thread, run.threads) {
        add(
            "events of a thread × threads",
            product(each, threads, 1.0),
            run.events,
            &[each, threads],
        );
    }
    if let (Some(each), Some(threads)) = (run.thread_time_s, run.threads) {
        add(
            "time of a thread × threads (ms)",
            product(each, threads, 1000.0),
            run.latency_sum_ms,
            &[each, threads],
        );
    }
    sums
}

/// More than this share beyond the time that was asked for is no edge of a run.
const LONGER: f64 = 0.05;

fn command(evidence: &Evidence, verdicts: &mut Verdicts) {
    let mut before = 0;
    for run in &evidence.recognised.sysbench {
        let begin = run.progress.first().map_or(run.line, |progress| progress.at_s.line);
        let commands = evidence.sysbench_commands.iter();
        let between: Vec<_> = commands.filter(|c| c.line > before && c.line < begin).collect();
        before = run.last_line;
        let [command] = between.as_slice() else { continue };
        let mut found = |asked: String, reported: String, line: usize| {
            verdicts.asked_otherwise([line, command.line], &asked, &reported);
        };
        if let (Some(asked), Some(reported)) = (command.threads, run.threads)
            && asked.value != reported.value
        {
            let threads = |figure: Figure| format!("{} threads", figure.value);
            found(threads(asked), threads(reported), reported.line);
        }
        if let (Some(asked), Some(reported)) = (command.time_s, run.total_time_s)
            && asked.value > 0.0
            && reported.value > asked.value * (1.0 + LONGER) + 1.0
        {
            let seconds = |figure: Figure| format!("{} s", exact(figure.value));
            found(seconds(asked), seconds(reported), reported.line);
        }
    }
}

fn arithmetic(evidence: &Evidence, verdicts: &mut Verdicts) {
    for run in &evidence.recognised.sysbench {
        let mut right = Vec::new();
        for Sum { what, computed: (low, high), printed, lines } in sums(run) {
            let Some(printed) = printed.filter(|p| p.value > 0.0 && high > 0.0) else { continue };
            if low <= printed.high() * (1.0 + EDGES) && high >= printed.low() * (1.0 - EDGES) {
                right.push(printed.line);
                continue;
            }
            let middle = f64::midpoint(low, high);
            let off = (middle - printed.value) / printed.value;
            let message = format!("{what} is {}, not {}", exact(middle), exact(printed.value));
            let json =
                json!({ "computed": middle, "printed": printed.value, "off_percent": off * 100.0 });
            verdicts.found(weight(off), Certain, &lines, message, json);
        }
        if !right.is_empty() {
            let message = format!(
                "figures of sysbench that agree with those that they are computed of: {}",
                right.len()
            );
            verdicts.right(&right, message, json!({ "figures": right.len() }));
        }
    }
}
