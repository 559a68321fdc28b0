//! A client's transactions: which is next, when it is due, how it ends.
//!
//! [`Client::choose_transaction`] chooses one, [`Client::start_transaction`] begins its script when
//! it is due, [`Client::complete_transaction`] ends it well, and [`Client::next_transaction`] goes
//! on to the next one.

use std::time::Duration;

use pgdyno_model::units::Span;
use pgdyno_wire::backend::TransactionStatus;
use pgdyno_wire::frontend;

use super::abort::Abort;
use super::state::{Client, ClientContext, State, Wait};
use crate::random::Random;
use crate::recorder::FinishedTransaction;
use crate::schedule::{Moment, Timeline};
use crate::sqlstate;

/// Draws a time to think from the exponential distribution of this `mean`, cut at ten times the
/// mean.
fn think_time(mean: Span, random: &mut Random) -> Duration {
    const LONGEST: f64 = 10.0;
    // In (0, 1], so that the logarithm is finite.
    let uniform = 1.0 - random.unit();
    mean.times((-uniform.ln()).min(LONGEST)).0
}

impl Client {
    /// Returns the transaction as it ends at `now`.
    pub(super) fn finished_transaction(&self, now: Moment) -> FinishedTransaction {
        let times = Timeline { due: self.due, sent: self.sent_at, done: now };
        FinishedTransaction {
            client: self.id,
            number: self.number,
            script: self.script,
            times,
            retries: self.retries,
        }
    }

    /// Returns whether another transaction may begin, and takes it from the quota.
    fn may_start_another(&mut self, context: &ClientContext<'_>) -> bool {
        let schedule = context.recorder.schedule();
        let counts = context.now >= schedule.opening;
        if context.now >= schedule.last_begin || (counts && self.quota == Some(0)) {
            return false;
        }
        if counts && let Some(left) = &mut self.quota {
            *left -= 1;
        }
        true
    }

    pub(super) fn finish(&mut self, context: &mut ClientContext<'_>) -> Wait {
        self.stop(context.out);
        Wait::Close
    }

    /// Chooses the next transaction; ends the client if none may begin.
    pub(super) fn choose_transaction(&mut self, context: &mut ClientContext<'_>) -> Wait {
        if !self.may_start_another(context) {
            return self.finish(context);
        }
        let group = &self.program.groups[self.group];
        let previous = self.script;
        self.script = match group.scripts.len() {
            1 => group.scripts.start,
            _ => {
                let script_random =
                    context.pacer.script_random.as_mut().unwrap_or(&mut self.script_random);
                self.program.script_at(group, script_random.uniform(0, group.weight - 1))
            }
        };
        self.retries = 0;
        self.state = State::Due;
        let paced = context.pacer.next_due(context.now);
        let mut due = paced.unwrap_or_else(|| context.now.after(self.pause(previous)));
        let last_begin = context.recorder.schedule().last_begin;
        if let Some(limit) = self.program.policy.latency_limit {
            while due.after(limit) < context.now && due < last_begin {
                self.due = due;
                self.sent_at = context.now;
                context.recorder.record_skipped(&self.finished_transaction(context.now));
                self.number += 1;
                if !self.may_start_another(context) {
                    return self.finish(context);
                }
                due = context.pacer.next_due(context.now).unwrap_or(context.now);
            }
        }
        if due >= last_begin {
            return self.finish(context);
        }
        self.due = due;
        if due > context.now { Wait::Until(due) } else { self.start_transaction(context) }
    }

    /// Draws the time that passes between the client's previous transaction, of script `previous`,
    /// and the one that it has chosen; zero if it does not pause.
    #[inline]
    fn pause(&mut self, previous: usize) -> Duration {
        let group = &self.program.groups[self.group];
        if !group.has_pauses {
            return Duration::ZERO;
        }
        let think_times = [
            group.think_time,
            // Before the first transaction there is nothing to think over.
            match self.number {
                0 => Span::default(),
                _ => self.program.scripts[previous].pauses.think_time,
            },
        ];
        let mut pause = self.program.scripts[self.script].pauses.keying_time.0;
        for mean in think_times.into_iter().filter(|mean| !mean.0.is_zero()) {
            pause = pause.saturating_add(think_time(mean, &mut self.script_random));
        }
        pause
    }

    /// Begins the transaction, which is due.
    pub(super) fn start_transaction(&mut self, context: &mut ClientContext<'_>) -> Wait {
        if !self.connected {
            return Wait::Connect;
        }
        self.sent_at = context.now;
        if context.pacer.is_closed() {
            self.due = context.now;
        }
        self.random_before_try.clone_from(&self.random);
        self.step = 0;
        if self.program.policy.logs_steps {
            self.log_script();
        }
        self.has_sent = false;
        if let Some(ledger) = &self.ledger {
            ledger.begin(&mut self.variables);
        }
        self.advance(context)
    }

    /// Ends the transaction at the end of its script.
    pub(super) fn complete_transaction(&mut self, context: &mut ClientContext<'_>) -> Wait {
        if self.in_pipeline {
            let reason = "end of script reached with pipeline open";
            return self
                .abort(&Abort::internal(sqlstate::PIPELINE, reason).with_message(reason), context);
        }
        if self.replies.status != TransactionStatus::Idle {
            // As in pgbench, the transaction counts and is the client's last.
            context.recorder.record_transaction(&self.finished_transaction(context.now));
            let name = &self.program.scripts[self.script].name;
            let reason = format!("{name}: the script ends inside a transaction block");
            let said = "end of script reached without completing the last transaction";
            return self.give_up(
                &Abort::internal(sqlstate::ACTIVE_TRANSACTION, &reason).with_message(said),
                None,
                context,
            );
        }
        if !self.has_sent && self.state != State::Computed {
            // No event has told the time since the script began. Other clients have their turn
            // first.
            self.state = State::Computed;
            return Wait::NextTurn;
        }
        self.reconnections = 0;
        if let Some(Err(error)) =
            self.ledger.as_mut().map(|ledger| ledger.acknowledged(context.now))
        {
            return self.abort(&Abort::ledger(&error), context);
        }
        context.recorder.record_transaction(&self.finished_transaction(context.now));
        self.next_transaction(context)
    }

    /// Goes on to the next transaction.
    pub(super) fn next_transaction(&mut self, context: &mut ClientContext<'_>) -> Wait {
        self.number += 1;
        if self.program.policy.reconnect_each {
            frontend::terminate(context.out);
            self.connected = false;
        }
        self.choose_transaction(context)
    }
}
