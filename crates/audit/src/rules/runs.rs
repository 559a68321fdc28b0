//! Whether the figures of one report of pgbench agree with each other.

use serde_json::json;

use super::rule::{Rule, SERIOUS, Verdicts, exact, number, weight};
use crate::figure::Figure;
use crate::finding::Confidence::{Certain, Likely};
use crate::finding::Severity::{Note, Serious, Warning};
use crate::recognise::{Evidence, PgbenchRun, RowOfLoad, Statement};

/// What clocks and the edges of a run may take, beside rounding.
const EDGES: f64 = 0.01;

/// Less than this share of the clients' time in transactions is said (docs/statistics.md).
const IDLE: f64 = 0.05;

/// More than this share of a transaction outside its statements is said.
const OUTSIDE: f64 = 0.10;

pub(super) const RULES: &[Rule] = &[
    Rule {
        name: "transactions",
        looks_for: "transactions ÷ tps is not the duration: shorter by more than the connection time, 1% and 0.1 s, or longer by more \
                    than 1% (2% where no deviation is printed; at least 1 s) and five mean latencies with their deviations; counts that are not clients × transactions; more threads than clients",
        source: "pgbench documentation, tps and -T; pgbench finishes the transactions under way",
        judge: transactions,
    },
    Rule {
        name: "littles-law",
        looks_for: "mean latency × tps above the clients by more than rounding and 1%, or, of reports of pgbench, 5% below them, in closed \
                    loops without failures; rows of tables with clients, tps and latency in ms likewise",
        source: "J. D. C. Little, A proof for the queuing formula L = λW, Operations Research 9 (1961)",
        judge: littles_law,
    },
    Rule {
        name: "statements",
        looks_for: "statement latencies that add up to more than the transaction's (rounding and 1%), or to less than 90% of it",
        source: "pgbench documentation, -r",
        judge: statements,
    },
    Rule {
        name: "latency-gap",
        looks_for: "which statement makes the difference between the slowest and the fastest run of one script, from 5% on",
        source: "differences of pgbench's statement latencies (-r)",
        judge: latency_gap,
    },
    Rule {
        name: "scripts",
        looks_for: "scripts' transactions, tps and shares that add up to more than the whole, or to 1% less: pgbench's threads count them without a lock",
        source: "pgbench documentation, several scripts",
        judge: scripts,
    },
];

fn transactions(evidence: &Evidence, verdicts: &mut Verdicts) {
    for run in &evidence.recognised.runs {
        threads(run, verdicts);
        counted(run, verdicts);
        lasted(run, verdicts);
    }
}

/// Threads against clients.
fn threads(run: &PgbenchRun, verdicts: &mut Verdicts) {
    let (Some(clients), Some(threads)) = (run.clients, run.threads) else { return };
    if threads.value > clients.value {
        let message = format!(
            "{} threads of {} clients: pgbench runs no more threads than clients",
            threads.value, clients.value
        );
        let computed = json!({ "threads": threads.value, "clients": clients.value });
        verdicts.found(Serious, Certain, &[threads.line, clients.line], message, computed);
    }
}

/// Transactions against clients × transactions of each.
fn counted(run: &PgbenchRun, verdicts: &mut Verdicts) {
    let Some(done) = run.transactions else { return };
    let of_clients = run.clients.zip(run.transactions_per_client);
    let Some(wanted) = run.transactions_wanted else {
        if let Some((clients, each)) = of_clients
            && done.value > clients.value * each.value
        {
            let product = clients.value * each.value;
            let message = format!(
                "{} transactions were done, and {} clients × {} are {product}",
                done.value, clients.value, each.value
            );
            let computed = json!({ "done": done.value, "wanted": product });
            let lines = [done.line, clients.line, each.line];
            verdicts.found(Serious, Certain, &lines, message, computed);
        }
        return;
    };
    let lines = [done.line];
    if let Some((clients, each)) = of_clients {
        let product = clients.value * each.value;
        if product != wanted.value {
            let message = format!(
                "{} clients × {} transactions are {product}, not {}",
                clients.value, each.value, wanted.value
            );
            let computed = json!({ "wanted": product, "printed": wanted.value });
            verdicts.found(
                Serious,
                Certain,
                &[wanted.line, clients.line, each.line],
                message,
                computed,
            );
        }
    }
    let computed = json!({ "done": done.value, "wanted": wanted.value });
    let lost = [run.failed, run.skipped].iter().flatten().map(|f| f.value).sum::<f64>();
    if done.value < wanted.value && done.value + lost == wanted.value {
        let message = format!(
            "{} transactions done, {lost} failed or skipped: {} in all",
            done.value, wanted.value
        );
        verdicts.right(&lines, message, computed);
    } else if done.value < wanted.value {
        let missing = exact(wanted.value - done.value - lost);
        let message = format!(
            "{missing} of {} transactions were not done: clients ended early",
            wanted.value
        );
        verdicts.found(Warning, Certain, &lines, message, computed);
    } else if done.value > wanted.value {
        let message = format!("{} transactions were done of {}", done.value, wanted.value);
        verdicts.found(Serious, Certain, &lines, message, computed);
    } else {
        verdicts.right(&lines, format!("all {} transactions were done", wanted.value), computed);
    }
}

