//! Words about a recording and its replay.

use std::fmt::Write as _;

use pgdyno_replay::{
    Distribution, Obstacle, ObstacleCount, RecordingSummary, ReplayEnd, ReplayProgress,
    ReplayReport,
};
use pgdyno_text::format;

use crate::error::CommandError;

/// SQLSTATEs that are listed at most.
const MOST_ERRORS: usize = 5;

/// Renders what a log holds.
pub(super) fn summary(summary: &RecordingSummary) -> String {
    let count = format::count;
    let mut text = format!(
        "{} in {} over {}, {} at one time at most\n",
        format::counted(summary.statements, "statement"),
        format::counted(summary.sessions, "session"),
        format::duration(summary.span_s),
        count(summary.peak_sessions as u64),
    );
    let per_second = summary.statements as f64 / summary.span_s.max(0.001);
    let mut line = |text_of_line: String| {
        text.push_str("  ");
        text.push_str(&text_of_line);
        text.push('\n');
    };
    line(format!(
        "statements a second: {} on average, {} in the busiest second",
        format::rate(per_second),
        count(summary.peak_per_second)
    ));
    line(format!(
        "protocol: {} extended, {} simple",
        count(summary.extended),
        count(summary.statements - summary.extended)
    ));
    line(format!(
        "durations logged: {}; failed in the log: {}",
        count(summary.with_duration),
        count(summary.failed)
    ));
    for (name, statements) in &summary.databases {
        line(format!("database {name}: {}", format::counted(*statements, "statement")));
    }
    line(format!("records: {}, {} of other kinds", count(summary.records), count(summary.ignored)));
    cautions(summary).into_iter().for_each(&mut line);
    for obstacle in &summary.obstacles {
        line(format!("cannot be replayed: {}", of_obstacle(obstacle)));
    }
    text
}

/// Returns what a reader of figures should know of the log, one sentence each.
pub(super) fn cautions(summary: &RecordingSummary) -> Vec<String> {
    let mut all = Vec::new();
    if summary.under_way > 0 {
        all.push(format!(
            "{} of {} sessions were already under way when the log began: settings, transactions \
             and prepared statements from before are missing",
            format::count(summary.under_way),
            format::count(summary.sessions)
        ));
    }
    if summary.missing > 0 {
        all.push(format!(
            "{} in the middle of sessions are missing: is a file of the log?",
            format::counted(summary.missing, "record")
        ));
    }
    if summary.cut_files > 0 {
        let files = format::counted(summary.cut_files, "file");
        all.push(format!("the last record of {files} was cut off and is left out"));
    }
    all
}

/// Returns the error of a log that cannot be replayed whole.
pub(super) fn refusal(summary: &RecordingSummary) -> CommandError {
    let unknown: u64 = summary.obstacles.iter().map(|obstacle| obstacle.count).sum();
    let obstacles: Vec<String> = summary.obstacles.iter().map(of_obstacle).collect();
    let message = format!(
        "cannot replay {} of {} statements: {}",
        format::count(unknown),
        format::count(unknown + summary.statements),
        obstacles.join("; ")
    );
    let first = summary.obstacles.first().map_or("", |obstacle| remedy(obstacle.obstacle));
    CommandError::new(message)
        .with_help(format!("{first}; or leave these statements out with `--skip-unknown`"))
}

fn of_obstacle(obstacle: &ObstacleCount) -> String {
    let what = match obstacle.obstacle {
        Obstacle::ParametersNotLogged => "without their parameters",
        Obstacle::ParametersCut => "with parameters that were cut",
        Obstacle::ParametersUnreadable => "with parameters in an unknown form",
        Obstacle::CopyData => "COPY FROM STDIN, whose data no log has",
        Obstacle::Replication => "replication commands",
        Obstacle::ClientEncoding => "that set another client_encoding than UTF8",
        Obstacle::NotUtf8 => "with bytes that are not UTF-8",
    };
    let ObstacleCount { count, file, line, .. } = obstacle;
    format!("{} {what} (the first in {file}, line {line})", format::count(*count))
}

/// Returns what to do about an obstacle.
fn remedy(obstacle: Obstacle) -> &'static str {
    match obstacle {
        Obstacle::ParametersNotLogged => {
            "log again with `log_parameter_max_length = -1`, and for statements that fail \
             `log_parameter_max_length_on_error = -1`"
        }
        Obstacle::ParametersCut => {
            "log again with `log_parameter_max_length = -1`; if that was so, `--whole-parameters` \
             takes values that end in `...` as they are"
        }
        Obstacle::ParametersUnreadable => "take logs of PostgreSQL 13 or newer",
        Obstacle::CopyData => "load these rows by other means before the replay",
        Obstacle::Replication => "log a time without replication",
        Obstacle::ClientEncoding => {
            "their sessions are replayed in UTF8, which the log is written in"
        }
        Obstacle::NotUtf8 => "log a database whose encoding is UTF8",
    }
}

/// Renders a line of progress.
pub(super) fn progress(progress: &ReplayProgress) -> String {
    format!(
        "{:.0} s: {} of {} statements, {}, lag up to {} ms, {}",
        progress.elapsed_s,
        format::count(progress.statements),
        format::count(progress.total),
        format::counted(progress.sessions as u64, "session"),
        format::milliseconds(progress.lag_ms * 1e3),
        format::counted(progress.new_errors, "new error"),
    )
}

