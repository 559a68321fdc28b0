//! Whether the experiment could show what it was for.

use std::collections::BTreeMap;

use serde_json::json;

use super::rule::{Rule, Verdicts, exact, number};
use crate::finding::Confidence::{Certain, Likely, Possible};
use crate::finding::Severity::{Note, Warning};
use crate::recognise::{Command, Evidence, PgbenchRun};

/// `checkpoint_timeout` where nobody set it (seconds).
const DEFAULT_TIMEOUT_S: f64 = 300.0;

/// One thread of pgbench was seen to be the limit from about here on.
const BUSY_THREAD_TPS: f64 = 15_000.0;

/// With few clients a thread waits for them, and does more: from here on.
const FAST_THREAD_TPS: f64 = 50_000.0;

/// Fewer clients a thread than this are few.
const FEW_CLIENTS: f64 = 4.0;

/// With many clients a thread, from here on.
const CROWDED_THREAD_TPS: f64 = 5_000.0;

/// What makes many.
const MANY_CLIENTS: f64 = 16.0;

/// Less idle CPU than this (percent) is none.
const NO_IDLE: f64 = 5.0;

pub(super) const RULES: &[Rule] = &[
    Rule {
        name: "checkpoint-cycle",
        looks_for: "a load that writes for less than checkpoint_timeout (5 min unless the report shows another), so that its figures may hold no checkpoint",
        source: "PostgreSQL documentation, WAL Configuration; T. Vondra, Benchmarking PostgreSQL",
        judge: checkpoint_cycle,
    },
    Rule {
        name: "client-limit",
        looks_for: "more than 15,000 tps for each thread of pgbench with 4 clients or more, 50,000 with fewer, 5,000 with 16 or more; less than 5% of idle CPU",
        source: "pgbench documentation, Good Practices (-j); docs/audit.md",
        judge: client_limit,
    },
];

/// The checkpoint cycle (seconds), where it is said, and whether it is.
fn timeout(evidence: &Evidence) -> Option<(f64, Option<usize>)> {
    let shown: Vec<_> =
        evidence.recognised.settings.iter().filter(|s| s.name == "checkpoint_timeout").collect();
    match shown.as_slice() {
        [] => Some((DEFAULT_TIMEOUT_S, None)),
        [only, rest @ ..] if rest.iter().all(|other| other.value == only.value) => {
            Some((only.seconds()?, Some(only.line)))
        }
        // Which of them a run had is not clear.
        _ => None,
    }
}

fn checkpoint_cycle(evidence: &Evidence, verdicts: &mut Verdicts) {
    let Some((timeout_s, said_at)) = timeout(evidence) else { return };
    let cycle = match said_at {
        Some(line) => format!("checkpoint_timeout, {} s (line {line})", exact(timeout_s)),
        None => format!("a checkpoint cycle, {timeout_s} s by default"),
    };
    let mut loads: Vec<Load> = evidence
        .measured_runs()
        .filter_map(|run| {
            let writes = run.writes().or_else(|| named_writes(run.transaction_type.as_deref()?));
            let copied_in_part = || started_by(evidence, run);
            let Some(length_s) = run.length_s() else {
                let command = copied_in_part()?;
                return Some(Load {
                    length_s: command.duration_s?.value,
                    line: command.line,
                    writes: command.writes,
                });
            };
            Some(Load { length_s, line: line_of_length(run), writes })
        })
        .collect();
    loads.extend(evidence.recognised.sysbench.iter().filter_map(|run| {
        let time = run.total_time_s?;
        // The edges of a run by the clock take it beyond what was asked for.
        Some(Load { length_s: time.value.floor(), line: time.line, writes: run.has_writes() })
    }));
    for command in lone(evidence) {
        match command.duration_s {
            Some(duration) => {
                loads.push(Load {
                    length_s: duration.value,
                    line: command.line,
                    writes: command.writes,
                });
            }
            None => counted(evidence, command, timeout_s, &cycle, verdicts),
        }
    }
    // Many runs of one length are one finding.
    let mut alike: BTreeMap<(String, Option<bool>), Vec<Load>> = BTreeMap::new();
    for load in loads.into_iter().filter(|load| load.writes != Some(false)) {
        alike.entry((number(load.length_s), load.writes)).or_default().push(load);
    }
    for loads in alike.values() {
        judge_length(loads, timeout_s, said_at.is_some(), &cycle, verdicts);
    }
}

/// The command above a run of which only some lines were copied.
fn started_by<'a>(evidence: &'a Evidence, run: &PgbenchRun) -> Option<&'a Command> {
    evidence.commands.iter().rev().find(|command| command.line < run.line)
}

/// Whether a script that is not shown reads only, by what it is called; none where that does not
/// tell.
fn named_writes(kind: &str) -> Option<bool> {
    let name = kind.rsplit('/').next().unwrap_or_default().to_ascii_lowercase();
    ["select", "read", "ro.", "lookup"].iter().any(|word| name.contains(word)).then_some(false)
}

/// A load that may write, and how long.
struct Load {
    length_s: f64,
    line: usize,
    writes: Option<bool>,
}

fn line_of_length(run: &PgbenchRun) -> usize {
    run.duration_s.or(run.transactions).map_or(run.line, |f| f.line)
}

