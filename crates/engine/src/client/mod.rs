//! One client: a state machine without I/O.
//!
//! It is given received bytes and the time, appends what is to be sent, and says what it waits for. In steady state it
//! allocates nothing: replies are read in place, values live in slots, and all buffers are the caller's or reused.

mod reply;

use std::sync::Arc;

use pgdyno_wire::backend::Status;
use pgdyno_wire::{WireError, frontend};

use crate::program::{Action, Program, Request, Statement};
use crate::random::Random;
use crate::recorder::{Recorder, sqlstate};
use crate::schedule::{Moment, Timeline};
use crate::script::{Expr, Piece, Scope, Value};
use reply::{Event, Replies};

pub use reply::ServerError;

/// What a client waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// More bytes from the server.
    Reply,
    /// That moment.
    Wake(Moment),
    /// Nothing more: its connection is to be closed once what it appended is sent.
    Close,
}

/// What a client is called with.
pub struct Turn<'a> {
    /// The time: of the reply's arrival, where there is one.
    pub now: Moment,
    /// What is to be sent is appended here.
    pub out: &'a mut Vec<u8>,
    /// What counts its transactions.
    pub recorder: &'a mut Recorder,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Between transactions.
    Between,
    /// The script's statement of this index was sent.
    Sent(usize),
    /// Waits in a script or, with nothing begun, for its turn.
    Asleep,
    /// ROLLBACK was sent after a failure.
    RollingBack,
    /// Will do nothing more.
    Ended,
}

/// One connection's load.
pub struct Client {
    id: u32,
    program: Arc<Program>,
    random: Random,
    /// A stream of its own, so that a script's draws do not depend on how many scripts there are.
    choice: Random,
    variables: Vec<Option<Value>>,
    /// By statement number: whether the server holds it prepared.
    prepared: Vec<bool>,
    replies: Replies,
    state: State,
    script: usize,
    step: usize,
    /// When the transaction was due.
    due: Moment,
    /// When the last statement was sent.
    sent: Moment,
    /// Whether the transaction has sent any statement.
    asked: bool,
    /// The session's state as the server last said.
    status: Status,
    /// The error that the present statement met.
    error: Option<ServerError>,
    /// The script's statement that made the transaction fail, and how.
    failure: Option<(usize, ServerError)>,
    /// Transactions left to start once the window is open.
    quota: Option<u64>,
}

/// Why a client gives up: an SQLSTATE, and words for people, which name it too.
struct Abort {
    code: String,
    reason: String,
}

impl Abort {
    /// For what the engine itself finds wrong.
    fn own(code: &str, reason: &str) -> Self {
        Self { code: code.to_owned(), reason: format!("{reason} (SQLSTATE {code})") }
    }

    /// For what the server said, about `what`.
    fn server(what: &str, error: ServerError) -> Self {
        Self { reason: format!("{what}: {error}"), code: error.code }
    }
}

impl Client {
    /// Client `id` of `program`, with streams of randomness of its own.
    #[must_use]
    pub fn new(
        id: u32,
        program: Arc<Program>,
        random: Random,
        choice: Random,
        transactions: Option<u64>,
    ) -> Self {
        let mut variables = program.initial.clone();
        variables[program.client_id.index()] = Some(Value::Int(id.into()));
        let prepared = vec![false; program.statements];
        Self {
            id,
            program,
            random,
            choice,
            variables,
            prepared,
            replies: Replies::new(),
            state: State::Between,
            script: 0,
            step: 0,
            due: Moment(0),
            sent: Moment(0),
            asked: false,
            status: Status::Idle,
            error: None,
            failure: None,
            quota: transactions,
        }
    }

