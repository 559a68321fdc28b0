//! Everything that touches the host, as data: `Display` is what a dry run prints, [`Step::perform`]
//! does exactly that.

mod program;

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use pgdyno_model::target::Secret;

use crate::account::Account;
use crate::beneath::{CopyError, Directory};
use crate::device::claim::{Claim, Labelled};
use crate::device::held::{self, Held};
use crate::device::identity::BlockDevice;
use crate::device::safety::SafetyError;
use crate::image::{ImageFile, LoopDevice};
use crate::journal::{Entry, Journal, JournalError, Made};
use crate::marked::{self, MakeError};
use crate::mount::{Mount, MountError};
use crate::pool::Pool;
use crate::process::{STARTED_BY, started_by};
pub use crate::quote::quote;
use crate::service::{Service, stop_serving};
use crate::setting::{Knob, KnobError};
use crate::tool::search_path;
use crate::trust::TrustError;
use crate::undo::Undo;

use program::{beginning, wait_or_kill_group};
pub use program::{last_lines, open_log, run_as, said};

/// What a file is to hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Contents {
    /// Text that anybody may see.
    Text(String),
    /// A password: never shown.
    Password(Secret),
}

/// One thing done to the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Makes a directory, with its parents, unless it exists.
    EnsureDirectory {
        /// Which.
        path: PathBuf,
        /// Its permissions, where it is made.
        mode: u32,
    },
    /// Makes a directory that must not exist yet, writes it down in the journal first and marks it
    /// as pgdyno's.
    MakeMarked {
        /// What, for the journal.
        made: Made,
        /// Its permissions.
        mode: u32,
        /// Whom it belongs to; none means us.
        owner: Option<Account>,
    },
    /// Makes a directory that must not exist yet.
    MakeDirectory {
        /// Which.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
        /// Whom it belongs to; none means us.
        owner: Option<Account>,
    },
    /// Writes a file, replacing it whole: readers see the old text or the new, also after a power
    /// loss.
    WriteFile {
        /// Which.
        path: PathBuf,
        /// What it is to hold.
        contents: Contents,
        /// Its permissions.
        mode: u32,
        /// Whom it belongs to; none means us.
        owner: Option<Account>,
    },
    /// Appends text to an existing file.
    AppendToFile {
        /// Which.
        path: PathBuf,
        /// What is added.
        text: String,
    },
    /// Removes a file.
    RemoveFile {
        /// Which.
        path: PathBuf,
    },
    /// Runs a program to its end; anything but exit status 0 is an error.
    Run {
        /// The program.
        program: PathBuf,
        /// Its arguments, as they are: no shell.
        args: Vec<OsString>,
        /// As whom; none means us.
        as_account: Option<Account>,
        /// Where its output goes.
        output: PathBuf,
    },
    /// Starts a program that stays: a server.
    Start {
        /// The program.
        program: PathBuf,
        /// Its arguments.
        args: Vec<OsString>,
        /// As whom; none means us.
        as_account: Option<Account>,
        /// The file that its output is appended to.
        output: PathBuf,
    },
    /// Ends the server that was started, and waits until it is gone.
    StopServer {
        /// Its data directory.
        data: PathBuf,
    },
    /// Removes a directory and all below it, if it bears pgdyno's marker with the journal's id.
    RemoveMarked {
        /// Which.
        path: PathBuf,
    },
    /// Makes a file of its full size, which must not exist yet.
    AllocateFile(ImageFile),
    /// Makes an emulated disk and starts the process that serves it.
    ServeDisk(Service),
    /// Ends that process, if it runs, after taking its mount down.
    StopDisk(Service),
    /// Attaches a loop device to a file of pgdyno's and links to it.
    AttachLoop(LoopDevice),
    /// Detaches that loop device, if it is attached.
    DetachLoop(LoopDevice),
    /// Looks once more whether a named device is the one planned for, and may be written.
    ClaimDevice(Claim),
    /// Does another step while named devices are held open, and looks right before and right after
    /// that they still are the devices that were looked at.
    Holding {
        /// The devices.
        devices: Vec<BlockDevice>,
        /// What is done.
        step: Box<Step>,
    },
    /// Removes the signatures from a named device, if they bear pgdyno's label.
    EraseLabelled(Labelled),
    /// Mounts a filesystem.
    Mount(Mount),
    /// Unmounts it, if it is mounted there.
    Unmount(Mount),
    /// Destroys a pool of pgdyno's, if it is there.
    DestroyPool(Pool),
    /// Sets something on a device or on the kernel, and journals how it was.
    Set(Knob),
    /// Puts back what [`Step::Set`] set.
    PutBack(Knob),
    /// Takes apart what steps that ran programs have joined.
    Undo(Undo),
}