/// Commands of which no report was copied below.
fn lone(evidence: &Evidence) -> impl Iterator<Item = &Command> {
    let runs = &evidence.recognised.runs;
    evidence.commands.iter().enumerate().filter_map(move |(i, command)| {
        let next = evidence.commands.get(i + 1).map_or(usize::MAX, |c| c.line);
        let reported = runs.iter().any(|r| r.line > command.line && r.line < next);
        (!reported).then_some(command)
    })
}

/// Loads of one length, as far as it is said.
fn judge_length(loads: &[Load], timeout_s: f64, said: bool, cycle: &str, verdicts: &mut Verdicts) {
    let [first, ..] = loads else { return };
    let lines: Vec<usize> = loads.iter().map(|load| load.line).collect();
    let length = number(first.length_s);
    let cycles = first.length_s / timeout_s;
    let computed =
        json!({ "seconds": first.length_s, "checkpoint_timeout_s": timeout_s, "cycles": cycles });
    let what = match loads.len() {
        1 => format!("{length} s of load are"),
        n => format!("{n} times {length} s of load are each"),
    };
    if first.length_s >= timeout_s {
        if first.writes == Some(true) {
            verdicts.right(&lines, format!("{what} {} times {cycle}", exact(cycles)), computed);
        }
        return;
    }
    let (severity, sure, which) = match (first.writes, said) {
        (None, _) => (Note, Possible, "if the script writes, its figures"),
        (_, false) => (Warning, Likely, "the figures"),
        (_, true) => (Warning, Certain, "the figures"),
    };
    let message = format!(
        "{what} less than {cycle}: {which} may hold no checkpoint, which is when storage has most to do"
    );
    verdicts.found(severity, sure, &lines, message, computed);
}

/// Transactions that were counted out, at the tps of the report's only table.
fn counted(
    evidence: &Evidence,
    command: &Command,
    timeout_s: f64,
    cycle: &str,
    verdicts: &mut Verdicts,
) {
    let (Some(clients), Some(each)) = (command.clients, command.transactions_per_client) else {
        return;
    };
    let mut tables = evidence.recognised.tables.iter().filter(|t| t.tps);
    let (Some(table), None, true) = (tables.next(), tables.next(), lone(evidence).count() == 1)
    else {
        return;
    };
    let tps =
        table.rows.iter().flat_map(|r| r.repeats.iter().map(|f| f.value)).filter(|v| *v > 0.0);
    let (low, high) = tps.fold((f64::INFINITY, 0.0_f64), |(l, h), v| (l.min(v), h.max(v)));
    if high <= 0.0 {
        return;
    }
    let transactions = clients.value * each.value;
    let (shortest, longest) = (transactions / high, transactions / low);
    let computed = json!({
        "transactions": transactions, "shortest_s": shortest, "longest_s": longest, "checkpoint_timeout_s": timeout_s,
    });
    if shortest < timeout_s && command.writes == Some(true) {
        let message = format!(
            "{transactions} transactions take {} to {} s at the table's tps, less than {cycle}: most figures may hold no checkpoint, and fast rows \
             fewer than slow ones",
            number(shortest),
            number(longest)
        );
        verdicts.found(Warning, Likely, &[command.line, table.line], message, computed);
    }
}

fn client_limit(evidence: &Evidence, verdicts: &mut Verdicts) {
    for run in &evidence.recognised.runs {
        // What connecting leaves out of a run that reconnects is most of its time.
        let rate = run
            .tps_connected()
            .zip(run.tps())
            .map(|(a, b)| if a.value > 2.0 * b.value { b } else { a });
        let (Some(clients), Some(tps)) = (run.clients, rate) else { continue };
        // 8.4 had one thread and did not print it.
        let threads = run.threads.map_or(1.0, |t| t.value).max(1.0);
        let each = tps.value / threads;
        let crowd = clients.value / threads;
        let lines = [run.threads.map_or(clients.line, |t| t.line), tps.line];
        let computed =
            json!({ "tps_per_thread": each, "clients_per_thread": crowd, "threads": threads });
        let of = if threads > 1.0 {
            format!("each of {threads} threads")
        } else {
            "the one thread".to_owned()
        };
        let words =
            format!("{} tps for {of} of pgbench, {} clients a thread", number(each), exact(crowd));
        let busy = if crowd >= FEW_CLIENTS { BUSY_THREAD_TPS } else { FAST_THREAD_TPS };
        if each > busy || (each > CROWDED_THREAD_TPS && crowd >= MANY_CLIENTS) {
            let message = format!(
                "{words}: the load generator may have been the limit; more threads (-j) would show it"
            );
            verdicts.found(Warning, Possible, &lines, message, computed);
        } else {
            verdicts.right(&lines, words, computed);
        }
    }
    for cpu in &evidence.recognised.cpus {
        let Some((_, idle)) = cpu.parts.iter().find(|(name, _)| name == "idle") else { continue };
        let computed = json!({ "idle_percent": idle.value });
        if idle.high() < NO_IDLE {
            let message = format!(
                "{}% of CPU were idle: the limit may have been the processor, not the storage",
                idle.value
            );
            verdicts.found(Note, Possible, &[cpu.line], message, computed);
        } else {
            verdicts.right(&[cpu.line], format!("{}% of CPU were idle", idle.value), computed);
        }
    }
}
