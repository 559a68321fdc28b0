//! Why a run could not begin, go on, or make a trial.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use pgdyno_model::units::Epoch;
use pgdyno_model::{Advice, Failure, FailureKind};
use thiserror::Error;

/// An obstacle of the lab's own.
#[derive(Debug, Error)]
pub(crate) enum LabError {
    /// The experiment of a run now resolves to another plan.
    #[error(
        "cannot go on with run {run}: its experiment now comes to another plan than when it was \
         begun"
    )]
    OtherPlan { run: String },
    /// The run was made without an experiment.
    #[error("cannot go on with run {run}: it is an ad hoc run of `pgdyno pgbench`")]
    AdHoc { run: String },
    /// The run came from elsewhere, and its commands would run as root.
    #[error(
        "cannot go on with run {run} as root: it was imported on {at} from {source_name}, and may \
         name commands"
    )]
    Imported { run: String, at: Epoch, source_name: String, store: PathBuf },
    /// An override does not continue the run.
    #[error("cannot go on with run {run} and `--set {given}`: {why}")]
    NoContinuation { run: String, given: String, why: &'static str },
    /// Every trial of the run is stored.
    #[error("run {run} is complete: there is nothing to go on with")]
    Complete { run: String },
    /// The schema of an external server cannot be used.
    #[error("cannot use schema `{schema}` of the server: {found}")]
    Schema { schema: String, found: String },
    /// An external server does not let a setting be changed in this way.
    #[error("cannot set {name} on a server that pgdyno does not own: {reason}")]
    FixedSetting { name: String, reason: FixedSettingReason },
    /// A replica of a group of clients did not catch up.
    #[error(
        "cannot offer load to the replica {server}: {behind} bytes of WAL are left to replay after \
         {} s",
        waited.as_secs()
    )]
    Behind { server: String, behind: i64, waited: Duration },
    /// The kernel's caches cannot be dropped.
    #[error("cannot drop the kernel's caches (`between.drop_caches`): {0}")]
    DropCaches(&'static str),
    /// The server lacks the extension that reads tables into shared buffers.
    #[error(
        "cannot read the tables into shared buffers (`between.prewarm`): the server {version} has \
         no extension pg_prewarm"
    )]
    NoPrewarm { version: String },
    /// The user's command between trials failed.
    #[error("the command of `between.command` failed: {command}: {found}")]
    Command { command: String, found: String },
    /// Another host cannot be observed.
    #[error("cannot observe {host} (`postgres.observe`): {why}")]
    NotObserved { host: String, why: String },
    /// The storage was given up earlier in this run.
    #[error("{}", .0.message)]
    GivenUp(Failure),
    /// The storage is not mounted.
    #[error("cannot use storage `{storage}`: it is not mounted")]
    NotMounted { storage: String },
    /// An external server was asked for its storage.
    #[error("an external server lies on no storage of pgdyno's")]
    External,
    /// The data set could not be loaded earlier in this run.
    #[error("cannot use data set {data}: {}", reason.message)]
    NotLoaded { data: String, reason: Failure },
    /// The flushes of an emulated disk cannot be read.
    #[error("cannot read the disk's flushes from {}", path.display())]
    Flushes { path: PathBuf, source: io::Error },
    /// A template that was kept cannot be removed.
    #[error("cannot remove the template {}", path.display())]
    Template { path: PathBuf, source: io::Error },
}

/// Reason why a setting of an external server cannot be changed.
#[derive(Debug, Error)]
pub(crate) enum FixedSettingReason {
    /// It can be changed for the whole server only, which the user has not allowed.
    #[error("its context is `sighup`, so that it can only be changed for the whole server")]
    NotAllowed,
    /// A change takes a restart.
    #[error("changing it for the whole server takes a restart")]
    TakesRestart,
    /// Nobody can change it at run time.
    #[error("its context is `{0}`: it cannot be changed")]
    Context(String),
    /// The server does not have it.
    #[error("the server has no such setting")]
    Unknown,
}

/// Reason why the kernel's caches cannot be dropped while an external server runs.
pub(crate) const NOT_STOPPED: &str = "the server is not pgdyno's to stop meanwhile";

impl Advice for LabError {
    fn help(&self) -> Option<String> {
        let help = match self {
            Self::OtherPlan { .. } => {
                "run it anew; a run goes on only with the files and the pgdyno it was begun with"
            }
            Self::AdHoc { .. } => "run pgbench anew",
            Self::GivenUp(failure) | Self::NotLoaded { reason: failure, .. } => {
                return failure.help.clone();
            }
            Self::Imported { run, store, .. } => {
                return Some(format!(
                    "read its experiment (`pgdyno show {run} --json`); `--trust {}` says that you \
                     trust it",
                    store.display()
                ));
            }
            Self::NoContinuation { .. } => {
                "a run goes on with more of its repeats, `--set experiment.repeats=N`; for all \
                 else begin one anew"
            }
            Self::Complete { run } => {
                return Some(format!(
                    "where the number of repeats was fixed, `pgdyno run --resume {run} --set \
                     experiment.repeats=N` adds some"
                ));
            }
            Self::Schema { .. } => "name another one in `postgres.schema`",
            Self::FixedSetting { reason: FixedSettingReason::NotAllowed, .. } => {
                "`alter_system = true` in `[postgres]` lets pgdyno do that with ALTER SYSTEM and a \
                 reload, and put it back"
            }
            Self::FixedSetting { reason: FixedSettingReason::TakesRestart, .. } => {
                "leave it out, or compare two servers that were started with different values: \
                 `postgres.dsn` as a factor"
            }
            Self::DropCaches(_) => {
                "run as root on a server of pgdyno's own, or leave `drop_caches` out"
            }
            Self::NoPrewarm { .. } => {
                "install PostgreSQL's contrib modules, or leave `prewarm` out"
            }
            Self::NotObserved { host, .. } => {
                return Some(format!("does `ssh {host}` work without a question?"));
            }
            Self::Behind { .. } => {
                "does it still receive WAL (`pg_stat_wal_receiver`)? a longer `between.pause` \
                 lets a slow one catch up"
            }
            Self::FixedSetting { .. }
            | Self::Command { .. }
            | Self::NotMounted { .. }
            | Self::External
            | Self::Flushes { .. }
            | Self::Template { .. } => return None,
        };
        Some(help.to_owned())
    }

    fn kind(&self) -> FailureKind {
        match self {
            Self::GivenUp(failure) => failure.kind,
            Self::NotMounted { .. } | Self::External | Self::Flushes { .. } => FailureKind::Storage,
            Self::NotLoaded { .. } => FailureKind::Data,
            Self::Behind { .. } => FailureKind::Server,
            Self::NoPrewarm { .. } | Self::DropCaches(_) => FailureKind::Unavailable,
            Self::NotObserved { .. } | Self::Command { .. } | Self::Template { .. } => {
                FailureKind::Host
            }
            Self::OtherPlan { .. }
            | Self::AdHoc { .. }
            | Self::Imported { .. }
            | Self::NoContinuation { .. }
            | Self::Complete { .. }
            | Self::Schema { .. }
            | Self::FixedSetting { .. } => FailureKind::Input,
        }
    }
}
