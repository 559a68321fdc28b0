//! Statements as messages, and results as variables.

use pgdyno_wire::{WireError, frontend};

use super::failure::Abort;
use super::{Client, Piped};
use crate::program::{Request, Statement};
use crate::recorder::sqlstate;
use crate::schedule::Moment;
use crate::script::Piece;

impl Client {
    /// Appends the messages that execute `statement`, of index `index`.
    pub(super) fn send(
        &mut self,
        statement: &Statement,
        index: usize,
        now: Moment,
        out: &mut Vec<u8>,
    ) -> Result<(), WireError> {
        self.replies.rows = statement.store.is_some();
        if self.replies.rows {
            self.answers.clear();
        }
        match &statement.request {
            Request::Fixed(message) => out.extend_from_slice(message),
            Request::Text(pieces) => frontend::query_with(out, |out| self.write(pieces, out))?,
            Request::Bound { parse, execution, name, parameters } => {
                let begin = out.len();
                let parsed = name.is_empty() || !self.prepared[statement.number];
                if parsed {
                    out.extend_from_slice(parse);
                }
                let variables = &self.variables;
                let bound = execution.write(out, !self.piping, |bind| {
                    for slot in parameters {
                        match &variables[slot.index()] {
                            Some(crate::script::Content::Value(crate::script::Value::Null)) | None => {
                                bind.null()?;
                            }
                            Some(content) => bind.text(|out| content.write_text(out))?,
                        }
                    }
                    Ok(())
                });
                if let Err(error) = bound {
                    out.truncate(begin);
                    return Err(error);
                }
                if self.piping {
                    self.piped.push_back(Piped::Statement {
                        step: self.step,
                        statement: index,
                        parsed,
                        sent: now,
                    });
                    // The next use of the name in this pipeline finds it there.
                    if parsed && !name.is_empty() {
                        self.prepared[statement.number] = true;
                    }
                }
            }
        }
        Ok(())
    }

    /// Appends `pieces` with variables in their places.
    pub(super) fn write(&self, pieces: &[Piece], out: &mut Vec<u8>) {
        for piece in pieces {
            match piece {
                Piece::Text(text) => out.extend_from_slice(text.as_bytes()),
                Piece::Variable(slot) => match &self.variables[slot.index()] {
                    Some(content) => content.write_text(out),
                    // What names no variable stays as it is, as in pgbench.
                    None => {
                        out.push(b':');
                        out.extend_from_slice(self.program.variables[slot.index()].as_bytes());
                    }
                },
            }
        }
    }

    /// Puts a result into variables, if `statement` says so.
    pub(super) fn store(&mut self, statement: usize) -> Option<Abort> {
        let program = &self.program;
        let store = program.scripts[self.script].statements[statement].store.as_ref()?;
        let error = self.answers.store(store, &program.slots, &mut self.variables).err()?;
        let (id, script, step) = (self.id, self.script, self.step);
        let cause = format!("client {id} script {script} command {step} query 0: {error}");
        let reason = format!("{}: {error}", self.place());
        Some(Abort::own(sqlstate::CARDINALITY_VIOLATION, &reason).caused(cause).saying(""))
    }
}
