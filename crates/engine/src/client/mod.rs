//! One client: a state machine without I/O.
//!
//! The event loop calls [`Client::wake`] to begin, then [`Client::receive`] with bytes that arrived
//! and [`Client::wake`] when a wait is over. Each call appends the bytes to be sent and returns
//! what the client waits for. [`Client::connection_lost`], [`Client::connection_failed`],
//! [`Client::expire`] and [`Client::stop`] tell it of trouble.
//!
//! In steady state a client allocates nothing: replies are read in place, values live in slots, and
//! buffers are the caller's or reused.
//!
//! ```
//! use std::rc::Rc;
//! use std::sync::Arc;
//!
//! use pgdyno_engine::client::{Client, ClientContext, Wait};
//! use pgdyno_engine::pace::Pacer;
//! use pgdyno_engine::program::Program;
//! use pgdyno_engine::random::Random;
//! use pgdyno_engine::recorder::Recorder;
//! use pgdyno_engine::schedule::{Moment, Schedule};
//! use pgdyno_engine::script::{Script, WeightedScript};
//! use pgdyno_model::experiment::Protocol;
//!
//! let script = Arc::new(Script::parse("one.sql", "SELECT 1;")?);
//! let scripts = [WeightedScript::new(script, 1)];
//! let program = Rc::new(Program::link(&scripts, Protocol::Simple, 1, &[], &[])?);
//! let mut recorder = Recorder::new(&program, Schedule::default(), Box::new(|_| {}));
//! let (mut pacer, mut out) = (Pacer::default(), Vec::new());
//! let mut client = Client::new(0, program, Random::new(1), Random::new(2), None);
//!
//! let now = Moment(1_000);
//! let wait = client.wake(&mut ClientContext {
//!     now,
//!     out: &mut out,
//!     recorder: &mut recorder,
//!     pacer: &mut pacer,
//! });
//! assert_eq!(wait, Wait::ForReply);
//! assert_eq!(out, b"Q\0\0\0\x0eSELECT 1;\0");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod abort;
mod commit_watch;
mod commits;
mod debug_log;
mod expected;
mod failure;
mod reconnect;
mod reply;
mod result;
mod rows;
mod send;
mod shell;
mod state;
mod steps;
mod transaction;

use std::collections::VecDeque;
use std::rc::Rc;

use abort::{Abort, StatementError};
use commit_watch::CommandEffects;
use expected::ExpectedReply;
use pgdyno_wire::frontend;
use reply::{ReplyEvent, ReplyReader};
pub use state::{Client, ClientContext, Wait};
use state::{PendingReply, State};

use crate::ledger::{ClientLedger, LedgerBindings, TransactionLedger};
use crate::program::Program;
use crate::random::Random;
use crate::schedule::{Exchange, Moment};
use crate::script::Value;
use crate::sqlstate;

impl Client {
    /// Creates client `id` with a connection.
    ///
    /// `transactions` limits the transactions that it starts once the window is open.
    pub fn new(
        id: u32,
        program: Rc<Program>,
        random: Random,
        script_random: Random,
        transactions: Option<u64>,
    ) -> Self {
        let mut variables = program.initial.clone();
        variables[program.client_id.index()].get_or_insert(Value::Int(id.into()).into());
        let prepared = vec![false; program.statements];
        let replies = ReplyReader::new(program.policy.client_log.is_some());
        Self {
            id,
            program,
            random_before_try: random.clone(),
            random,
            script_random,
            variables,
            prepared,
            replies,
            results: result::QueryResults::default(),
            state: State::Idle,
            group: 0,
            script: 0,
            step: 0,
            number: 0,
            due: Moment(0),
            sent_at: Moment(0),
            sent: Moment(0),
            first_byte: Moment::NEVER,
            retries: 0,
            queries: 0,
            reconnections: 0,
            has_sent: false,
            in_pipeline: false,
            pending: VecDeque::new(),
            connected: true,
            rows: None,
            error: None,
            failure: None,
            quota: transactions,
            ledger: None,
            commits: None,
        }
    }

    /// Makes it a client of the group of this index.
    #[must_use]
    pub fn in_group(self, group: usize) -> Self {
        Self { group, ..self }
    }

    /// Index of its group.
    #[inline]
    pub(crate) fn group(&self) -> usize {
        self.group
    }

