//! Why a run cannot be watched or asked to stop.

use std::io;
use std::path::PathBuf;

use pgdyno_model::Advice;

/// Why a run cannot be watched or asked to stop.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum LiveError {
    /// The run has no live file.
    #[error("cannot watch run {run}: no process works on it (nothing in {})", folder.display())]
    NotRunning { run: String, folder: PathBuf },
    /// Another version of pgdyno works on the run.
    #[error("cannot watch run {run}: an earlier version of pgdyno works on it")]
    OtherVersion { run: String },
    /// Several runs have the name.
    #[error("`{named}` names several runs: {}", runs.join(", "))]
    Ambiguous { named: String, runs: Vec<String> },
    /// The run's process died, or ended already.
    #[error("cannot stop run {run}: its process {pid} is gone")]
    Gone {
        run: String,
        /// The process that worked on the run.
        pid: i32,
    },
    /// The run's process belongs to another account.
    #[error("will not interrupt run {run}: its process {pid} belongs to uid {uid}")]
    ForeignProcess { run: String, pid: i32, uid: u32 },
    /// The run's process works on another machine.
    #[error("cannot interrupt run {run}: its process {pid} works on another machine")]
    OtherHost { run: String, pid: i32 },
    /// The folder belongs to an account that does not own the store.
    #[error("will not use {}: it belongs to uid {uid}", path.display())]
    ForeignOwner { path: PathBuf, uid: u32 },
    /// A live file does not begin with the record of a run.
    #[error("cannot read {}: it does not begin with the record of a run", path.display())]
    NoRecord { path: PathBuf },
    /// A file or folder could not be made, read or written.
    #[error("cannot {what} {}", path.display())]
    Io { what: &'static str, path: PathBuf, source: io::Error },
}

impl Advice for LiveError {
    fn help(&self) -> Option<String> {
        Some(match self {
            Self::NotRunning { .. } => "`pgdyno list` lists the runs of the store; \
                                        `pgdyno show RUN` shows one that is over"
                .to_owned(),
            Self::Ambiguous { .. } => "give more of the run's id".to_owned(),
            Self::Gone { run, .. } => format!(
                "`pgdyno show {run}` shows what it measured; `pgdyno run --resume {run}` goes on"
            ),
            Self::OtherVersion { run } => {
                format!("watch it with that version; `pgdyno stop {run}` ends it")
            }
            Self::ForeignProcess { run, .. } => {
                format!("`pgdyno stop {run}` without `--now` ends it after the trial")
            }
            Self::OtherHost { run, .. } => format!(
                "`pgdyno stop {run}` without `--now` ends it after the trial; with it, \
                 on that machine"
            ),
            Self::ForeignOwner { path, .. } => {
                format!("look at it, then move it away: `mv {0} {0}.old`", path.display())
            }
            Self::NoRecord { .. } => "it may be of another version of pgdyno".to_owned(),
            Self::Io { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => {
                "only the account that runs it, or root, may watch or stop a run".to_owned()
            }
            Self::Io { .. } => return None,
        })
    }
}
