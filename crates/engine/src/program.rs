//! Scripts linked for a load: variables in slots that all scripts share, messages prepared as far
//! as can be.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use pgdyno_model::experiment::{LoadOptions, OnError, Protocol, ReconnectLost};
use pgdyno_wire::WireError;
use pgdyno_wire::frontend::{self, Execution};
use thiserror::Error;

use crate::client_log::ClientLog;
use crate::random::Random;
use crate::script::{
    Expr, Op, Piece, Slot, Store, Value, VariableValue, WeightedScript, branch_targets,
    is_variable_name,
};

/// Variables that one statement may have as parameters.
pub const MAX_PARAMETERS: usize = 255;

/// Statements of a program whose latencies are kept one by one, for each thread: a distribution
/// takes a third of a megabyte. Counts and sums are kept of all.
pub const MAX_DISTRIBUTIONS: usize = 512;

// facade: removed at integration
#[doc(hidden)]
pub use {MAX_DISTRIBUTIONS as MOST_DISTRIBUTIONS, MAX_PARAMETERS as MOST_PARAMETERS};

/// What clients do beyond their scripts.
#[derive(Clone)]
pub struct ClientPolicy {
    /// How long a transaction may take to be tried again, and how late it may begin where there is
    /// a rate.
    pub latency_limit: Option<Duration>,
    /// How often a transaction is tried; 0 is without end.
    pub max_tries: u32,
    /// Whether each transaction has its own connection.
    pub reconnect_each: bool,
    /// What ends a client.
    pub on_error: OnError,
    /// What a lost connection does to its client.
    pub reconnect_lost: ReconnectLost,
    /// Is told of errors.
    pub client_log: Option<ClientLog>,
    /// Whether it is told of those that end no client.
    pub logs_failures: bool,
    /// Whether it is told of every step and reply.
    pub logs_steps: bool,
    /// Is set by a client that ends the whole load.
    pub stop: Arc<AtomicBool>,
}

impl Default for ClientPolicy {
    fn default() -> Self {
        Self::from_load(&LoadOptions::default())
    }
}

impl ClientPolicy {
    /// What `options` say; nobody is told of anything.
    #[must_use]
    pub fn from_load(options: &LoadOptions) -> Self {
        Self {
            latency_limit: options.latency_limit.map(|limit| limit.0),
            max_tries: options.max_tries,
            reconnect_each: options.reconnect,
            on_error: options.on_error,
            reconnect_lost: options.reconnect_lost,
            client_log: None,
            logs_failures: false,
            logs_steps: false,
            stop: Arc::default(),
        }
    }
}

/// What all clients of a load execute.
#[derive(Clone)]
pub struct Program {
    /// The scripts, in the workload's order.
    pub scripts: Vec<LinkedScript>,
    /// The sum of their weights.
    pub weight: i64,
    /// Names of the variables of all scripts.
    pub variables: Vec<String>,
    /// Their places by name.
    pub slots: HashMap<String, Slot>,
    /// What they hold before the first transaction, but for `client_id`.
    pub initial: Vec<Option<VariableValue>>,
    /// Where `client_id` stands.
    pub client_id: Slot,
    /// Where `default_seed` stands.
    pub default_seed: Slot,
    /// Whether statements can be sent in pipelines.
    pub pipelines: bool,
    /// What clients do beyond their scripts.
    pub policy: ClientPolicy,
    /// SQL commands in all scripts (count).
    pub statements: usize,
}

/// A script of a [`Program`].
#[derive(Clone, Debug)]
pub struct LinkedScript {
    /// Its name.
    pub name: String,
    /// Its weight among the scripts.
    pub weight: u32,
    /// What it does.
    pub steps: Vec<Step>,
    /// Its SQL commands.
    pub statements: Vec<Statement>,
    /// How many of them, from the first on, have their latencies kept.
    pub distributions: usize,
}

/// One command.
#[derive(Clone, Debug)]
pub struct Step {
    /// The line it begins on (1-based).
    pub line: u32,
    /// As the script has it.
    pub text: String,
    /// What it does.
    pub action: Action,
}

