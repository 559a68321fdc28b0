//! Connections that are lost, and what becomes of their clients.

use std::time::Duration;

use super::abort::{Abort, StatementError};
use super::state::{Client, ClientContext, State, Wait};
use crate::client_log::ClientLogKind;
use crate::sqlstate;

/// How long a client waits before its second new connection in a row; twice as long before each
/// further one.
const PAUSE: Duration = Duration::from_millis(100);
/// The longest of those waits.
const MAX_PAUSE: Duration = Duration::from_secs(1);

impl Client {
    /// Learns that its connection is gone; `how` says what was seen. Either it gives up with its
    /// transaction, or that has failed and it wants another connection.
    pub fn connection_lost(&mut self, how: &str, context: &mut ClientContext<'_>) -> Wait {
        if self.state == State::Ended {
            return Wait::Close;
        }
        let told = self.error.take();
        // What the server said before it hung up tells more than that it did.
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
            // Nothing was sent_at: when the time for it comes, there is a new connection first.
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
        // One that sleeps is to be woken already.
        if waits { Wait::ForReply } else { self.choose_transaction(context) }
    }

    /// Learns that the connection it asked for cannot be had; `how` says why.
    pub fn connection_failed(&mut self, how: &str, context: &mut ClientContext<'_>) -> Wait {
        if self.state == State::Ended {
            return Wait::Close;
        }
        if context.now >= context.recorder.schedule().closing {
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
