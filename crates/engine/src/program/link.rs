//! Linking scripts to a program.

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;
use std::sync::Arc;

use pgdyno_model::experiment::Protocol;
use pgdyno_model::units::Span;
use pgdyno_wire::WireError;
use pgdyno_wire::frontend::{self, Execution};

use super::{
    Action, ClientPolicy, CopyRequest, LinkedScript, MAX_DISTRIBUTIONS, MAX_PARAMETERS, Program,
    ProgramError, Request, ScriptGroup, Statement, Step, TransactionEdge,
};
use crate::copy::GrowingTable;
use crate::group::LoadGroup;
use crate::random::Random;
use crate::script::{
    BranchTargets, Command, Op, Piece, Script, Slot, Value, VariableValue, WeightedScript,
    branch_targets, is_variable_name,
};

impl Program {
    /// Links `scripts` for `protocol`.
    ///
    /// `variables` are set before the first transaction, and win over the variables that pgbench
    /// sets by itself: `scale`, `random_seed`, `default_seed`. `\copyfrom` fills `tables`.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use pgdyno_engine::program::Program;
    /// use pgdyno_engine::script::{Script, WeightedScript};
    /// use pgdyno_model::experiment::Protocol;
    ///
    /// let script = Script::parse("read.sql", "\\set id 20 * :scale + 2\nSELECT :id;")?;
    /// let scripts = [WeightedScript::new(Arc::new(script), 1)];
    /// let program = Program::link(&scripts, Protocol::Prepared, 1, &[], &[])?;
    /// assert_eq!(program.scripts[0].steps.len(), 2);
    /// assert!(program.slots.contains_key("id"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// No script has a weight above 0, no message can carry a statement, or a `\copyfrom` names
    /// none of the tables.
    pub fn link(
        scripts: &[WeightedScript],
        protocol: Protocol,
        seed: u64,
        variables: &[(String, VariableValue)],
        tables: &[Arc<GrowingTable>],
    ) -> Result<Self, ProgramError> {
        let all = script_group(scripts, 0..scripts.len(), Span::default())?;
        let mut program = Self {
            scripts: Vec::new(),
            groups: vec![all],
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
            let linked = program.link_script(index, script, protocol, tables)?;
            program.scripts.push(linked);
        }
        program.fold();
        Ok(program)
    }

    /// Divides the scripts among `groups` of clients, in order; without any they stay together.
    ///
    /// # Errors
    /// A group has no script with a weight above 0, or scripts are left over.
    pub fn divide(
        &mut self,
        scripts: &[WeightedScript],
        groups: &[LoadGroup],
    ) -> Result<(), ProgramError> {
        if groups.is_empty() {
            return Ok(());
        }
        self.groups.clear();
        let mut first = 0;
        for LoadGroup { group, .. } in groups {
            let of_group = first..first + group.scripts;
            if of_group.end > scripts.len() {
                return Err(ProgramError::Undivided(scripts.len()));
            }
            first = of_group.end;
            self.groups.push(script_group(scripts, of_group, group.think_time)?);
        }
        if first == scripts.len() { Ok(()) } else { Err(ProgramError::Undivided(scripts.len())) }
    }

    /// Replaces expressions that have the same value every time by that value.
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

    /// Returns the values of variables that no script assigns, by slot; none for the others.
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
        tables: &[Arc<GrowingTable>],
    ) -> Result<LinkedScript, ProgramError> {
        let script = &*weighted.script;
        let slots: Vec<Slot> = script.variables.iter().map(|name| self.slot(name)).collect();
        let slot = |local: Slot| slots[local.index()];
        let mut statements = Vec::new();
        let mut steps = Vec::new();
        let targets = branch_targets(&script.commands);
        for (command, target) in script.commands.iter().zip(targets) {
            let action = match &command.op {
                Op::Sql { .. } | Op::CopyFrom { .. } => {
                    let number = self.statements;
                    let linker = StatementLinker { script, protocol, tables, slot: &slot };
                    let name = format!("pgdyno_{index}_{}", statements.len());
                    statements.push(linker.statement(command, name, number)?);
                    self.statements += 1;
                    Action::Send(statements.len() - 1)
                }
                op => meta_action(op, target, script, &slot),
            };
            steps.push(Step { line: command.line, text: command.text.clone(), action });
        }
        let before: usize = self.scripts.iter().map(|script| script.distributions).sum();
        let distributions = statements.len().min(MAX_DISTRIBUTIONS - before);
        Ok(LinkedScript {
            name: script.name.clone(),
            weight: weighted.weight,
            pauses: weighted.pauses,
            steps,
            statements,
            distributions,
        })
    }
}

/// Links the statements of a script.
struct StatementLinker<'a> {
    script: &'a Script,
    protocol: Protocol,
    tables: &'a [Arc<GrowingTable>],
    slot: &'a dyn Fn(Slot) -> Slot,
}

