//! Failures of a store, and advice on each.

use std::io;
use std::path::{Path, PathBuf};

use pgdyno_model::Advice;
use pgdyno_model::units::Epoch;

use super::seal::Damage;

/// A store that could not do its work.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum StoreError {
    /// The file or its folder could not be made or looked at.
    #[error("cannot {doing} {}", path.display())]
    Io {
        doing: &'static str,
        /// On what.
        path: PathBuf,
        source: io::Error,
    },
    /// There is no file of that name.
    #[error("there is no store at {}", path.display())]
    Missing { path: PathBuf },
    /// The file is something else.
    #[error("{} is not a pgdyno store: it is {found}", path.display())]
    NotAStore { path: PathBuf, found: String },
    /// The store was written by a newer pgdyno.
    #[error(
        "cannot open the store {}: a newer pgdyno wrote it (schema {version}; {} knows up to \
         {known})",
        path.display(), env!("CARGO_PKG_VERSION")
    )]
    Newer {
        path: PathBuf,
        version: u32,
        /// The newest version known here.
        known: u32,
    },
    /// SQLite refused.
    #[error("cannot {doing} in the store {}", path.display())]
    Sqlite { doing: &'static str, path: PathBuf, source: rusqlite::Error },
    /// A value of the store cannot be understood.
    #[error("the store {} holds {what} that cannot be read: {found}", path.display())]
    Corrupt { path: PathBuf, what: String, found: String },
    /// Rows are not as they were stored.
    #[error(
        "cannot use {id} of the store {}: it is damaged: {first}{}", path.display(), others(*more)
    )]
    Damaged {
        path: PathBuf,
        /// The run, probe, crash test or import.
        id: String,
        first: Box<Damage>,
        /// Other faults found (count).
        more: usize,
    },
    /// A record that could not be read back as it is, and was therefore not written.
    #[error("cannot store {what}: {found}")]
    Unstorable { what: String, found: String },
    /// The store holds no run at all.
    #[error("the store {} holds no run yet", path.display())]
    NoRuns { path: PathBuf },
    /// No run has that name.
    #[error("no run or probe is named `{name}` in the store {}", path.display())]
    UnknownRun {
        path: PathBuf,
        /// Name that the user asked for.
        name: String,
        /// The most similar names there are, best first.
        nearest: Vec<String>,
    },
    /// The full name is that of something else than a run.
    #[error("`{name}` is {kind}, and a run is wanted")]
    NotARun {
        /// Name that the user asked for.
        name: String,
        /// Kind with its article: `a probe`.
        kind: &'static str,
    },
    /// Several runs' names begin so.
    #[error("`{name}` could be any of {}: {}", candidates.len(), some(candidates))]
    AmbiguousRun {
        /// Beginning of a name that the user asked for.
        name: String,
        /// All runs whose names begin so, newest first.
        candidates: Vec<String>,
    },
    /// `latest` was given where something is removed.
    #[error("cannot remove `latest`: it means another run as soon as one more is stored")]
    Latest,
    /// A probe or crash test of a run was to be removed or archived without its run.
    #[error("cannot take {kind} `{name}` by itself: it is a part of run {run}")]
    PartOfRun { name: String, kind: &'static str, run: String },
    /// The file that a new store was to be written to is there.
    #[error("cannot write {}: there is a file of that name", path.display())]
    Exists { path: PathBuf },
    /// Another account may put files of its own in the place of the new store.
    #[error(
        "will not write a store as root to {}: another account may rename files there",
        folder.display()
    )]
    SharedFolder { folder: PathBuf },
    /// A record of the same id has other content.
    #[error(
        "cannot take `{id}` from {}: {} has other content under that id: {}{}",
        from.display(), path.display(), parts.join(", "), others_differ(others)
    )]
    Differs {
        id: String,
        path: PathBuf,
        /// File that the record was to be taken from.
        from: PathBuf,
        /// Kinds of content in which the two differ.
        parts: Vec<&'static str>,
        /// Other records of `from` that differ, too.
        others: Vec<String>,
    },
    /// Another process began to work on the run, or changed it, meanwhile.
    #[error("cannot change run {run}: another process works on it")]
    AtWork { run: String },
    /// Another process works on the run.
    #[error("run {run} is being worked on by process {pid}{} since {since}", on(host.as_deref()))]
    SessionOpen {
        run: String,
        /// The process that owns the open session.
        pid: i32,
        /// The machine of that process; none from an earlier version.
        host: Option<String>,
        /// When that session began.
        since: Epoch,
    },
}

