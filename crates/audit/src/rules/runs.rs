//! Whether the figures of one report of pgbench agree with each other.

use super::rule::{AuditRule, EDGES, SERIOUS, Verdicts, weight};
use crate::figure::Figure;
use crate::finding::Confidence::{Certain, Likely};
use crate::finding::Severity::{Note, Serious, Warning};
use crate::finding::{ClientsAtWork, LatencyGap, LatencyOf, RunKind, ScriptFigure, StatementSum};
use crate::recognise::{Evidence, PgbenchRun, RowOfLoad, Statement};

/// Less than this share of the clients' time in transactions is said (docs/statistics.md).
const IDLE: f64 = 0.05;

/// More than this share of a transaction outside its statements is said.
const OUTSIDE: f64 = 0.10;

/// A rate limit is looked for in commands up to so many lines above a run.
const NEAR: usize = 12;

pub(super) const RULES: &[AuditRule] = &[
    AuditRule { name: "transactions", judge: transactions },
    AuditRule { name: "littles-law", judge: littles_law },
    AuditRule { name: "statements", judge: statements },
    AuditRule { name: "latency-gap", judge: latency_gap },
    AuditRule { name: "scripts", judge: scripts },
];

fn transactions(evidence: &Evidence, verdicts: &mut Verdicts) {
    for run in &evidence.recognised.runs {
        judge_threads(run, verdicts);
        judge_count(run, verdicts);
        judge_duration(run, verdicts);
    }
}

/// Threads against clients.
fn judge_threads(run: &PgbenchRun, verdicts: &mut Verdicts) {
    let (Some(clients), Some(threads)) = (run.clients, run.threads) else { return };
    if threads.value > clients.value {
        let kind = RunKind::Threads { threads: threads.value, clients: clients.value };
        verdicts.report(Serious, Certain, [threads.line, clients.line], kind);
    }
}

/// Transactions against clients × transactions of each.
fn judge_count(run: &PgbenchRun, verdicts: &mut Verdicts) {
    let Some(done) = run.transactions else { return };
    if let Some((clients, each)) = run.clients.zip(run.transactions_per_client) {
        let product = clients.value * each.value;
        let printed = run.transactions_wanted.unwrap_or(done);
        let lines = [printed.line, clients.line, each.line];
        let (clients, each, wanted, printed) = (clients.value, each.value, product, printed.value);
        if run.transactions_wanted.is_some() {
            if printed != wanted {
                let kind = RunKind::Wanted { wanted, clients, each, printed };
                verdicts.report(Serious, Certain, lines, kind);
            }
        } else if printed > wanted {
            let kind = RunKind::BeyondClients { done: printed, clients, each, wanted };
            verdicts.report(Serious, Certain, lines, kind);
        }
    }
    let Some(wanted) = run.transactions_wanted else { return };
    let (line, done, wanted) = (done.line, done.value, wanted.value);
    let lost = [run.failed, run.skipped].iter().flatten().map(|f| f.value).sum::<f64>();
    let fault = if done > wanted {
        Some((Serious, Certain))
    } else {
        (done < wanted && done + lost != wanted).then_some((Warning, Certain))
    };
    verdicts.judge(fault, [line], RunKind::Done { done, wanted, lost });
}

