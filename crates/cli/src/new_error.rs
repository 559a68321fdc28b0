//! Why `pgdyno new` wrote no file.

use std::io;
use std::path::PathBuf;

use pgdyno_model::{Advice, FailureKind};

use crate::duration::DurationError;

/// Why `pgdyno new` wrote no file.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NewError {
    /// Something has the file's name.
    #[error("cannot write {}: it is there already", .0.display())]
    Exists(PathBuf),
    /// The file has no name, such as `..`.
    #[error("cannot write {}: that is no file's name", .0.display())]
    NoName(PathBuf),
    /// The folder for the data is not there.
    #[error("cannot put data into {}: there is no such folder", .0.display())]
    NoFolder(PathBuf),
    /// The file cannot be written.
    #[error("cannot write {}", file.display())]
    Write { file: PathBuf, source: io::Error },
    /// Nothing says what varies, and nobody can be asked.
    #[error("cannot ask what the experiment varies: standard input or error is no terminal")]
    NoTerminal,
    /// A signal came before the last answer.
    #[error("interrupted: nothing was written")]
    Interrupted,
    /// An answer is none of the numbers that were offered.
    #[error("`{answer}` is none of the numbers")]
    NoNumber { answer: String, most: usize },
    /// An answer names no setting with values.
    #[error("`{answer}` names no setting with values")]
    NoFactor { answer: String },
    /// An answer is no length of time.
    #[error(transparent)]
    NoTime(DurationError),
    /// The input ended before the last answer.
    #[error("nothing was written: the input ended before the last answer")]
    EndOfInput,
    /// An answer cannot be read.
    #[error("cannot read an answer")]
    Read(#[source] io::Error),
}

impl Advice for NewError {
    fn help(&self) -> Option<String> {
        let help = match self {
            Self::Exists(_) => "name another file: `pgdyno new NAME`",
            Self::NoName(_) => "name a file: `pgdyno new mine`",
            Self::NoFolder(_) => "make it first, or name another",
            Self::Write { .. } => "name a file in an existing folder that may be written to",
            Self::NoTerminal => {
                "say it by `--preset NAME` or `--factor KEY=V1,V2`, or take `--defaults`"
            }
            Self::EndOfInput => "`pgdyno new --help` lists the options that answer the questions",
            Self::NoNumber { most, .. } => return Some(format!("1 to {most}")),
            Self::NoFactor { .. } => "write it like `work_mem=4MB,64MB`",
            Self::NoTime(_) => "such as 10m, 90s or 2h",
            Self::Interrupted | Self::Read(_) => return None,
        };
        Some(help.to_owned())
    }

    fn kind(&self) -> FailureKind {
        match self {
            Self::Interrupted => FailureKind::Interrupted,
            _ => FailureKind::Input,
        }
    }
}