impl StatementLinker<'_> {
    /// Links `command`, the program's statement of this `number`; `name` is its own if it is
    /// prepared.
    fn statement(
        &self,
        command: &Command,
        name: String,
        number: usize,
    ) -> Result<Statement, ProgramError> {
        let (line, text) = (command.line, command.text.clone());
        let (store, may_be_several) = match &command.op {
            Op::Sql { store, may_be_several, .. } => (store.clone(), *may_be_several),
            _ => (None, false),
        };
        let edge = match command.op {
            Op::CopyFrom { .. } => TransactionEdge::Within,
            _ => TransactionEdge::parse(&text, may_be_several),
        };
        let request = self.request(command, name, store.is_some())?;
        let may_be_several = may_be_several && self.protocol == Protocol::Simple;
        Ok(Statement { text, line, number, request, store, may_be_several, edge })
    }

    fn request(
        &self,
        command: &Command,
        name: String,
        described: bool,
    ) -> Result<Request, ProgramError> {
        let (script, line) = (self.script.name.clone(), command.line);
        let request = match (&command.op, self.protocol) {
            (Op::CopyFrom { table, rows }, _) => {
                let Some(known) = self.tables.iter().find(|known| known.name() == table) else {
                    return Err(ProgramError::NoTable { script, line, table: table.clone() });
                };
                let (table, rows) = (Arc::clone(known), rows.with_slots(self.slot));
                let mut query = Vec::new();
                frontend::query(&mut query, table.statement().as_bytes())
                    .map(|()| Request::Copy(CopyRequest { query, table, rows }))
            }
            (Op::Sql { pieces, .. }, Protocol::Simple) => simple(pieces, self.slot),
            (op @ Op::Sql { .. }, _) if op.parameters() > MAX_PARAMETERS => {
                let text = command.text.clone();
                return Err(ProgramError::Parameters { script, line, text });
            }
            (Op::Sql { pieces, .. }, Protocol::Prepared) => {
                bound(name, pieces, described, self.slot)
            }
            (Op::Sql { pieces, .. }, _) => bound(String::new(), pieces, described, self.slot),
            _ => unreachable!("a meta command is no statement"),
        };
        request.map_err(|cause| ProgramError::Statement { script, line, cause })
    }
}

/// Returns the group of the scripts `range` of `all`.
fn script_group(
    all: &[WeightedScript],
    range: Range<usize>,
    think_time: Span,
) -> Result<ScriptGroup, ProgramError> {
    let scripts = &all[range.clone()];
    let mut weight = 0_i64;
    for script in scripts {
        let more = weight.checked_add(i64::from(script.weight));
        weight = more.ok_or(ProgramError::TooHeavy(scripts.len()))?;
    }
    if weight == 0 {
        return Err(ProgramError::NothingToRun);
    }
    let has_pauses = !think_time.0.is_zero() || scripts.iter().any(|s| !s.pauses.is_empty());
    Ok(ScriptGroup { scripts: range, weight, think_time, has_pauses })
}

/// Links a meta command; `slot` gives the program's slots for the script's.
fn meta_action(
    op: &Op,
    target: BranchTargets,
    script: &Script,
    slot: &dyn Fn(Slot) -> Slot,
) -> Action {
    match op {
        Op::Sql { .. } | Op::CopyFrom { .. } => unreachable!("it is a statement"),
        Op::Set { variable, expression } => {
            let is_nameless = !is_variable_name(&script.variables[variable.index()]);
            let (variable, expression) = (slot(*variable), expression.with_slots(slot));
            if is_nameless {
                Action::SetNameless { variable, expression }
            } else {
                Action::Set { variable, expression }
            }
        }
        Op::Sleep { amount, unit } => {
            Action::Sleep { amount: amount.with_slots(slot), unit: *unit }
        }
        Op::If(condition) => {
            Action::If { condition: condition.with_slots(slot), next: target.next }
        }
        Op::Elif(condition) => Action::Elif {
            condition: condition.with_slots(slot),
            next: target.next,
            end: target.end,
        },
        Op::Else => Action::Else { end: target.end },
        Op::Endif => Action::Endif,
        Op::Shell(command) => Action::Shell(link_pieces(command, slot)),
        Op::SetShell { variable, command } => {
            Action::SetShell { variable: slot(*variable), command: link_pieces(command, slot) }
        }
        Op::StartPipeline => Action::StartPipeline,
        Op::SyncPipeline => Action::SyncPipeline,
        Op::EndPipeline => Action::EndPipeline,
    }
}

/// Prepares a Query message.
fn simple(pieces: &[Piece], slot: &dyn Fn(Slot) -> Slot) -> Result<Request, WireError> {
    // Encoded once without the variables, so that a NUL in the text is found before the load.
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

/// Prepares the messages of the extended protocol; `described` asks for the result's columns.
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
