//! Whether the experiment could show what it was for.

use std::collections::BTreeMap;

use pgdyno_text::format;

use super::rule::{AuditRule, Verdicts};
use crate::finding::Confidence::{Certain, Likely, Possible};
use crate::finding::Severity::{Note, Warning};
use crate::finding::{CheckpointCycle, CountedOut, DesignKind};
use crate::recognise::{Command, Evidence, PgbenchRun, Row};

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

/// From here on clients a thread are many.
const MANY_CLIENTS: f64 = 16.0;

/// Less idle CPU than this (percent) is none.
const NO_IDLE: f64 = 5.0;

pub(super) const RULES: &[AuditRule] = &[
    AuditRule { name: "checkpoint-cycle", judge: checkpoint_cycle },
    AuditRule { name: "client-limit", judge: client_limit },
];

/// The checkpoint cycle (seconds), and the line that shows it.
#[derive(Clone, Copy)]
struct Timeout {
    seconds: f64,
    line: Option<usize>,
}

impl Timeout {
    /// Returns PostgreSQL's own where none is shown; none where several are.
    fn find(evidence: &Evidence) -> Option<Self> {
        match evidence.settings("checkpoint_timeout").collect::<Vec<_>>().as_slice() {
            [] => Some(Self { seconds: DEFAULT_TIMEOUT_S, line: None }),
            [only, rest @ ..] if rest.iter().all(|other| other.value == only.value) => {
                Some(Self { seconds: only.seconds()?, line: Some(only.line) })
            }
            // Which of them a run had is not clear.
            _ => None,
        }
    }
}

fn checkpoint_cycle(evidence: &Evidence, verdicts: &mut Verdicts) {
    let Some(timeout) = Timeout::find(evidence) else { return };
    let mut loads: Vec<Load> =
        evidence.measured_runs().filter_map(|run| Load::from_run(evidence, run)).collect();
    loads.extend(evidence.recognised.sysbench.iter().filter_map(|run| {
        let time = run.total_time_s?;
        // The edges of a run by the clock take it beyond the time that it was given.
        Some(Load { length_s: time.value.floor(), line: time.line, writes: run.has_writes() })
    }));
    for command in lone_commands(evidence) {
        match Load::from_command(command) {
            Some(load) => loads.push(load),
            None => counted_out(evidence, command, timeout, verdicts),
        }
    }
    // Many runs of one length are one finding.
    let mut alike: BTreeMap<(String, Option<bool>), Vec<Load>> = BTreeMap::new();
    for load in loads.into_iter().filter(|load| load.writes != Some(false)) {
        alike.entry((format::rate(load.length_s), load.writes)).or_default().push(load);
    }
    for loads in alike.values() {
        judge_length(loads, timeout, verdicts);
    }
}

/// A load that may write, and how long.
struct Load {
    length_s: f64,
    line: usize,
    writes: Option<bool>,
}

impl Load {
    fn from_run(evidence: &Evidence, run: &PgbenchRun) -> Option<Self> {
        let Some(length_s) = run.length_s() else {
            // Only some lines of the report were copied.
            let above = evidence.commands.iter().rev().find(|c| c.line < run.line);
            return above.and_then(Self::from_command);
        };
        let line = run.duration_s.or(run.transactions).map_or(run.line, |figure| figure.line);
        let writes = run.writes().or_else(|| writes_by_name(run.transaction_type.as_deref()?));
        Some(Self { length_s, line, writes })
    }

    fn from_command(command: &Command) -> Option<Self> {
        let length_s = command.duration_s?.value;
        Some(Self { length_s, line: command.line, writes: command.writes() })
    }
}

/// Whether a script that is not shown only reads, by its name; none where that does not tell.
fn writes_by_name(kind: &str) -> Option<bool> {
    let name = kind.rsplit('/').next().unwrap_or_default().to_ascii_lowercase();
    ["select", "read", "ro.", "lookup"].iter().any(|word| name.contains(word)).then_some(false)
}