/// Transactions ÷ tps against the duration.
fn lasted(run: &PgbenchRun, verdicts: &mut Verdicts) {
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
    let length = done.value / tps.value;
    let off = (length - duration.value) / duration.value;
    let computed =
        json!({ "seconds": length, "printed_seconds": duration.value, "off_percent": off * 100.0 });
    let lines = [done.line, tps.line, duration.line];
    let sum =
        format!("{} transactions ÷ {} tps are {} s", done.value, exact(tps.value), exact(length));
    if longest < low || shortest > high {
        let sure = if longest < low { Certain } else { Likely };
        let message = format!("{sum}, not {} s", duration.value);
        verdicts.found(weight(off), sure, &lines, message, computed);
    } else {
        verdicts.right(&lines, format!("{sum}, as its duration says"), computed);
    }
}

/// What may be called the mean latency of a transaction, its lines, and whether it is printed as
/// such.
fn latency_of(run: &PgbenchRun) -> Option<(Figure, Vec<usize>, bool)> {
    if let Some(latency) = run.latency() {
        return Some((latency, vec![latency.line], true));
    }
    let (sum, half) = sum(&run.statements)?;
    let lines = run.statements.iter().map(|s| s.latency_ms.line).collect();
    Some((Figure { value: sum, half, line: run.statements[0].latency_ms.line }, lines, false))
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
        let busy = latency_ms.value * tps.value / 1000.0;
        let message = format!(
            "mean latency × tps, {} ms × {}, are {} clients at work of {}: more than there are",
            exact(latency_ms.value),
            exact(tps.value),
            exact(busy),
            clients.value
        );
        let computed = json!({
            "clients_at_work": busy, "clients": clients.value, "latency_ms": latency_ms.value, "tps": tps.value,
        });
        let severity = weight(at_least / clients.value - 1.0);
        verdicts.found(severity, Certain, &[tps.line], message, computed);
    }
    if !right.is_empty() {
        let message = format!("rows with no more clients at work than there are: {}", right.len());
        verdicts.right(&right, message, json!({ "rows": right.len() }));
    }
}

fn littles_law(evidence: &Evidence, verdicts: &mut Verdicts) {
    littles_law_of_rows(evidence, verdicts);
    for run in &evidence.recognised.runs {
        let limited = |c: &&crate::recognise::Command| {
            c.line < run.line && run.line - c.line < 12 && c.rate_limited
        };
        if !run.closed_loop()
            || evidence.commands.iter().any(|c| limited(&c))
            || !run.scripts.is_empty() && run.latency().is_none()
        {
            continue;
        }
        let (Some(clients), Some((latency, mut lines, printed))) = (run.clients, latency_of(run))
        else {
            continue;
        };
        // Time in which nobody could send is no time between transactions; where both are printed,
        // each guards its side.
        let (Some(most), Some(least)) = (run.tps_connected(), run.tps().or(run.tps_connected()))
        else {
            continue;
        };
        let derived = run.latency_stddev_ms.is_none() && printed;
        if derived && run.tps_including.is_none() && run.tps_excluding.is_some() {
            continue;
        }
        if clients.value <= 0.0 || latency.value <= 0.0 || most.value <= 0.0 {
            continue;
        }
        let busy = |tps: Figure| tps.value * latency.value / 1000.0;
        let (at_least, at_most) =
            (latency.low() * least.low() / 1000.0, latency.high() * most.high() / 1000.0);
        let what = if printed { "mean latency" } else { "the statements' latencies" };
        let tps = if at_most < clients.value { most } else { least };
        let sum = format!(
            "{what} × tps, {} ms × {}, are {} clients at work of {}",
            exact(latency.value),
            exact(tps.value),
            exact(busy(tps)),
            clients.value
        );
        let computed = json!({
            "clients_at_work": busy(tps), "clients": clients.value, "latency_ms": latency.value, "tps": tps.value,
        });
        lines.extend([tps.line, clients.line]);
        if at_least > clients.value * (1.0 + EDGES) {
            let message = format!("{sum}: more than there are");
            verdicts.found(
                weight(at_least / clients.value - 1.0),
                Certain,
                &lines,
                message,
                computed,
            );
        } else if at_most < clients.value * (1.0 - IDLE) {
            let share = number((1.0 - at_most / clients.value) * 100.0);
            let message = format!(
                "{sum}: for {share}% of the time clients were in no transaction; the load generator may have been the limit"
            );
            verdicts.found(Warning, Likely, &lines, message, computed);
        } else {
            verdicts.right(&lines, sum, computed);
        }
    }
}

