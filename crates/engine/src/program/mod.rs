//! Scripts linked for a load.
//!
//! [`Program::link`] gives the variables of all scripts their slots, computes constant expressions
//! and prepares messages as far as it can. All clients of a thread then share the program and keep
//! only their variables' values.

mod edge;
mod error;
mod link;
mod policy;

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

pub use edge::TransactionEdge;
pub use error::ProgramError;
use pgdyno_model::Pauses;
use pgdyno_model::units::Span;
use pgdyno_wire::frontend::Execution;
pub use policy::ClientPolicy;

use crate::copy::GrowingTable;
use crate::script::{Expr, Piece, Slot, Store, VariableValue};

/// Parameters that one statement may have at most.
pub const MAX_PARAMETERS: usize = 255;

/// Statements of a program that keep a latency distribution, at most. Later ones have counts and
/// sums only: a distribution takes a third of a megabyte for each thread.
pub const MAX_DISTRIBUTIONS: usize = 512;

/// The program that all clients of a load execute.
#[derive(Clone)]
pub struct Program {
    /// Scripts, in the workload's order.
    pub scripts: Vec<LinkedScript>,
    /// Groups of scripts, each chosen from by clients of its own; at least one.
    pub groups: Vec<ScriptGroup>,
    /// Names of the variables of all scripts, by slot.
    pub variables: Vec<String>,
    /// Slots of the variables by name.
    pub slots: HashMap<String, Slot>,
    /// Values before the first transaction, by slot; `client_id` is each client's own.
    pub initial: Vec<Option<VariableValue>>,
    /// Slot of `client_id`.
    pub client_id: Slot,
    /// Slot of `default_seed`.
    pub default_seed: Slot,
    /// Whether statements can be sent in pipelines.
    pub pipelines: bool,
    /// Behaviour of clients beyond their scripts.
    pub policy: ClientPolicy,
    /// SQL commands in all scripts (count).
    pub statements: usize,
}

/// A script of a [`Program`].
#[derive(Clone, Debug)]
pub struct LinkedScript {
    /// Script's name.
    pub name: String,
    /// Weight among the program's scripts.
    pub weight: u32,
    /// Pauses of a client around its transactions.
    pub pauses: Pauses,
    /// Commands, in order.
    pub steps: Vec<Step>,
    /// SQL commands among the steps, in order.
    pub statements: Vec<Statement>,
    /// Statements that keep a latency distribution, counted from the first one.
    pub distributions: usize,
}

/// One command.
#[derive(Clone, Debug)]
pub struct Step {
    /// Line that the command begins on (1-based).
    pub line: u32,
    /// Text as the script has it.
    pub text: String,
    /// The command's operation.
    pub action: Action,
}

/// Operation of a step.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub enum Action {
    /// Sends the script's statement of this index.
    Send(usize),
    /// `\set`.
    Set { variable: Slot, expression: Expr },
    /// `\set` with a name that no variable can have: ends the client.
    SetNameless { variable: Slot, expression: Expr },
    /// `\sleep` for `amount` times `unit`.
    Sleep { amount: Expr, unit: Duration },
    /// `\if`: goes on with the next step if `condition` is true, else to step `next`.
    If { condition: Expr, next: usize },
    /// `\elif`. Reached from the branch before, it goes on behind step `end`.
    Elif { condition: Expr, next: usize, end: usize },
    /// `\else`. Reached from the branch before, it goes on behind step `end`.
    Else { end: usize },
    /// `\endif`.
    Endif,
    /// `\shell` with a command line.
    Shell(Vec<Piece>),
    /// `\setshell`.
    SetShell { variable: Slot, command: Vec<Piece> },
    /// `\startpipeline`.
    StartPipeline,
    /// `\syncpipeline`.
    SyncPipeline,
    /// `\endpipeline`.
    EndPipeline,
}

/// An SQL command, or a COPY by `\copyfrom`.
#[derive(Clone, Debug)]
pub struct Statement {
    /// Text as the script has it.
    pub text: String,
    /// Line that the command begins on (1-based).
    pub line: u32,
    /// Index among the statements of all scripts.
    pub number: usize,
    /// Messages that execute the statement.
    pub request: Request,
    /// Variables that take the result, if any do.
    pub store: Option<Store>,
    /// Whether the command may hold several queries.
    pub may_be_several: bool,
    /// Whether the statement begins or ends a transaction.
    pub edge: TransactionEdge,
}

/// Messages that execute a statement.
#[derive(Clone, Debug)]
pub enum Request {
    /// A Query message that never changes.
    Fixed(Vec<u8>),
    /// A Query message with variables in its text.
    Text(Vec<Piece>),
    /// A Query message with a COPY, whose data are made when the server asks for them.
    Copy(CopyRequest),
    /// Parse, Bind, Execute and (outside of pipelines) Sync, with variables as parameters.
    Bound {
        /// Parse message.
        parse: Vec<u8>,
        /// Messages that follow Parse.
        execution: Execution,
        /// Statement's name; empty if it is parsed every time.
        name: String,
        /// Variables that are the parameters, in order.
        parameters: Vec<Slot>,
    },
}

/// Messages of `\copyfrom`.
#[derive(Clone, Debug)]
pub struct CopyRequest {
    /// Query message.
    pub query: Vec<u8>,
    /// Table that takes the rows.
    pub table: Arc<GrowingTable>,
    /// Number of rows.
    pub rows: Expr,
}

/// Scripts that a group of clients chooses from, and the client's pace.
#[derive(Clone, Debug)]
pub struct ScriptGroup {
    /// Indexes of the scripts.
    pub scripts: Range<usize>,
    /// Sum of the scripts' weights.
    pub weight: i64,
    /// Mean time that a client thinks before each transaction; zero: none.
    pub think_time: Span,
    /// Whether a client pauses between transactions at all.
    pub has_pauses: bool,
}

impl Program {
    /// Returns the index of the script of `group` that `draw`, one of `0..group.weight`, falls on.
    pub fn script_at(&self, group: &ScriptGroup, mut draw: i64) -> usize {
        for index in group.scripts.clone() {
            draw -= i64::from(self.scripts[index].weight);
            if draw < 0 {
                return index;
            }
        }
        group.scripts.end.saturating_sub(1)
    }
}