/// Commands of which no report was copied below.
fn lone_commands(evidence: &Evidence) -> impl Iterator<Item = &Command> {
    let runs = &evidence.recognised.runs;
    evidence.commands.iter().enumerate().filter_map(move |(i, command)| {
        let next = evidence.commands.get(i + 1).map_or(usize::MAX, |c| c.line);
        let has_report = runs.iter().any(|r| r.line > command.line && r.line < next);
        (!has_report).then_some(command)
    })
}

/// Loads of one length, at least one, which all write or of which none is known to.
fn judge_length(loads: &[Load], timeout: Timeout, verdicts: &mut Verdicts) {
    let Load { length_s: seconds, writes, .. } = loads[0];
    let fault = match (seconds < timeout.seconds, writes, timeout.line) {
        (true, None, _) => Some((Note, Possible)),
        (true, _, None) => Some((Warning, Likely)),
        (true, _, Some(_)) => Some((Warning, Certain)),
        (false, Some(true), _) => None,
        (false, ..) => return,
    };
    let lines: Vec<usize> = loads.iter().map(|load| load.line).collect();
    let cycle = CheckpointCycle {
        seconds,
        checkpoint_timeout_s: timeout.seconds,
        timeout_line: timeout.line,
        cycles: seconds / timeout.seconds,
        loads: loads.len(),
        writes,
    };
    verdicts.judge(fault, lines, DesignKind::CheckpointCycle(cycle));
}

/// Transactions that were counted out, at the tps of the report's only table.
fn counted_out(evidence: &Evidence, command: &Command, timeout: Timeout, verdicts: &mut Verdicts) {
    let (Some(clients), Some(each)) = (command.clients, command.transactions_per_client) else {
        return;
    };
    let mut tables = evidence.recognised.tables.iter().filter(|t| t.tps);
    let (Some(table), None, true) =
        (tables.next(), tables.next(), lone_commands(evidence).count() == 1)
    else {
        return;
    };
    let tps = table.rows.iter().flat_map(Row::values).filter(|v| *v > 0.0);
    let (low, high) = tps.fold((f64::INFINITY, 0.0_f64), |(l, h), v| (l.min(v), h.max(v)));
    let transactions = clients.value * each.value;
    let (shortest_s, longest_s) = (transactions / high, transactions / low);
    if high > 0.0 && shortest_s < timeout.seconds && command.writes() == Some(true) {
        let count = CountedOut {
            transactions,
            shortest_s,
            longest_s,
            checkpoint_timeout_s: timeout.seconds,
            timeout_line: timeout.line,
        };
        let lines = [command.line, table.line];
        verdicts.report(Warning, Likely, lines, DesignKind::CountedOut(count));
    }
}

fn client_limit(evidence: &Evidence, verdicts: &mut Verdicts) {
    for run in &evidence.recognised.runs {
        // Time for connecting is most of the time of a run that reconnects.
        let rate = run
            .tps_connected()
            .zip(run.tps())
            .map(|(a, b)| if a.value > 2.0 * b.value { b } else { a });
        let (Some(clients), Some(tps)) = (run.clients, rate) else { continue };
        // 8.4 had one thread and did not print it.
        let threads = run.threads.map_or(1.0, |t| t.value).max(1.0);
        let (each, crowd) = (tps.value / threads, clients.value / threads);
        let busy = if crowd >= FEW_CLIENTS { BUSY_THREAD_TPS } else { FAST_THREAD_TPS };
        let is_busy = each > busy || (each > CROWDED_THREAD_TPS && crowd >= MANY_CLIENTS);
        let fault = is_busy.then_some((Warning, Possible));
        let lines = [run.threads.map_or(clients.line, |t| t.line), tps.line];
        let kind = DesignKind::GeneratorThreads {
            tps_per_thread: each,
            clients_per_thread: crowd,
            threads,
        };
        verdicts.judge(fault, lines, kind);
    }
    for cpu in &evidence.recognised.cpus {
        let Some((_, idle)) = cpu.parts.iter().find(|(name, _)| name == "idle") else { continue };
        let fault = (idle.high() < NO_IDLE).then_some((Note, Possible));
        verdicts.judge(fault, [cpu.line], DesignKind::IdleCpu { idle_percent: idle.value });
    }
}
