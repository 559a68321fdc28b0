//! What a client tells of itself as it goes, in pgbench's words.

use super::Client;
use crate::load::Told;
use crate::program::{Action, Request};

impl Client {
    pub(super) fn say(&self, about: Told, words: &str) {
        if let Some(say) = &self.program.rules.say {
            say(about, words);
        }
    }

    /// That bytes came from the server.
    #[cold]
    pub(super) fn say_receiving(&self) {
        self.say(Told::News, &format!("client {} receiving", self.id));
    }

    /// Which script begins.
    #[cold]
    pub(super) fn say_script(&self) {
        let name = &self.program.scripts[self.script].name;
        self.say(Told::News, &format!("client {} executing script \"{name}\"", self.id));
    }

    /// What the present step does.
    #[cold]
    pub(super) fn say_step(&self) {
        let (id, script) = (self.id, &self.program.scripts[self.script]);
        let Some(step) = script.steps.get(self.step) else { return };
        // Expressions are not shown, the arguments of other meta commands are.
        let words = match &step.action {
            Action::Send(index) => return self.say_send(*index),
            Action::Set { .. } => 2,
            Action::If { .. } | Action::Elif { .. } => 1,
            _ => usize::MAX,
        };
        let shown: Vec<&str> = step.text.split_whitespace().take(words).collect();
        self.say(Told::News, &format!("client {id} executing {}", shown.join(" ")));
    }

    fn say_send(&self, index: usize) {
        let (id, statement) = (self.id, &self.program.scripts[self.script].statements[index]);
        let sent = match &statement.request {
            Request::Text(pieces) => {
                let mut text = Vec::new();
                self.write(pieces, &mut text);
                String::from_utf8_lossy(&text).into_owned()
            }
            Request::Bound { name, .. } if !name.is_empty() => {
                if !self.prepared[statement.number] {
                    self.say(Told::News, &format!("client {id} preparing {name}"));
                }
                name.clone()
            }
            // Type, length and an empty name stand before the text, as the server gets it.
            Request::Bound { parse, .. } => {
                let text = parse.get(6..).unwrap_or_default().split(|byte| *byte == 0).next();
                String::from_utf8_lossy(text.unwrap_or_default()).into_owned()
            }
            Request::Fixed(_) => statement.text.clone(),
        };
        self.say(Told::News, &format!("client {id} sending {sent}"));
    }
}
