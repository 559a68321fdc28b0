use std::fmt::Write as _;

use super::*;

/// Writes records of `jsonlog`, one millisecond after the other unless told otherwise.
#[derive(Default)]
struct Log {
    text: String,
    ms: u64,
    numbers: std::collections::HashMap<&'static str, u64>,
    zone: Option<&'static str>,
}

impl Log {
    fn add(&mut self, session: &'static str, fields: &[(&str, &str)]) {
        self.ms += 1;
        let number = self.numbers.entry(session).or_default();
        *number += 1;
        let (seconds, ms) = (self.ms / 1000, self.ms % 1000);
        let zone = self.zone.unwrap_or("UTC");
        let _ = write!(
            self.text,
            "{{\"timestamp\":\"2026-11-30 22:00:{seconds:02}.{ms:03} {zone}\",\"dbname\":\"db\",\
             \"session_id\":\"{session}\",\"line_num\":{number},\
             \"backend_type\":\"client backend\""
        );
        for (key, value) in fields {
            let value = serde_json::to_string(value).unwrap();
            let _ = write!(self.text, ",\"{key}\":{value}");
        }
        self.text.push_str("}\n");
    }

    fn log(&mut self, session: &'static str, message: &str) {
        self.add(session, &[("error_severity", "LOG"), ("message", message)]);
    }

    fn detailed(&mut self, session: &'static str, message: &str, detail: &str) {
        let fields = [("error_severity", "LOG"), ("message", message), ("detail", detail)];
        self.add(session, &fields);
    }

    fn error(&mut self, session: &'static str, statement: &str, context: &str) {
        self.add(
            session,
            &[
                ("error_severity", "ERROR"),
                ("state_code", "42703"),
                ("message", "no such column"),
                ("statement", statement),
                ("context", context),
            ],
        );
    }

    fn read(&self) -> Recording {
        self.read_with(&ReadOptions::default()).unwrap()
    }

    fn read_with(&self, options: &ReadOptions) -> Result<Recording, RecordingError> {
        Recording::from_source(Path::new("a.json"), self.text.as_bytes(), options)
    }
}

/// Returns each statement of the first session: name, text, parameters, duration in microseconds,
/// and whether it failed.
fn statements(recording: &Recording) -> Vec<String> {
    let statements = recording.sessions[0].statements.iter();
    let render = |statement: &Statement| {
        let mut text = recording.text(statement).to_owned();
        if let Some(name) = recording.prepared_name(statement) {
            text = format!("{name}: {text}");
        }
        for value in recording.parameters(statement) {
            let value = value.map_or("NULL".into(), String::from_utf8_lossy);
            let _ = write!(text, " [{value}]");
        }
        if let Some(duration) = statement.duration() {
            let _ = write!(text, " {} us", duration.as_micros());
        }
        if statement.failure().is_some() {
            text.push_str(" failed");
        }
        text
    };
    statements.map(render).collect()
}

fn obstacles(recording: &Recording) -> Vec<(Obstacle, u64, u64)> {
    recording.obstacles.iter().map(|(kind, count, place)| (kind, count, place.line)).collect()
}

#[test]
fn a_statement_logged_at_its_begin_and_its_end_is_one() {
    let mut log = Log::default();
    log.log("a", "statement: SELECT 1");
    log.log("a", "duration: 0.500 ms");
    log.detailed("a", "execute s: SELECT $1", "parameters: $1 = 'x'");
    log.log("a", "duration: 0.250 ms");
    log.log("a", "statement: SELECT nope");
    log.error("a", "SELECT nope", "");
    // Durations of Parse and Bind.
    log.log("a", "duration: 0.001 ms");
    let recording = log.read();
    let expected = ["SELECT 1 500 us", "s: SELECT $1 [x] 250 us", "SELECT nope failed"];
    assert_eq!(statements(&recording), expected);
    assert_eq!(recording.obstacles.count(), 0);
}

