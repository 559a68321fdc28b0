//! One client: a state machine without I/O.
//!
//! It is given received bytes and the time, appends what is to be sent, and says what it waits for.
//! In steady state it allocates nothing: replies are read in place, values live in slots, and all
//! buffers are the caller's or reused.

mod abort;
mod expected;
mod failure;
mod lost;
mod reply;
mod result;
mod send;
mod shell;
mod state;
mod steps;
mod tell;
mod transaction;

use std::collections::VecDeque;
use std::rc::Rc;

use pgdyno_wire::frontend;

pub use state::{Client, Next, Turn};

use crate::ledger::{Book, ClientLedger, Places};
use crate::program::Program;
use crate::random::Random;
use crate::schedule::{Exchange, Moment};
use crate::script::Value;
use crate::sqlstate;
use abort::{Abort, Fault};
use expected::Expected;
use reply::{Event, Replies};
use state::{Piped, State};

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
        let replies = Replies::new(program.rules.say.is_some());
        Self {
            id,
            program,
            before: random.clone(),
            random,
            choice,
            variables,
            prepared,
            replies,
            answers: result::Answers::default(),
            state: State::Between,
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
        let places = Places::of(&self.program)?;
        Ok(Self { book: Some(Box::new(Book::new(ledger, places))), ..self })
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
        matches!(self.state, State::Sent(_) | State::Piped | State::RollingBack)
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
    pub fn wake(&mut self, turn: &mut Turn<'_>) -> Next {
        match self.state {
            State::Between => self.begin(turn),
            State::Due => self.start(turn),
            State::Computed => self.complete(turn),
            State::Asleep => {
                let slept = turn.now.nanoseconds_since(self.sent);
                turn.recorder.command(self.script, self.step, slept, turn.now);
                self.step += 1;
                self.advance(turn)
            }
            State::Sent(_) | State::Piped | State::RollingBack => Next::Reply,
            State::Ended => Next::Close,
        }
    }

    /// Has a new connection, on which nothing is prepared yet; it is to be woken.
    pub fn reconnected(&mut self) {
        self.connected = true;
        self.replies = Replies::new(self.program.rules.say.is_some());
        self.prepared.fill(false);
    }

    /// Takes `bytes` from the server.
    pub fn receive(&mut self, mut bytes: &[u8], turn: &mut Turn<'_>) -> Next {
        if self.program.rules.say_steps {
            self.say_receiving();
        }
        self.replies.arrive();
        let mut next = Next::Reply;
        while !bytes.is_empty() {
            if self.state == State::Ended {
                return Next::Close;
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
            State::Asleep | State::Computed | State::Ended | State::Between | State::Due => next,
            State::Sent(_) | State::Piped | State::RollingBack => Next::Reply,
        }
    }

    /// Gives up because the time for its transaction is over.
    pub fn expire(&mut self, turn: &mut Turn<'_>) -> Next {
        match self.state {
            State::Ended => return Next::Close,
            // Nothing was begun.
            State::Between | State::Due => {
                self.stop(turn.out);
                return Next::Close;
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
    fn take(&mut self, event: Event, turn: &mut Turn<'_>) -> Option<Next> {
        match event {
            Event::Ready => return Some(self.ready(turn)),
            Event::Notice(notice) => self.say_notice(&notice),
            Event::Error(error) => {
                // Of several errors the first is the cause.
                if self.error.is_none() {
                    let (step, statement) = self.answering();
                    self.error = Some(Fault { step, statement, error });
                }
            }
            Event::Parsed => {
                let statement = match (self.state, self.piped.front_mut()) {
                    (_, Some(Piped::Statement { statement, parsed, .. })) => {
                        *parsed = false;
                        Some(*statement)
                    }
                    (State::Sent(statement), _) => Some(statement),
                    _ => None,
                };
                if let Some(statement) = statement {
                    let number = self.program.scripts[self.script].statements[statement].number;
                    self.prepared[number] = true;
                }
            }
            Event::Copy => {
                let reason = format!("{}: COPY is not supported in scripts", self.place());
                let abort = Abort::own(sqlstate::FEATURE_NOT_SUPPORTED, &reason)
                    .caused("COPY is not supported in pgbench, aborting".to_owned())
                    .saying("");
                return Some(self.abort(&abort, turn));
            }
            Event::Columns(columns) => self.answers.columns(columns),
            Event::Row(row) => self.answers.row(row),
            Event::Complete => match self.piped.front() {
                Some(&Piped::Statement { step, statement, sent, .. }) => {
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
            (_, Some(Piped::Statement { step, statement, .. })) => (*step, Some(*statement)),
            (State::Sent(statement), _) => (self.step, Some(statement)),
            _ => (self.step, None),
        }
    }

    fn count_statement(
        &mut self,
        step: usize,
        statement: usize,
        sent: Moment,
        turn: &mut Turn<'_>,
    ) {
        let first_byte = std::mem::replace(&mut self.first_byte, Moment::NEVER);
        let times = Exchange { sent, first_byte, done: turn.now };
        turn.recorder.statement(self.script, statement, &times);
        turn.recorder.command(self.script, step, times.latency(), turn.now);
    }

    /// The server awaits the next command.
    fn ready(&mut self, turn: &mut Turn<'_>) -> Next {
        let next = self.answered(turn);
        // What was read so far belongs to no later reply.
        self.first_byte = Moment::NEVER;
        next
    }

    /// The present reply, or the part of a pipeline that a Sync ends, is complete.
    fn answered(&mut self, turn: &mut Turn<'_>) -> Next {
        if !self.piped.is_empty() {
            // Statements after an error, and the Sync that ends their transaction.
            while let Some(piped) = self.piped.pop_front() {
                match piped {
                    Piped::Sync => break,
                    // It was to be prepared, and was passed over.
                    Piped::Statement { statement, parsed: true, .. } => {
                        let number = self.program.scripts[self.script].statements[statement].number;
                        self.prepared[number] = false;
                    }
                    Piped::Statement { .. } => {}
                }
            }
            self.expect_piped();
            if self.state != State::Piped || !self.piped.is_empty() {
                return Next::Reply;
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
            State::Sent(statement) => {
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
            State::Between
            | State::Due
            | State::Piped
            | State::Asleep
            | State::Computed
            | State::Ended => {
                let reason = "the server sent ReadyForQuery without having been asked anything";
                self.abort(&Abort::own(sqlstate::PROTOCOL_VIOLATION, reason), turn)
            }
        }
    }

    /// Awaits the reply to the first of what was sent in the pipeline and is not answered yet.
    fn expect_piped(&mut self) {
        let expected = self.piped.front().map_or(Expected::Nothing, Piped::expected);
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
