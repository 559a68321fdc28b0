//! Printing steps.

use super::{Effect, Executor};
use crate::error::StepError;
use crate::step::Step;

/// Prints each step, and changes nothing.
#[derive(Debug, Default)]
pub struct DryRun {
    text: String,
}

impl DryRun {
    /// Returns the steps so far, each with a line break after it.
    pub fn text(&self) -> &str {
        &self.text
    }
}

impl Executor for DryRun {
    fn execute(&mut self, step: &Step) -> Result<Effect, StepError> {
        self.text.push_str(&step.to_string());
        self.text.push('\n');
        Ok(Effect::Done)
    }
}
