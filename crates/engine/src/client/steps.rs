//! Executing a script's steps.

use std::rc::Rc;
use std::time::Duration;

use pgdyno_wire::frontend;

use super::abort::{Abort, EVALUATION};
use super::shell;
use super::state::{Client, ClientContext, PendingReply, State, Wait};
use crate::client_log::ClientLogKind;
use crate::program::{Action, LinkedScript, Request};
use crate::schedule::Moment;
use crate::script::{
    EvalError, Expr, Piece, Scope, Slot, Value, is_variable_name, leading_integer,
};
use crate::sqlstate;

/// The longest command line that pgbench runs (bytes).
const MAX_COMMAND_LINE: usize = 254;

/// Continuation after a step.
enum StepFlow {
    /// Execution of this step.
    Go(usize),
    /// A wait.
    Wait(Wait),
}

impl Client {
    /// Executes steps until one has to wait or the script ends.
    pub(super) fn advance(&mut self, context: &mut ClientContext<'_>) -> Wait {
        let program = Rc::clone(&self.program);
        let script = &program.scripts[self.script];
        while let Some(step) = script.steps.get(self.step) {
            match self.execute(script, &step.action, context) {
                Ok(StepFlow::Go(step)) => self.step = step,
                Ok(StepFlow::Wait(next)) => return next,
                Err(abort) => return self.abort(&abort, context),
            }
        }
        self.complete_transaction(context)
    }

    fn execute(
        &mut self,
        script: &LinkedScript,
        action: &Action,
        context: &mut ClientContext<'_>,
    ) -> Result<StepFlow, Abort> {
        let on = StepFlow::Go(self.step + 1);
        if self.program.policy.logs_steps {
            self.log_step();
        }
        match action {
            Action::Send(statement) => return self.send_statement(script, *statement, context),
            Action::Set { variable, expression } => {
                let variable = variable.index();
                // A constant draw by itself keeps the value in registers.
                match expression.constant_draw(&mut self.random) {
                    Some(drawn) => self.variables[variable] = Some(Value::Int(drawn).into()),
                    None => self.variables[variable] = Some(self.eval(expression)?.into()),
                }
            }
            Action::SetNameless { variable, expression } => {
                self.eval(expression)?;
                return Err(self
                    .bad_name(*variable)
                    .with_message("assignment of meta-command failed"));
            }
            Action::Sleep { amount, unit } => return self.sleep(amount, *unit, context.now),
            Action::If { condition, next } => {
                context.recorder.record_command(self.script, self.step, 0, context.now);
                return self.branch(script, condition, *next).map(StepFlow::Go);
            }
            // Reached from the branch that was executed.
            Action::Elif { end, .. } | Action::Else { end } => return Ok(StepFlow::Go(end + 1)),
            Action::Endif => {}
            Action::Shell(command) => {
                let line = self.line(command)?;
                shell::run(&line, &self.program.policy.stop)
                    .map_err(|e| self.bad_shell(&e.to_string()))?;
                return Ok(self.pass_time(Wait::NextTurn, context.now));
            }
            Action::SetShell { variable, command } => {
                self.set_from_shell(*variable, command)?;
                return Ok(self.pass_time(Wait::NextTurn, context.now));
            }
            Action::StartPipeline | Action::SyncPipeline | Action::EndPipeline => {
                return self.pipeline(action, context);
            }
        }
        context.recorder.record_command(self.script, self.step, 0, context.now);
        Ok(on)
    }