/// What a step does.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub enum Action {
    /// Sends the script's statement of this index.
    Send(usize),
    Set {
        variable: Slot,
        expression: Expr,
    },
    /// `\set` of a variable whose name is none: ends the client.
    SetNameless {
        variable: Slot,
        expression: Expr,
    },
    Sleep {
        amount: Expr,
        unit: Duration,
    },
    /// Where it does not hold, the next part at step `next` decides.
    If {
        condition: Expr,
        next: usize,
    },
    /// Come to from the part before, execution goes on after step `end`.
    Elif {
        condition: Expr,
        next: usize,
        end: usize,
    },
    Else {
        end: usize,
    },
    Endif,
    Shell(Vec<Piece>),
    SetShell {
        variable: Slot,
        command: Vec<Piece>,
    },
    StartPipeline,
    SyncPipeline,
    EndPipeline,
}

/// An SQL command.
#[derive(Clone, Debug)]
pub struct Statement {
    /// As the script has it.
    pub text: String,
    /// The line it begins on (1-based).
    pub line: u32,
    /// Its index among the statements of all scripts.
    pub number: usize,
    /// How it is sent.
    pub request: Request,
    /// What becomes of its result.
    pub store: Option<Store>,
    /// Whether it may hold several queries.
    pub may_be_several: bool,
}

/// How a statement is sent.
#[derive(Clone, Debug)]
pub enum Request {
    /// A Query message, the same every time.
    Fixed(Vec<u8>),
    /// A Query message, its variables put into the text.
    Text(Vec<Piece>),
    /// Parse, Bind, Execute and (outside of pipelines) Sync, its variables as parameters.
    Bound {
        /// The Parse message.
        parse: Vec<u8>,
        /// Whatever comes after it.
        execution: Execution,
        /// The statement's name: empty where it is parsed every time.
        name: String,
        /// The parameters.
        parameters: Vec<Slot>,
    },
}

/// Scripts that cannot be run.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ProgramError {
    /// None, or all of weight 0.
    #[error("there is no script with a weight above 0")]
    NothingToRun,
    /// Weights beyond all bounds.
    #[error("the weights of {0} scripts add up to more than a bigint holds")]
    TooHeavy(usize),
    /// A statement with more than [`MAX_PARAMETERS`] variables.
    #[error(
        "{script}:{line}: statement has too many arguments (maximum is {MAX_PARAMETERS}): {text}"
    )]
    Parameters {
        /// The script's name.
        script: String,
        /// The line the statement begins on.
        line: u32,
        /// The statement.
        text: String,
    },
    /// A statement that no message can carry.
    #[error("{script}:{line}: cannot put the statement into a message: {cause}")]
    Statement {
        /// The script's name.
        script: String,
        /// The line the statement begins on.
        line: u32,
        /// Why not.
        cause: WireError,
    },
}

impl Program {
    /// Links `scripts` for `protocol`, with `variables` variables and those that pgbench sets by
    /// itself.
    ///
    /// # Errors
    /// Nothing to run, or a statement that no message can carry.
    pub fn link(
        scripts: &[WeightedScript],
        protocol: Protocol,
        seed: u64,
        variables: &[(String, VariableValue)],
    ) -> Result<Self, ProgramError> {
        let mut weight = 0_i64;
        for script in scripts {
            weight = weight
                .checked_add(i64::from(script.weight))
                .ok_or(ProgramError::TooHeavy(scripts.len()))?;
        }
        if weight == 0 {
            return Err(ProgramError::NothingToRun);
        }
        let mut program = Self {
            scripts: Vec::new(),
            weight,
            variables: Vec::new(),
            slots: HashMap::new(),
            initial: Vec::new(),
            client_id: Slot(0),
            default_seed: Slot(0),
            pipelines: protocol != Protocol::Simple,
            policy: ClientPolicy::default(),
            statements: 0,
        };
        program.client_id = program.slot("client_id");
        // A stream of its own, so that the clients' draws do not depend on it.
        let hash_seed = Random::new(!seed).next_u64() >> 1;
        program.default_seed = program.slot("default_seed");
        program.set_initial("scale", Value::Int(1).into());
        program.set_initial("random_seed", Value::Int(seed.cast_signed()).into());
        program.set_initial("default_seed", Value::Int(hash_seed.cast_signed()).into());
        for (name, value) in variables {
            program.set_initial(name, value.clone());
        }
        for (index, script) in scripts.iter().enumerate() {
            let linked = program.link_script(index, script, protocol)?;
            program.scripts.push(linked);
        }
        program.fold();
        Ok(program)
    }

