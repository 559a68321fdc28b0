//! Whether a report is of what the command above it asks for.

use super::rule::{AuditRule, Verdicts};
use crate::figure::Figure;
use crate::finding::Confidence::{Certain, Likely};
use crate::finding::Severity::Warning;
use crate::finding::{Asked, DesignKind};
use crate::recognise::{Command, Evidence, LoadKind, PgbenchRun, Span};

/// Lines between a command and the report that it printed.
const NEAR: usize = 12;

/// Less than this share of a rate was not reached.
const REACHED: f64 = 0.9;

/// More than this share beyond the requested time is no edge of a run.
const LONGER: f64 = 0.05;

pub(super) const RULES: &[AuditRule] = &[
    AuditRule { name: "command-contradiction", judge: contradictions },
    AuditRule { name: "rate-reached", judge: rates },
    AuditRule { name: "sysbench-command", judge: sysbench },
];

/// Each report with the only one of `commands` between it and the report before.
fn with_only_command<'a, R, C>(
    reports: &'a [R],
    commands: &'a [C],
    line: fn(&C) -> usize,
) -> impl Iterator<Item = (&'a R, &'a C, usize)>
where
    Span: From<&'a R>,
{
    let mut before = 0;
    reports.iter().filter_map(move |report| {
        let Span { first_line: begin, last_line, .. } = Span::from(report);
        let after = std::mem::replace(&mut before, last_line);
        let mut between = commands.iter().filter(|c| line(c) > after && line(c) < begin);
        let only = between.next().filter(|_| between.next().is_none())?;
        Some((report, only, begin - line(only)))
    })
}

/// Runs of pgbench that a whole command right above started.
fn runs_with_command(evidence: &Evidence) -> impl Iterator<Item = (&PgbenchRun, &Command)> {
    with_only_command(&evidence.recognised.runs, &evidence.commands, |command| command.line)
        .filter(|(_, command, distance)| command.is_whole && *distance <= NEAR)
        .map(|(run, command, _)| (run, command))
}

/// Parameters that are both asked for and reported.
fn pairs(run: &PgbenchRun, command: &Command) -> Vec<[Asked; 2]> {
    let value = |figure: Option<Figure>| figure.map(|figure| figure.value);
    let both = |a: Option<f64>, b: Option<f64>, parameter: fn(f64) -> Asked| {
        a.zip(b).map(|(a, b)| [parameter(a), parameter(b)])
    };
    // More threads than clients would have nothing to do.
    let clients = value(command.clients.or(run.clients)).unwrap_or(f64::INFINITY);
    let threads = value(command.threads).map(|threads| threads.min(clients));
    let (seconds, each) = (value(command.duration_s), value(command.transactions_per_client));
    let (ran_s, ran_each) = (value(run.duration_s), value(run.transactions_per_client));
    let pairs = [
        both(value(command.clients), value(run.clients), Asked::Clients),
        both(threads, value(run.threads), Asked::Threads),
        both(seconds, ran_s, Asked::Seconds),
        both(each, ran_each, Asked::Transactions),
        seconds.zip(ran_each).map(|(s, each)| [Asked::Seconds(s), Asked::Transactions(each)]),
        each.zip(ran_s).map(|(each, s)| [Asked::Transactions(each), Asked::Seconds(s)]),
        command.protocol.as_ref().zip(run.query_mode.as_ref()).map(|(asked, reported)| {
            [Asked::QueryMode(asked.clone()), Asked::QueryMode(reported.clone())]
        }),
        run.transaction_type.as_deref().map(|reported| {
            [Asked::Load(command.kind()), Asked::Load(LoadKind::from_report(reported))]
        }),
        // With a rate the line on its lag is always printed, and behind the latency.
        run.latency_average_ms.zip(run.tps()).map(|_| {
            [Asked::Rate(command.rate_limited), Asked::Rate(run.schedule_lag_ms.is_some())]
        }),
    ];
    pairs.into_iter().flatten().collect()
}

/// Reports that the command and the report, on `lines`, are of different things.
fn report_other(verdicts: &mut Verdicts, lines: [usize; 2], [asked, reported]: [Asked; 2]) {
    let kind = DesignKind::OtherThanAsked { asked, reported, command_line: lines[1] };
    verdicts.report(Warning, Likely, lines, kind);
}

fn contradictions(evidence: &Evidence, verdicts: &mut Verdicts) {
    for (run, command) in runs_with_command(evidence) {
        let lines = [run.line, command.line];
        let (wrong, right): (Vec<_>, Vec<_>) =
            pairs(run, command).into_iter().partition(|[asked, reported]| asked != reported);
        // That nothing limited the rate says little by itself.
        if wrong.is_empty() && right.len() > 1 {
            let compared = right.into_iter().map(|[asked, _]| asked).collect();
            verdicts.right(lines, DesignKind::AsAsked { compared });
        }
        for pair in wrong {
            report_other(verdicts, lines, pair);
        }
    }
}

fn rates(evidence: &Evidence, verdicts: &mut Verdicts) {
    for (run, command) in runs_with_command(evidence) {
        let (Some(rate), Some(tps)) = (command.rate, run.tps()) else { continue };
        if rate.value <= 0.0 || run.schedule_lag_ms.is_none() {
            continue;
        }
        let share = tps.value / rate.value;
        let fault = (share < REACHED).then_some((Warning, Certain));
        let kind = DesignKind::Rate { rate: rate.value, tps: tps.value, percent: share * 100.0 };
        verdicts.judge(fault, [tps.line, rate.line], kind);
    }
}

fn sysbench(evidence: &Evidence, verdicts: &mut Verdicts) {
    let commands = &evidence.sysbench_commands;
    for (run, command, _) in
        with_only_command(&evidence.recognised.sysbench, commands, |command| command.line)
    {
        if let (Some(asked), Some(reported)) = (command.threads, run.threads)
            && asked.value != reported.value
        {
            let pair = [asked, reported].map(|figure| Asked::Threads(figure.value));
            report_other(verdicts, [reported.line, command.line], pair);
        }
        if let (Some(asked), Some(reported)) = (command.time_s, run.total_time_s)
            && asked.value > 0.0
            && reported.value > asked.value * (1.0 + LONGER) + 1.0
        {
            let pair = [asked, reported].map(|figure| Asked::Seconds(figure.value));
            report_other(verdicts, [reported.line, command.line], pair);
        }
    }
}