    /// Sends a statement; outside of a pipeline, waits for its reply.
    #[inline]
    fn send_statement(
        &mut self,
        script: &LinkedScript,
        statement: usize,
        context: &mut ClientContext<'_>,
    ) -> Result<StepFlow, Abort> {
        if self.in_pipeline && script.statements[statement].store.is_some() {
            let what = "\\gset is not allowed in pipeline mode";
            let reason = format!("{}: {what}", self.position());
            return Err(Abort::internal(sqlstate::PIPELINE, &reason).with_message(what));
        }
        if let Request::Copy(copy) = &script.statements[statement].request {
            self.take_rows(copy)?;
        }
        if let Some(ledger) = &mut self.ledger {
            let (first, script, step) = (!self.has_sent, self.script, self.step);
            ledger
                .sending(first, script, step, &self.variables, context.now)
                .map_err(|e| Abort::ledger(&e))?;
        }
        self.note_commit(&script.statements[statement]);
        if let Err(error) =
            self.send(&script.statements[statement], statement, context.now, context.out)
        {
            let reason = format!("{}: {error}", self.position());
            return Err(Abort::internal(sqlstate::DATA_EXCEPTION, &reason));
        }
        self.has_sent = true;
        if self.in_pipeline {
            return Ok(StepFlow::Go(self.step + 1));
        }
        self.sent = context.now;
        self.state = State::AwaitingReply(statement);
        Ok(StepFlow::Wait(Wait::ForReply))
    }

    /// `\sleep`: waits from `now` for `amount` times `unit`.
    fn sleep(&mut self, amount: &Expr, unit: Duration, now: Moment) -> Result<StepFlow, Abort> {
        let amount = match amount {
            Expr::Variable(slot) => self.sleep_time(*slot)?,
            amount => self.eval(amount)?.int().map_err(|e| self.bad_value(e))?,
        };
        // A negative time is no time, as in pgbench.
        let units = u32::try_from(amount.max(0)).unwrap_or(u32::MAX);
        Ok(self.pass_time(Wait::Until(now.after(unit.saturating_mul(units))), now))
    }

    /// `\setshell`: runs `command`; `variable` takes the integer that it writes.
    fn set_from_shell(&mut self, variable: Slot, command: &[Piece]) -> Result<(), Abort> {
        let line = self.line(command)?;
        let value = shell::integer(&line, &self.program.policy.stop);
        if let Some(value) = value.map_err(|e| self.bad_shell(&e.to_string()))? {
            if !is_variable_name(&self.program.variables[variable.index()]) {
                let abort = self.bad_name(variable);
                return Err(abort.with_message("execution of meta-command failed"));
            }
            self.variables[variable.index()] = Some(Value::Int(value).into());
        }
        Ok(())
    }

    /// Returns the time of `\sleep :variable`: the integer that the variable's text begins with.
    fn sleep_time(&self, slot: Slot) -> Result<i64, Abort> {
        let name = &self.program.variables[slot.index()];
        let Some(content) = &self.variables[slot.index()] else {
            return Err(self.bad_shell(&format!("sleep: undefined variable \"{name}\"")));
        };
        let mut text = Vec::new();
        content.write_text(&mut text);
        let amount = leading_integer(&text);
        if amount == 0 && !text.first().is_some_and(u8::is_ascii_digit) {
            let text = String::from_utf8_lossy(&text);
            let what = format!("sleep: invalid sleep time \"{text}\" for variable \"{name}\"");
            return Err(self.bad_shell(&what));
        }
        Ok(amount)
    }

    /// Creates the abort for a variable that the current step cannot assign to.
    fn bad_name(&self, variable: Slot) -> Abort {
        let command = self.command_name(self.step);
        let what = format!(
            "{command}: invalid variable name: \"{}\"",
            self.program.variables[variable.index()]
        );
        Abort::internal(sqlstate::DATA_EXCEPTION, &format!("{}: {what}", self.position()))
            .with_cause(what)
    }

    /// Waits at a step that takes time from `now` on.
    fn pass_time(&mut self, next: Wait, now: Moment) -> StepFlow {
        self.state = State::Sleeping;
        self.sent = now;
        StepFlow::Wait(next)
    }

    /// Evaluates `condition`; returns the step to go on with. `next` decides if it is false.
    fn branch(
        &mut self,
        script: &LinkedScript,
        condition: &Expr,
        next: usize,
    ) -> Result<usize, Abort> {
        if self.eval(condition)?.is_true() {
            return Ok(self.step + 1);
        }
        let mut part = next;
        while let Some(Action::Elif { condition, next, .. }) =
            script.steps.get(part).map(|s| &s.action)
        {
            self.step = part;
            if self.program.policy.logs_steps {
                self.log_step();
            }
            if self.eval(condition)?.is_true() {
                return Ok(part + 1);
            }
            part = *next;
        }
        Ok(part + 1)
    }