/// Renders what a replay measured.
pub(super) fn report(report: &ReplayReport) -> String {
    let mut text = match report.end {
        ReplayEnd::Completed => String::new(),
        ReplayEnd::OutOfTime => "ended before the log did, by `--max-duration`\n".to_owned(),
        ReplayEnd::Interrupted => "interrupted before the log ended\n".to_owned(),
    };
    let speed = match report.speed {
        Some(speed) => format!("at {speed} times the speed of the log"),
        None => "as fast as possible".to_owned(),
    };
    let _ = writeln!(
        text,
        "{} in {} replayed {speed}: {}, in the log {}",
        format::counted(report.statements, "statement"),
        format::counted(report.sessions, "session"),
        format::duration(report.elapsed_s),
        format::duration(report.log_span_s),
    );
    let _ = writeln!(
        text,
        "{} statements/s, {} at one time at most",
        format::rate(report.statements as f64 / report.elapsed_s.max(0.001)),
        format::counted(report.peak_sessions as u64, "session")
    );
    latencies(&mut text, report);
    errors(&mut text, report);
    losses(&mut text, report);
    let _ = writeln!(
        text,
        "pgdyno's CPU time: {} µs a statement",
        format::rate(report.client_cpu_s * 1e6 / report.statements.max(1) as f64)
    );
    text
}

fn latencies(text: &mut String, report: &ReplayReport) {
    let _ = writeln!(
        text,
        "\n{:<26}{:>12}{:>10}{:>10}{:>10}{:>10}",
        "milliseconds", "statements", "p50", "p95", "p99", "max"
    );
    let mut row = |name: &str, distribution: Option<Distribution>| {
        let Some(it) = distribution else { return };
        let _ = write!(text, "{name:<26}{:>12}", format::count(it.count));
        for ms in [it.p50_ms, it.p95_ms, it.p99_ms, it.max_ms] {
            let _ = write!(text, "{:>10}", format::milliseconds(ms * 1e3));
        }
        text.push('\n');
    };
    if report.speed.is_some() {
        row("latency, due to done", report.latency);
        row("lag, due to sent", report.lag);
    }
    row("service, sent to done", report.service);
    row("duration in the log", report.logged);
    let has_all = report.logged.map(|logged| logged.count) == Some(report.statements);
    if !has_all && report.logged.is_some() {
        row("service of these", report.service_of_logged);
    }
    text.push('\n');
}

fn errors(text: &mut String, report: &ReplayReport) {
    let _ = writeln!(
        text,
        "failed: {} as in the log, {} new, {} only in the log",
        format::count(report.errors_as_in_log()),
        format::count(report.new_errors()),
        format::count(report.failed_only_in_log)
    );
    let mut new: Vec<_> =
        report.errors.iter().filter(|error| error.new + error.other_in_log > 0).collect();
    new.sort_by_key(|error| std::cmp::Reverse(error.new + error.other_in_log));
    for error in new.iter().take(MOST_ERRORS) {
        let count = format::count(error.new + error.other_in_log);
        let _ = writeln!(text, "  {} new with {}: {}", count, error.sqlstate, error.message);
    }
    if new.len() > MOST_ERRORS {
        let _ = writeln!(text, "  and {} other SQLSTATEs: `--json`", new.len() - MOST_ERRORS);
    }
}

fn losses(text: &mut String, report: &ReplayReport) {
    let mut line = |count: u64, noun: &str, what: &str, first: Option<&str>| {
        if count > 0 {
            let first = first.map_or_else(String::new, |first| format!(": {first}"));
            let _ = writeln!(text, "{} {what}{first}", format::counted(count, noun));
        }
    };
    let first = report.first_failed_connection.as_deref();
    line(report.failed_connections, "session", "could not be connected", first);
    line(report.lost_sessions, "session", "lost", report.first_loss.as_deref());
    line(report.timed_out, "statement", "cancelled by `--statement-timeout`", None);
    line(report.unanswered, "statement", "without a reply", None);
    line(report.unsent, "statement", "not sent", None);
    for (obstacle, count) in &report.skipped {
        let what = format!("skipped ({})", obstacle.replace('_', " "));
        line(*count, "statement", &what, None);
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use pgdyno_replay::{ReadOptions, Recording};

    use super::*;

    /// Returns what a log of two statements holds, one of them without its parameters.
    fn summary_of_two() -> RecordingSummary {
        let record = |number: u32, message: &str| {
            format!(
                "{{\"timestamp\":\"2026-11-30 22:00:00.000 UTC\",\"dbname\":\"shop\",\
                 \"session_id\":\"a\",\"line_num\":{number},\"error_severity\":\"LOG\",\
                 \"message\":\"{message}\"}}\n"
            )
        };
        let log = record(2, "statement: SELECT 1") + &record(3, "execute s: SELECT $1");
        let options = ReadOptions::default();
        Recording::from_source(Path::new("a.json"), log.as_bytes(), &options).unwrap().summary()
    }

    #[test]
    fn a_refusal_names_the_number_the_first_place_and_what_to_do() {
        let error = refusal(&summary_of_two());
        let message = "cannot replay 1 of 2 statements: 1 without their parameters (the first in \
            a.json, line 2)";
        assert_eq!(error.to_string(), message);
        let help = error.help().unwrap();
        assert!(help.contains("log_parameter_max_length = -1"), "{help}");
        assert!(help.contains("--skip-unknown"), "{help}");
    }

    #[test]
    fn a_summary_says_what_is_there_and_what_is_missing() {
        let text = summary(&summary_of_two());
        for words in [
            "1 statement in 1 session over",
            "database shop: 1 statement",
            "1 of 1 sessions were already under way",
            "cannot be replayed: 1 without their parameters",
        ] {
            assert!(text.contains(words), "{text}");
        }
    }
}