    /// Its number, from 0.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.id
    }

    /// Whether a statement is under way at the server.
    #[must_use]
    pub fn awaits_reply(&self) -> bool {
        matches!(self.state, State::Sent(_) | State::RollingBack)
    }

    /// Whether it will do nothing more.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.state == State::Ended
    }

    /// Begins its first transaction, or goes on after the moment it waited for.
    pub fn wake(&mut self, turn: &mut Turn<'_>) -> Next {
        match self.state {
            State::Between => self.begin(turn),
            State::Asleep => self.advance(turn),
            State::Sent(_) | State::RollingBack => Next::Reply,
            State::Ended => Next::Close,
        }
    }

    /// Takes `bytes` from the server.
    pub fn receive(&mut self, mut bytes: &[u8], turn: &mut Turn<'_>) -> Next {
        let mut next = Next::Reply;
        while !bytes.is_empty() {
            if self.state == State::Ended {
                return Next::Close;
            }
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
            State::Asleep | State::Ended | State::Between => next,
            State::Sent(_) | State::RollingBack => Next::Reply,
        }
    }

    /// Learns that its connection is gone; `how` says what was seen.
    pub fn lost(&mut self, how: &str, turn: &mut Turn<'_>) {
        if self.state == State::Ended {
            return;
        }
        let told = self.error.take();
        let reason = match told {
            // What the server said before it hung up tells more than that it did.
            Some(error) => format!("connection lost ({how}) after {error}"),
            None => format!("connection lost: {how}"),
        };
        self.abort(&Abort::own(sqlstate::CONNECTION_FAILURE, &reason), turn);
    }

    /// Gives up because the time for its transaction is over.
    pub fn expire(&mut self, turn: &mut Turn<'_>) -> Next {
        if self.state == State::Ended {
            return Next::Close;
        }
        let grace = turn.recorder.schedule().grace;
        let reason = format!("its transaction was not done {grace:?} after the window closed");
        self.abort(&Abort::own(sqlstate::QUERY_CANCELED, &reason), turn)
    }

    /// Ends without a word about the transaction under way.
    pub fn stop(&mut self, out: &mut Vec<u8>) {
        if self.state != State::Ended {
            self.state = State::Ended;
            frontend::terminate(out);
        }
    }

    /// Acts on one message; returns what to wait for if that changed.
    fn take(&mut self, event: Event, turn: &mut Turn<'_>) -> Option<Next> {
        match event {
            Event::Ready(status) => {
                self.status = status;
                Some(self.ready(turn))
            }
            Event::Error(error) => {
                // Of several errors the first is the cause.
                self.error.get_or_insert(error);
                None
            }
            Event::Parsed => {
                if let State::Sent(statement) = self.state {
                    let number = self.program.scripts[self.script].statements[statement].number;
                    self.prepared[number] = true;
                }
                None
            }
            Event::Copy => {
                let reason = format!("{}: COPY is not supported in scripts", self.place());
                Some(self.abort(&Abort::own(sqlstate::FEATURE_NOT_SUPPORTED, &reason), turn))
            }
        }
    }

    /// The server awaits the next command.
    fn ready(&mut self, turn: &mut Turn<'_>) -> Next {
        match self.state {
            State::Sent(statement) => {
                if let Some(error) = self.error.take() {
                    return self.failed(statement, error, turn);
                }
                let times = Timeline { due: self.sent, sent: self.sent, done: turn.now };
                turn.recorder.statement(self.script, statement, times);
                self.step += 1;
                self.advance(turn)
            }
            State::RollingBack => match self.error.take() {
                Some(error) => self.abort(&Abort::server("ROLLBACK after a failure", error), turn),
                None => self.give_up_transaction(turn),
            },
            State::Between | State::Asleep | State::Ended => {
                let reason = "the server sent ReadyForQuery without having been asked anything";
                self.abort(&Abort::own(sqlstate::PROTOCOL_VIOLATION, reason), turn)
            }
        }
    }

    /// A statement met an error: another transaction may fare better, or the client gives up.
    fn failed(&mut self, statement: usize, error: ServerError, turn: &mut Turn<'_>) -> Next {
        let passing =
            matches!(error.code.as_str(), sqlstate::SERIALIZATION_FAILURE | sqlstate::DEADLOCK_DETECTED);
        if !passing {
            return self.abort(&Abort::server(&self.place(), error), turn);
        }
        self.failure = Some((statement, error));
        if self.status == Status::Idle {
            return self.give_up_transaction(turn);
        }
        match frontend::query(turn.out, b"ROLLBACK") {
            Ok(()) => {
                self.state = State::RollingBack;
                Next::Reply
            }
            Err(error) => unreachable!("ROLLBACK fits into a message: {error}"),
        }
    }

    /// The failed transaction is over.
    fn give_up_transaction(&mut self, turn: &mut Turn<'_>) -> Next {
        if let Some((statement, error)) = self.failure.take() {
            turn.recorder.failure(self.script, Some(statement), &error.code, turn.now);
        }
        self.begin(turn)
    }

    /// Begins a transaction, if there is one to begin.
    fn begin(&mut self, turn: &mut Turn<'_>) -> Next {
        let schedule = turn.recorder.schedule();
        let over = turn.now >= schedule.closing;
        let counts = turn.now >= schedule.opening;
        if over || (counts && self.quota == Some(0)) {
            self.stop(turn.out);
            return Next::Close;
        }
        if counts && let Some(left) = &mut self.quota {
            *left -= 1;
        }
        self.script = match self.program.scripts.len() {
            1 => 0,
            _ => self.program.script_at(self.choice.uniform(0, self.program.weight - 1)),
        };
        self.step = 0;
        self.due = turn.now;
        self.asked = false;
        self.advance(turn)
    }

    /// Executes steps until one has to wait.
    fn advance(&mut self, turn: &mut Turn<'_>) -> Next {
        let program = Arc::clone(&self.program);
        let script = &program.scripts[self.script];
        while let Some(step) = script.steps.get(self.step) {
            match &step.action {
                Action::Send(statement) => {
                    if let Err(error) = self.send(&script.statements[*statement], turn.out) {
                        let reason = format!("{}: {error}", self.place());
                        return self.abort(&Abort::own(sqlstate::DATA_EXCEPTION, &reason), turn);
                    }
                    self.sent = turn.now;
                    self.asked = true;
                    self.state = State::Sent(*statement);
                    return Next::Reply;
                }
                Action::Set { variable, expression } => match self.eval(expression) {
                    Ok(value) => {
                        self.variables[variable.index()] = Some(value);
                        self.step += 1;
                    }
                    Err(abort) => return self.abort(&abort, turn),
                },
                Action::Sleep { amount, unit } => {
                    let amount = match self.eval(amount).and_then(|v| v.int().map_err(|e| self.bad_value(e)))
                    {
                        Ok(amount) => amount,
                        Err(abort) => return self.abort(&abort, turn),
                    };
                    // A negative time is no time, as in pgbench.
                    let units = u32::try_from(amount.max(0)).unwrap_or(u32::MAX);
                    self.step += 1;
                    self.state = State::Asleep;
                    return Next::Wake(turn.now.after(unit.saturating_mul(units)));
                }
            }
        }
        self.complete(turn)
    }

    /// The script has come to its end.
    fn complete(&mut self, turn: &mut Turn<'_>) -> Next {
        if self.status != Status::Idle {
            let name = &self.program.scripts[self.script].name;
            let reason = format!("{name}: the script ends inside a transaction block");
            return self.abort(&Abort::own(sqlstate::ACTIVE_TRANSACTION, &reason), turn);
        }
        let times = Timeline { due: self.due, sent: self.due, done: turn.now };
        turn.recorder.transaction(self.script, times);
        if !self.asked {
            // A script without SQL would go round for ever without letting anyone else have a turn.
            self.state = State::Between;
            return Next::Wake(turn.now);
        }
        self.begin(turn)
    }

    fn eval(&mut self, expression: &Expr) -> Result<Value, Abort> {
        let mut scope = Scope { variables: &self.variables, random: &mut self.random };
        expression.eval(&mut scope).map_err(|e| self.bad_value(e))
    }

    fn bad_value(&self, error: crate::script::EvalError) -> Abort {
        let what = match error {
            crate::script::EvalError::Undefined(slot) => {
                format!("variable `{}` has no value yet", self.program.variables[slot.index()])
            }
            other => other.to_string(),
        };
        Abort::own(sqlstate::DATA_EXCEPTION, &format!("{}: {what}", self.place()))
    }

    /// Appends the messages that execute `statement`.
    fn send(&mut self, statement: &Statement, out: &mut Vec<u8>) -> Result<(), WireError> {
        match &statement.request {
            Request::Fixed(message) => out.extend_from_slice(message),
            Request::Text(pieces) => {
                let (program, variables) = (&self.program, &self.variables);
                frontend::query_with(out, |out| {
                    for piece in pieces {
                        match piece {
                            Piece::Text(text) => out.extend_from_slice(text.as_bytes()),
                            Piece::Variable(slot) => match variables[slot.index()] {
                                Some(value) => value.write_text(out),
                                // What names no variable stays as it is, as in pgbench.
                                None => {
                                    out.push(b':');
                                    out.extend_from_slice(program.variables[slot.index()].as_bytes());
                                }
                            },
                        }
                    }
                })?;
            }
            Request::Bound { parse, name, parameters } => {
                if name.is_empty() || !self.prepared[statement.number] {
                    out.extend_from_slice(parse);
                }
                let count = u16::try_from(parameters.len()).unwrap_or(u16::MAX);
                let variables = &self.variables;
                frontend::bind(out, name, count, |bind| {
                    for slot in parameters {
                        match variables[slot.index()] {
                            Some(value) => bind.text(|out| value.write_text(out))?,
                            None => bind.null()?,
                        }
                    }
                    Ok(())
                })?;
                frontend::execute(out, "", 0)?;
                frontend::sync(out);
            }
        }
        Ok(())
    }

    /// Where in the scripts the client is.
    fn place(&self) -> String {
        let script = &self.program.scripts[self.script];
        match script.steps.get(self.step) {
            Some(step) => format!("{}:{}: `{}`", script.name, step.line, step.text),
            None => script.name.clone(),
        }
    }

    /// Gives up, with its transaction.
    fn abort(&mut self, abort: &Abort, turn: &mut Turn<'_>) -> Next {
        let statement = match self.state {
            State::Sent(statement) => Some(statement),
            State::RollingBack => self.failure.take().map(|(statement, _)| statement),
            State::Between | State::Asleep | State::Ended => None,
        };
        turn.recorder.failure(self.script, statement, &abort.code, turn.now);
        turn.recorder.aborted(format!("client {}: {}", self.id, abort.reason));
        self.stop(turn.out);
        Next::Close
    }
}