    /// Computes what expressions come to every time.
    fn fold(&mut self) {
        let constants = self.constants();
        for action in self
            .scripts
            .iter_mut()
            .flat_map(|script| &mut script.steps)
            .map(|step| &mut step.action)
        {
            if let Action::Set { expression: part, .. }
            | Action::If { condition: part, .. }
            | Action::Elif { condition: part, .. } = action
            {
                *part = part.folded(&constants, self.default_seed);
            }
        }
    }

    /// What variables hold that no script assigns (by slot); none for the others.
    fn constants(&self) -> Vec<Option<VariableValue>> {
        let mut constants = self.initial.clone();
        constants[self.client_id.index()] = None;
        for action in self.scripts.iter().flat_map(|script| &script.steps).map(|step| &step.action)
        {
            if let Action::Set { variable, .. } | Action::SetShell { variable, .. } = action {
                constants[variable.index()] = None;
            }
        }
        // Which columns a result has is known only when it is there.
        let stores =
            self.scripts.iter().flat_map(|s| &s.statements).filter_map(|s| s.store.as_ref());
        for prefix in stores.map(|store| &store.prefix).collect::<BTreeSet<_>>() {
            for (name, constant) in self.variables.iter().zip(&mut constants) {
                if name.starts_with(prefix) {
                    *constant = None;
                }
            }
        }
        constants
    }

    fn slot(&mut self, name: &str) -> Slot {
        if let Some(slot) = self.slots.get(name) {
            return *slot;
        }
        let slot = Slot(u32::try_from(self.variables.len()).unwrap_or(u32::MAX));
        self.variables.push(name.to_owned());
        self.initial.push(None);
        self.slots.insert(name.to_owned(), slot);
        slot
    }

    fn set_initial(&mut self, name: &str, value: VariableValue) {
        let slot = self.slot(name);
        self.initial[slot.index()] = Some(value);
    }