    /// Records each transaction in the ledger before sending it.
    ///
    /// # Errors
    /// Name of a variable that the scripts do not set.
    pub fn with_ledger(self, ledger: Box<dyn ClientLedger>) -> Result<Self, &'static str> {
        let bindings = LedgerBindings::from_program(&self.program)?;
        Ok(Self { ledger: Some(Box::new(TransactionLedger::new(ledger, bindings))), ..self })
    }

    /// Takes the connection away: the client asks for one before its first transaction.
    #[must_use]
    pub fn without_connection(self) -> Self {
        Self { connected: false, ..self }
    }

    /// Returns the client's number, from 0.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// Returns whether a statement is under way at the server.
    pub fn awaits_reply(&self) -> bool {
        matches!(self.state, State::AwaitingReply(_) | State::AwaitingPipeline | State::RollingBack)
    }

    /// Returns whether the client does nothing more.
    pub fn has_ended(&self) -> bool {
        self.state == State::Ended
    }

    /// Returns whether the client keeps its connection.
    pub fn is_connected(&self) -> bool {
        self.connected
    }

    /// Begins the first transaction, or goes on after a wait.
    pub fn wake(&mut self, context: &mut ClientContext<'_>) -> Wait {
        match self.state {
            State::Idle => self.choose_transaction(context),
            State::Due => self.start_transaction(context),
            State::Computed => self.complete_transaction(context),
            State::Sleeping => {
                let slept = context.now.nanoseconds_since(self.sent);
                context.recorder.record_command(self.script, self.step, slept, context.now);
                self.step += 1;
                self.advance(context)
            }
            State::AwaitingReply(_) | State::AwaitingPipeline | State::RollingBack => {
                Wait::ForReply
            }
            State::Ended => Wait::Close,
        }
    }

    /// Takes a new connection, on which nothing is prepared. The client is then to be woken.
    pub fn connection_restored(&mut self) {
        self.connected = true;
        let effects = self.replies.effects.map(|_| CommandEffects::default());
        self.replies = ReplyReader::new(self.program.policy.client_log.is_some());
        self.replies.effects = effects;
        self.prepared.fill(false);
        self.rows = None;
    }

    /// Handles `bytes` that arrived from the server.
    pub fn receive(&mut self, mut bytes: &[u8], context: &mut ClientContext<'_>) -> Wait {
        if self.program.policy.logs_steps {
            self.log_receiving();
        }
        self.replies.arrive();
        let mut next = Wait::ForReply;
        while !bytes.is_empty() {
            if self.state == State::Ended {
                return Wait::Close;
            }
            if !self.connected {
                break;
            }
            self.first_byte = self.first_byte.min(context.now);
            match self.replies.next(&mut bytes) {
                Ok(None) => break,
                Ok(Some(event)) => {
                    if let Some(after) = self.handle(event, context) {
                        next = after;
                    }
                }
                Err(error) => {
                    let reason = format!("the server broke the protocol: {error}");
                    return self
                        .abort(&Abort::internal(sqlstate::PROTOCOL_VIOLATION, &reason), context);
                }
            }
        }
        match self.state {
            State::Sleeping | State::Computed | State::Ended | State::Idle | State::Due => next,
            State::AwaitingReply(_) if self.is_sending_rows() => Wait::ForRoom,
            State::AwaitingReply(_) | State::AwaitingPipeline | State::RollingBack => {
                Wait::ForReply
            }
        }
    }

    /// Gives up: the time for the transaction is over.
    pub fn expire(&mut self, context: &mut ClientContext<'_>) -> Wait {
        match self.state {
            State::Ended => return Wait::Close,
            // Nothing was begun.
            State::Idle | State::Due => {
                self.stop(context.out);
                return Wait::Close;
            }
            _ => {}
        }
        let grace = context.recorder.schedule().grace;
        let reason = format!("its transaction was not done {grace:?} after the last could begin");
        self.abort(&Abort::internal(sqlstate::QUERY_CANCELED, &reason), context)
    }

    /// Ends the client. The transaction under way counts nowhere.
    pub fn stop(&mut self, out: &mut Vec<u8>) {
        if self.state != State::Ended {
            self.state = State::Ended;
            if self.connected {
                frontend::terminate(out);
            }
        }
    }

    /// Handles one event of a reply; returns what to wait for if that changed.
    fn handle(&mut self, event: ReplyEvent, context: &mut ClientContext<'_>) -> Option<Wait> {
        match event {
            ReplyEvent::Ready => return Some(self.ready(context)),
            ReplyEvent::Notice(notice) => self.log_notice(&notice),
            ReplyEvent::Error(error) => {
                self.rows = None;
                // Of several errors the first is the cause.
                if self.error.is_none() {
                    let (step, statement) = self.current_statement();
                    self.error = Some(StatementError { step, statement, error });
                }
            }
            ReplyEvent::Parsed => {
                let statement = match (self.state, self.pending.front_mut()) {
                    (_, Some(PendingReply::Statement { statement, parsed, .. })) => {
                        *parsed = false;
                        Some(*statement)
                    }
                    (State::AwaitingReply(statement), _) => Some(statement),
                    _ => None,
                };
                if let Some(statement) = statement {
                    let number = self.program.scripts[self.script].statements[statement].number;
                    self.prepared[number] = true;
                }
            }
            ReplyEvent::Copy if self.rows.is_some() => {
                // The reply begins when the rows are there.
                self.first_byte = Moment::NEVER;
                return Some(self.send_rows(context));
            }
            ReplyEvent::Copy => {
                let reason = format!("{}: COPY is not supported in scripts", self.position());
                let abort = Abort::internal(sqlstate::FEATURE_NOT_SUPPORTED, &reason)
                    .with_cause("COPY is not supported in pgbench, aborting".to_owned())
                    .with_message("");
                return Some(self.abort(&abort, context));
            }
            ReplyEvent::Columns(columns) => self.results.columns(columns),
            ReplyEvent::Row(row) => self.results.row(row),
            ReplyEvent::Complete => match self.pending.front() {
                Some(&PendingReply::Statement { step, statement, sent, .. }) => {
                    self.pending.pop_front();
                    self.expect_pending();
                    self.count_statement(step, statement, sent, context);
                }
                _ => {
                    self.queries += 1;
                    if self.replies.rows {
                        self.results.complete();
                    }
                }
            },
        }
        None
    }

    /// Returns the step that the server's next message belongs to, and its statement if it has one.
    fn current_statement(&self) -> (usize, Option<usize>) {
        match (self.state, self.pending.front()) {
            (_, Some(PendingReply::Statement { step, statement, .. })) => (*step, Some(*statement)),
            (State::AwaitingReply(statement), _) => (self.step, Some(statement)),
            _ => (self.step, None),
        }
    }

    fn count_statement(
        &mut self,
        step: usize,
        statement: usize,
        sent: Moment,
        context: &mut ClientContext<'_>,
    ) {
        let first_byte = std::mem::replace(&mut self.first_byte, Moment::NEVER);
        let times = Exchange { sent, first_byte, done: context.now };
        context.recorder.record_statement(self.script, statement, &times);
        context.recorder.record_command(self.script, step, times.latency(), context.now);
    }

    /// Handles ReadyForQuery.
    fn ready(&mut self, context: &mut ClientContext<'_>) -> Wait {
        self.judge_commit(context);
        let next = self.finish_reply(context);
        // Bytes read so far belong to no later reply.
        self.first_byte = Moment::NEVER;
        next
    }

    /// Goes on after a complete reply, or after the part of a pipeline that a Sync ends.
    fn finish_reply(&mut self, context: &mut ClientContext<'_>) -> Wait {
        if !self.pending.is_empty() {
            // The server skipped statements after an error, up to the Sync.
            while let Some(pending) = self.pending.pop_front() {
                match pending {
                    PendingReply::Sync => break,
                    // The Parse was skipped, too.
                    PendingReply::Statement { statement, parsed: true, .. } => {
                        let number = self.program.scripts[self.script].statements[statement].number;
                        self.prepared[number] = false;
                    }
                    PendingReply::Statement { .. } => {}
                }
            }
            self.expect_pending();
            if self.state != State::AwaitingPipeline || !self.pending.is_empty() {
                return Wait::ForReply;
            }
            self.in_pipeline = false;
            self.replies.query_ends = false;
            if let Some(fault) = self.error.take() {
                return self.failed(fault, context);
            }
            context.recorder.record_command(
                self.script,
                self.step,
                context.now.nanoseconds_since(self.sent),
                context.now,
            );
            self.step += 1;
            return self.advance(context);
        }
        match self.state {
            State::AwaitingReply(statement) => {
                if let Some(fault) = self.error.take() {
                    return self.failed(fault, context);
                }
                self.count_statement(self.step, statement, self.sent, context);
                if let Some(abort) = self.store(statement) {
                    return self.abort(&abort, context);
                }
                self.step += 1;
                self.advance(context)
            }
            State::RollingBack => match self.error.take() {
                Some(fault) => {
                    let words = fault.error.libpq_text(Some("ROLLBACK"));
                    self.abort(
                        &Abort::from_server("ROLLBACK after a failure", &fault.error, words),
                        context,
                    )
                }
                None => self.after_failure(context),
            },
            State::Idle
            | State::Due
            | State::AwaitingPipeline
            | State::Sleeping
            | State::Computed
            | State::Ended => {
                let reason = "the server sent ReadyForQuery without having been asked anything";
                self.abort(&Abort::internal(sqlstate::PROTOCOL_VIOLATION, reason), context)
            }
        }
    }

    /// Expects the reply that the pipeline owes first.
    fn expect_pending(&mut self) {
        let expected = self.pending.front().map_or(ExpectedReply::Nothing, PendingReply::expected);
        self.replies.expect_next(expected);
    }

    /// Returns the client's position in the scripts, for messages.
    fn position(&self) -> String {
        let script = &self.program.scripts[self.script];
        match script.steps.get(self.step) {
            Some(step) => format!("{}:{}: `{}`", script.name, step.line, step.text),
            None => script.name.clone(),
        }
    }
}
