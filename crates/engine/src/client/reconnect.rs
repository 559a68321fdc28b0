//! Lost connections: the client gives up, or asks for another connection.

use std::time::Duration;

use super::abort::{Abort, StatementError};
use super::state::{Client, ClientContext, State, Wait};
use crate::client_log::ClientLogKind;
use crate::sqlstate;

/// Wait before the second new connection in a row; doubled before each further one.
const PAUSE: Duration = Duration::from_millis(100);
/// Longest wait before a new connection.
const MAX_PAUSE: Duration = Duration::from_secs(1);

impl Client {
    /// Handles the loss of the connection; `how` is the error.
    ///
    /// Either the client gives up, or its transaction fails and it asks for another connection.
    pub fn connection_lost(&mut self, how: &str, context: &mut ClientContext<'_>) -> Wait {
        if self.state == State::Ended {
            return Wait::Close;
        }
        let told = self.error.take();
        // An error that the server sent before it hung up tells more than the hang-up.
        let (reason, said) = match &told {
            Some(fault @ StatementError { error, .. }) => {
                (format!("connection lost ({how}) after {error}"), self.error_text(fault))
            }
            None => (
                format!("connection lost: {how}"),
                "perhaps the backend died while processing".to_owned(),
            ),
        };
        if !self.program.policy.reconnect_lost.allows(self.reconnections) {
            let abort = Abort::internal(sqlstate::CONNECTION_FAILURE, &reason).with_message(&said);
            let abort = if told.is_some() { abort.blamed_on_server() } else { abort };
            return self.abort(&abort, context);
        }
        self.log(
            ClientLogKind::News,
            &format!("client {} makes another connection; {reason}", self.id),
        );
        context.recorder.record_lost_connection();
        self.reconnections += 1;
        self.connected = false;
        let waits = match self.state {
            // No transaction was under way. The next one begins with a new connection.
            State::Idle | State::Due => return Wait::ForReply,
            State::Sleeping | State::Computed => true,
            State::AwaitingReply(_)
            | State::AwaitingPipeline
            | State::RollingBack
            | State::Ended => false,
        };
        let (step, statement) = match (self.failure.take().or(told), self.state) {
            (Some(fault), _) => (fault.step, fault.statement),
            (None, State::AwaitingReply(statement)) => (self.step, Some(statement)),
            (None, _) => (self.step, None),
        };
        let steps = self.program.scripts[self.script].steps.len();
        let ended = self.finished_transaction(context.now);
        let step = Some(step).filter(|step| *step < steps);
        context.recorder.record_failure(&ended, step, statement, sqlstate::CONNECTION_FAILURE);
        self.number += 1;
        self.in_pipeline = false;
        self.pending.clear();
        self.state = State::Idle;
        // A sleeping client has its timer already.
        if waits { Wait::ForReply } else { self.choose_transaction(context) }
    }

    /// Handles a connection that could not be made; `how` is the error.
    pub fn connection_failed(&mut self, how: &str, context: &mut ClientContext<'_>) -> Wait {
        if self.state == State::Ended {
            return Wait::Close;
        }
        if context.now >= context.recorder.schedule().last_begin {
            return self.finish(context);
        }
        let policy = &self.program.policy;
        if !policy.reconnect_lost.allows(self.reconnections) {
            let reason = match self.reconnections {
                0 => format!("no connection: {how}"),
                n => format!("no new connection after {n} in a row: {how}"),
            };
            let said = format!("client {} aborted while establishing connection", self.id);
            let abort = Abort::internal(sqlstate::CONNECTION_FAILURE, &reason)
                .with_cause(how.to_owned())
                .with_cause(said);
            return self.abort(&abort.with_message(""), context);
        }
        let doublings = self.reconnections.saturating_sub(1).min(8);
        self.reconnections += 1;
        Wait::Until(context.now.after((PAUSE * 2_u32.pow(doublings)).min(MAX_PAUSE)))
    }
}
