//! Sending statements, and storing their results.

use pgdyno_wire::{WireError, frontend};

use super::abort::Abort;
use super::expected::ExpectedReply;
use super::state::{Client, PendingReply};
use crate::program::{Request, Statement};
use crate::schedule::Moment;
use crate::script::Piece;
use crate::sqlstate;

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
        self.replies.query_ends = self.in_pipeline || statement.may_be_several;
        self.queries = 0;
        if self.replies.rows {
            self.results.clear();
        }
        match &statement.request {
            Request::Fixed(message) => {
                out.extend_from_slice(message);
                self.replies.expect(ExpectedReply::Result);
            }
            Request::Text(pieces) => {
                frontend::query_with(out, |out| self.write(pieces, out))?;
                self.replies.expect(ExpectedReply::Result);
            }
            Request::Copy(copy) => {
                out.extend_from_slice(&copy.query);
                self.replies.expect(ExpectedReply::CopyIn);
            }
            Request::Bound { parse, execution, name, parameters } => {
                let begin = out.len();
                let parsed = name.is_empty() || !self.prepared[statement.number];
                if parsed {
                    out.extend_from_slice(parse);
                }
                let variables = &self.variables;
                let bound = execution.write(out, !self.in_pipeline, |bind| {
                    for slot in parameters {
                        match &variables[slot.index()] {
                            // NULL from an expression is sent as its text, as in pgbench.
                            None => bind.null()?,
                            Some(content) => bind.text(|out| content.write_text(out))?,
                        }
                    }
                    Ok(())
                });
                if let Err(error) = bound {
                    out.truncate(begin);
                    return Err(error);
                }
                if self.in_pipeline {
                    let step = self.step;
                    self.push_pending(PendingReply::Statement {
                        step,
                        statement: index,
                        parsed,
                        sent: now,
                    });
                    // Later uses of the name in this pipeline find it prepared.
                    if parsed && !name.is_empty() {
                        self.prepared[statement.number] = true;
                    }
                } else {
                    let described = statement.store.is_some();
                    self.replies.expect(match parsed {
                        true => ExpectedReply::Parsed { described },
                        false => ExpectedReply::Bound { described },
                    });
                }
            }
        }
        Ok(())
    }

    /// Notes a reply that the pipeline owes.
    pub(super) fn push_pending(&mut self, pending: PendingReply) {
        if self.pending.is_empty() && self.replies.expects_nothing() {
            self.replies.expect(pending.expected());
        }
        self.pending.push_back(pending);
    }

    /// Appends `pieces` with the values of their variables.
    pub(super) fn write(&self, pieces: &[Piece], out: &mut Vec<u8>) {
        for piece in pieces {
            match piece {
                Piece::Text(text) => out.extend_from_slice(text.as_bytes()),
                Piece::Variable(slot) => match &self.variables[slot.index()] {
                    Some(content) => content.write_text(out),
                    // A name without a value stays as it is, as in pgbench.
                    None => {
                        out.push(b':');
                        out.extend_from_slice(self.program.variables[slot.index()].as_bytes());
                    }
                },
            }
        }
    }

    /// Stores the result in variables, if `statement` asks for it; returns why it cannot.
    pub(super) fn store(&mut self, statement: usize) -> Option<Abort> {
        let program = &self.program;
        let store = program.scripts[self.script].statements[statement].store.as_ref()?;
        let error = self.results.store(store, &program.slots, &mut self.variables).err()?;
        let (id, script, step) = (self.id, self.script, self.step);
        let mut abort = Abort::internal(
            sqlstate::CARDINALITY_VIOLATION,
            &format!("{}: {}", self.position(), error.message),
        )
        .with_message("");
        if let Some(name) = error.name {
            let command = if store.each { "aset" } else { "gset" };
            abort = abort.with_cause(format!("{command}: invalid variable name: \"{name}\""));
        }
        let (query, message) = (error.query, error.message);
        Some(abort.with_cause(format!(
            "client {id} script {script} command {step} query {query}: {message}"
        )))
    }
}
