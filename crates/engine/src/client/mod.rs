//! One client: a state machine without I/O.
//!
//! It is given received bytes and the time, appends what is to be sent, and says what it waits for.
//! In steady state it allocates nothing: replies are read in place, values live in slots, and all
//! buffers are the caller's or reused.

mod abort;
mod debug_log;
mod expected;
mod failure;
mod reconnect;
mod reply;
mod result;
mod send;
mod shell;
mod state;
mod steps;
mod transaction;

use std::collections::VecDeque;
use std::rc::Rc;

use pgdyno_wire::frontend;

pub use state::{Client, ClientContext, Wait};

use crate::ledger::{ClientLedger, LedgerBindings, TransactionLedger};
use crate::program::Program;
use crate::random::Random;
use crate::schedule::{Exchange, Moment};
use crate::script::Value;
use crate::sqlstate;
use abort::{Abort, StatementError};
use expected::ExpectedReply;
use reply::{ReplyEvent, ReplyReader};
use state::{PendingReply, State};

impl Client {
    /// Client `id` of `program`, with streams of randomness of its own.
    #[must_use]
    pub fn new(
        id: u32,
        program: Rc<Program>,
        random: Random,
        choice: Random,
        transactions: Option<u64>,
    ) -> Self {
        let mut variables = program.initial.clone();
        variables[program.client_id.index()].get_or_insert(Value::Int(id.into()).into());
        let prepared = vec![false; program.statements];
        let replies = ReplyReader::new(program.rules.say.is_some());
        Self {
            id,
            program,
            before: random.clone(),
            random,
            choice,
            variables,
            prepared,
            replies,
            answers: result::QueryResults::default(),
            state: State::Idle,
            script: 0,
            step: 0,
            number: 0,
            due: Moment(0),
            begun: Moment(0),
            sent: Moment(0),
            first_byte: Moment::NEVER,
            retries: 0,
            queries: 0,
            reconnections: 0,
            asked: false,
            piping: false,
            piped: VecDeque::new(),
            connected: true,
            error: None,
            failure: None,
            quota: transactions,
            book: None,
        }
    }

