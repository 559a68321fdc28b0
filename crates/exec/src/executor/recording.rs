//! Noting steps, for tests that need no root.

use super::{Effect, Executor};
use crate::error::StepError;
use crate::step::Step;

/// Notes each step, changes nothing, and fails where a test wants it.
#[derive(Debug, Default)]
pub struct Recording {
    steps: Vec<Step>,
    fails_at: Option<usize>,
}

impl Recording {
    /// Returns an executor whose step number `step`, counted from 0, fails as interrupted.
    pub fn failing_at(step: usize) -> Self {
        Self { steps: Vec::new(), fails_at: Some(step) }
    }

    /// Returns the steps so far, the failed one included.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }
}

impl Executor for Recording {
    fn execute(&mut self, step: &Step) -> Result<Effect, StepError> {
        let at = self.steps.len();
        self.steps.push(step.clone());
        if self.fails_at == Some(at) { Err(StepError::Interrupted) } else { Ok(Effect::Done) }
    }
}
