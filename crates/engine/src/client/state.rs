//! A client's state, and what it is called with.

use std::collections::VecDeque;
use std::rc::Rc;

use super::abort::Fault;
use super::expected::Expected;
use super::reply::Replies;
use super::result::Answers;
use crate::ledger::Book;
use crate::pace::Pacer;
use crate::program::Program;
use crate::random::Random;
use crate::recorder::Recorder;
use crate::schedule::Moment;
use crate::script::Content;

/// What a client waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// More bytes from the server.
    Reply,
    /// That moment.
    Wake(Moment),
    /// To be woken in this turn, with a new reading of the clock: time has passed that no event
    /// tells of.
    Again,
    /// A new connection; then to be woken.
    Connect,
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
    /// What it shares with its thread's other clients.
    pub pacer: &'a mut Pacer,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Between transactions.
    Between,
    /// Its transaction is chosen and not yet due, or waits for a connection.
    Due,
    /// The script's statement of this index was sent.
    Sent(usize),
    /// Waits for all replies of its pipeline.
    Piped,
    /// Waits in a script, or has waited for a program that the script ran.
    Asleep,
    /// At the end of a script that sent nothing: when that was is still to be read.
    Computed,
    /// ROLLBACK was sent after a failure.
    RollingBack,
    /// Will do nothing more.
    Ended,
}

/// What a pipeline's replies are to come for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Piped {
    /// A statement: its step, index, whether it was to be parsed, and when it was sent.
    Statement { step: usize, statement: usize, parsed: bool, sent: Moment },
    /// The end of an implicit transaction.
    Sync,
}

impl Piped {
    /// What the server says of it first.
    pub(super) fn expected(&self) -> Expected {
        match self {
            Self::Statement { parsed: true, .. } => Expected::Parsed { described: false },
            Self::Statement { .. } => Expected::Bound { described: false },
            Self::Sync => Expected::Ready,
        }
    }
}

/// One connection's load.
///
/// What every statement needs comes first, so that it lies in few cache lines: of a thousand
/// clients none is in a cache.
pub struct Client {
    /// Shared by its thread's clients.
    pub(super) program: Rc<Program>,
    pub(super) variables: Vec<Option<Content>>,
    /// By statement number: whether the server holds it prepared.
    pub(super) prepared: Vec<bool>,
    pub(super) replies: Replies,
    pub(super) piped: VecDeque<Piped>,
    pub(super) script: usize,
    pub(super) step: usize,
    /// When the last statement was sent, or the last wait began.
    pub(super) sent: Moment,
    /// When the first byte of the present reply arrived.
    pub(super) first_byte: Moment,
    pub(super) random: Random,
    /// `random` as it was before the transaction's first try.
    pub(super) before: Random,
    /// When the transaction was due.
    pub(super) due: Moment,
    /// When it was begun.
    pub(super) begun: Moment,
    /// The transaction's number among the client's.
    pub(super) number: u64,
    /// Transactions left to start once the window is open.
    pub(super) quota: Option<u64>,
    /// The error that the present statement or pipeline met, and where.
    pub(super) error: Option<Fault>,
    /// What made the transaction fail.
    pub(super) failure: Option<Fault>,
    /// Where its transactions are written down, if they are.
    pub(super) book: Option<Box<Book>>,
    /// A stream of its own, so that a script's draws do not depend on how many scripts there are.
    pub(super) choice: Random,
    /// What a result is put into variables from.
    pub(super) answers: Answers,
    pub(super) state: State,
    pub(super) id: u32,
    /// Tries after the first.
    pub(super) retries: u32,
    /// Queries of the present statement that are complete, where they are counted.
    pub(super) queries: u32,
    /// New connections in a row after lost ones, since a transaction last ended well.
    pub(super) reconnections: u32,
    /// Whether the transaction has sent any statement.
    pub(super) asked: bool,
    /// Whether statements are sent without waiting for replies.
    pub(super) piping: bool,
    /// Whether it has a connection.
    pub(super) connected: bool,
}
