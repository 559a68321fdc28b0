//! Why scripts cannot be run.

use pgdyno_wire::WireError;
use thiserror::Error;

use super::MAX_PARAMETERS;

/// Scripts that cannot be run.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ProgramError {
    /// None, or all of weight 0.
    #[error("there is no script with a weight above 0")]
    NothingToRun,
    /// Weights beyond all bounds.
    #[error("the weights of {0} scripts add up to more than a bigint holds")]
    TooHeavy(usize),
    /// A statement with more than [`MAX_PARAMETERS`] variables.
    #[error(
        "{script}:{line}: statement has too many arguments (maximum is {MAX_PARAMETERS}): {text}"
    )]
    Parameters {
        /// The script's name.
        script: String,
        /// The line the statement begins on.
        line: u32,
        /// The statement.
        text: String,
    },
    /// A statement that no message can carry.
    #[error("{script}:{line}: cannot put the statement into a message: {cause}")]
    Statement {
        /// The script's name.
        script: String,
        /// The line the statement begins on.
        line: u32,
        /// Why not.
        cause: WireError,
    },
}
