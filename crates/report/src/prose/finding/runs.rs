//! Sentences on figures of a run that follow from its other figures.

use pgdyno_audit::{
    ClientsAtWork, LatencyGap, LatencyOf, PrintedFigure, Program, RunKind, ScriptFigure,
    StatementSum,
};

use super::{exact, rounded};

pub(super) fn message(kind: &RunKind, is_right: bool) -> String {
    match kind {
        RunKind::Threads { threads, clients } => format!(
            "{threads} threads of {clients} clients: pgbench runs no more threads than clients"
        ),
        RunKind::BeyondClients { done, clients, each, wanted } => {
            format!("{done} transactions were done, and {clients} clients × {each} are {wanted}")
        }
        RunKind::Wanted { wanted, clients, each, printed } => {
            format!("{clients} clients × {each} transactions are {wanted}, not {printed}")
        }
        RunKind::Done { done, wanted, lost } => done_of_wanted(*done, *wanted, *lost, is_right),
        RunKind::Duration { transactions, tps, seconds, printed_seconds, .. } => {
            let (tps, seconds) = (exact(*tps), exact(*seconds));
            let outcome = match is_right {
                true => "as its duration says".to_owned(),
                false => format!("not {printed_seconds} s"),
            };
            format!("{transactions} transactions ÷ {tps} tps are {seconds} s, {outcome}")
        }
        RunKind::ClientsAtWork(work) => clients_at_work(work, is_right),
        RunKind::RowsAtWork { rows } => {
            format!("rows with no more clients at work than there are: {rows}")
        }
        RunKind::StatementSum(sum) => statement_sum(sum, is_right),
        RunKind::LatencyGap(gap) => latency_gap(gap),
        RunKind::ScriptSum { figure, sum, whole } => {
            let words = format!("the scripts' {} add up to {}", of_scripts(*figure), exact(*sum));
            if is_right { words } else { format!("{words}, not to {}", exact(*whole)) }
        }
        RunKind::Printed { figure, computed, printed, .. } => {
            format!("{} {}, not {}", computation(*figure), exact(*computed), exact(*printed))
        }
        RunKind::Agreement { program: Program::Pgbench, figures } => {
            format!("counts and percentages of pgbench's that agree: {figures}")
        }
        RunKind::Agreement { program: Program::Sysbench, figures } => format!(
            "figures of sysbench that agree with those that they are computed of: {figures}"
        ),
        RunKind::CappedPercentile { .. } => "a percentile of 100000 ms is the greatest that \
            sysbench's histogram knows: the true one may be any that is longer"
            .to_owned(),
    }
}

fn done_of_wanted(done: f64, wanted: f64, lost: f64, is_right: bool) -> String {
    if done == wanted {
        format!("all {wanted} transactions were done")
    } else if is_right {
        format!("{done} transactions done, {lost} failed or skipped: {wanted} in all")
    } else if done > wanted {
        format!("{done} transactions were done of {wanted}")
    } else {
        let missing = exact(wanted - done - lost);
        format!("{missing} of {wanted} transactions were not done: clients ended early")
    }
}

fn clients_at_work(work: &ClientsAtWork, is_right: bool) -> String {
    let latency = match work.latency_of {
        LatencyOf::Transaction => "mean latency",
        LatencyOf::Statements => "the statements' latencies",
    };
    let words = format!(
        "{latency} × tps, {} ms × {}, are {} clients at work of {}",
        exact(work.latency_ms),
        exact(work.tps),
        exact(work.clients_at_work),
        work.clients
    );
    match work.idle_percent {
        Some(idle) => format!(
            "{words}: for {}% of the time clients were in no transaction; the load generator may \
             have been the limit",
            rounded(idle)
        ),
        None if is_right => words,
        None => format!("{words}: more than there are"),
    }
}

fn statement_sum(sum: &StatementSum, is_right: bool) -> String {
    let words = format!(
        "statement latencies, {} in number, add up to {} ms; {} takes {} ms",
        sum.statements,
        exact(sum.sum_ms),
        sum.script.as_deref().unwrap_or("the transaction"),
        exact(sum.transaction_ms)
    );
    if is_right {
        words
    } else if sum.sum_ms > sum.transaction_ms {
        format!("{words}: parts are more than the whole")
    } else {
        let outside = rounded(100.0 - sum.share_percent);
        format!("{words}: {outside}% of it is in none of them, so it may be the client's")
    }
}

/// Share beyond which one statement makes more than the whole difference (percent).
const MORE_THAN_ALL: f64 = 100.5;

fn latency_gap(gap: &LatencyGap) -> String {
    let statement: String = gap.statement.chars().take(60).collect();
    // Other statements went the other way.
    let is_more = gap.share_percent > MORE_THAN_ALL;
    let rest = if is_more { ", other statements make up for some of it" } else { "" };
    format!(
        "of the {} ms between {} and {} ms, {}% are in `{statement}`: {} against {} ms{rest}",
        exact(gap.gap_ms),
        exact(gap.slow_ms),
        exact(gap.fast_ms),
        rounded(gap.share_percent),
        exact(gap.statement_slow_ms),
        exact(gap.statement_fast_ms)
    )
}

fn of_scripts(figure: ScriptFigure) -> &'static str {
    match figure {
        ScriptFigure::Transactions => "transactions",
        ScriptFigure::Tps => "tps",
        ScriptFigure::Share => "shares in percent",
        ScriptFigure::Target => "targets in percent",
    }
}

/// A figure by the others that it is computed from.
fn computation(figure: PrintedFigure) -> &'static str {
    match figure {
        PrintedFigure::PercentageOfCount => "the percentage of the counts:",
        PrintedFigure::TransactionsDone => "transactions done:",
        PrintedFigure::FailuresOfAllKinds => "failures of all kinds:",
        PrintedFigure::Retries => "retries, at least one of each retried transaction:",
        PrintedFigure::TransactionRate => "transactions ÷ total time is",
        PrintedFigure::QueryRate => "queries ÷ total time is",
        PrintedFigure::Queries => "read + write + other is",
        PrintedFigure::LatencySum => "mean latency × events is",
        PrintedFigure::Events => "events of a thread × threads is",
        PrintedFigure::ThreadTime => "time of a thread × threads (ms) is",
    }
}
