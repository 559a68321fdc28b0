//! The error of a command, with its help and its causes.

use std::error::Error;
use std::fmt::Write as _;
use std::io;
use std::path::PathBuf;

use pgdyno_analysis::comparison::runs::CompareError;
use pgdyno_analysis::gate::{Form, GateError};
use pgdyno_experiment::ExperimentError;
use pgdyno_experiment::file::FileError;
use pgdyno_lab::LabError;
use pgdyno_report::ReportError;
use pgdyno_report::export::ExportError;
use pgdyno_store::StoreError;
use pgdyno_store::notes::NoteError;

use crate::commands::audit::AuditError;
use crate::new_error::NewError;

/// Why a command could not do its work. The process exits with 1.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CommandError {
    /// The host, the server or the store.
    #[error(transparent)]
    Lab(#[from] LabError),
    /// The experiment comes to no plan, or to one that may not be carried out.
    #[error(transparent)]
    Experiment(#[from] ExperimentError),
    /// The experiment file, or an option that changes it.
    #[error(transparent)]
    File(#[from] FileError),
    /// No new experiment file was written.
    #[error(transparent)]
    New(#[from] NewError),
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Notes cannot be read or written.
    #[error(transparent)]
    Notes(#[from] NoteError),
    /// A condition of `--fail-if` or `--fail-unless` cannot be read.
    #[error(transparent)]
    Gate(#[from] GateError),
    /// Two runs cannot be compared.
    #[error(transparent)]
    Compare(#[from] CompareError),
    /// A published report cannot be audited.
    #[error(transparent)]
    Audit(#[from] AuditError),
    /// A run cannot be exported.
    #[error(transparent)]
    Export(#[from] ExportError),
    /// Tables were to be written to standard output.
    #[error("cannot write tables to standard output: each is a file")]
    TablesToStandardOutput,
    /// A chart was to be exported.
    #[error("an export has no charts: the page of a report does")]
    ChartsArePages,
    /// A run's report cannot be written.
    #[error(transparent)]
    Report(Box<ReportError>),
    /// A result cannot be written as JSON.
    #[error("cannot write JSON")]
    Json(#[from] serde_json::Error),
    /// A disk log cannot be read.
    #[error(transparent)]
    DiskLog(#[from] pgdyno_lab::LogError),
    /// An emulated disk cannot be served.
    #[error(transparent)]
    EmulatedDisk(Box<dyn Error + Send + Sync>),
    /// A share of a load cannot be offered.
    #[error(transparent)]
    Worker(pgdyno_generators::WorkerError),
    /// A host's run cannot be received or sent.
    #[error("cannot exchange an experiment and its results with another host")]
    Connection(#[source] io::Error),
    /// Hosts of `run --hosts` have no result, or failed trials.
    #[error("failed on {}; the runs of all others are stored", .hosts.join(", "))]
    HostsFailed { hosts: Vec<String> },
    /// No handler of signals can be installed.
    #[error("cannot handle signals")]
    Signals(#[source] io::Error),
    /// Standard output did not take what was printed.
    #[error("cannot write to standard output")]
    StandardOutput(#[source] io::Error),
    /// An option of pgdyno stands before `pgbench`.
    #[error("cannot run pgbench with options of pgdyno before its name")]
    OptionBeforePgbench,
    /// A gate was given for a comparison with imported figures.
    #[error(
        "cannot judge `{}` beside imported figures: nothing is computed between the two",
        .0.option()
    )]
    GateOnImport(Form),
    /// The folder for reports cannot be created.
    #[error("cannot make the folder for reports, {}", folder.display())]
    ReportFolder { folder: PathBuf, source: io::Error },
    /// Man pages cannot be written.
    #[cfg(feature = "man-pages")]
    #[error("cannot write man pages to {}", folder.display())]
    ManPages { folder: PathBuf, source: io::Error },
    /// A result's id cannot be a file's name.
    #[error("cannot write the report of {name}: that is no file's name")]
    NotAFileName { name: String },
    /// The default file of a report exists and is not one of pgdyno's reports.
    #[error(
        "cannot write the report to {}: the file there is not a report of pgdyno",
        file.display()
    )]
    NotAReport { file: PathBuf },
    /// The default file of a report exists and cannot be read.
    #[error("cannot write the report to {}: the file there cannot be read", file.display())]
    ReportUnreadable { file: PathBuf, source: io::Error },
    /// `--witness` was given without `--fault plug`, or beside other faults.
    #[error("cannot use `--witness`: it goes with `--fault plug` alone")]
    WitnessWithoutPlug,
    /// An option, an address or a terminal of a witness that was reached without `ssh`.
    #[error(
        "cannot use {given}: a witness is reached by `ssh`, which knows addresses, ports and keys"
    )]
    WitnessBySsh { given: String },
    /// The store cannot be served.
    #[cfg(feature = "serve")]
    #[error(transparent)]
    Serve(#[from] pgdyno_web::ServeError),
    /// `--base-path` is not a path.
    #[cfg(feature = "serve")]
    #[error("cannot take `--base-path`")]
    BasePath(#[from] pgdyno_web::BasePathError),
    /// This build has no server.
    #[cfg(not(feature = "serve"))]
    #[error("cannot serve anything: this pgdyno was built without its server")]
    NoServe,
    /// A path of the command line cannot be made absolute.
    #[error("cannot use {}", path.display())]
    Path { path: PathBuf, source: io::Error },
    /// A `--setting` without name or value.
    #[error("cannot read `--setting {given}`: there is no `NAME=VALUE` in it")]
    Setting { given: String },
    /// A run that was watched could not go on.
    #[error("run {run} could not go on: {error}")]
    RunFailed { run: String, error: String },
    /// The process of a run that was watched is gone, and the run did not end.
    #[error("run {run} did not end: its process {pid} died")]
    RunDied {
        run: String,
        /// The process that worked on it.
        pid: i32,
    },
    /// The process of a detached run cannot be started, or cannot leave the terminal.
    #[error("cannot detach the run")]
    Detach(#[source] io::Error),
    /// The process of a detached run ended before the run had its place in the store.
    #[error("cannot detach the run: it ended before it was in the store; its messages are above")]
    NotBegun,
    /// The address of `--metrics` cannot be listened on.
    #[cfg(feature = "serve")]
    #[error("cannot serve metrics at {address}")]
    Metrics { address: std::net::SocketAddr, source: io::Error },
    /// Something was to be removed, and nobody could be asked.
    #[error("will not remove anything unasked: standard input or error is no terminal")]
    NotConfirmed,
    /// A signal came in place of an answer.
    #[error("interrupted: nothing was removed")]
    NotAnswered,
    /// Something that is no run was to be thinned.
    #[error("cannot thin {kind} {id}: only runs hold seconds and telemetry")]
    NothingToThin { id: String, kind: &'static str },
    /// Something that a killed pgdyno left behind could not be removed.
    #[error("not everything could be removed; what is left is listed above")]
    NotAllRemoved,
}

impl From<ReportError> for CommandError {
    fn from(error: ReportError) -> Self {
        Self::Report(Box::new(error))
    }
}

impl CommandError {
    /// Returns what the user can do about the error, if anything.
    pub(crate) fn help(&self) -> Option<String> {
        let help = match self {
            Self::Lab(error) => return error.help(),
            Self::Notes(error) => return error.help(),
            Self::Experiment(error) => return error.help(),
            Self::File(error) => return error.help(),
            Self::New(error) => return error.help(),
            Self::Store(error) => return error.help(),
            Self::Gate(error) => return Some(error.help.clone()),
            Self::Compare(error) => return error.help(),
            Self::Audit(error) => return error.help(),
            Self::Report(error) => return error.help(),
            Self::Export(error) => return error.help(),
            Self::Worker(error) => return error.help().map(str::to_owned),
            Self::TablesToStandardOutput => {
                "name a new folder with `-o FOLDER`, or use `--format json`"
            }
            Self::ChartsArePages => {
                "`pgdyno report RUN -o FILE.html`: *SVG* below each chart of the page saves it"
            }
            Self::Json(_)
            | Self::DiskLog(_)
            | Self::EmulatedDisk(_)
            | Self::Connection(_)
            | Self::Signals(_)
            | Self::GateOnImport(_)
            | Self::ReportFolder { .. }
            | Self::Path { .. }
            | Self::Detach(_)
            | Self::NotBegun
            | Self::NotAnswered
            | Self::NotAllRemoved => return None,
            Self::HostsFailed { .. } => {
                "what is wrong on each stands above; the same command resumes unfinished runs"
            }
            Self::NotConfirmed => "look at what is named above, and add `--yes` if it may go",
            Self::NothingToThin { .. } => "`pgdyno list` shows the runs; `pgdyno rm` removes it",
            Self::StandardOutput(_) => {
                "free room there, or send it elsewhere; what was stored can be shown again"
            }
            Self::OptionBeforePgbench => {
                "write pgbench's options behind it: `pgdyno pgbench --help`"
            }
            #[cfg(feature = "serve")]
            Self::Serve(error) => return error.help(),
            #[cfg(feature = "serve")]
            Self::BasePath(_) => "name the path at which visitors find the proxy's pages",
            #[cfg(not(feature = "serve"))]
            Self::NoServe => {
                "build it without `--no-default-features`, or use a released package; \
                 `pgdyno report` writes a page without a server"
            }
            Self::NotAFileName { .. } => "name a file with `-o FILE.html`",
            Self::NotAReport { .. } | Self::ReportUnreadable { .. } => {
                "name a file with `-o FILE.html`; one that is named is replaced"
            }
            Self::RunFailed { run, .. } => {
                return Some(format!(
                    "`pgdyno show {run}` shows what it measured; `pgdyno run --resume {run}` tries \
                     again"
                ));
            }
            Self::RunDied { run, .. } => {
                return Some(format!(
                    "`pgdyno run --resume {run}` goes on from what is stored, and removes what the \
                     process left behind"
                ));
            }
            Self::WitnessWithoutPlug => "leave it out, or name that fault only",
            Self::WitnessBySsh { .. } => {
                "on the machine under test: `pgdyno crash --fault plug --witness HOST --storage DIR`, \
                 HOST as `ssh HOST` knows it; ledgers lie there in $XDG_DATA_HOME/pgdyno/witness"
            }
            #[cfg(feature = "man-pages")]
            Self::ManPages { .. } => "name an existing folder that may be written to",
            #[cfg(feature = "serve")]
            Self::Metrics { source, .. } if source.kind() == io::ErrorKind::AddrInUse => {
                "name another port; with port 0 the system chooses one"
            }
            #[cfg(feature = "serve")]
            Self::Metrics { .. } => "name an address of this machine and a port above 1023",
            Self::Setting { .. } => "write it like `--setting fsync=off`",
        };
        Some(help.to_owned())
    }
}

/// Renders an error with its causes, one on each line.
pub(crate) fn render_chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let _ = write!(text, "\n  because: {inner}");
        cause = inner.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cause_is_rendered_once() {
        let error = CommandError::Path { path: "x".into(), source: io::ErrorKind::NotFound.into() };
        assert_eq!(render_chain(&error).matches("because").count(), 1);
    }
}