    /// The same, its transactions written down in `ledger`.
    ///
    /// # Errors
    /// The variable that its scripts lack.
    pub fn keeping(self, ledger: Box<dyn ClientLedger>) -> Result<Self, &'static str> {
        let places = LedgerBindings::of(&self.program)?;
        Ok(Self { book: Some(Box::new(TransactionLedger::new(ledger, places))), ..self })
    }

    /// The same client before its first connection.
    #[must_use]
    pub fn unconnected(self) -> Self {
        Self { connected: false, ..self }
    }

    /// Its number, from 0.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.id
    }

    /// Whether a statement is under way at the server.
    #[must_use]
    pub fn awaits_reply(&self) -> bool {
        matches!(self.state, State::AwaitingReply(_) | State::AwaitingPipeline | State::RollingBack)
    }

    /// Whether it will do nothing more.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.state == State::Ended
    }

    /// Whether it wants its connection.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        self.connected
    }

    /// Begins its first transaction, or goes on after what it waited for.
    pub fn wake(&mut self, turn: &mut ClientContext<'_>) -> Wait {
        match self.state {
            State::Idle => self.begin(turn),
            State::Due => self.start(turn),
            State::Computed => self.complete(turn),
            State::Sleeping => {
                let slept = turn.now.nanoseconds_since(self.sent);
                turn.recorder.command(self.script, self.step, slept, turn.now);
                self.step += 1;
                self.advance(turn)
            }
            State::AwaitingReply(_) | State::AwaitingPipeline | State::RollingBack => {
                Wait::ForReply
            }
            State::Ended => Wait::Close,
        }
    }

    /// Has a new connection, on which nothing is prepared yet; it is to be woken.
    pub fn reconnected(&mut self) {
        self.connected = true;
        self.replies = ReplyReader::new(self.program.rules.say.is_some());
        self.prepared.fill(false);
    }

    /// Takes `bytes` from the server.
    pub fn receive(&mut self, mut bytes: &[u8], turn: &mut ClientContext<'_>) -> Wait {
        if self.program.rules.say_steps {
            self.say_receiving();
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
            self.first_byte = self.first_byte.min(turn.now);
            match self.replies.next(&mut bytes) {
                Ok(None) => break,
                Ok(Some(event)) => {
                    if let Some(after) = self.take(event, turn) {
                        next = after;
                    }
                }
                Err(error) => {
                    let reason = format!("the server broke the protocol: {error}");
                    return self.abort(&Abort::own(sqlstate::PROTOCOL_VIOLATION, &reason), turn);
                }
            }
        }
        match self.state {
            State::Sleeping | State::Computed | State::Ended | State::Idle | State::Due => next,
            State::AwaitingReply(_) | State::AwaitingPipeline | State::RollingBack => {
                Wait::ForReply
            }
        }
    }

    /// Gives up because the time for its transaction is over.
    pub fn expire(&mut self, turn: &mut ClientContext<'_>) -> Wait {
        match self.state {
            State::Ended => return Wait::Close,
            // Nothing was begun.
            State::Idle | State::Due => {
                self.stop(turn.out);
                return Wait::Close;
            }
            _ => {}
        }
        let grace = turn.recorder.schedule().grace;
        let reason = format!("its transaction was not done {grace:?} after the window closed");
        self.abort(&Abort::own(sqlstate::QUERY_CANCELED, &reason), turn)
    }

    /// Ends without a word about the transaction under way.
    pub fn stop(&mut self, out: &mut Vec<u8>) {
        if self.state != State::Ended {
            self.state = State::Ended;
            if self.connected {
                frontend::terminate(out);
            }
        }
    }

    /// Acts on one message; returns what to wait for if that changed.
    fn take(&mut self, event: ReplyEvent, turn: &mut ClientContext<'_>) -> Option<Wait> {
        match event {
            ReplyEvent::Ready => return Some(self.ready(turn)),
            ReplyEvent::Notice(notice) => self.say_notice(&notice),
            ReplyEvent::Error(error) => {
                // Of several errors the first is the cause.
                if self.error.is_none() {
                    let (step, statement) = self.answering();
                    self.error = Some(StatementError { step, statement, error });
                }
            }
            ReplyEvent::Parsed => {
                let statement = match (self.state, self.piped.front_mut()) {
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
            ReplyEvent::Copy => {
                let reason = format!("{}: COPY is not supported in scripts", self.place());
                let abort = Abort::own(sqlstate::FEATURE_NOT_SUPPORTED, &reason)
                    .caused("COPY is not supported in pgbench, aborting".to_owned())
                    .saying("");
                return Some(self.abort(&abort, turn));
            }
            ReplyEvent::Columns(columns) => self.answers.columns(columns),
            ReplyEvent::Row(row) => self.answers.row(row),
            ReplyEvent::Complete => match self.piped.front() {
                Some(&PendingReply::Statement { step, statement, sent, .. }) => {
                    self.piped.pop_front();
                    self.expect_piped();
                    self.count_statement(step, statement, sent, turn);
                }
                _ => {
                    self.queries += 1;
                    if self.replies.rows {
                        self.answers.complete();
                    }
                }
            },
        }
        None
    }

    /// The step that the server's next message is about, and its statement if it has one.
    fn answering(&self) -> (usize, Option<usize>) {
        match (self.state, self.piped.front()) {
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
        turn: &mut ClientContext<'_>,
    ) {
        let first_byte = std::mem::replace(&mut self.first_byte, Moment::NEVER);
        let times = Exchange { sent, first_byte, done: turn.now };
        turn.recorder.statement(self.script, statement, &times);
        turn.recorder.command(self.script, step, times.latency(), turn.now);
    }

    /// The server awaits the next command.
    fn ready(&mut self, turn: &mut ClientContext<'_>) -> Wait {
        let next = self.answered(turn);
        // What was read so far belongs to no later reply.
        self.first_byte = Moment::NEVER;
        next
    }

    /// The present reply, or the part of a pipeline that a Sync ends, is complete.
    fn answered(&mut self, turn: &mut ClientContext<'_>) -> Wait {
        if !self.piped.is_empty() {
            // Statements after an error, and the Sync that ends their transaction.
            while let Some(piped) = self.piped.pop_front() {
                match piped {
                    PendingReply::Sync => break,
                    // It was to be prepared, and was passed over.
                    PendingReply::Statement { statement, parsed: true, .. } => {
                        let number = self.program.scripts[self.script].statements[statement].number;
                        self.prepared[number] = false;
                    }
                    PendingReply::Statement { .. } => {}
                }
            }
            self.expect_piped();
            if self.state != State::AwaitingPipeline || !self.piped.is_empty() {
                return Wait::ForReply;
            }
            self.piping = false;
            self.replies.ends = false;
            if let Some(fault) = self.error.take() {
                return self.failed(fault, turn);
            }
            turn.recorder.command(
                self.script,
                self.step,
                turn.now.nanoseconds_since(self.sent),
                turn.now,
            );
            self.step += 1;
            return self.advance(turn);
        }
        match self.state {
            State::AwaitingReply(statement) => {
                if let Some(fault) = self.error.take() {
                    return self.failed(fault, turn);
                }
                self.count_statement(self.step, statement, self.sent, turn);
                if let Some(abort) = self.store(statement) {
                    return self.abort(&abort, turn);
                }
                self.step += 1;
                self.advance(turn)
            }
            State::RollingBack => match self.error.take() {
                Some(fault) => {
                    let words = fault.error.libpq_text(Some("ROLLBACK"));
                    self.abort(
                        &Abort::server("ROLLBACK after a failure", &fault.error, words),
                        turn,
                    )
                }
                None => self.after_failure(turn),
            },
            State::Idle
            | State::Due
            | State::AwaitingPipeline
            | State::Sleeping
            | State::Computed
            | State::Ended => {
                let reason = "the server sent ReadyForQuery without having been asked anything";
                self.abort(&Abort::own(sqlstate::PROTOCOL_VIOLATION, reason), turn)
            }
        }
    }

    /// Awaits the reply to the first of what was sent in the pipeline and is not answered yet.
    fn expect_piped(&mut self) {
        let expected = self.piped.front().map_or(ExpectedReply::Nothing, PendingReply::expected);
        self.replies.expect_next(expected);
    }

    /// Where in the scripts the client is.
    fn place(&self) -> String {
        let script = &self.program.scripts[self.script];
        match script.steps.get(self.step) {
            Some(step) => format!("{}:{}: `{}`", script.name, step.line, step.text),
            None => script.name.clone(),
        }
    }
}
