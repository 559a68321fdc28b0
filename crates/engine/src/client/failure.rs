//! Errors: which are retried, which fail a transaction, which end a client.

use pgdyno_model::experiment::OnError;
use pgdyno_wire::backend::TransactionStatus;
use pgdyno_wire::frontend;

use super::abort::{Abort, EVALUATION, StatementError};
use super::expected::ExpectedReply;
use super::state::{Client, ClientContext, State, Wait};
use crate::client_log::ClientLogKind;
use crate::failure::FailureKind;
use crate::program::{Action, Step};
use crate::schedule::Moment;

impl Client {
    /// Returns the server's error as libpq renders it.
    pub(super) fn error_text(&self, fault: &StatementError) -> String {
        let query = fault.statement.map(|statement| self.query_text(statement));
        fault.error.libpq_text(query.as_deref())
    }

    fn log_failure(&self, words: impl FnOnce() -> String) {
        if self.program.policy.logs_failures {
            self.log(ClientLogKind::News, &words());
        }
    }

    /// Returns pgbench's name of `step`: `SQL`, or the meta command as the script has it.
    pub(super) fn command_name(&self, step: usize) -> &str {
        let script = &self.program.scripts[self.script];
        match script.steps.get(step) {
            None => "SQL",
            Some(Step { action: Action::Send(index), .. }) => {
                let store = &script.statements[*index].store;
                store.as_ref().map_or("SQL", |store| if store.each { "aset" } else { "gset" })
            }
            Some(step) => step.text[1..].split_whitespace().next().unwrap_or_default(),
        }
    }

    /// Handles an error of a statement: rolls the transaction back, or gives up.
    pub(super) fn failed(
        &mut self,
        fault: StatementError,
        context: &mut ClientContext<'_>,
    ) -> Wait {
        let kind = FailureKind::from_sqlstate(&fault.error.code);
        let goes_on = kind.is_transient()
            || self.program.policy.on_error == OnError::Continue && fault.error.severity == "ERROR";
        self.step = fault.step;
        if !goes_on {
            let abort = Abort::from_server(&self.position(), &fault.error, self.error_text(&fault));
            self.failure = Some(fault);
            return self.abort(&abort, context);
        }
        self.log_failure(|| {
            format!(
                "client {} got an error in command {} ({}) of script {}; {}",
                self.id,
                fault.step,
                self.command_name(fault.step),
                self.script,
                self.error_text(&fault)
            )
        });
        self.failure = Some(fault);
        if self.replies.status == TransactionStatus::Idle {
            return self.after_failure(context);
        }
        match frontend::query(context.out, b"ROLLBACK") {
            Ok(()) => {
                self.state = State::RollingBack;
                self.replies.expect(ExpectedReply::Result);
                Wait::ForReply
            }
            Err(error) => unreachable!("ROLLBACK fits into a message: {error}"),
        }
    }

    /// Returns whether a failed transaction may be retried, as far as tries and time go.
    fn has_tries_left(&self, now: Moment) -> bool {
        let policy = &self.program.policy;
        let tries = self.retries.saturating_add(1);
        (policy.max_tries == 0 || tries < policy.max_tries)
            && policy.latency_limit.is_none_or(|limit| now.since(self.due) <= limit)
    }

    /// Returns `(try 1/3, 12.345% of the maximum time of tries was used)`.
    fn tries(&self, now: Moment) -> String {
        let policy = &self.program.policy;
        let mut text = format!("(try {}", self.retries + 1);
        if policy.max_tries > 0 {
            text.push_str(&format!("/{}", policy.max_tries));
        }
        if let Some(limit) = policy.latency_limit {
            let share = 100.0 * now.since(self.due).as_secs_f64() / limit.as_secs_f64();
            text.push_str(&format!(", {share:.3}% of the maximum time of tries was used"));
        }
        text.push(')');
        text
    }