/// The sum of latencies, and what rounding may have taken; none without any.
fn sum(statements: &[Statement]) -> Option<(f64, f64)> {
    (!statements.is_empty()).then(|| {
        let add = |of: fn(&Statement) -> f64| statements.iter().map(of).sum();
        (add(|s| s.latency_ms.value), add(|s| s.latency_ms.half))
    })
}

/// Commands that make statements overlap or be left out.
fn may_skip(statements: &[Statement]) -> bool {
    const SKIP: &[&str] = &["\\if", "\\startpipeline", "\\gset pipeline"];
    statements.iter().any(|s| SKIP.iter().any(|word| s.text.starts_with(word)))
}

fn statements(evidence: &Evidence, verdicts: &mut Verdicts) {
    for run in &evidence.recognised.runs {
        if !run.closed_loop() {
            continue;
        }
        // What clients and tps say bounds a latency that was computed from them.
        let implied = run.clients.zip(run.tps_connected()).filter(|(_, tps)| tps.value > 0.0);
        let implied = implied.map(|(clients, tps)| Figure {
            value: clients.value / tps.value * 1000.0,
            half: 0.0,
            line: tps.line,
        });
        if run.scripts.is_empty() {
            add_up(
                &run.statements,
                run.latency().or(implied),
                implied,
                "the transaction",
                verdicts,
            );
        }
        for script in &run.scripts {
            add_up(&script.statements, script.latency_average_ms, None, &script.name, verdicts);
        }
    }
}

fn add_up(
    statements: &[Statement],
    whole: Option<Figure>,
    implied: Option<Figure>,
    name: &str,
    verdicts: &mut Verdicts,
) {
    let (Some((sum, half)), Some(whole)) = (sum(statements), whole) else { return };
    if may_skip(statements)
        || whole.value <= 0.0
        || statements.iter().any(|s| s.failures.is_some_and(|f| f.value > 0.0))
    {
        return;
    }
    let most = whole.high().max(implied.map_or(0.0, Figure::high));
    let lines: Vec<usize> =
        std::iter::once(whole.line).chain(statements.iter().map(|s| s.latency_ms.line)).collect();
    let share = sum / whole.value;
    let computed =
        json!({ "sum_ms": sum, "transaction_ms": whole.value, "share_percent": share * 100.0 });
    let words = format!(
        "statement latencies, {} in number, add up to {} ms; {name} takes {} ms",
        statements.len(),
        exact(sum),
        exact(whole.value)
    );
    if sum - half > most * (1.0 + EDGES) {
        let message = format!("{words}: parts are more than the whole");
        verdicts.found(weight((sum - half) / most - 1.0), Certain, &lines, message, computed);
    } else if sum + half < whole.low() * (1.0 - OUTSIDE) {
        let outside = number((1.0 - share) * 100.0);
        let message =
            format!("{words}: {outside}% of it is in none of them, so it may be the client's");
        verdicts.found(Warning, Likely, &lines, message, computed);
    } else {
        verdicts.right(&lines, words, computed);
    }
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
        let alike: Vec<&PgbenchRun> = runs
            .iter()
            .filter(|r| {
                r.closed_loop()
                    && r.statements.len() == texts.len()
                    && r.statements.iter().map(|s| &s.text).eq(&texts)
            })
            .collect();
        seen.push(texts);
        gap(evidence, &alike, verdicts);
    }
}