/// Transactions ÷ tps against the duration.
fn judge_duration(run: &PgbenchRun, verdicts: &mut Verdicts) {
    let (Some(done), Some(duration), Some(tps)) = (run.transactions, run.duration_s, run.tps())
    else {
        return;
    };
    if done.value <= 0.0 || duration.value <= 0.0 || tps.low() <= 0.0 {
        return;
    }
    let (shortest, longest) = (done.low() / tps.high(), done.high() / tps.low());
    let connecting = match run.initial_connection_ms {
        Some(ms) if run.tps_including.is_none() => ms.high() / 1000.0,
        _ if run.tps_including.is_some() => 0.0,
        // Nobody says how long it took.
        _ => duration.value * EDGES + 1.0,
    };
    let one = run.latency_average_ms.map_or(0.0, Figure::high)
        + run.latency_stddev_ms.map_or(0.0, Figure::high);
    let low = duration.low() - duration.value * EDGES - 0.1 - connecting;
    // Where no deviation is printed, the last transactions may have taken far longer than the mean.
    let edges = if run.latency_stddev_ms.is_some() { EDGES } else { 2.0 * EDGES };
    let high = duration.high() + (duration.value * edges).max(1.0) + 5.0 * one / 1000.0;
    let seconds = done.value / tps.value;
    let off = (seconds - duration.value) / duration.value;
    let fault = if longest < low {
        Some((weight(off), Certain))
    } else {
        (shortest > high).then_some((weight(off), Likely))
    };
    let kind = RunKind::Duration {
        transactions: done.value,
        tps: tps.value,
        seconds,
        printed_seconds: duration.value,
        off_percent: off * 100.0,
    };
    verdicts.judge(fault, [done.line, tps.line, duration.line], kind);
}

/// Latency that stands for the transaction's, and the lines that have it.
fn latency_of(run: &PgbenchRun) -> Option<(Figure, Vec<usize>, LatencyOf)> {
    if let Some(latency) = run.latency() {
        return Some((latency, vec![latency.line], LatencyOf::Transaction));
    }
    let latency = sum(&run.statements)?;
    let lines = run.statements.iter().map(|s| s.latency_ms.line).collect();
    Some((latency, lines, LatencyOf::Statements))
}

/// Rows of tables: no more clients can be at work than there are, with a rate or without.
fn littles_law_of_rows(evidence: &Evidence, verdicts: &mut Verdicts) {
    let mut right = Vec::new();
    for RowOfLoad { clients, tps, latency_ms } in &evidence.loads {
        let at_least = latency_ms.low() * tps.low() / 1000.0;
        if at_least <= clients.value * (1.0 + EDGES) {
            right.push(tps.line);
            continue;
        }
        let severity = weight(at_least / clients.value - 1.0);
        let work = clients_at_work(*clients, (*latency_ms, LatencyOf::Transaction), *tps, None);
        verdicts.report(severity, Certain, [tps.line], work);
    }
    if !right.is_empty() {
        let rows = right.len();
        verdicts.right(right, RunKind::RowsAtWork { rows });
    }
}

fn littles_law(evidence: &Evidence, verdicts: &mut Verdicts) {
    littles_law_of_rows(evidence, verdicts);
    for run in &evidence.recognised.runs {
        let is_limited = evidence.commands.iter().any(|command| {
            command.rate_limited && command.line < run.line && run.line - command.line < NEAR
        });
        let has_own_latency = run.scripts.is_empty() || run.latency().is_some();
        if run.is_closed_loop() && !is_limited && has_own_latency {
            littles_law_of_run(run, verdicts);
        }
    }
}

fn littles_law_of_run(run: &PgbenchRun, verdicts: &mut Verdicts) {
    let (Some(clients), Some((latency, mut lines, of))) = (run.clients, latency_of(run)) else {
        return;
    };
    // Time in which nobody could send is no time between transactions; where both are printed,
    // each guards its side.
    let Some(most) = run.tps_connected() else { return };
    let least = run.tps().unwrap_or(most);
    // Without a deviation pgbench derives the mean from the clients and tps with connecting.
    let is_derived = run.latency_stddev_ms.is_none() && of == LatencyOf::Transaction;
    let is_circular = is_derived && run.tps_including.is_none() && run.tps_excluding.is_some();
    if is_circular || clients.value <= 0.0 || latency.value <= 0.0 || most.value <= 0.0 {
        return;
    }
    let at_least = latency.low() * least.low() / 1000.0 / clients.value;
    let at_most = latency.high() * most.high() / 1000.0 / clients.value;
    let tps = if at_most < 1.0 { most } else { least };
    lines.extend([tps.line, clients.line]);
    let (fault, idle_percent) = if at_least > 1.0 + EDGES {
        (Some((weight(at_least - 1.0), Certain)), None)
    } else if at_most < 1.0 - IDLE {
        (Some((Warning, Likely)), Some((1.0 - at_most) * 100.0))
    } else {
        (None, None)
    };
    verdicts.judge(fault, lines, clients_at_work(clients, (latency, of), tps, idle_percent));
}

