//! Figures about a recording as a whole.

use pgdyno_model::json::Document;
use serde::Serialize;

use super::{Obstacle, Place, Recording};

/// Microseconds of a second.
const SECOND: u64 = 1_000_000;

/// Statements that one obstacle keeps from being replayed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ObstacleCount {
    /// Obstacle.
    pub obstacle: Obstacle,
    /// Statements (count).
    pub count: u64,
    /// File of the first.
    pub file: String,
    /// Line of the first, from 1.
    pub line: u64,
}

/// Figures about a recording.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RecordingSummary {
    /// Sessions (count).
    pub sessions: u64,
    /// Sessions that had begun before the log did (count).
    pub under_way: u64,
    /// Sessions without a statement (count).
    pub silent: u64,
    /// Statements (count).
    pub statements: u64,
    /// Statements of the extended protocol (count).
    pub extended: u64,
    /// Statements whose duration was logged (count).
    pub with_duration: u64,
    /// Statements that failed by the log (count).
    pub failed: u64,
    /// Time from the first session's begin to the last one's end (seconds).
    pub span_s: f64,
    /// Statements in the busiest second, as counted from the log's begin.
    pub peak_per_second: u64,
    /// Sessions at one time at most (count).
    pub peak_sessions: usize,
    /// Names of the databases that are read with the number of their statements.
    pub databases: Vec<(String, u64)>,
    /// Statements that cannot be replayed, by obstacle.
    pub obstacles: Vec<ObstacleCount>,
    /// Records of the log (count).
    pub records: u64,
    /// Records that say nothing of a session's statements, begin or end (count).
    pub ignored: u64,
    /// Records that the log lacks in the middle of sessions (count).
    pub missing: u64,
    /// Files whose last record was cut off and left out (count).
    pub cut_files: u64,
}

impl Document for RecordingSummary {
    const SCHEMA: &'static str = "pgdyno.replay-log/1";
}

impl From<(Obstacle, u64, &Place)> for ObstacleCount {
    fn from((obstacle, count, place): (Obstacle, u64, &Place)) -> Self {
        Self { obstacle, count, file: place.path.display().to_string(), line: place.line }
    }
}

impl RecordingSummary {
    pub(super) fn new(recording: &Recording) -> Self {
        let sessions = &recording.sessions;
        let statements = || sessions.iter().flat_map(|session| &session.statements);
        let count = |n: usize| n as u64;
        let names = recording.databases.iter().enumerate();
        let databases = names.filter_map(|(index, name)| {
            let mut of_it = sessions.iter().filter(|it| it.database == index).peekable();
            of_it.peek()?;
            Some((name.clone(), of_it.map(|session| count(session.statements.len())).sum()))
        });
        Self {
            sessions: count(sessions.len()),
            under_way: count(sessions.iter().filter(|session| session.was_under_way).count()),
            silent: count(sessions.iter().filter(|s| s.statements.is_empty()).count()),
            statements: recording.statement_count(),
            extended: count(statements().filter(|statement| statement.is_extended()).count()),
            with_duration: count(statements().filter(|s| s.duration().is_some()).count()),
            failed: count(statements().filter(|s| s.failure().is_some()).count()),
            span_s: recording.span.as_secs_f64(),
            peak_per_second: peak_per_second(statements().map(|statement| statement.begin_us)),
            peak_sessions: peak_sessions(recording),
            databases: databases.collect(),
            obstacles: recording.obstacles.iter().map(ObstacleCount::from).collect(),
            records: recording.counts.records,
            ignored: recording.counts.ignored,
            missing: recording.counts.missing,
            cut_files: recording.counts.cut_files,
        }
    }
}

/// Returns the most moments that fall into one second.
fn peak_per_second(moments: impl Iterator<Item = u64>) -> u64 {
    let mut seconds: Vec<u32> =
        moments.map(|at| u32::try_from(at / SECOND).unwrap_or(u32::MAX)).collect();
    seconds.sort_unstable();
    let runs = seconds.chunk_by(|a, b| a == b);
    runs.map(|run| run.len() as u64).max().unwrap_or(0)
}

/// Returns the most sessions that are there at one time. One that ends when another begins does
/// not count beside it.
fn peak_sessions(recording: &Recording) -> usize {
    let mut ends: Vec<u64> = recording.sessions.iter().map(|session| session.end_us).collect();
    ends.sort_unstable();
    let (mut ended, mut peak) = (0, 0);
    for (begun, session) in recording.sessions.iter().enumerate() {
        while ends.get(ended).is_some_and(|end| *end <= session.begin_us) && ended < begun {
            ended += 1;
        }
        peak = peak.max(begun + 1 - ended);
    }
    peak
}