/// A step that failed.
#[derive(Debug, thiserror::Error)]
pub enum StepError {
    /// A file or directory.
    #[error("cannot {what} {}", path.display())]
    Io {
        /// What was attempted.
        what: &'static str,
        /// On what.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A program that could not be run.
    #[error("cannot run {}{}", program.display(), as_whom(as_account.as_ref()))]
    Spawn {
        /// The program.
        program: PathBuf,
        /// As whom; none means us.
        as_account: Option<Account>,
        /// Why not.
        source: io::Error,
    },
    /// A program that ran and failed.
    #[error("{} ended with {status} and said:\n{output}", program.display())]
    Failed {
        /// The program.
        program: PathBuf,
        /// How it ended.
        status: std::process::ExitStatus,
        /// The end of its output.
        output: String,
    },
    /// The journal.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// A directory that something was to be made in: another account can change where its path
    /// leads to.
    #[error(transparent)]
    Untrusted(Box<TrustError>),
    /// A mount point.
    #[error(transparent)]
    Mount(#[from] MountError),
    /// A named device.
    #[error(transparent)]
    Safety(#[from] SafetyError),
    /// Something to be set on a device.
    #[error(transparent)]
    Knob(#[from] KnobError),
    /// It was told to stop.
    #[error("interrupted")]
    Interrupted,
}

impl StepError {
    /// What to do.
    #[must_use]
    pub fn help(&self) -> Option<String> {
        match self {
            Self::Journal(e) => e.help(),
            Self::Untrusted(e) => e.help(),
            Self::Mount(e) => e.help(),
            Self::Safety(e) => e.help(),
            Self::Knob(e) => e.help(),
            Self::Io { source, .. } if source.kind() == io::ErrorKind::StorageFull => Some(
                "free room there, or name another directory in `storage.<name>.directory`".into(),
            ),
            _ => None,
        }
    }
}

impl From<CopyError> for StepError {
    fn from(error: CopyError) -> Self {
        match error {
            CopyError::Io { what, path, source } => Self::Io { what, path, source },
            CopyError::Interrupted => Self::Interrupted,
        }
    }
}

fn as_whom(account: Option<&Account>) -> String {
    account.map_or_else(String::new, |a| format!(" as {a}"))
}

/// What a step needs besides itself.
pub struct Performing<'a> {
    /// Where made things are written down.
    pub journal: &'a Journal,
    /// When true, waiting ends and nothing more is begun.
    pub stop: &'a AtomicBool,
    /// What was made so far, for its removal.
    pub made: Vec<Entry>,
}

impl Step {
    /// Does it.
    ///
    /// # Errors
    /// [`StepError`]. What a marked step began to make stays in `performing.made`.
    pub fn perform(&self, performing: &mut Performing<'_>) -> Result<(), StepError> {
        if performing.stop.load(Ordering::Relaxed) {
            return Err(StepError::Interrupted);
        }
        match self {
            Self::EnsureDirectory { path, mode } => fs::DirBuilder::new()
                .recursive(true)
                .mode(*mode)
                .create(path)
                .map_err(|e| io_error("make the directory", path, e)),
            Self::MakeMarked { made, mode, owner } => {
                let made_so_far = &mut performing.made;
                marked::make(made, *mode, owner.as_ref(), performing.journal, made_so_far)
                    .map_err(|e| from_make_error(e, made.path()))
            }
            Self::MakeDirectory { path, mode, owner } => {
                make_directory(path, *mode, owner.as_ref())
                    .map_err(|e| io_error("make the directory", path, e))
            }
            Self::WriteFile { path, contents, mode, owner } => {
                let text = match contents {
                    Contents::Text(text) => text.as_str(),
                    Contents::Password(secret) => secret.reveal(),
                };
                parent_of(path)
                    .and_then(|(parent, name)| {
                        parent.replace_file(name, text.as_bytes(), owner.as_ref(), *mode)
                    })
                    .map_err(|e| io_error("write", path, e))
            }
            Self::AppendToFile { path, text } => parent_of(path)
                .and_then(|(parent, name)| parent.append_to_file(name, text.as_bytes()))
                .map_err(|e| io_error("append to", path, e)),
            Self::RemoveFile { path } => parent_of(path)
                .and_then(|(parent, name)| parent.remove_file(name))
                .map_err(|e| io_error("remove", path, e)),
            Self::Run { program, output, .. } => {
                let log = open_log(output)?;
                let mut child = self.spawn(log)?;
                let status = wait_or_kill_group(&mut child, performing.stop)
                    .map_err(|e| io_error("wait for", program, e))?
                    .ok_or(StepError::Interrupted)?;
                if status.success() {
                    return Ok(());
                }
                Err(StepError::Failed {
                    program: program.clone(),
                    status,
                    output: said(&beginning(output).unwrap_or_default()),
                })
            }
            Self::AllocateFile(file) => file.allocate(),
            Self::ServeDisk(disk) => disk.start(performing.stop),
            Self::StopDisk(disk) => stop_serving(&disk.directory),
            Self::AttachLoop(device) => device.attach(),
            Self::DetachLoop(device) => device.detach(),
            Self::ClaimDevice(claim) => claim.check(),
            Self::Holding { devices, step } => {
                let held = held::hold(devices)?;
                step.perform(performing)?;
                held.iter().try_for_each(Held::check)?;
                Ok(())
            }
            Self::EraseLabelled(labelled) => labelled.erase(),
            Self::Mount(mount) => Ok(mount.mount()?),
            Self::Unmount(mount) => Ok(mount.unmount()?),
            Self::DestroyPool(pool) => pool.destroy(),
            Self::Set(knob) => knob.set(performing),
            Self::Undo(undo) => crate::perform_undo::perform(undo),
            Self::Start { .. }
            | Self::StopServer { .. }
            | Self::RemoveMarked { .. }
            | Self::PutBack(_) => {
                unreachable!(
                    "clusters and stacks themselves start, stop, remove and put back: `{self}`"
                )
            }
        }
    }

    /// Starts the program of a [`Step::Run`] or [`Step::Start`], in a process group of its own, so
    /// that a Ctrl-C at the terminal reaches pgdyno alone.
    pub fn spawn(&self, log: File) -> Result<Child, StepError> {
        let (Self::Run { program, args, as_account, .. }
        | Self::Start { program, args, as_account, .. }) = self
        else {
            unreachable!("`{self}` names no program");
        };
        let failed = |source| StepError::Spawn {
            program: program.clone(),
            as_account: as_account.clone().filter(|a| !a.is_ours()),
            source,
        };
        let mut command = Command::new(program);
        command.args(args).current_dir("/").process_group(0).stdin(Stdio::null());
        command.stdout(log.try_clone().map_err(failed)?).stderr(log);
        match as_account {
            Some(account) => run_as(&mut command, account),
            None => {
                // The user's PGDATA, PGPORT and the like are meant for other servers.
                for (name, _) in std::env::vars_os() {
                    if name.to_string_lossy().starts_with("PG") {
                        command.env_remove(name);
                    }
                }
                // Messages are read by pgdyno.
                command.env("LC_ALL", "C").env("PATH", search_path());
            }
        }
        if matches!(self, Self::Run { .. }) {
            // By this a later process knows it, should this one be killed. A server is known by
            // where it works.
            command.env(STARTED_BY, started_by().map_err(failed)?);
        }
        command.spawn().map_err(failed)
    }
}

/// Returns the error of an attempt to do `what` on `path`.
#[must_use]
pub fn io_error(what: &'static str, path: &Path, source: io::Error) -> StepError {
    StepError::Io { what, path: path.to_owned(), source }
}

fn from_make_error(error: MakeError, path: &Path) -> StepError {
    match error {
        MakeError::Untrusted(e) => StepError::Untrusted(Box::new(e)),
        MakeError::Journal(e) => e.into(),
        MakeError::Io { what, source } => StepError::Io { what, path: path.to_owned(), source },
    }
}

/// The directory that `path` lies in, held, and the name in it. That directory may be another
/// account's; those above it are not.
fn parent_of(path: &Path) -> io::Result<(Directory, &OsStr)> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    };
    Ok((Directory::open(parent)?, name))
}

fn make_directory(path: &Path, mode: u32, owner: Option<&Account>) -> io::Result<()> {
    let (parent, name) = parent_of(path)?;
    let made = parent.create_directory(name, 0o700)?;
    made.hand_over(owner, mode)?;
    parent.sync()
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = |owner: &Option<Account>| {
            owner.as_ref().map_or_else(String::new, |a| format!(", of {a}"))
        };
        match self {
            Self::EnsureDirectory { path, mode } => {
                write!(
                    f,
                    "make directory {} unless it exists (mode {mode:04o})",
                    quote(path.as_os_str())
                )
            }
            Self::MakeMarked { made, mode, owner } => write!(
                f,
                "make directory {} (mode {mode:04o}{}), journalled and marked as pgdyno's",
                quote(made.path().as_os_str()),
                of(owner)
            ),
            Self::MakeDirectory { path, mode, owner } => {
                write!(
                    f,
                    "make directory {} (mode {mode:04o}{})",
                    quote(path.as_os_str()),
                    of(owner)
                )
            }
            Self::WriteFile { path, contents, mode, owner } => {
                write!(f, "write {} (mode {mode:04o}{}):", quote(path.as_os_str()), of(owner))?;
                match contents {
                    Contents::Text(text) => {
                        text.lines().try_for_each(|line| write!(f, "\n    {line}"))
                    }
                    Contents::Password(_) => f.write_str("\n    (a random password)"),
                }
            }
            Self::AppendToFile { path, text } => {
                write!(f, "append to {}:", quote(path.as_os_str()))?;
                text.lines()
                    .filter(|l| !l.is_empty())
                    .try_for_each(|line| write!(f, "\n    {line}"))
            }
            Self::RemoveFile { path } => write!(f, "remove {}", quote(path.as_os_str())),
            Self::Run { program, args, as_account, .. } => {
                write!(f, "run{}: {}", as_whom(as_account.as_ref()), quote(program.as_os_str()))?;
                args.iter().try_for_each(|arg| write!(f, " {}", quote(arg)))
            }
            Self::Start { program, args, as_account, .. } => {
                write!(f, "start{}: {}", as_whom(as_account.as_ref()), quote(program.as_os_str()))?;
                args.iter().try_for_each(|arg| write!(f, " {}", quote(arg)))
            }
            Self::StopServer { data } => {
                write!(f, "stop the server in {}", quote(data.as_os_str()))
            }
            Self::RemoveMarked { path } => {
                write!(
                    f,
                    "remove {} and all below it, if it bears pgdyno's marker",
                    quote(path.as_os_str())
                )
            }
            Self::AllocateFile(file) => file.fmt(f),
            Self::ServeDisk(disk) => disk.fmt(f),
            Self::StopDisk(disk) => crate::service::fmt_stopping(&disk.directory, f),
            Self::AttachLoop(device) => device.fmt(f),
            Self::DetachLoop(device) => device.fmt_detaching(f),
            Self::ClaimDevice(claim) => claim.fmt(f),
            Self::Holding { devices, step } => {
                let devices: Vec<String> = devices.iter().map(BlockDevice::numbers).collect();
                write!(
                    f,
                    "{step}\n    (while {} is held open, and is looked at before and after)",
                    devices.join(", ")
                )
            }
            Self::EraseLabelled(labelled) => labelled.fmt(f),
            Self::Mount(mount) => mount.fmt(f),
            Self::Unmount(mount) => mount.fmt_unmounting(f),
            Self::DestroyPool(pool) => pool.fmt(f),
            Self::Set(knob) => knob.fmt(f),
            Self::PutBack(knob) => knob.fmt_putting_back(f),
            Self::Undo(undo) => undo.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests;
