//! Whether the experiment could show what it was for.

use serde_json::json;

use super::{Rule, Verdicts, exact, number};
use crate::audit::recognise::{Command, Evidence};
use crate::audit::{PgbenchRun, Severity, Sure};

/// `checkpoint_timeout` where nobody set it (seconds).
const DEFAULT_TIMEOUT_S: f64 = 300.0;

/// One thread of pgbench was seen to be the limit from about here on.
const BUSY_THREAD_TPS: f64 = 15_000.0;

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
        looks_for: "more than 15,000 tps for each thread of pgbench, or 5,000 with 16 clients a thread or more; less than 5% of idle CPU",
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
        [only] => Some((only.seconds()?, Some(only.line))),
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
    let sure = |writes: Option<bool>| match (writes, said_at) {
        (None, _) => Sure::Possible,
        (_, None) => Sure::Likely,
        _ => Sure::Certain,
    };
    let runs = &evidence.recognised.runs;
    for run in runs {
        let Some(length) = run.length_s().filter(|_| run.writes() != Some(false)) else { continue };
        judge_length(
            length,
            timeout_s,
            &[line_of_length(run)],
            run.writes(),
            sure(run.writes()),
            &cycle,
            verdicts,
        );
    }
    for command in lone(evidence) {
        if command.writes == Some(false) {
            continue;
        }
        if let Some(duration) = command.duration_s {
            judge_length(
                duration.value,
                timeout_s,
                &[command.line],
                command.writes,
                sure(command.writes),
                &cycle,
                verdicts,
            );
        } else {
            counted(evidence, command, timeout_s, &cycle, verdicts);
        }
    }
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

fn judge_length(
    length_s: f64,
    timeout_s: f64,
    lines: &[usize],
    writes: Option<bool>,
    sure: Sure,
    cycle: &str,
    verdicts: &mut Verdicts,
) {
    let computed =
        json!({ "seconds": length_s, "checkpoint_timeout_s": timeout_s, "cycles": length_s / timeout_s });
    let length = number(length_s);
    if length_s < timeout_s {
        let (severity, condition) = match writes {
            Some(_) => (Severity::Warning, ""),
            None => (Severity::Note, " If the script writes, i"),
        };
        let message = if condition.is_empty() {
            format!(
                "{length} s of writing are less than {cycle}: the figures may hold no checkpoint, which is when storage has most to do"
            )
        } else {
            format!(
                "{length} s are less than {cycle}.{condition}ts figures may hold no checkpoint, which is when storage has most to do"
            )
        };
        verdicts.found(severity, sure, lines, message, computed);
    } else if writes == Some(true) {
        verdicts.right(
            lines,
            format!("{length} s of writing are {} times {cycle}", exact(length_s / timeout_s)),
            computed,
        );
    }
}

/// Transactions that were counted out, at the tps of the report's only table.
fn counted(evidence: &Evidence, command: &Command, timeout_s: f64, cycle: &str, verdicts: &mut Verdicts) {
    let (Some(clients), Some(each)) = (command.clients, command.transactions_per_client) else { return };
    let mut tables = evidence.recognised.tables.iter().filter(|t| t.tps);
    let (Some(table), None, true) = (tables.next(), tables.next(), lone(evidence).count() == 1) else {
        return;
    };
    let tps = table.rows.iter().flat_map(|r| r.repeats.iter().map(|f| f.value)).filter(|v| *v > 0.0);
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
        verdicts.found(Severity::Warning, Sure::Likely, &[command.line, table.line], message, computed);
    }
}

fn client_limit(evidence: &Evidence, verdicts: &mut Verdicts) {
    for run in &evidence.recognised.runs {
        let (Some(clients), Some(tps)) = (run.clients, run.tps_connected()) else { continue };
        // 8.4 had one thread and did not print it.
        let threads = run.threads.map_or(1.0, |t| t.value).max(1.0);
        let each = tps.value / threads;
        let crowd = clients.value / threads;
        let lines = [run.threads.map_or(clients.line, |t| t.line), tps.line];
        let computed = json!({ "tps_per_thread": each, "clients_per_thread": crowd, "threads": threads });
        let of =
            if threads > 1.0 { format!("each of {threads} threads") } else { "the one thread".to_owned() };
        let words = format!("{} tps for {of} of pgbench, {} clients a thread", number(each), exact(crowd));
        if each > BUSY_THREAD_TPS || (each > CROWDED_THREAD_TPS && crowd >= MANY_CLIENTS) {
            let message = format!(
                "{words}: the load generator may have been the limit; more threads (-j) would show it"
            );
            verdicts.found(Severity::Warning, Sure::Possible, &lines, message, computed);
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
            verdicts.found(Severity::Note, Sure::Possible, &[cpu.line], message, computed);
        } else {
            verdicts.right(&[cpu.line], format!("{}% of CPU were idle", idle.value), computed);
        }
    }
}
