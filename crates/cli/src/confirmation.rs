//! Consent before something is removed: a question on a terminal, or `--yes`.

use std::io::{self, IsTerminal as _};

use clap::Args;

use crate::ask::Answers;
use crate::context::Context;
use crate::error::CommandError;
use crate::new_error::NewError;

/// `--yes`.
#[derive(Args, Debug)]
pub(crate) struct Confirmation {
    /// Do not ask. Needed where no terminal is there to be asked at
    #[arg(short, long)]
    yes: bool,
}

impl Confirmation {
    /// Returns whether the user consents to what `question` asks.
    ///
    /// # Errors
    /// No `--yes` where there is no terminal; a signal or the end of input in place of an answer.
    pub(crate) fn ask(&self, question: &str, context: &Context) -> Result<bool, CommandError> {
        if self.yes {
            return Ok(true);
        }
        if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
            let message =
                "will not remove anything unasked: standard input or error is no terminal";
            let help = "look at what is named above, and add `--yes` if it may go";
            return Err(CommandError::new(message).with_help(help));
        }
        match Answers::new(context.stop()).ask(&format!("{question} [y/N]")) {
            Ok(answer) => Ok(matches!(answer.trim(), "y" | "Y" | "yes")),
            Err(NewError::EndOfInput) => Ok(false),
            Err(NewError::Interrupted) => {
                Err(CommandError::new("interrupted: nothing was removed"))
            }
            Err(other) => Err(other.into()),
        }
    }
}
