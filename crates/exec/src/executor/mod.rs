//! The one way to change the host.
//!
//! An [`Executor`] takes steps one by one. [`ExecContext`](crate::context::ExecContext) executes
//! them for real, [`DryRun`] prints them, [`Recording`] notes them for tests and may fail on
//! purpose. Code that makes something plans its steps first and hands them to [`execute_all`];
//! code that takes something down hands its steps to [`take_down`].
//!
//! ```
//! use pgdyno_exec::executor::{DryRun, Recording, execute_all};
//! use pgdyno_exec::Step;
//!
//! let steps = [Step::EnsureDirectory { path: "/var/lib/pgdyno".into(), mode: 0o755 }];
//! let (mut dry_run, mut recording) = (DryRun::default(), Recording::default());
//! execute_all(&mut dry_run, &steps)?;
//! execute_all(&mut recording, &steps)?;
//! assert_eq!(dry_run.text(), "make directory /var/lib/pgdyno unless it exists (mode 0755)\n");
//! assert_eq!(recording.steps(), steps);
//! # Ok::<(), pgdyno_exec::StepError>(())
//! ```

mod dry_run;
mod host;
mod recording;
mod undo;

use std::process::Child;

pub use dry_run::DryRun;
pub use recording::Recording;

use crate::error::StepError;
use crate::step::Step;
use pgdyno_model::advice::with_causes;

/// Executes steps.
pub trait Executor {
    /// Executes one step.
    ///
    /// # Errors
    /// [`StepError`]: what was attempted, on what, and why it failed.
    fn execute(&mut self, step: &Step) -> Result<Effect, StepError>;
}

/// The effect of a step that did not fail.
#[derive(Debug)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Effect {
    /// The step was executed.
    Done,
    /// There was nothing to undo.
    NothingToUndo,
    /// A server was ended.
    ServerEnded { pid: i32 },
    /// A program was started that stays.
    Started(Child),
    /// The thing is not, or no longer, as pgdyno made or set it; it was left as it is.
    LeftAlone {
        /// A description of the finding.
        found: String,
    },
}

/// Executes `steps` in order, up to the first that fails.
///
/// # Errors
/// [`StepError`] of that step.
pub fn execute_all(executor: &mut dyn Executor, steps: &[Step]) -> Result<(), StepError> {
    steps.iter().try_for_each(|step| executor.execute(step).map(drop))
}

/// Executes `steps`, which take something down, and returns what is left, and why.
///
/// Settings and directories are independent: a failure is noted, and the next one is tried. The
/// other steps build on each other: the first failure ends them, but for one that
/// [may fail](crate::undo::Undo::may_fail).
pub fn take_down(executor: &mut dyn Executor, steps: &[Step]) -> Vec<String> {
    let (mut left, mut complaints) = (Vec::new(), Vec::new());
    for step in steps {
        let error = match executor.execute(step) {
            Ok(Effect::LeftAlone { found }) if matches!(step, Step::PutBack(_)) => {
                left.push(found);
                continue;
            }
            Ok(_) => continue,
            Err(error) => with_causes(&error),
        };
        match step {
            Step::Undo(undo) if undo.may_fail() => complaints.push(error),
            Step::Undo(_) => {
                complaints.insert(0, error);
                left.push(complaints.join("; before that: "));
                return left;
            }
            _ => left.push(error),
        }
    }
    left
}
