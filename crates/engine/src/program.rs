//! Scripts linked for a load: variables in slots that all scripts share, messages prepared as far as can be.

use std::time::Duration;

use pgdyno_model::experiment::Protocol;
use pgdyno_wire::{WireError, frontend};
use thiserror::Error;

use crate::load::WeightedScript;
use crate::random::Random;
use crate::script::{Expr, Op, Piece, Slot, Value};

/// What all clients of a load execute.
#[derive(Clone, Debug)]
pub struct Program {
    /// The scripts, in the workload's order.
    pub scripts: Vec<LinkedScript>,
    /// The sum of their weights.
    pub weight: i64,
    /// Names of the variables of all scripts.
    pub variables: Vec<String>,
    /// What they hold before the first transaction, but for `client_id`.
    pub initial: Vec<Option<Value>>,
    /// Where `client_id` stands.
    pub client_id: Slot,
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
    Sleep {
        amount: Expr,
        unit: Duration,
    },
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
}

/// How a statement is sent.
#[derive(Clone, Debug)]
pub enum Request {
    /// A Query message, the same every time.
    Fixed(Vec<u8>),
    /// A Query message, its variables put into the text.
    Text(Vec<Piece>),
    /// Parse, Bind, Execute and Sync, its variables as parameters.
    Bound {
        /// The Parse message.
        parse: Vec<u8>,
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
    /// Links `scripts` for `protocol`, with `given` variables and those that pgbench sets by itself.
    ///
    /// # Errors
    /// Nothing to run, or a statement that no message can carry.
    pub fn link(
        scripts: &[WeightedScript],
        protocol: Protocol,
        seed: u64,
        given: &[(String, Value)],
    ) -> Result<Self, ProgramError> {
        let mut weight = 0_i64;
        for script in scripts {
            weight =
                weight.checked_add(i64::from(script.weight)).ok_or(ProgramError::TooHeavy(scripts.len()))?;
        }
        if weight == 0 {
            return Err(ProgramError::NothingToRun);
        }
        let mut program = Self {
            scripts: Vec::new(),
            weight,
            variables: Vec::new(),
            initial: Vec::new(),
            client_id: Slot(0),
            statements: 0,
        };
        program.client_id = program.slot("client_id");
        // A stream of its own, so that the clients' draws do not depend on it.
        let hash_seed = Random::new(!seed).next_u64() >> 1;
        program.give("scale", Value::Int(1));
        program.give("random_seed", Value::Int(seed.cast_signed()));
        program.give("default_seed", Value::Int(hash_seed.cast_signed()));
        for (name, value) in given {
            program.give(name, *value);
        }
        for (index, script) in scripts.iter().enumerate() {
            let linked = program.link_script(index, script, protocol)?;
            program.scripts.push(linked);
        }
        Ok(program)
    }

    fn slot(&mut self, name: &str) -> Slot {
        let index = self.variables.iter().position(|v| v == name).unwrap_or_else(|| {
            self.variables.push(name.to_owned());
            self.initial.push(None);
            self.variables.len() - 1
        });
        Slot(u32::try_from(index).unwrap_or(u32::MAX))
    }

    fn give(&mut self, name: &str, value: Value) {
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
        for command in &script.commands {
            let action = match &command.op {
                Op::Sql(pieces) => {
                    let name = match protocol {
                        Protocol::Prepared => format!("pgdyno_{index}_{}", statements.len()),
                        Protocol::Simple | Protocol::Extended => String::new(),
                    };
                    let request = if protocol == Protocol::Simple {
                        simple(pieces, &slot)
                    } else {
                        bound(name, pieces, &slot)
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
                    });
                    self.statements += 1;
                    Action::Send(statements.len() - 1)
                }
                Op::Set { variable, expression } => {
                    Action::Set { variable: slot(*variable), expression: expression.with_slots(&slot) }
                }
                Op::Sleep { amount, unit } => Action::Sleep { amount: amount.with_slots(&slot), unit: *unit },
            };
            steps.push(Step { line: command.line, text: command.text.clone(), action });
        }
        Ok(LinkedScript { name: script.name.clone(), weight: weighted.weight, steps, statements })
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
    let linked = pieces.iter().map(|piece| match piece {
        Piece::Text(text) => Piece::Text(text.clone()),
        Piece::Variable(local) => Piece::Variable(slot(*local)),
    });
    Ok(Request::Text(linked.collect()))
}

fn bound(name: String, pieces: &[Piece], slot: &dyn Fn(Slot) -> Slot) -> Result<Request, WireError> {
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
    if parameters.len() > usize::from(u16::MAX) {
        return Err(WireError::TooLarge {
            message: "Bind",
            field: "parameters",
            value: parameters.len(),
            max: u16::MAX.into(),
        });
    }
    let mut parse = Vec::new();
    frontend::parse(&mut parse, &name, sql.as_bytes())?;
    Ok(Request::Bound { parse, name, parameters })
}