fn gap(evidence: &Evidence, alike: &[&PgbenchRun], verdicts: &mut Verdicts) {
    let latency = |run: &&&PgbenchRun| latency_of(run).map_or(f64::NAN, |(l, ..)| l.value);
    let by_latency = |a: &&&PgbenchRun, b: &&&PgbenchRun| latency(a).total_cmp(&latency(b));
    let (Some(slow), Some(fast)) =
        (alike.iter().max_by(by_latency), alike.iter().min_by(by_latency))
    else {
        return;
    };
    let (Some((slow_ms, ..)), Some((fast_ms, ..))) = (latency_of(slow), latency_of(fast)) else {
        return;
    };
    let gap = slow_ms.value - fast_ms.value;
    // Repeats of one thing differ by chance.
    let group = |run: &PgbenchRun| {
        evidence
            .groups
            .iter()
            .position(|g| g.iter().any(|i| evidence.recognised.runs[*i].line == run.line))
    };
    if group(slow) == group(fast) || gap <= SERIOUS * slow_ms.value {
        return;
    }
    let differences = slow
        .statements
        .iter()
        .zip(&fast.statements)
        .map(|(s, f)| (s, f, s.latency_ms.value - f.latency_ms.value));
    let Some((s, f, most)) = differences.max_by(|a, b| a.2.total_cmp(&b.2)) else { return };
    let share = most / gap;
    let text: String = s.text.chars().take(60).collect();
    // Where other statements went the other way, one makes more than the whole difference.
    let rest = if share > 1.005 { ", other statements make up for some of it" } else { "" };
    let message = format!(
        "of the {} ms between {} and {} ms, {}% are in `{text}`: {} against {} ms{rest}",
        exact(gap),
        exact(slow_ms.value),
        exact(fast_ms.value),
        number(share * 100.0),
        exact(s.latency_ms.value),
        exact(f.latency_ms.value)
    );
    let computed = json!({
        "gap_ms": gap, "statement": s.text, "statement_gap_ms": most, "share_percent": share * 100.0,
    });
    let lines = [s.latency_ms.line, f.latency_ms.line, slow_ms.line, fast_ms.line];
    verdicts.found(Note, Certain, &lines, message, computed);
}

fn scripts(evidence: &Evidence, verdicts: &mut Verdicts) {
    for run in &evidence.recognised.runs {
        let scripts = &run.scripts;
        // With failures a script's share is of something else than its transactions.
        if scripts.len() < 2 || !run.closed_loop() {
            continue;
        }
        let lines: Vec<usize> = scripts.iter().map(|s| s.line).collect();
        let parts: Option<Vec<Figure>> = scripts.iter().map(|s| s.percent).collect();
        let sums = [
            (
                "transactions",
                scripts.iter().map(|s| s.transactions).collect::<Option<Vec<_>>>(),
                run.transactions,
            ),
            ("tps", scripts.iter().map(|s| s.tps).collect(), run.tps()),
            ("shares in percent", parts, Some(Figure { value: 100.0, half: 0.0, line: run.line })),
            (
                "targets in percent",
                scripts.iter().map(|s| s.target_percent).collect(),
                Some(Figure { value: 100.0, half: 0.0, line: run.line }),
            ),
        ];
        for (what, parts, whole) in sums {
            let (Some(parts), Some(whole)) = (parts, whole) else { continue };
            let sum: f64 = parts.iter().map(|p| p.value).sum();
            let half = parts.iter().map(|p| p.half).sum::<f64>() + whole.half + 1e-9 * whole.value;
            let computed = json!({ "sum": sum, "whole": whole.value });
            let words = format!("the scripts' {what} add up to {}", exact(sum));
            // To 17 threads count a script's transactions without a lock, and lose a few.
            if sum > whole.value + half || sum < whole.value * (1.0 - EDGES) - half {
                let message = format!("{words}, not to {}", exact(whole.value));
                verdicts.found(weight(sum / whole.value - 1.0), Certain, &lines, message, computed);
            } else {
                verdicts.right(&lines, words, computed);
            }
        }
    }
}