#[test]
fn a_statement_logged_at_its_end_began_that_much_before() {
    let mut log = Log { ms: 9, ..Log::default() };
    log.log("a", "duration: 4.000 ms  statement: SELECT 1");
    log.detailed("a", "duration: 1.000 ms  execute <unnamed>: SELECT $1", "Parameters: $1 = NULL");
    let recording = log.read();
    assert_eq!(statements(&recording), ["SELECT 1 4000 us", ": SELECT $1 [NULL] 1000 us"]);
    let begins: Vec<_> = recording.sessions[0].statements.iter().map(|s| s.begin_us).collect();
    assert_eq!(begins, [0, 4_000]);
    assert_eq!(recording.span, Duration::from_millis(5));
}

#[test]
fn a_statement_began_after_the_end_of_the_one_before() {
    let mut log = Log::default();
    log.log("a", "statement: SELECT 1");
    log.log("a", "duration: 1.700 ms");
    log.ms -= 1;
    log.log("a", "statement: SELECT 2");
    let begins: Vec<_> = log.read().sessions[0].statements.iter().map(|s| s.begin_us).collect();
    assert_eq!(begins, [0, 1_700]);
}

#[test]
fn a_failure_that_alone_tells_of_its_statement_is_a_statement() {
    let mut log = Log::default();
    log.error("a", "SELECT nope", "");
    log.detailed("a", "duration: 0.1 ms  bind s: SELECT $1 / 0", "parameters: $1 = '1'");
    log.error("a", "SELECT $1 / 0", "");
    log.error("a", "SELECT $1", "unnamed portal with parameters: $1 = '5'\nmore");
    log.error("a", "SELECT $2", "");
    let recording = log.read();
    let expected = ["SELECT nope failed", "s: SELECT $1 / 0 [1] failed", ": SELECT $1 [5] failed"];
    assert_eq!(statements(&recording), expected);
    assert_eq!(obstacles(&recording), [(Obstacle::ParametersNotLogged, 1, 5)]);
}

#[test]
fn statements_that_cannot_be_known_are_counted_with_their_first_place() {
    let mut log = Log::default();
    log.log("a", "execute s: SELECT $1");
    log.log("a", "duration: 1 ms");
    log.detailed("a", "execute s: SELECT $1", "parameters: $1 = 'abc...'");
    log.detailed("a", "execute s: SELECT $1, $2", "parameters: $1 = 'abc'");
    log.detailed("a", "execute s: SELECT $1", "parameters: $1 = abc");
    log.log("a", "statement: COPY t FROM STDIN");
    log.log("a", "statement: SELECT 1");
    let recording = log.read();
    assert_eq!(statements(&recording), ["SELECT 1"]);
    let expected = [
        (Obstacle::ParametersNotLogged, 2, 1),
        (Obstacle::ParametersCut, 1, 3),
        (Obstacle::ParametersUnreadable, 1, 5),
        (Obstacle::CopyData, 1, 6),
    ];
    assert_eq!(obstacles(&recording), expected);
    let options = ReadOptions { whole_parameters: true, ..ReadOptions::default() };
    let whole = log.read_with(&options).unwrap();
    assert_eq!(statements(&whole), ["s: SELECT $1 [abc...]", "SELECT 1"]);
}

#[test]
fn sessions_begin_in_the_order_of_the_log_and_those_under_way_at_once() {
    let mut log = Log::default();
    log.numbers.insert("a", 7);
    log.log("b", "connection received: host=x");
    log.log("b", "statement: SELECT 1");
    log.log("a", "statement: SELECT 2");
    log.log("b", "disconnection: session time: 1");
    log.log("c", "statement: SELECT 3");
    let recording = log.read();
    let times = |session: &Session| (session.begin_us, session.end_us, session.was_under_way);
    let all: Vec<_> = recording.sessions.iter().map(times).collect();
    assert_eq!(all, [(0, 3_000, false), (0, 2_000, true), (4_000, 4_000, false)]);
    let summary = recording.summary();
    assert_eq!((summary.sessions, summary.under_way, summary.statements), (3, 1, 3));
    assert_eq!((summary.peak_sessions, summary.peak_per_second), (2, 3));
    assert_eq!(summary.databases, [("db".to_owned(), 3)]);
}

