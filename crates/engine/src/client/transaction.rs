//! A client's transactions: which is next, when it is due, how it ends.
//!
//! [`Client::begin`] chooses one, [`Client::start`] begins its script when it is due,
//! [`Client::complete`] ends it well, and [`Client::another`] goes on to the next.

use pgdyno_wire::backend::Status;
use pgdyno_wire::frontend;

use super::abort::Abort;
use super::state::{Client, ClientContext, State, Wait};
use crate::recorder::FinishedTransaction;
use crate::schedule::{Moment, Timeline};
use crate::sqlstate;

impl Client {
    /// The transaction as it ends now.
    pub(super) fn ended(&self, now: Moment) -> FinishedTransaction {
        let times = Timeline { due: self.due, sent: self.begun, done: now };
        FinishedTransaction {
            client: self.id,
            number: self.number,
            script: self.script,
            times,
            retries: self.retries,
        }
    }

    /// Whether another transaction may begin; takes it from those that are left.
    fn takes_another(&mut self, turn: &ClientContext<'_>) -> bool {
        let schedule = turn.recorder.schedule();
        let counts = turn.now >= schedule.opening;
        if turn.now >= schedule.closing || (counts && self.quota == Some(0)) {
            return false;
        }
        if counts && let Some(left) = &mut self.quota {
            *left -= 1;
        }
        true
    }

    pub(super) fn finish(&mut self, turn: &mut ClientContext<'_>) -> Wait {
        self.stop(turn.out);
        Wait::Close
    }

    /// Chooses a transaction, if there is one to begin.
    pub(super) fn begin(&mut self, turn: &mut ClientContext<'_>) -> Wait {
        if !self.takes_another(turn) {
            return self.finish(turn);
        }
        self.script = match self.program.scripts.len() {
            1 => 0,
            _ => {
                let choice = turn.pacer.choice.as_mut().unwrap_or(&mut self.choice);
                self.program.script_at(choice.uniform(0, self.program.weight - 1))
            }
        };
        self.retries = 0;
        self.state = State::Due;
        let Some(mut due) = turn.pacer.next_due(turn.now) else {
            self.due = turn.now;
            return self.start(turn);
        };
        let closing = turn.recorder.schedule().closing;
        if let Some(limit) = self.program.rules.latency_limit {
            while due.after(limit) < turn.now && due < closing {
                self.due = due;
                self.begun = turn.now;
                turn.recorder.skipped(&self.ended(turn.now));
                self.number += 1;
                if !self.takes_another(turn) {
                    return self.finish(turn);
                }
                due = turn.pacer.next_due(turn.now).unwrap_or(turn.now);
            }
        }
        if due >= closing {
            return self.finish(turn);
        }
        self.due = due;
        if due > turn.now { Wait::Until(due) } else { self.start(turn) }
    }

    /// Begins the transaction that is due.
    pub(super) fn start(&mut self, turn: &mut ClientContext<'_>) -> Wait {
        if !self.connected {
            return Wait::Connect;
        }
        self.begun = turn.now;
        if turn.pacer.is_closed() {
            self.due = turn.now;
        }
        self.before.clone_from(&self.random);
        self.step = 0;
        if self.program.rules.say_steps {
            self.say_script();
        }
        self.asked = false;
        if let Some(book) = &self.book {
            book.begin(&mut self.variables);
        }
        self.advance(turn)
    }

    /// The script has come to its end.
    pub(super) fn complete(&mut self, turn: &mut ClientContext<'_>) -> Wait {
        if self.piping {
            let reason = "end of script reached with pipeline open";
            return self.abort(&Abort::own(sqlstate::PIPELINE, reason).saying(reason), turn);
        }
        if self.replies.status != Status::Idle {
            // As in pgbench, it counts and is the client's last.
            turn.recorder.transaction(&self.ended(turn.now));
            let name = &self.program.scripts[self.script].name;
            let reason = format!("{name}: the script ends inside a transaction block");
            let said = "end of script reached without completing the last transaction";
            return self.give_up(
                &Abort::own(sqlstate::ACTIVE_TRANSACTION, &reason).saying(said),
                None,
                turn,
            );
        }
        if !self.asked && self.state != State::Computed {
            // The last event was the script's beginning. And whoever needs no server must let the
            // others have a turn.
            self.state = State::Computed;
            return Wait::NextTurn;
        }
        self.reconnections = 0;
        if let Some(Err(error)) = self.book.as_mut().map(|book| book.acknowledged(turn.now)) {
            return self.abort(&Abort::ledger(&error), turn);
        }
        turn.recorder.transaction(&self.ended(turn.now));
        self.another(turn)
    }

    /// The transaction is over, well or not.
    pub(super) fn another(&mut self, turn: &mut ClientContext<'_>) -> Wait {
        self.number += 1;
        if self.program.rules.reconnect_each {
            frontend::terminate(turn.out);
            self.connected = false;
        }
        self.begin(turn)
    }
}
