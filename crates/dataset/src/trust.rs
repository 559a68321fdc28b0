//! Whose files root takes commands from.
//!
//! Experiments, scripts and stores may name commands. Whoever may change such a file gains root's
//! rights as soon as root runs it. Running as root, pgdyno therefore refuses a file that another
//! account may change, unless the caller trusts that file by name (`--trust PATH`). Files that name
//! no command are read from anywhere. Other accounts than root are asked nothing.
//!
//! ```
//! use std::path::Path;
//! use pgdyno_dataset::trust::{Purpose, Trust};
//! use pgdyno_model::Advice;
//!
//! let trust = Trust::new(vec!["/home/alice/bench".into()]);
//! let (script, text) = (Path::new("/home/alice/bench/buy.sql"), "\\shell date\n");
//! if let Err(refusal) = trust.check_text(script, text, Purpose::ShellCommands) {
//!     eprintln!("{refusal}\nhelp: {}", refusal.help().unwrap_or_default());
//! }
//! ```

use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use pgdyno_engine::script::{Op, Script};
use pgdyno_exec::trust::{self, TrustError};
use pgdyno_model::{Advice, FailureKind};

/// Files and folders of other accounts that the caller trusts by name (`--trust PATH`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trust {
    named: Vec<PathBuf>,
}

/// A use of a file by root that needs trust in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::Display)]
pub enum Purpose {
    /// Run the commands of an experiment's `between.command`.
    #[strum(to_string = "run its `between.command`")]
    BetweenCommand,
    /// Run the commands of an experiment's `device.hook`.
    #[strum(to_string = "run the commands of its `device.hook`")]
    DeviceHook,
    /// Set the parameters of kernel modules that an experiment's `device.module_parameters` name.
    #[strum(to_string = "set the kernel modules' parameters of its `device.module_parameters`")]
    ModuleParameters,
    /// Run the programs in the folder that an experiment's `postgres.bindir` names.
    #[strum(to_string = "run the programs in its `postgres.bindir`")]
    PostgresPrograms,
    /// Run the `\shell` and `\setshell` commands of a script.
    #[strum(to_string = "run its \\shell commands")]
    ShellCommands,
    /// Write to a store.
    #[strum(to_string = "write to it")]
    Store,
}

/// A file that root does not use, because another account may change it.
#[derive(Debug, thiserror::Error)]
#[error("will not {purpose} as root: {}: {}", path.display(), self.reason())]
#[allow(missing_docs, reason = "the messages say it")]
pub struct NotTrusted {
    pub path: PathBuf,
    /// Use that root would make of the file.
    pub purpose: Purpose,
    /// Who may change the file; none if the file changed while it was read.
    pub found: Option<TrustError>,
}

impl NotTrusted {
    fn reason(&self) -> String {
        match &self.found {
            Some(found) => found.to_string(),
            None => format!("{} changed while it was read", self.path.display()),
        }
    }
}

impl Advice for NotTrusted {
    fn help(&self) -> Option<String> {
        Some(format!(
            "look at it; `--trust {}` says that you trust whoever may change it, else copy it to a \
             folder of root's own",
            self.path.display()
        ))
    }

    fn kind(&self) -> FailureKind {
        FailureKind::Input
    }
}

impl Trust {
    /// Trusts the files `named`. A folder stands for every file below it.
    pub fn new(named: Vec<PathBuf>) -> Self {
        Self { named }
    }

    /// Checks, as root, that no other account may change the file at `path` that `text` came from.
    ///
    /// # Errors
    /// Another account may change the file, or the file no longer holds `text`.
    pub fn check_text(&self, path: &Path, text: &str, purpose: Purpose) -> Result<(), NotTrusted> {
        if !rustix::process::geteuid().is_root() || self.names(path) {
            return Ok(());
        }
        check_unchanged(path, text).map_err(|found| NotTrusted {
            path: path.to_owned(),
            purpose,
            found,
        })
    }

    /// Checks, as root, that no other account may change the store at `path` or its folder.
    ///
    /// # Errors
    /// Another account may change the store or its folder.
    pub fn check_store(&self, path: &Path) -> Result<(), NotTrusted> {
        if !rustix::process::geteuid().is_root() || self.names(path) {
            return Ok(());
        }
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let folder = path.parent().unwrap_or(Path::new("/"));
        // The folder must be safe too, also with the sticky bit: SQLite obeys a rollback journal
        // that somebody else puts beside the store.
        let found = trust::check(folder).and_then(|()| trust::check(&path));
        found.map_err(|found| NotTrusted { path, purpose: Purpose::Store, found: Some(found) })
    }

    /// Returns whether the caller named `path` or a folder above it.
    pub fn names(&self, path: &Path) -> bool {
        let real = |path: &Path| path.canonicalize().ok();
        real(path).is_some_and(|path| {
            self.named.iter().filter_map(|named| real(named)).any(|named| path.starts_with(named))
        })
    }
}

/// Checks that only root and the caller can change the file that `text` was read from.
///
/// The file is opened anew and compared: `text` may have come from another file at that path.
fn check_unchanged(path: &Path, text: &str) -> Result<(), Option<TrustError>> {
    let failed = |source| Some(TrustError::Io { component: path.to_owned(), source });
    let absolute = std::path::absolute(path).map_err(failed)?;
    trust::check(&absolute).map_err(Some)?;
    let mut file = std::fs::File::open(path).map_err(failed)?;
    let owner = file.metadata().map_err(failed)?.uid();
    let mut now = Vec::new();
    file.read_to_end(&mut now).map_err(failed)?;
    let is_ours = owner == 0 || owner == rustix::process::geteuid().as_raw();
    if is_ours && now == text.as_bytes() { Ok(()) } else { Err(None) }
}

/// Returns whether `script` runs commands of its own (`\shell`, `\setshell`).
pub fn has_commands(script: &Script) -> bool {
    script.commands.iter().any(|command| matches!(command.op, Op::Shell(_) | Op::SetShell { .. }))
}