    fn link_script(
        &mut self,
        index: usize,
        weighted: &WeightedScript,
        protocol: Protocol,
    ) -> Result<LinkedScript, ProgramError> {
        let script = &*weighted.script;
        let slots: Vec<Slot> = script.variables.iter().map(|name| self.slot(name)).collect();
        let slot = |local: Slot| slots[local.index()];
        let mut statements = Vec::new();
        let mut steps = Vec::new();
        let branch_targets = branch_targets(&script.commands);
        for (command, way) in script.commands.iter().zip(branch_targets) {
            let action = match &command.op {
                Op::Sql { pieces, store, may_be_several } => {
                    let name = match protocol {
                        Protocol::Prepared => format!("pgdyno_{index}_{}", statements.len()),
                        Protocol::Simple | Protocol::Extended => String::new(),
                    };
                    if protocol != Protocol::Simple && command.op.parameters() > MAX_PARAMETERS {
                        return Err(ProgramError::Parameters {
                            script: script.name.clone(),
                            line: command.line,
                            text: command.text.clone(),
                        });
                    }
                    let request = if protocol == Protocol::Simple {
                        simple(pieces, &slot)
                    } else {
                        bound(name, pieces, store.is_some(), &slot)
                    };
                    let request = request.map_err(|cause| ProgramError::Statement {
                        script: script.name.clone(),
                        line: command.line,
                        cause,
                    })?;
                    statements.push(Statement {
                        text: command.text.clone(),
                        line: command.line,
                        number: self.statements,
                        request,
                        store: store.clone(),
                        may_be_several: *may_be_several && protocol == Protocol::Simple,
                    });
                    self.statements += 1;
                    Action::Send(statements.len() - 1)
                }
                Op::Set { variable, expression } => {
                    let is_nameless = !is_variable_name(&script.variables[variable.index()]);
                    let (variable, expression) = (slot(*variable), expression.with_slots(&slot));
                    if is_nameless {
                        Action::SetNameless { variable, expression }
                    } else {
                        Action::Set { variable, expression }
                    }
                }
                Op::Sleep { amount, unit } => {
                    Action::Sleep { amount: amount.with_slots(&slot), unit: *unit }
                }
                Op::If(condition) => {
                    Action::If { condition: condition.with_slots(&slot), next: way.next }
                }
                Op::Elif(condition) => Action::Elif {
                    condition: condition.with_slots(&slot),
                    next: way.next,
                    end: way.end,
                },
                Op::Else => Action::Else { end: way.end },
                Op::Endif => Action::Endif,
                Op::Shell(command) => Action::Shell(link_pieces(command, &slot)),
                Op::SetShell { variable, command } => Action::SetShell {
                    variable: slot(*variable),
                    command: link_pieces(command, &slot),
                },
                Op::StartPipeline => Action::StartPipeline,
                Op::SyncPipeline => Action::SyncPipeline,
                Op::EndPipeline => Action::EndPipeline,
            };
            steps.push(Step { line: command.line, text: command.text.clone(), action });
        }
        let before: usize = self.scripts.iter().map(|script| script.distributions).sum();
        let distributions = statements.len().min(MAX_DISTRIBUTIONS - before);
        Ok(LinkedScript {
            name: script.name.clone(),
            weight: weighted.weight,
            steps,
            statements,
            distributions,
        })
    }

    /// The index of the script that a draw in `0..self.weight` falls on.
    #[must_use]
    pub fn script_at(&self, mut draw: i64) -> usize {
        for (index, script) in self.scripts.iter().enumerate() {
            draw -= i64::from(script.weight);
            if draw < 0 {
                return index;
            }
        }
        self.scripts.len().saturating_sub(1)
    }
}

fn simple(pieces: &[Piece], slot: &dyn Fn(Slot) -> Slot) -> Result<Request, WireError> {
    // Tried once with nothing in the variables' places, so that a NUL in the text is found here.
    let mut message = Vec::new();
    frontend::query_with(&mut message, |out| {
        for piece in pieces {
            if let Piece::Text(text) = piece {
                out.extend_from_slice(text.as_bytes());
            }
        }
    })?;
    if pieces.iter().all(|p| matches!(p, Piece::Text(_))) {
        return Ok(Request::Fixed(message));
    }
    Ok(Request::Text(link_pieces(pieces, slot)))
}

fn link_pieces(pieces: &[Piece], slot: &dyn Fn(Slot) -> Slot) -> Vec<Piece> {
    let linked = pieces.iter().map(|piece| match piece {
        Piece::Text(text) => Piece::Text(text.clone()),
        Piece::Variable(local) => Piece::Variable(slot(*local)),
    });
    linked.collect()
}

/// `described` where the result's columns are asked for.
fn bound(
    name: String,
    pieces: &[Piece],
    described: bool,
    slot: &dyn Fn(Slot) -> Slot,
) -> Result<Request, WireError> {
    let mut sql = String::new();
    let mut parameters = Vec::new();
    for piece in pieces {
        match piece {
            Piece::Text(text) => sql.push_str(text),
            Piece::Variable(local) => {
                parameters.push(slot(*local));
                sql.push('$');
                sql.push_str(&parameters.len().to_string());
            }
        }
    }
    let mut parse = Vec::new();
    frontend::parse(&mut parse, &name, sql.as_bytes())?;
    let count = u16::try_from(parameters.len()).unwrap_or(u16::MAX);
    let execution = Execution::new(&name, count, described)?;
    Ok(Request::Bound { parse, execution, name, parameters })
}