#[test]
fn other_processes_and_other_databases_are_left_out() {
    let mut log = Log::default();
    log.log("a", "statement: SELECT 1");
    log.log("w", "received replication command: IDENTIFY_SYSTEM");
    log.text = log.text.replace(
        "client backend\",\"error_severity\":\"LOG\",\"message\":\"rec",
        "walsender\",\"error_severity\":\"LOG\",\"message\":\"rec",
    );
    let recording = log.read();
    assert_eq!(recording.sessions.len(), 1);
    assert_eq!(obstacles(&recording), [(Obstacle::Replication, 1, 2)]);
    let databases = vec!["other".to_owned()];
    let mut only_a = Log::default();
    only_a.log("a", "statement: SELECT 1");
    let error = only_a.read_with(&ReadOptions { databases, ..ReadOptions::default() }).unwrap_err();
    assert!(matches!(error, RecordingError::NoStatements { records: 1, .. }), "{error}");
}

#[test]
fn a_record_that_comes_again_is_an_error_and_one_that_is_missing_is_counted() {
    let mut log = Log::default();
    log.log("a", "statement: SELECT 1");
    log.numbers.insert("a", 4);
    log.log("a", "statement: SELECT 2");
    assert_eq!(log.read().counts.missing, 3);
    log.numbers.insert("a", 1);
    log.log("a", "statement: SELECT 1");
    let error = log.read_with(&ReadOptions::default()).unwrap_err();
    let RecordingError::Repeated { place, .. } = error else { panic!("{error}") };
    assert_eq!(place.line, 3);
}

#[test]
fn a_clock_that_changes_is_an_error() {
    let mut log = Log { zone: Some("CEST"), ..Log::default() };
    log.log("a", "statement: SELECT 1");
    log.zone = Some("CET");
    log.log("a", "statement: SELECT 1");
    let error = log.read_with(&ReadOptions::default()).unwrap_err();
    let RecordingError::ZoneChanged { before, after, .. } = error else { panic!("{error}") };
    assert_eq!((before.as_str(), after.as_str()), ("CEST", "CET"));
}

#[test]
fn a_cut_log_is_an_error_unless_that_is_allowed() {
    let mut log = Log::default();
    log.log("a", "statement: SELECT 1");
    log.log("a", "statement: SELECT 2");
    log.text.truncate(log.text.len() - 9);
    let error = log.read_with(&ReadOptions::default()).unwrap_err();
    assert!(matches!(error, RecordingError::Read { line: 2, .. }), "{error}");
    let options = ReadOptions { allow_cut: true, ..ReadOptions::default() };
    let recording = log.read_with(&options).unwrap();
    assert_eq!((statements(&recording), recording.counts.cut_files), (vec!["SELECT 1".into()], 1));
}

#[test]
fn files_are_read_by_the_time_of_their_first_record() {
    let folder = tempfile::tempdir().unwrap();
    let mut log = Log::default();
    log.log("a", "statement: SELECT 1");
    let first = std::mem::take(&mut log.text);
    log.log("a", "statement: SELECT 2");
    let paths = ["z.json", "a.json", "empty.json"].map(|name| folder.path().join(name));
    for (path, text) in paths.iter().zip([first.as_str(), &log.text, ""]) {
        std::fs::write(path, text).unwrap();
    }
    let backwards = [paths[1].clone(), paths[2].clone(), paths[0].clone()];
    let recording = Recording::read(&backwards, &ReadOptions::default()).unwrap();
    assert_eq!(statements(&recording), ["SELECT 1", "SELECT 2"]);
    let twice = [paths[0].clone(), paths[0].clone()];
    let error = Recording::read(&twice, &ReadOptions::default()).unwrap_err();
    assert!(matches!(error, RecordingError::Repeated { .. }), "{error}");
}

#[test]
fn a_statement_takes_40_bytes() {
    assert_eq!(size_of::<Statement>(), 40);
}
