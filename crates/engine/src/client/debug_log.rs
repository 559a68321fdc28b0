//! Messages about what a client does, worded as pgbench words them.

use pgdyno_wire::ServerError;
use pgdyno_wire::frame::HEADER;

use super::state::Client;
use crate::client_log::ClientLogKind;
use crate::program::{Action, CopyRequest, Request};

impl Client {
    pub(super) fn log(&self, about: ClientLogKind, words: &str) {
        if let Some(say) = &self.program.policy.client_log {
            say(about, words);
        }
    }

    /// Logs that bytes came from the server.
    #[cold]
    pub(super) fn log_receiving(&self) {
        self.log(ClientLogKind::News, &format!("client {} receiving", self.id));
    }

    /// Logs a notice or warning of the server.
    #[cold]
    pub(super) fn log_notice(&self, notice: &ServerError) {
        let query = self.current_statement().1.map(|statement| self.query_text(statement));
        self.log(ClientLogKind::Notice, &notice.libpq_text(query.as_deref()));
    }

    /// Returns the text of the current script's statement `index` as the server received it.
    pub(super) fn query_text(&self, index: usize) -> String {
        let c_string = |bytes: &[u8]| {
            let text = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
            String::from_utf8_lossy(text).into_owned()
        };
        match &self.program.scripts[self.script].statements[index].request {
            Request::Fixed(message) | Request::Copy(CopyRequest { query: message, .. }) => {
                c_string(&message[HEADER..])
            }
            Request::Text(pieces) => {
                let mut text = Vec::new();
                self.write(pieces, &mut text);
                String::from_utf8_lossy(&text).into_owned()
            }
            // The statement's name precedes the text.
            Request::Bound { parse, name, .. } => c_string(&parse[HEADER + name.len() + 1..]),
        }
    }

    /// Logs that a script begins.
    #[cold]
    pub(super) fn log_script(&self) {
        let name = &self.program.scripts[self.script].name;
        self.log(ClientLogKind::News, &format!("client {} executing script \"{name}\"", self.id));
    }

    /// Logs the current step.
    #[cold]
    pub(super) fn log_step(&self) {
        let (id, script) = (self.id, &self.program.scripts[self.script]);
        let Some(step) = script.steps.get(self.step) else { return };
        // pgbench shows arguments of meta commands, but no expressions.
        let words = match &step.action {
            Action::Send(index) => return self.log_send(*index),
            Action::Set { .. } | Action::SetNameless { .. } => 2,
            Action::If { .. } | Action::Elif { .. } => 1,
            _ => usize::MAX,
        };
        let shown: Vec<&str> = step.text.split_whitespace().take(words).collect();
        self.log(ClientLogKind::News, &format!("client {id} executing {}", shown.join(" ")));
    }

    fn log_send(&self, index: usize) {
        let (id, statement) = (self.id, &self.program.scripts[self.script].statements[index]);
        let sent = match &statement.request {
            Request::Bound { name, .. } if !name.is_empty() => {
                if !self.prepared[statement.number] {
                    self.log(ClientLogKind::News, &format!("client {id} preparing {name}"));
                }
                name.clone()
            }
            Request::Fixed(_) | Request::Text(_) | Request::Copy(_) | Request::Bound { .. } => {
                self.query_text(index)
            }
        };
        self.log(ClientLogKind::News, &format!("client {id} sending {sent}"));
    }
}