impl Advice for StoreError {
    fn help(&self) -> Option<String> {
        let help = match self {
            Self::Io { .. } => "name a place that you may write to with `--store FILE`",
            Self::Missing { .. } | Self::NoRuns { .. } => {
                "`pgdyno run quickstart` makes a first run; `--store FILE` names another store"
            }
            Self::NotAStore { .. } => {
                "name another file with `--store FILE`; this one was left as it is"
            }
            Self::Newer { .. } => {
                "install that version or a newer one, or name another store with `--store`"
            }
            Self::Sqlite { source, path, .. } => return sqlite_help(source, path),
            Self::UnknownRun { nearest, .. } if nearest.is_empty() => {
                "`pgdyno list` shows all runs"
            }
            Self::UnknownRun { nearest, .. } => {
                return Some(format!("did you mean {}? `pgdyno list` shows all", some(nearest)));
            }
            Self::NotARun { name, .. } => {
                return Some(format!(
                    "`pgdyno show {name}` shows it; `pgdyno list` shows all runs"
                ));
            }
            Self::AmbiguousRun { .. } => "give more of its name, or `latest`",
            Self::Latest => "name it by its id; `pgdyno list` shows all",
            Self::PartOfRun { run, .. } => {
                return Some(format!("name the run, with all that belongs to it: `{run}`"));
            }
            Self::Exists { .. } => "name another file: no file is overwritten",
            Self::SharedFolder { .. } => "name a file in a folder that only root may write to",
            Self::Differs { .. } => {
                "nothing was written; a run that was thinned or continued since is other content. \
                 Remove the older one (`pgdyno rm`), or take the others without it: `pgdyno import \
                 FILE ID…`"
            }
            Self::AtWork { .. } => "nothing was changed; wait until the other process is done",
            Self::SessionOpen { pid, host, .. } => {
                let on = on(host.as_deref());
                return Some(format!(
                    "wait until it has ended, or end process {pid}{on} with SIGTERM"
                ));
            }
            Self::Damaged { .. } => {
                "restore the file from a backup; `pgdyno verify` tells everything that is damaged"
            }
            Self::Corrupt { .. } | Self::Unstorable { .. } => return None,
        };
        Some(help.to_owned())
    }
}

fn on(host: Option<&str>) -> String {
    host.map_or_else(String::new, |host| format!(" on {host}"))
}

fn others(more: usize) -> String {
    if more == 0 { String::new() } else { format!(", and {more} more") }
}

fn others_differ(others: &[String]) -> String {
    if others.is_empty() { String::new() } else { format!("; so it is with {}", some(others)) }
}

fn sqlite_help(source: &rusqlite::Error, path: &Path) -> Option<String> {
    use rusqlite::ErrorCode as Code;
    let help = match source.sqlite_error_code()? {
        Code::DiskFull => {
            return Some(format!("make room on the disk that holds {}", path.display()));
        }
        Code::DatabaseBusy | Code::DatabaseLocked => {
            "another process holds the store: try again when it is done"
        }
        Code::ReadOnly | Code::PermissionDenied | Code::CannotOpen => {
            "check who may write to the file and its folder, or name another with `--store FILE`"
        }
        Code::DatabaseCorrupt => {
            "restore the file from a backup; `sqlite3 FILE .recover` may save the rest"
        }
        _ => return None,
    };
    Some(help.to_owned())
}

/// The first few of `names`.
fn some(names: &[String]) -> String {
    const SHOWN: usize = 4;
    let mut text =
        names.iter().take(SHOWN).map(|n| format!("`{n}`")).collect::<Vec<_>>().join(", ");
    if names.len() > SHOWN {
        text.push_str(", …");
    }
    text
}

/// Turns an I/O error while `doing` on `path` into ours.
pub(super) fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> StoreError + use<> {
    let path = path.to_owned();
    move |source| StoreError::Io { doing, path, source }
}

/// Turns SQLite's error while `doing` on `path` into ours.
pub(super) fn sqlite(
    path: &Path,
    doing: &'static str,
) -> impl Fn(rusqlite::Error) -> StoreError + use<> {
    let path = path.to_owned();
    move |source| StoreError::Sqlite { doing, path: path.clone(), source }
}
