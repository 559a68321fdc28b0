//! Whose files root runs commands from.
//!
//! Experiments, scripts and stores may name commands. Whoever may change such a file has root's
//! rights as soon as root runs it. So pgdyno as root asks: a file that another account may change
//! is refused unless it was trusted by name. Files that name no command are read from anywhere, and
//! other accounts than root are asked nothing.

use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use pgdyno_engine::script::{Op, Script};
use pgdyno_host::trust::{self, TrustError};
use pgdyno_model::{Experiment, Plan};

use crate::LabError;

/// Files and folders of others that the caller trusts by name (`--trust PATH`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trust {
    named: Vec<PathBuf>,
}

/// Something of another account's that root would obey.
#[derive(Debug, thiserror::Error)]
#[error("{}", self.why())]
pub(crate) struct Foreign {
    /// The file.
    path: PathBuf,
    /// Who may change it; none: it changed while it was read.
    found: Option<TrustError>,
}

impl Foreign {
    fn why(&self) -> String {
        match &self.found {
            Some(found) => found.to_string(),
            None => format!("{} changed while it was read", self.path.display()),
        }
    }
}

impl Trust {
    /// Trusts `named`; a folder stands for all that is below it.
    #[must_use]
    pub fn new(named: Vec<PathBuf>) -> Self {
        Self { named }
    }

    /// Refuses, as root, the file at `path` with this `text` if another account may change it;
    /// `what` says what root would do with it.
    pub(crate) fn check_text(&self, path: &Path, text: &str, what: &str) -> Result<(), LabError> {
        if !rustix::process::geteuid().is_root() || self.names(path) {
            return Ok(());
        }
        refuse(path, what, check_text(path, text))
    }

    /// Refuses, as root, to write the store at `path` if another account may change it or its
    /// folder.
    pub(crate) fn check_store(&self, path: &Path) -> Result<(), LabError> {
        if !rustix::process::geteuid().is_root() || self.names(path) {
            return Ok(());
        }
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let folder = path.parent().unwrap_or(Path::new("/"));
        // Also one with the sticky bit: a journal that somebody puts beside the store would be
        // obeyed.
        let found = trust::check(folder).and_then(|()| trust::check(&path));
        let found = found.map_err(|found| Foreign { path: path.clone(), found: Some(found) });
        refuse(&path, "write to it", found)
    }

    /// Whether the caller named `path`, or a folder above it.
    fn names(&self, path: &Path) -> bool {
        let real = |path: &Path| path.canonicalize().ok();
        real(path).is_some_and(|path| {
            self.named.iter().filter_map(|named| real(named)).any(|named| path.starts_with(named))
        })
    }
}

fn refuse(path: &Path, what: &str, found: Result<(), Foreign>) -> Result<(), LabError> {
    found.map_err(|why| LabError::NotTrusted {
        path: path.to_owned(),
        what: what.to_owned(),
        why: why.to_string(),
    })
}

/// Whether only root and the caller can change the file that `text` was read from. It is opened
/// anew and compared: what was read may have been another file.
fn check_text(path: &Path, text: &str) -> Result<(), Foreign> {
    let foreign = |found| Foreign { path: path.to_owned(), found };
    let failed = |source| foreign(Some(TrustError::Io { component: path.to_owned(), source }));
    let absolute = std::path::absolute(path).map_err(failed)?;
    trust::check(&absolute).map_err(|found| foreign(Some(found)))?;
    let mut file = std::fs::File::open(path).map_err(failed)?;
    let owner = file.metadata().map_err(failed)?.uid();
    let mut now = Vec::new();
    file.read_to_end(&mut now).map_err(failed)?;
    let is_ours = owner == 0 || owner == rustix::process::geteuid().as_raw();
    if is_ours && now == text.as_bytes() { Ok(()) } else { Err(foreign(None)) }
}

/// What of an experiment runs as a command, by its key; none: nothing does.
pub(crate) fn commands_of(experiment: &Experiment, plan: &Plan) -> Option<&'static str> {
    let has_hook = experiment.storage.values().any(|storage| storage.device.hook.is_some())
        || plan.treatments.iter().any(|treatment| treatment.device.hook.is_some());
    if !experiment.between.command.is_empty() {
        Some("run its `between.command`")
    } else if has_hook {
        Some("run the commands of its `device.hook`")
    } else {
        None
    }
}

/// Whether an experiment says where PostgreSQL's programs are: they are run to ask them for their
/// settings, also by a dry run.
pub(crate) fn names_programs(experiment: &Experiment, plan: &Plan) -> bool {
    experiment.postgres.bindir.is_some()
        || plan.treatments.iter().any(|treatment| treatment.postgres_bindir.is_some())
}

/// Whether a script runs commands of its own.
pub(crate) fn has_commands(script: &Script) -> bool {
    script.commands.iter().any(|command| matches!(command.op, Op::Shell(_) | Op::SetShell { .. }))
}
