//! Errors: what is tried again, what fails a transaction, what ends a client.

use pgdyno_model::experiment::OnError;
use pgdyno_wire::backend::Status;
use pgdyno_wire::{ServerError, frontend};

use super::{Client, Next, State, Turn};
use crate::load::Told;
use crate::program::Action;
use crate::recorder::{Failure, sqlstate};
use crate::schedule::Moment;

/// An error of the server's, and the step and statement that met it.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) step: usize,
    pub(super) statement: Option<usize>,
    pub(super) error: Box<ServerError>,
}

/// Why a client gives up: an SQLSTATE, words for people that name it too, and those that pgbench would use.
pub(super) struct Abort {
    code: String,
    reason: String,
    /// Empty where `cause` says it all.
    said: String,
    /// Whether the server said it.
    is_from_server: bool,
    /// What pgbench says of it beforehand.
    cause: Option<String>,
}

impl Abort {
    /// For what the engine itself finds wrong.
    pub(super) fn own(code: &str, reason: &str) -> Self {
        Self {
            code: code.to_owned(),
            reason: format!("{reason} (SQLSTATE {code})"),
            said: reason.to_owned(),
            is_from_server: false,
            cause: None,
        }
    }

    /// For a ledger that cannot be kept: what is not written down must not happen.
    #[cold]
    pub(super) fn ledger(error: &std::io::Error) -> Self {
        Self::own(sqlstate::IO_ERROR, &format!("the ledger cannot be kept: {error}"))
    }

    /// For `error` of the server's, about `what`; in libpq's `words`.
    pub(super) fn server(what: &str, error: &ServerError, words: String) -> Self {
        Self {
            reason: format!("{what}: {error}"),
            code: error.code.clone(),
            said: words,
            is_from_server: true,
            cause: None,
        }
    }

    pub(super) fn saying(mut self, said: &str) -> Self {
        said.clone_into(&mut self.said);
        self
    }

    pub(super) fn caused(mut self, cause: String) -> Self {
        self.cause = Some(cause);
        self
    }
}

impl Client {
    /// What the server said of `fault`, in libpq's words.
    pub(super) fn words(&self, fault: &Fault) -> String {
        let query = fault.statement.map(|statement| self.query_text(statement));
        fault.error.libpq_text(query.as_deref())
    }

    fn say_failure(&self, words: impl FnOnce() -> String) {
        if self.program.rules.say_failures {
            self.say(Told::News, &words());
        }
    }

    /// What pgbench calls the kind of step `step`.
    fn kind(&self, step: usize) -> &'static str {
        match self.program.scripts[self.script].steps.get(step).map(|s| &s.action) {
            Some(Action::Send(index)) => {
                let store = &self.program.scripts[self.script].statements[*index].store;
                store.as_ref().map_or("SQL", |store| if store.each { "aset" } else { "gset" })
            }
            None => "SQL",
            Some(Action::Set { .. }) => "set",
            Some(Action::Sleep { .. }) => "sleep",
            Some(Action::If { .. }) => "if",
            Some(Action::Elif { .. }) => "elif",
            Some(Action::Else { .. }) => "else",
            Some(Action::Endif) => "endif",
            Some(Action::Shell(_)) => "shell",
            Some(Action::SetShell { .. }) => "setshell",
            Some(Action::StartPipeline) => "startpipeline",
            Some(Action::SyncPipeline) => "syncpipeline",
            Some(Action::EndPipeline) => "endpipeline",
        }
    }

    /// A statement met an error: another try or transaction may fare better, or the client gives up.
    pub(super) fn failed(&mut self, fault: Fault, turn: &mut Turn<'_>) -> Next {
        let kind = Failure::of(&fault.error.code);
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
                Next::Reply
            }
            Err(error) => unreachable!("ROLLBACK fits into a message: {error}"),
        }
    }

    /// Whether the transaction that failed is tried again.
    fn may_retry(&self, now: Moment, closing: Moment) -> bool {
        let rules = &self.program.rules;
        let tries = self.retries.saturating_add(1);
        (rules.max_tries == 0 || tries < rules.max_tries)
            && now < closing
            && rules.latency_limit.is_none_or(|limit| now.since(self.due) <= limit)
    }

    /// The failed transaction is rolled back.
    pub(super) fn after_failure(&mut self, turn: &mut Turn<'_>) -> Next {
        let Some(fault) = self.failure.take() else { return self.another(turn) };
        let closing = turn.recorder.schedule().closing;
        let tries = |client: &Self| match client.program.rules.max_tries {
            0 => format!("(try {})", client.retries + 1),
            most => format!("(try {}/{most})", client.retries + 1),
        };
        if Failure::of(&fault.error.code).is_passing() && self.may_retry(turn.now, closing) {
            self.say_failure(|| {
                format!("client {} repeats the transaction after the error {}", self.id, tries(self))
            });
            turn.recorder.retry(self.script, fault.step, turn.now);
            self.retries += 1;
            // The same draws once more.
            self.random.clone_from(&self.before);
            self.step = 0;
            return self.advance(turn);
        }
        self.say_failure(|| format!("client {} ends the failed transaction {}", self.id, tries(self)));
        if let Some(Err(error)) = self.book.as_mut().map(|book| book.failed(turn.now)) {
            return self.abort(&Abort::ledger(&error), turn);
        }
        let ended = self.ended(turn.now);
        turn.recorder.failure(&ended, Some(fault.step), fault.statement, &fault.error.code);
        self.another(turn)
    }

    /// Gives up, with its transaction.
    pub(super) fn abort(&mut self, abort: &Abort, turn: &mut Turn<'_>) -> Next {
        let fault = self.failure.take().map(|fault| (Some(fault.step), fault.statement));
        let (step, statement) = fault.unwrap_or(match self.state {
            State::Sent(statement) => (Some(self.step), Some(statement)),
            State::Piped | State::Asleep => (Some(self.step), None),
            State::Between | State::Due | State::Computed | State::RollingBack | State::Ended => (None, None),
        });
        let steps = self.program.scripts[self.script].steps.len();
        let ended = self.ended(turn.now);
        turn.recorder.failure(&ended, step.filter(|step| *step < steps), statement, &abort.code);
        if let Some(cause) = &abort.cause {
            self.say(Told::Error, cause);
        }
        let (id, script, at) = (self.id, self.script, self.step);
        let last = match self.kind(at) {
            _ if at >= steps => format!("client {id} aborted: {}", abort.said),
            "SQL" | "gset" | "aset" if statement.is_some() && abort.is_from_server => {
                format!("client {id} script {script} aborted in command {at} query 0: {}", abort.said)
            }
            kind => {
                format!("client {id} aborted in command {at} ({kind}) of script {script}; {}", abort.said)
            }
        };
        if !abort.said.is_empty() {
            self.say(Told::Error, &last);
        }
        turn.recorder.aborted(format!("client {id}: {}", abort.reason));
        if self.program.rules.on_error == OnError::AbortAll {
            self.program.rules.stop.store(true, std::sync::atomic::Ordering::Relaxed);
        }
        self.stop(turn.out);
        Next::Close
    }
}