    fn pipeline(
        &mut self,
        action: &Action,
        context: &mut ClientContext<'_>,
    ) -> Result<StepFlow, Abort> {
        let refused = |client: &Self, what: &str| {
            Err(Abort::internal(sqlstate::PIPELINE, &format!("{}: {what}", client.position()))
                .with_message(what))
        };
        match action {
            Action::StartPipeline if !self.program.pipelines => {
                refused(self, "cannot use pipeline mode with the simple query protocol")
            }
            Action::StartPipeline if self.in_pipeline => refused(self, "already in pipeline mode"),
            Action::StartPipeline => {
                self.in_pipeline = true;
                self.replies.query_ends = true;
                context.recorder.record_command(self.script, self.step, 0, context.now);
                Ok(StepFlow::Go(self.step + 1))
            }
            _ if !self.in_pipeline => refused(self, "not in pipeline mode"),
            _ => {
                frontend::sync(context.out);
                self.push_pending(PendingReply::Sync);
                self.has_sent = true;
                if matches!(action, Action::SyncPipeline) {
                    context.recorder.record_command(self.script, self.step, 0, context.now);
                    return Ok(StepFlow::Go(self.step + 1));
                }
                self.sent = context.now;
                self.state = State::AwaitingPipeline;
                Ok(StepFlow::Wait(Wait::ForReply))
            }
        }
    }

    pub(super) fn eval(&mut self, expression: &Expr) -> Result<Value, Abort> {
        let (script, step, say) = (self.script, self.step, &self.program.policy.client_log);
        let debug = |value: Value| {
            if let Some(say) = say {
                let mut text = Vec::new();
                value.write_text(&mut text);
                let text = match value {
                    Value::Null => String::new(),
                    _ => format!(" {}", String::from_utf8_lossy(&text)),
                };
                say(
                    ClientLogKind::Value,
                    &format!("debug(script={script},command={}): {}{text}", step + 1, value.kind()),
                );
            }
        };
        let mut scope = Scope {
            variables: &self.variables,
            random: &mut self.random,
            seed: self.program.default_seed,
            debug: &debug,
        };
        expression.eval(&mut scope).map_err(|e| self.bad_value(*e))
    }

    pub(super) fn bad_value(&self, error: EvalError) -> Abort {
        let name = |slot: crate::script::Slot| &self.program.variables[slot.index()];
        let what = match error {
            EvalError::Undefined(slot) => format!("undefined variable \"{}\"", name(slot)),
            EvalError::Malformed(slot) => {
                let mut text = Vec::new();
                if let Some(content) = &self.variables[slot.index()] {
                    content.write_text(&mut text);
                }
                format!(
                    "malformed variable \"{}\" value: \"{}\"",
                    name(slot),
                    String::from_utf8_lossy(&text)
                )
            }
            other => other.to_string(),
        };
        Abort::internal(sqlstate::DATA_EXCEPTION, &format!("{}: {what}", self.position()))
            .with_cause(what)
            .with_message(EVALUATION)
    }

    fn bad_shell(&self, what: &str) -> Abort {
        Abort::internal(sqlstate::EXTERNAL_ROUTINE, &format!("{}: {what}", self.position()))
            .with_cause(what.to_owned())
            .with_message("execution of meta-command failed")
    }

    /// Returns a command line with the values of its variables, which must all be set.
    fn line(&self, command: &[Piece]) -> Result<Vec<u8>, Abort> {
        for piece in command {
            if let Piece::Variable(slot) = piece
                && self.variables[slot.index()].is_none()
            {
                let first = match command.first() {
                    Some(Piece::Text(text)) => text.split(' ').next().unwrap_or_default(),
                    _ => "",
                };
                let name = &self.program.variables[slot.index()];
                return Err(self.bad_shell(&format!("{first}: undefined variable \":{name}\"")));
            }
        }
        let mut line = Vec::new();
        self.write(command, &mut line);
        if line.len() > MAX_COMMAND_LINE {
            let program =
                String::from_utf8_lossy(line.split(|b| *b == b' ').next().unwrap_or_default())
                    .into_owned();
            return Err(self.bad_shell(&format!("{program}: shell command is too long")));
        }
        Ok(line)
    }
}
