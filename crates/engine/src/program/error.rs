//! Why scripts cannot be run.

use pgdyno_wire::WireError;
use thiserror::Error;

use super::MAX_PARAMETERS;

/// Why scripts cannot be linked.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ProgramError {
    /// There is no script with a weight above 0.
    #[error("there is no script with a weight above 0")]
    NothingToRun,
    /// The sum of the weights exceeds a bigint; the field is the number of scripts.
    #[error("the weights of {0} scripts add up to more than a bigint holds")]
    TooHeavy(usize),
    /// Groups of clients do not share out all scripts, or more than there are; the field is the
    /// number of scripts.
    #[error("the groups of clients do not share out {0} scripts")]
    Undivided(usize),
    /// A statement has more than [`MAX_PARAMETERS`] variables.
    #[error(
        "{script}:{line}: statement has too many arguments (maximum is {MAX_PARAMETERS}): {text}"
    )]
    Parameters {
        /// Script's name.
        script: String,
        /// Line that the statement begins on (1-based).
        line: u32,
        /// Text of the statement.
        text: String,
    },
    /// No rows can be made for the table of a `\copyfrom`.
    #[error("{script}:{line}: \\copyfrom: the load describes no table `{table}`")]
    NoTable {
        /// Script's name.
        script: String,
        /// Line of the command (1-based).
        line: u32,
        /// Name of the table.
        table: String,
    },
    /// No message can carry a statement.
    #[error("{script}:{line}: cannot put the statement into a message: {cause}")]
    Statement {
        /// Script's name.
        script: String,
        /// Line that the statement begins on (1-based).
        line: u32,
        /// Error of the codec.
        cause: WireError,
    },
}
