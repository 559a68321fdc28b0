//! Counts and latencies of a replay.

use std::collections::BTreeMap;
use std::time::Duration;

use pgdyno_engine::ServerError;
use pgdyno_engine::schedule::Timeline;
use pgdyno_model::latency::Latencies;

use crate::recording::Statement;
use crate::report::ErrorCount;

/// SQLSTATE of a statement that was cancelled.
const CANCELLED: &str = "57014";

/// Counts and latencies of a replay.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) latency: Latencies,
    pub(crate) service: Latencies,
    pub(crate) lag: Latencies,
    pub(crate) service_of_logged: Latencies,
    pub(crate) logged: Latencies,
    pub(crate) unanswered: u64,
    pub(crate) unsent: u64,
    pub(crate) errors: BTreeMap<[u8; 5], ErrorCount>,
    pub(crate) failed_only_in_log: u64,
    pub(crate) timed_out: u64,
    pub(crate) lost_sessions: u64,
    pub(crate) first_loss: Option<String>,
    pub(crate) failed_connections: u64,
    pub(crate) first_failed_connection: Option<String>,
    pub(crate) sessions: u64,
    pub(crate) peak_sessions: usize,
    /// Statements that failed and did not in the log, or otherwise there (count).
    pub(crate) new_errors: u64,
}

impl Tally {
    /// Records a statement that got its reply. `was_cancelled` says that it took too long.
    pub(super) fn record(
        &mut self,
        statement: &Statement,
        times: Timeline,
        failure: Option<&ServerError>,
        was_cancelled: bool,
    ) {
        let service = times.done.nanoseconds_since(times.sent);
        self.latency.record(times.done.nanoseconds_since(times.due));
        self.service.record(service);
        self.lag.record(times.sent.nanoseconds_since(times.due));
        if let Some(duration) = statement.duration() {
            self.service_of_logged.record(service);
            self.logged.record(nanoseconds(duration));
        }
        match failure {
            None if statement.failure().is_some() => self.failed_only_in_log += 1,
            None => {}
            Some(error) if was_cancelled && error.code == CANCELLED => self.timed_out += 1,
            Some(error) => self.record_error(statement, error),
        }
    }

    #[cold]
    fn record_error(&mut self, statement: &Statement, error: &ServerError) {
        let code = error.code.as_bytes().try_into().unwrap_or(*b"XX000");
        let count = self.errors.entry(code).or_insert_with(|| ErrorCount {
            sqlstate: error.code.clone(),
            also_in_log: 0,
            other_in_log: 0,
            new: 0,
            message: error.message.clone(),
        });
        if statement.failure() == Some(code) {
            count.also_in_log += 1;
            return;
        }
        if count.new + count.other_in_log == 0 {
            count.message.clone_from(&error.message);
        }
        let place =
            if statement.failure().is_some() { &mut count.other_in_log } else { &mut count.new };
        *place += 1;
        self.new_errors += 1;
    }

    /// Records that a session was lost, with the error.
    pub(super) fn record_loss(&mut self, how: String) {
        self.lost_sessions += 1;
        self.first_loss.get_or_insert(how);
    }

    /// Records that a session could not be connected, with the error.
    pub(super) fn record_failed_connection(&mut self, how: String) {
        self.failed_connections += 1;
        self.first_failed_connection.get_or_insert(how);
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
