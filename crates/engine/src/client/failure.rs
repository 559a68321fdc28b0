//! Errors: what is tried again, what fails a transaction, what ends a client.

use pgdyno_model::experiment::OnError;
use pgdyno_wire::backend::Status;
use pgdyno_wire::frontend;

use super::abort::{Abort, EVALUATION, StatementError};
use super::expected::ExpectedReply;
use super::state::{Client, ClientContext, State, Wait};
use crate::client_log::ClientLogKind;
use crate::failure::FailureKind;
use crate::program::{Action, Step};
use crate::schedule::Moment;

impl Client {
    /// What the server said of `fault`, in libpq's words.
    pub(super) fn words(&self, fault: &StatementError) -> String {
        let query = fault.statement.map(|statement| self.query_text(statement));
        fault.error.libpq_text(query.as_deref())
    }

    fn say_failure(&self, words: impl FnOnce() -> String) {
        if self.program.rules.say_failures {
            self.say(ClientLogKind::News, &words());
        }
    }

    /// What pgbench calls the kind of step `step`: `SQL`, or the meta command's name as the script
    /// has it.
    pub(super) fn kind(&self, step: usize) -> &str {
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

    /// A statement met an error: another try or transaction may fare better, or the client gives
    /// up.
    pub(super) fn failed(&mut self, fault: StatementError, turn: &mut ClientContext<'_>) -> Wait {
        let kind = FailureKind::of(&fault.error.code);
        let goes_on = kind.is_passing()
            || self.program.rules.on_error == OnError::Continue && fault.error.severity == "ERROR";
        self.step = fault.step;
        if !goes_on {
            let abort = Abort::server(&self.place(), &fault.error, self.words(&fault));
            self.failure = Some(fault);
            return self.abort(&abort, turn);
        }
        self.say_failure(|| {
            format!(
                "client {} got an error in command {} ({}) of script {}; {}",
                self.id,
                fault.step,
                self.kind(fault.step),
                self.script,
                self.words(&fault)
            )
        });
        self.failure = Some(fault);
        if self.replies.status == Status::Idle {
            return self.after_failure(turn);
        }
        match frontend::query(turn.out, b"ROLLBACK") {
            Ok(()) => {
                self.state = State::RollingBack;
                self.replies.expect(ExpectedReply::Result);
                Wait::ForReply
            }
            Err(error) => unreachable!("ROLLBACK fits into a message: {error}"),
        }
    }

    /// Whether the transaction that failed would be tried again, had the load time for it.
    fn has_tries_left(&self, now: Moment) -> bool {
        let rules = &self.program.rules;
        let tries = self.retries.saturating_add(1);
        (rules.max_tries == 0 || tries < rules.max_tries)
            && rules.latency_limit.is_none_or(|limit| now.since(self.due) <= limit)
    }

    /// `(try 1/3, 12.345% of the maximum time of tries was used)`.
    #[allow(clippy::cast_precision_loss)]
    fn tries(&self, now: Moment) -> String {
        let rules = &self.program.rules;
        let mut text = format!("(try {}", self.retries + 1);
        if rules.max_tries > 0 {
            text.push_str(&format!("/{}", rules.max_tries));
        }
        if let Some(limit) = rules.latency_limit {
            let share = 100.0 * now.since(self.due).as_secs_f64() / limit.as_secs_f64();
            text.push_str(&format!(", {share:.3}% of the maximum time of tries was used"));
        }
        text.push(')');
        text
    }

    /// The failed transaction is rolled back.
    pub(super) fn after_failure(&mut self, turn: &mut ClientContext<'_>) -> Wait {
        let Some(fault) = self.failure.take() else { return self.another(turn) };
        let closing = turn.recorder.schedule().closing;
        if FailureKind::of(&fault.error.code).is_passing() && self.has_tries_left(turn.now) {
            if turn.now >= closing {
                // Neither failed nor done: the load ends before it can be known.
                turn.recorder.abandoned();
                return self.note_failure(turn).unwrap_or_else(|| self.finish(turn));
            }
            self.say_failure(|| {
                let tries = self.tries(turn.now);
                format!("client {} repeats the transaction after the error {tries}", self.id)
            });
            turn.recorder.retry(self.script, fault.step, turn.now);
            self.retries += 1;
            // The same draws once more.
            self.random.clone_from(&self.before);
            self.step = 0;
            return self.advance(turn);
        }
        self.say_failure(|| {
            format!("client {} ends the failed transaction {}", self.id, self.tries(turn.now))
        });
        if let Some(next) = self.note_failure(turn) {
            return next;
        }
        let ended = self.ended(turn.now);
        turn.recorder.failure(&ended, Some(fault.step), fault.statement, &fault.error.code);
        self.another(turn)
    }

    /// Tells the ledger, if there is one, that the transaction failed; what follows if that cannot
    /// be kept.
    fn note_failure(&mut self, turn: &mut ClientContext<'_>) -> Option<Wait> {
        let error = self.book.as_mut()?.failed(turn.now).err()?;
        Some(self.abort(&Abort::ledger(&error), turn))
    }

    /// Gives up, with its transaction.
    pub(super) fn abort(&mut self, abort: &Abort, turn: &mut ClientContext<'_>) -> Wait {
        let fault = self.failure.take().map(|fault| (Some(fault.step), fault.statement));
        let (step, statement) = fault.unwrap_or(match self.state {
            State::AwaitingReply(statement) => (Some(self.step), Some(statement)),
            State::AwaitingPipeline | State::Sleeping => (Some(self.step), None),
            State::Idle | State::Due | State::Computed | State::RollingBack | State::Ended => {
                (None, None)
            }
        });
        let steps = self.program.scripts[self.script].steps.len();
        let ended = self.ended(turn.now);
        turn.recorder.failure(&ended, step.filter(|step| *step < steps), statement, &abort.code);
        self.give_up(abort, statement, turn)
    }

    /// Gives up, with no transaction or one that is counted, because of `abort` in `statement` if
    /// it met any.
    pub(super) fn give_up(
        &mut self,
        abort: &Abort,
        statement: Option<usize>,
        turn: &mut ClientContext<'_>,
    ) -> Wait {
        for cause in &abort.causes {
            self.say(ClientLogKind::Error, cause);
        }
        let steps = self.program.scripts[self.script].steps.len();
        let (id, script, at) = (self.id, self.script, self.step);
        let last = match self.kind(at) {
            _ if at >= steps => format!("client {id} aborted: {}", abort.said),
            "SQL" | "gset" | "aset" if statement.is_some() && abort.is_from_server => {
                let query = self.queries;
                format!(
                    "client {id} script {script} aborted in command {at} query {query}: {}",
                    abort.said
                )
            }
            kind => {
                // pgbench tells the name as it is written only of what it evaluates.
                let as_written = abort.said == EVALUATION || kind == "SQL";
                let kind = if as_written { kind.to_owned() } else { kind.to_ascii_lowercase() };
                format!(
                    "client {id} aborted in command {at} ({kind}) of script {script}; {}",
                    abort.said
                )
            }
        };
        if !abort.said.is_empty() {
            self.say(ClientLogKind::Error, &last);
        }
        turn.recorder.aborted(format!("client {id}: {}", abort.reason));
        if self.program.rules.on_error == OnError::AbortAll {
            self.program.rules.stop.store(true, std::sync::atomic::Ordering::Relaxed);
        }
        self.stop(turn.out);
        Wait::Close
    }
}