fn clients_at_work(
    clients: Figure,
    (latency, latency_of): (Figure, LatencyOf),
    tps: Figure,
    idle_percent: Option<f64>,
) -> RunKind {
    RunKind::ClientsAtWork(ClientsAtWork {
        clients_at_work: tps.value * latency.value / 1000.0,
        clients: clients.value,
        latency_of,
        latency_ms: latency.value,
        tps: tps.value,
        idle_percent,
    })
}

/// The sum of latencies with its rounding; none without any.
fn sum(statements: &[Statement]) -> Option<Figure> {
    let line = statements.first()?.latency_ms.line;
    let add = |of: fn(&Statement) -> f64| statements.iter().map(of).sum();
    Some(Figure { value: add(|s| s.latency_ms.value), half: add(|s| s.latency_ms.half), line })
}

/// Whether commands make statements overlap, or leave them out.
fn may_skip(statements: &[Statement]) -> bool {
    const SKIP: &[&str] = &["\\if", "\\startpipeline", "\\gset pipeline"];
    statements.iter().any(|s| SKIP.iter().any(|word| s.text.starts_with(word)))
}

fn statements(evidence: &Evidence, verdicts: &mut Verdicts) {
    for run in evidence.recognised.runs.iter().filter(|run| run.is_closed_loop()) {
        // Clients and tps bound a latency that was computed from them.
        let implied = run.clients.zip(run.tps_connected()).filter(|(_, tps)| tps.value > 0.0);
        let implied = implied.map(|(clients, tps)| Figure {
            value: clients.value / tps.value * 1000.0,
            half: 0.0,
            line: tps.line,
        });
        if run.scripts.is_empty() {
            judge_statements(&run.statements, run.latency().or(implied), implied, None, verdicts);
        }
        for script in &run.scripts {
            let name = Some(script.name.clone());
            judge_statements(&script.statements, script.latency_average_ms, None, name, verdicts);
        }
    }
}

fn judge_statements(
    statements: &[Statement],
    whole: Option<Figure>,
    implied: Option<Figure>,
    script: Option<String>,
    verdicts: &mut Verdicts,
) {
    let (Some(sum), Some(whole)) = (sum(statements), whole) else { return };
    let has_failures = statements.iter().any(|s| s.failures.is_some_and(|f| f.value > 0.0));
    if may_skip(statements) || has_failures || whole.value <= 0.0 {
        return;
    }
    let most = whole.high().max(implied.map_or(0.0, Figure::high));
    let fault = if sum.low() > most * (1.0 + EDGES) {
        Some((weight(sum.low() / most - 1.0), Certain))
    } else {
        (sum.high() < whole.low() * (1.0 - OUTSIDE)).then_some((Warning, Likely))
    };
    let lines = [whole].into_iter().chain(statements.iter().map(|s| s.latency_ms));
    let lines: Vec<usize> = lines.map(|figure| figure.line).collect();
    let kind = StatementSum {
        script,
        statements: statements.len(),
        sum_ms: sum.value,
        transaction_ms: whole.value,
        share_percent: sum.value / whole.value * 100.0,
    };
    verdicts.judge(fault, lines, RunKind::StatementSum(kind));
}

fn latency_gap(evidence: &Evidence, verdicts: &mut Verdicts) {
    let runs = &evidence.recognised.runs;
    let mut seen: Vec<Vec<&str>> = Vec::new();
    for run in runs {
        let texts: Vec<&str> = run.statements.iter().map(|s| s.text.as_str()).collect();
        let commands = texts.iter().filter(|t| !t.starts_with('\\')).count();
        if commands < 2 || seen.contains(&texts) {
            continue;
        }
        // Latencies of retried or failed transactions are of something else.
        let is_alike = |other: &usize| {
            let statements = runs[*other].statements.iter().map(|s| s.text.as_str());
            runs[*other].is_closed_loop() && statements.eq(texts.iter().copied())
        };
        gap(evidence, (0..runs.len()).filter(is_alike), verdicts);
        seen.push(texts);
    }
}

