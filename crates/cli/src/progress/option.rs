//! `--progress FORM`, and what the environment says of terminals and colours.

use std::io::IsTerminal;

use clap::{Args, ValueEnum};

use crate::output::is_quiet;

/// `--progress FORM`.
#[derive(Args, Clone, Copy, Debug, Default)]
pub(crate) struct ProgressOption {
    /// How to show progress on standard error
    #[arg(long, value_enum, value_name = "FORM", default_value_t)]
    progress: Choice,
}

/// The values of `--progress`.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum Choice {
    /// A view drawn in place on a terminal, else lines; nothing with `--quiet`
    #[default]
    Auto,
    /// Lines, also on a terminal
    Plain,
    /// One JSON object a line (`pgdyno.live/1`)
    Json,
    /// Nothing but warnings and failures
    None,
}

/// How progress is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// A view drawn in place.
    View,
    /// Lines.
    Plain,
    /// Records as JSON.
    Json,
    /// Warnings and failures only.
    Failures,
}

impl ProgressOption {
    /// Returns the form that the option, the terminal and the environment ask for.
    pub(super) fn form(self) -> Form {
        match self.progress {
            Choice::Auto if is_quiet() => Form::Failures,
            // A terminal without a name, or a dumb one, does not move its cursor.
            Choice::Auto
                if std::io::stderr().is_terminal() && anstyle_query::term_supports_ansi_color() =>
            {
                Form::View
            }
            Choice::Auto | Choice::Plain => Form::Plain,
            Choice::Json => Form::Json,
            Choice::None => Form::Failures,
        }
    }
}

/// Returns whether a view on a terminal has colours, by the rules that the help's colours follow:
/// `NO_COLOR` (<https://no-color.org>), then `CLICOLOR_FORCE` and `CLICOLOR`
/// (<https://bixense.com/clicolors>).
pub(super) fn is_colored() -> bool {
    !anstyle_query::no_color()
        && (anstyle_query::clicolor_force() || anstyle_query::clicolor().unwrap_or(true))
}
