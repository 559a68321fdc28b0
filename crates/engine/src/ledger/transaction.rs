//! Recording a client's transactions in its ledger.

use std::io;

use pgdyno_model::ledger::Effect;

use super::ClientLedger;
use crate::program::{Action, LinkedScript, Program};
use crate::schedule::Moment;
use crate::script::{Slot, Value, VariableValue};

/// Variables and statements of a program that a ledger records.
#[derive(Debug)]
pub(crate) struct LedgerBindings {
    sequence: Slot,
    account: Slot,
    teller: Slot,
    branch: Slot,
    delta: Slot,
    /// By script: step that sends the last statement, which is COMMIT.
    commits: Vec<Option<usize>>,
}

impl LedgerBindings {
    /// Finds the variables and statements in `program`.
    ///
    /// # Errors
    /// Name of the variable that the program lacks.
    pub(crate) fn from_program(program: &Program) -> Result<Self, &'static str> {
        let slot = |name: &'static str| {
            let at = program.variables.iter().position(|v| v == name).ok_or(name)?;
            u32::try_from(at).map(Slot).map_err(|_| name)
        };
        let last = |script: &LinkedScript| {
            script.steps.iter().rposition(|step| matches!(step.action, Action::Send(_)))
        };
        Ok(Self {
            sequence: slot("sequence")?,
            account: slot("aid")?,
            teller: slot("tid")?,
            branch: slot("bid")?,
            delta: slot("delta")?,
            commits: program.scripts.iter().map(last).collect(),
        })
    }
}

/// A client's ledger, with the variables that it records.
pub(crate) struct TransactionLedger {
    ledger: Box<dyn ClientLedger>,
    bindings: LedgerBindings,
}

impl TransactionLedger {
    pub(crate) fn new(ledger: Box<dyn ClientLedger>, bindings: LedgerBindings) -> Self {
        Self { ledger, bindings }
    }

    /// Sets the sequence number of the transaction that begins.
    pub(crate) fn begin(&self, variables: &mut [Option<VariableValue>]) {
        let sequence = Value::Int(self.ledger.next().cast_signed());
        variables[self.bindings.sequence.index()] = Some(sequence.into());
    }

    /// Records the transaction before its first statement, and COMMIT before its last one.
    pub(crate) fn sending(
        &mut self,
        is_first: bool,
        script: usize,
        step: usize,
        variables: &[Option<VariableValue>],
        now: Moment,
    ) -> io::Result<()> {
        if is_first {
            let int = |slot: Slot| match variables[slot.index()]
                .as_ref()
                .and_then(VariableValue::value)
            {
                Some(Value::Int(value)) => Ok(value),
                _ => Err(io::Error::other("a variable that the ledger keeps holds no integer")),
            };
            let LedgerBindings { account, teller, branch, delta, .. } = &self.bindings;
            let effect = Effect {
                account: int(*account)?,
                teller: int(*teller)?,
                branch: int(*branch)?,
                delta: int(*delta)?,
            };
            self.ledger.issued(&effect, now)?;
        }
        if self.bindings.commits[script] == Some(step) { self.ledger.committing() } else { Ok(()) }
    }

    pub(crate) fn acknowledged(&mut self, now: Moment) -> io::Result<()> {
        self.ledger.acknowledged(now)
    }

    pub(crate) fn failed(&mut self, now: Moment) -> io::Result<()> {
        self.ledger.failed(now)
    }
}