    /// Goes on after a failed transaction was rolled back.
    pub(super) fn after_failure(&mut self, context: &mut ClientContext<'_>) -> Wait {
        let Some(fault) = self.failure.take() else { return self.next_transaction(context) };
        let last_begin = context.recorder.schedule().last_begin;
        if FailureKind::from_sqlstate(&fault.error.code).is_transient()
            && self.has_tries_left(context.now)
        {
            if context.now >= last_begin {
                // The load ends before the outcome can be known.
                context.recorder.record_abandoned();
                return self.note_failure(context).unwrap_or_else(|| self.finish(context));
            }
            self.log_failure(|| {
                let tries = self.tries(context.now);
                format!("client {} repeats the transaction after the error {tries}", self.id)
            });
            context.recorder.record_retry(self.script, fault.step, context.now);
            self.retries += 1;
            // A retry draws the values again.
            self.random.clone_from(&self.random_before_try);
            self.step = 0;
            return self.advance(context);
        }
        self.log_failure(|| {
            format!("client {} ends the failed transaction {}", self.id, self.tries(context.now))
        });
        if let Some(next) = self.note_failure(context) {
            return next;
        }
        let ended = self.finished_transaction(context.now);
        context.recorder.record_failure(
            &ended,
            Some(fault.step),
            fault.statement,
            &fault.error.code,
        );
        self.next_transaction(context)
    }

    /// Records in the ledger, if there is one, that the transaction failed.
    ///
    /// Returns what to wait for if the ledger cannot be written.
    fn note_failure(&mut self, context: &mut ClientContext<'_>) -> Option<Wait> {
        let error = self.ledger.as_mut()?.failed(context.now).err()?;
        Some(self.abort(&Abort::ledger(&error), context))
    }

    /// Gives up; the transaction under way fails.
    pub(super) fn abort(&mut self, abort: &Abort, context: &mut ClientContext<'_>) -> Wait {
        let fault = self.failure.take().map(|fault| (Some(fault.step), fault.statement));
        let (step, statement) = fault.unwrap_or(match self.state {
            State::AwaitingReply(statement) => (Some(self.step), Some(statement)),
            State::AwaitingPipeline | State::Sleeping => (Some(self.step), None),
            State::Idle | State::Due | State::Computed | State::RollingBack | State::Ended => {
                (None, None)
            }
        });
        let steps = self.program.scripts[self.script].steps.len();
        let ended = self.finished_transaction(context.now);
        context.recorder.record_failure(
            &ended,
            step.filter(|step| *step < steps),
            statement,
            &abort.code,
        );
        self.give_up(abort, statement, context)
    }

    /// Gives up without a transaction under way, or with one that is counted already.
    pub(super) fn give_up(
        &mut self,
        abort: &Abort,
        statement: Option<usize>,
        context: &mut ClientContext<'_>,
    ) -> Wait {
        for cause in &abort.causes {
            self.log(ClientLogKind::Error, cause);
        }
        let steps = self.program.scripts[self.script].steps.len();
        let (id, script, at) = (self.id, self.script, self.step);
        let last = match self.command_name(at) {
            _ if at >= steps => format!("client {id} aborted: {}", abort.message),
            "SQL" | "gset" | "aset" if statement.is_some() && abort.is_from_server => {
                let query = self.queries;
                format!(
                    "client {id} script {script} aborted in command {at} query {query}: {}",
                    abort.message
                )
            }
            kind => {
                // pgbench keeps the case of the name only for commands that it evaluates.
                let as_written = abort.message == EVALUATION || kind == "SQL";
                let kind = if as_written { kind.to_owned() } else { kind.to_ascii_lowercase() };
                format!(
                    "client {id} aborted in command {at} ({kind}) of script {script}; {}",
                    abort.message
                )
            }
        };
        if !abort.message.is_empty() {
            self.log(ClientLogKind::Error, &last);
        }
        context.recorder.record_abort(format!("client {id}: {}", abort.reason));
        if self.program.policy.on_error == OnError::AbortAll {
            self.program.policy.stop.store(true, std::sync::atomic::Ordering::Relaxed);
        }
        self.stop(context.out);
        Wait::Close
    }
}
