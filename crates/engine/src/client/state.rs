//! A client's state, and what it is called with.

use std::collections::VecDeque;
use std::rc::Rc;

use super::abort::StatementError;
use super::expected::ExpectedReply;
use super::reply::ReplyReader;
use super::result::QueryResults;
use crate::ledger::TransactionLedger;
use crate::pace::Pacer;
use crate::program::Program;
use crate::random::Random;
use crate::recorder::Recorder;
use crate::schedule::Moment;
use crate::script::VariableValue;

/// What a client waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// More bytes from the server.
    ForReply,
    /// That moment.
    Until(Moment),
    /// To be woken in this context, with a new reading of the clock: time has passed that no event
    /// tells of.
    NextTurn,
    /// A new connection; then to be woken.
    Connect,
    /// Nothing more: its connection is to be closed once what it appended is sent.
    Close,
}

/// What a client is called with.
pub struct ClientContext<'a> {
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
    Idle,
    /// Its transaction is chosen and not yet due, or waits for a connection.
    Due,
    /// The script's statement of this index was sent.
    AwaitingReply(usize),
    /// Waits for all replies of its pipeline.
    AwaitingPipeline,
    /// Waits in a script, or has waited for a program that the script ran.
    Sleeping,
    /// At the end of a script that sent nothing: when that was is still to be read.
    Computed,
    /// ROLLBACK was sent after a failure.
    RollingBack,
    /// Will do nothing more.
    Ended,
}

/// What a pipeline's replies are to come for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PendingReply {
    /// A statement: its step, index, whether it was to be parsed, and when it was sent.
    Statement { step: usize, statement: usize, parsed: bool, sent: Moment },
    /// The end of an implicit transaction.
    Sync,
}

impl PendingReply {
    /// What the server says of it first.
    pub(super) fn expected(&self) -> ExpectedReply {
        match self {
            Self::Statement { parsed: true, .. } => ExpectedReply::Parsed { described: false },
            Self::Statement { .. } => ExpectedReply::Bound { described: false },
            Self::Sync => ExpectedReply::Ready,
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
    pub(super) variables: Vec<Option<VariableValue>>,
    /// By statement number: whether the server holds it prepared.
    pub(super) prepared: Vec<bool>,
    pub(super) replies: ReplyReader,
    pub(super) pending: VecDeque<PendingReply>,
    pub(super) script: usize,
    pub(super) step: usize,
    /// When the last statement was sent, or the last wait began.
    pub(super) sent: Moment,
    /// When the first byte of the present reply arrived.
    pub(super) first_byte: Moment,
    pub(super) random: Random,
    /// `random` as it was before the transaction's first try.
    pub(super) random_before_try: Random,
    /// When the transaction was due.
    pub(super) due: Moment,
    /// When it was begun.
    pub(super) sent_at: Moment,
    /// The transaction's number among the client's.
    pub(super) number: u64,
    /// Transactions left to start once the window is open.
    pub(super) quota: Option<u64>,
    /// The error that the present statement or pipeline met, and where.
    pub(super) error: Option<StatementError>,
    /// What made the transaction fail.
    pub(super) failure: Option<StatementError>,
    /// Where its transactions are written down, if they are.
    pub(super) ledger: Option<Box<TransactionLedger>>,
    /// A stream of its own, so that a script's draws do not depend on how many scripts there are.
    pub(super) script_random: Random,
    /// What a result is put into variables from.
    pub(super) results: QueryResults,
    pub(super) state: State,
    pub(super) id: u32,
    /// Tries after the first.
    pub(super) retries: u32,
    /// Queries of the present statement that are complete, where they are counted.
    pub(super) queries: u32,
    /// New connections in a row after lost ones, since a transaction last ended well.
    pub(super) reconnections: u32,
    /// Whether the transaction has sent any statement.
    pub(super) has_sent: bool,
    /// Whether statements are sent without waiting for replies.
    pub(super) in_pipeline: bool,
    /// Whether it has a connection.
    pub(super) connected: bool,
}
