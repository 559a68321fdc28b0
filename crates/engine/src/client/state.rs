//! A client's state, the context of a call, and what a client waits for.

use std::collections::VecDeque;
use std::rc::Rc;

use super::abort::StatementError;
use super::commit_watch::CommitWatch;
use super::expected::ExpectedReply;
use super::reply::ReplyReader;
use super::result::QueryResults;
use super::rows::RowsToSend;
use crate::ledger::TransactionLedger;
use crate::pace::Pacer;
use crate::program::Program;
use crate::random::Random;
use crate::recorder::Recorder;
use crate::schedule::Moment;
use crate::script::VariableValue;

/// Event that a client waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// A reply of the server.
    ForReply,
    /// A moment.
    Until(Moment),
    /// Room for more bytes: the connection has taken those appended. The client is then to be
    /// refilled.
    ForRoom,
    /// The next turn of the event loop: time has passed without an event, so the clock must be read
    /// anew.
    NextTurn,
    /// A new connection. The client is to be woken once it has one.
    Connect,
    /// Nothing more. The connection is to be closed once the appended bytes are sent.
    Close,
}

/// Per-call context: current time, output buffer, state shared by the thread's clients.
pub struct ClientContext<'a> {
    /// Current time; for a reply, the time of its arrival.
    pub now: Moment,
    /// Buffer that bytes to be sent are appended to.
    pub out: &'a mut Vec<u8>,
    /// Recorder of the thread.
    pub recorder: &'a mut Recorder,
    /// Due times and choice of scripts, shared by the thread's clients.
    pub pacer: &'a mut Pacer,
}

/// State of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Between transactions.
    Idle,
    /// The transaction is chosen; it is not due yet or waits for a connection.
    Due,
    /// The statement of this index was sent, and its reply is not complete.
    AwaitingReply(usize),
    /// Waits for all replies of a pipeline.
    AwaitingPipeline,
    /// Waits in `\sleep`, or has just run a program.
    Sleeping,
    /// At the end of a script that sent nothing; the time of the end is still to be read.
    Computed,
    /// ROLLBACK was sent after a failure.
    RollingBack,
    /// The client does nothing more.
    Ended,
}

/// A reply that a pipeline still owes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PendingReply {
    /// Reply to a statement; `parsed` says whether a Parse was sent with it.
    Statement { step: usize, statement: usize, parsed: bool, sent: Moment },
    /// ReadyForQuery after a Sync.
    Sync,
}

impl PendingReply {
    /// Returns the first message of the reply.
    pub(super) fn expected(&self) -> ExpectedReply {
        match self {
            Self::Statement { parsed: true, .. } => ExpectedReply::Parsed { described: false },
            Self::Statement { .. } => ExpectedReply::Bound { described: false },
            Self::Sync => ExpectedReply::Ready,
        }
    }
}

/// One client: a state machine that executes transactions over one connection.
///
/// Fields that every statement needs come first, so that they lie in few cache lines: with a
/// thousand clients, none is in a cache when its turn comes.
pub struct Client {
    /// Shared by the thread's clients.
    pub(super) program: Rc<Program>,
    pub(super) variables: Vec<Option<VariableValue>>,
    /// By statement number: whether the server has the statement prepared.
    pub(super) prepared: Vec<bool>,
    pub(super) replies: ReplyReader,
    pub(super) pending: VecDeque<PendingReply>,
    /// Index of the client's group.
    pub(super) group: usize,
    pub(super) script: usize,
    pub(super) step: usize,
    /// Time at which the last statement was sent or the last wait began.
    pub(super) sent: Moment,
    /// Time at which the first byte of the current reply arrived.
    pub(super) first_byte: Moment,
    pub(super) random: Random,
    /// State of `random` before the transaction's first try: a retry draws the values again.
    pub(super) random_before_try: Random,
    /// Time at which the transaction was due.
    pub(super) due: Moment,
    /// Time at which the transaction was sent.
    pub(super) sent_at: Moment,
    /// Transaction's number among the client's, from 0.
    pub(super) number: u64,
    /// Transactions that are left to start once the window is open; none where time ends it.
    pub(super) quota: Option<u64>,
    /// Error of the current statement or pipeline.
    pub(super) error: Option<StatementError>,
    /// Error that failed the transaction.
    pub(super) failure: Option<StatementError>,
    /// Ledger of the transactions, if there is one.
    pub(super) ledger: Option<Box<TransactionLedger>>,
    /// Flushes by which commits are judged, if they are.
    pub(super) commits: Option<Box<CommitWatch>>,
    /// Rows of the `\copyfrom` under way that are not sent.
    pub(super) rows: Option<RowsToSend>,
    /// Chooses scripts. Separate from `random`, so that values do not depend on the choices.
    pub(super) script_random: Random,
    /// Results of the current statement, if variables take them.
    pub(super) results: QueryResults,
    pub(super) state: State,
    pub(super) id: u32,
    /// Tries of the transaction after the first.
    pub(super) retries: u32,
    /// Complete queries of the current statement, where they are counted.
    pub(super) queries: u32,
    /// Connections made in place of lost ones since a transaction last ended well.
    pub(super) reconnections: u32,
    /// Whether the transaction has sent a statement.
    pub(super) has_sent: bool,
    /// Whether statements are sent without waiting for replies.
    pub(super) in_pipeline: bool,
    /// Whether the client has a connection.
    pub(super) connected: bool,
}
