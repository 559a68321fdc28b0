//! `\copyfrom`: rows on their way to the server.
//!
//! The COPY is sent alone. Once the server asks for data, a client appends a block of rows at a
//! time, each when the connection has taken the one before: memory does not grow with the rows, and
//! other clients have their turns in between.

use std::ops::Range;
use std::rc::Rc;

use pgdyno_wire::frontend;

use super::abort::Abort;
use super::state::{Client, ClientContext, State, Wait};
use crate::copy::{HEADER, TRAILER};
use crate::program::{CopyRequest, Request};
use crate::sqlstate;

/// Size at which a block of rows is sent (bytes).
const BLOCK: usize = 64 << 10;

/// Rows of the COPY that a client has begun.
#[derive(Debug)]
pub(super) struct RowsToSend {
    /// Their numbers.
    numbers: Range<u64>,
    /// Whether the server has asked for them.
    pub(super) asked_for: bool,
}

impl Client {
    /// Takes the rows of `copy`, which is about to be sent.
    pub(super) fn take_rows(&mut self, copy: &CopyRequest) -> Result<(), Abort> {
        if self.in_pipeline {
            let what = "\\copyfrom is not allowed in pipeline mode";
            let reason = format!("{}: {what}", self.position());
            return Err(Abort::internal(sqlstate::PIPELINE, &reason).with_message(what));
        }
        let count = self.eval(&copy.rows)?.int().map_err(|e| self.bad_value(e))?;
        let what = match u64::try_from(count).map(|count| copy.table.take(count)) {
            Ok(Some(numbers)) => {
                self.rows = Some(RowsToSend { numbers, asked_for: false });
                return Ok(());
            }
            Ok(None) => {
                let (table, last) = (copy.table.name(), copy.table.last());
                format!(
                    "{table} has no room for {count} rows after number {last}: a column that is \
                     counted by rows is too narrow"
                )
            }
            Err(_) => format!("{count} is no number of rows"),
        };
        let reason = format!("{}: {what}", self.position());
        Err(Abort::internal(sqlstate::DATA_EXCEPTION, &reason).with_message(&what))
    }

    /// Goes on with the rows, now that the connection has taken those before.
    pub fn refill(&mut self, context: &mut ClientContext<'_>) -> Wait {
        // An error may have come meanwhile: the server then wants no more.
        if self.is_sending_rows() { self.send_rows(context) } else { Wait::ForReply }
    }

    /// Whether the server waits for rows.
    pub(super) fn is_sending_rows(&self) -> bool {
        self.rows.as_ref().is_some_and(|rows| rows.asked_for)
    }

    /// Appends a block of rows, and the end of the COPY once there are no more.
    pub(super) fn send_rows(&mut self, context: &mut ClientContext<'_>) -> Wait {
        let program = Rc::clone(&self.program);
        let State::AwaitingReply(statement) = self.state else { return Wait::ForReply };
        let request = &program.scripts[self.script].statements[statement].request;
        let (Request::Copy(copy), Some(rows)) = (request, &mut self.rows) else {
            return Wait::ForReply;
        };
        let sent = frontend::copy_data_with(context.out, |out| {
            let begin = out.len();
            if !rows.asked_for {
                rows.asked_for = true;
                out.extend_from_slice(HEADER);
            }
            let RowsToSend { numbers, .. } = rows;
            while !numbers.is_empty() && out.len() - begin < BLOCK {
                copy.table.writer().write(numbers.start, out);
                numbers.start += 1;
            }
            if numbers.is_empty() {
                out.extend_from_slice(&TRAILER);
            }
        });
        if let Err(error) = sent {
            let reason = format!("{}: {error}", self.position());
            return self.abort(&Abort::internal(sqlstate::DATA_EXCEPTION, &reason), context);
        }
        if !rows.numbers.is_empty() {
            return Wait::ForRoom;
        }
        self.rows = None;
        frontend::copy_done(context.out);
        Wait::ForReply
    }
}