/// Names the statement that makes most of the gap between the slowest and the fastest run.
fn gap(evidence: &Evidence, alike: impl Iterator<Item = usize>, verdicts: &mut Verdicts) {
    let runs = &evidence.recognised.runs;
    let mut by_latency: Vec<(Figure, usize)> =
        alike.filter_map(|at| Some((latency_of(&runs[at])?.0, at))).collect();
    by_latency.sort_by(|a, b| a.0.value.total_cmp(&b.0.value));
    let [(fast_ms, fast), .., (slow_ms, slow)] = by_latency[..] else { return };
    let gap = slow_ms.value - fast_ms.value;
    // Repeats of one thing differ by chance.
    let group = |at: usize| evidence.groups.iter().position(|group| group.contains(&at));
    if group(slow) == group(fast) || gap <= SERIOUS * slow_ms.value {
        return;
    }
    let statements = runs[slow].statements.iter().zip(&runs[fast].statements);
    let difference = |(s, f): &(&Statement, &Statement)| s.latency_ms.value - f.latency_ms.value;
    let Some(most) = statements.max_by(|a, b| difference(a).total_cmp(&difference(b))) else {
        return;
    };
    let (s, f) = most;
    let kind = LatencyGap {
        gap_ms: gap,
        slow_ms: slow_ms.value,
        fast_ms: fast_ms.value,
        statement: s.text.clone(),
        statement_slow_ms: s.latency_ms.value,
        statement_fast_ms: f.latency_ms.value,
        statement_gap_ms: difference(&most),
        share_percent: difference(&most) / gap * 100.0,
    };
    let lines = [s.latency_ms, f.latency_ms, slow_ms, fast_ms].map(|figure| figure.line);
    verdicts.report(Note, Certain, lines, RunKind::LatencyGap(kind));
}

fn scripts(evidence: &Evidence, verdicts: &mut Verdicts) {
    // With failures a script's share is of something else than its transactions.
    let runs = evidence.recognised.runs.iter().filter(|run| run.is_closed_loop());
    for run in runs.filter(|run| run.scripts.len() >= 2) {
        let hundred = Some(Figure { value: 100.0, half: 0.0, line: run.line });
        judge_scripts(run, ScriptFigure::Transactions, run.transactions, verdicts);
        judge_scripts(run, ScriptFigure::Tps, run.tps(), verdicts);
        judge_scripts(run, ScriptFigure::Share, hundred, verdicts);
        judge_scripts(run, ScriptFigure::Target, hundred, verdicts);
    }
}

fn judge_scripts(
    run: &PgbenchRun,
    figure: ScriptFigure,
    whole: Option<Figure>,
    verdicts: &mut Verdicts,
) {
    let parts = run.scripts.iter().map(|script| match figure {
        ScriptFigure::Transactions => script.transactions,
        ScriptFigure::Tps => script.tps,
        ScriptFigure::Share => script.percent,
        ScriptFigure::Target => script.target_percent,
    });
    let (Some(parts), Some(whole)) = (parts.collect::<Option<Vec<Figure>>>(), whole) else {
        return;
    };
    let sum: f64 = parts.iter().map(|p| p.value).sum();
    let half = parts.iter().map(|p| p.half).sum::<f64>() + whole.half + 1e-9 * whole.value;
    // Up to 17, threads count a script's transactions without a lock, and lose a few.
    let is_right = (whole.value * (1.0 - EDGES) - half..=whole.value + half).contains(&sum);
    let fault = (!is_right).then(|| (weight(sum / whole.value - 1.0), Certain));
    let lines: Vec<usize> = run.scripts.iter().map(|s| s.line).collect();
    verdicts.judge(fault, lines, RunKind::ScriptSum { figure, sum, whole: whole.value });
}
