//! Whether a report of pgbench is of what the command above it asks for.

use pgdyno_model::format::counted;
use serde_json::json;

use super::rule::{Rule, Verdicts, exact, number};
use crate::finding::Confidence::Certain;
use crate::finding::Severity::Warning;
use crate::recognise::{Command, Evidence, Kind, PgbenchRun};

/// Lines between a command and the report that it printed.
const NEAR: usize = 12;

/// Less than this share of a rate was not reached.
const REACHED: f64 = 0.9;

pub(super) const RULES: &[Rule] = &[
    Rule {
        name: "command-contradiction",
        looks_for: "the only whole command of pgbench right above a report whose -c, -j, -M, -R, -t, -T or script (-b, -f, -N, -S), or what pgbench \
                    takes without them, is not what the report says was run",
        source: "pgbench documentation, options; pgbench runs no more threads than clients",
        judge: contradictions,
    },
    Rule {
        name: "rate-reached",
        looks_for: "tps below 90% of the rate that the command above asks for",
        source: "pgbench documentation, -R",
        judge: rates,
    },
];

/// Each run with the one whole command above it, and none of another run.
fn commanded(evidence: &Evidence) -> impl Iterator<Item = (&PgbenchRun, &Command)> {
    let mut before = 0;
    evidence.recognised.runs.iter().filter_map(move |run| {
        let begin = run.progress.first().map_or(run.line, |progress| progress.at_s.line);
        let between = evidence.commands.iter().filter(|c| c.line > before && c.line < begin);
        let between: Vec<&Command> = between.collect();
        before = run.last_line;
        let [command] = between.as_slice() else { return None };
        (command.is_whole && begin - command.line <= NEAR).then_some((run, *command))
    })
}

/// What is asked for and what is reported, each with its words; none of what only one of them has.
fn pairs(run: &PgbenchRun, command: &Command) -> Vec<(String, String)> {
    let mut pairs = Vec::new();
    // More threads than clients would have nothing to do.
    let threads = command.threads.map(|threads| match command.clients.or(run.clients) {
        Some(clients) => threads.value.min(clients.value),
        None => threads.value,
    });
    let value = |figure: Option<crate::figure::Figure>| figure.map(|figure| figure.value);
    let of_client = |each: f64| format!("{} per client", counted(each as u64, "transaction"));
    let in_seconds = |seconds: f64| format!("{seconds} s");
    let clients = |n: f64| counted(n as u64, "client");
    let in_threads = |n: f64| counted(n as u64, "thread");
    let mut compare = |asked: Option<f64>, reported: Option<f64>, words: &dyn Fn(f64) -> String| {
        pairs.extend(asked.zip(reported).map(|(asked, reported)| (words(asked), words(reported))));
    };
    compare(value(command.clients), value(run.clients), &clients);
    compare(threads, value(run.threads), &in_threads);
    compare(value(command.duration_s), value(run.duration_s), &in_seconds);
    let each = value(run.transactions_per_client);
    compare(value(command.transactions_per_client), each, &of_client);
    if let (Some(seconds), Some(each)) = (command.duration_s, run.transactions_per_client) {
        pairs.push((in_seconds(seconds.value), of_client(each.value)));
    }
    if let (Some(each), Some(seconds)) = (command.transactions_per_client, run.duration_s) {
        pairs.push((of_client(each.value), in_seconds(seconds.value)));
    }
    if let (Some(asked), Some(reported)) = (&command.protocol, &run.query_mode) {
        pairs.push((format!("query mode {asked}"), format!("query mode {reported}")));
    }
    if let Some(kind) = &run.transaction_type {
        let (asked, reported) = (command.kind(), Kind::of_report(kind));
        pairs.push((asked.name().to_owned(), reported.name().to_owned()));
    }
    // With a rate the line on its lag is always printed, and behind the latency.
    if run.latency_average_ms.is_some() && run.tps().is_some() {
        let words = |is_limited| if is_limited { "a rate" } else { "no rate" }.to_owned();
        let reported = words(run.schedule_lag_ms.is_some());
        pairs.push((words(command.rate_limited), reported));
    }
    pairs
}

fn contradictions(evidence: &Evidence, verdicts: &mut Verdicts) {
    for (run, command) in commanded(evidence) {
        let pairs = pairs(run, command);
        let lines = [run.line, command.line];
        let wrong: Vec<_> = pairs.iter().filter(|(asked, reported)| asked != reported).collect();
        if wrong.is_empty() {
            let words: Vec<&str> = pairs.iter().map(|(asked, _)| asked.as_str()).collect();
            // That nothing limited the rate says little by itself.
            if words.len() > 1 {
                let message =
                    format!("the report is of what its command asks for: {}", words.join(", "));
                verdicts.right(&lines, message, json!({ "compared": words }));
            }
            continue;
        }
        for (asked, reported) in wrong {
            verdicts.asked_otherwise(lines, asked, reported);
        }
    }
}

fn rates(evidence: &Evidence, verdicts: &mut Verdicts) {
    for (run, command) in commanded(evidence) {
        let (Some(rate), Some(tps)) = (command.rate, run.tps()) else { continue };
        if rate.value <= 0.0 || run.schedule_lag_ms.is_none() {
            continue;
        }
        let share = tps.value / rate.value;
        let lines = [tps.line, rate.line];
        let computed = json!({ "rate": rate.value, "tps": tps.value, "percent": share * 100.0 });
        let words = format!(
            "{} tps of a rate of {} are {}%",
            exact(tps.value),
            exact(rate.value),
            number(share * 100.0)
        );
        if share < REACHED {
            let message = format!(
                "{words}: the rate was not reached, so that latency grows with the run's length, from when transactions were due"
            );
            verdicts.found(Warning, Certain, &lines, message, computed);
        } else {
            verdicts.right(&lines, words, computed);
        }
    }
}
