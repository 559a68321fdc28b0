//! Everything that touches the host, as data: `Display` is what a dry run prints, [`Step::perform`] does exactly that.

use std::ffi::OsString;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt, fchown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use pgdyno_model::target::Secret;
use rustix::process::{Pid, Signal, kill_process_group};

use crate::account::Account;
use crate::journal::{Entry, Journal, JournalError, MARKER, Made, nofollow, sync_directory, write_new};
use crate::storage::claim::{Claim, Labelled};
use crate::storage::emulated::DiskServer;
use crate::storage::filesystem::zfs::Pool;
use crate::storage::image::{ImageFile, LoopDevice};
use crate::storage::knob::{Knob, KnobError};
use crate::storage::mount::{Mount, MountError};
use crate::storage::program::search_path;
use crate::storage::safety::SafetyError;

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
    /// Makes a directory that must not exist yet, writes it down in the journal first and marks it as pgdyno's.
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
    /// Writes a file, replacing it whole: readers see the old text or the new, also after a power loss.
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
    ServeDisk(DiskServer),
    /// Ends that process, if it runs, after taking its mount down.
    StopDisk(DiskServer),
    /// Attaches a loop device to a file of pgdyno's and links to it.
    AttachLoop(LoopDevice),
    /// Detaches that loop device, if it is attached.
    DetachLoop(LoopDevice),
    /// Looks once more whether a named device is the one planned for, and may be written.
    ClaimDevice(Claim),
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
            Self::Mount(e) => e.help(),
            Self::Safety(e) => e.help(),
            Self::Knob(e) => e.help(),
            Self::Io { source, .. } if source.kind() == io::ErrorKind::StorageFull => {
                Some("free room there, or name another directory in `storage.<name>.directory`".into())
            }
            _ => None,
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
                let entry = performing.journal.record(made)?;
                let path = made.path();
                // Nobody else may enter before the marker is in and the permissions are right.
                if let Err(e) = fs::DirBuilder::new().mode(0o700).create(path) {
                    // Nothing was made; what may be there is somebody else's.
                    performing.journal.done(&entry.id)?;
                    return Err(io_error("make the directory", path, e));
                }
                performing.made.push(entry.clone());
                let marker = path.join(MARKER);
                entry
                    .to_json()
                    .and_then(|text| write_new(&marker, &text))
                    .map_err(|e| io_error("write the marker", &marker, e))?;
                set_owner_and_mode(path, owner.as_ref(), *mode)
                    .map_err(|e| io_error("set owner and permissions of", path, e))
            }
            Self::MakeDirectory { path, mode, owner } => make_directory(path, *mode, owner.as_ref()),
            Self::WriteFile { path, contents, mode, owner } => {
                let text = match contents {
                    Contents::Text(text) => text.as_str(),
                    Contents::Password(secret) => secret.reveal(),
                };
                replace_file(path, text.as_bytes(), *mode, owner.as_ref())
                    .map_err(|e| io_error("write", path, e))
            }
            Self::AppendToFile { path, text } => {
                append(path, text).map_err(|e| io_error("append to", path, e))
            }
            Self::RemoveFile { path } => fs::remove_file(path).map_err(|e| io_error("remove", path, e)),
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
                    output: said(&fs::read(output).unwrap_or_default()),
                })
            }
            Self::AllocateFile(file) => file.allocate(),
            Self::ServeDisk(disk) => disk.start(performing.stop),
            Self::StopDisk(disk) => disk.stop(),
            Self::AttachLoop(device) => device.attach(),
            Self::DetachLoop(device) => device.detach(),
            Self::ClaimDevice(claim) => claim.check(),
            Self::EraseLabelled(labelled) => labelled.erase(),
            Self::Mount(mount) => Ok(mount.mount()?),
            Self::Unmount(mount) => Ok(mount.unmount()?),
            Self::DestroyPool(pool) => pool.destroy(),
            Self::Set(knob) => knob.set(performing),
            Self::Start { .. } | Self::StopServer { .. } | Self::RemoveMarked { .. } | Self::PutBack(_) => {
                unreachable!("clusters and stacks themselves start, stop, remove and put back: `{self}`")
            }
        }
    }

    /// Starts the program of a [`Step::Run`] or [`Step::Start`], in a process group of its own, so that a Ctrl-C at
    /// the terminal reaches pgdyno alone.
    pub(crate) fn spawn(&self, log: File) -> Result<Child, StepError> {
        let (Self::Run { program, args, as_account, .. } | Self::Start { program, args, as_account, .. }) =
            self
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
        // The user's PGDATA, PGPORT and the like are meant for other servers; messages are read by pgdyno.
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("PG") {
                command.env_remove(name);
            }
        }
        command.env("LC_ALL", "C").env("PATH", search_path());
        if let Some(account) = as_account.as_ref().filter(|a| !a.is_ours()) {
            command.uid(account.uid).gid(account.gid);
        }
        command.spawn().map_err(failed)
    }
}

/// Waits for a child in its own process group; on `stop` ends the group. None when it was stopped.
fn wait_or_kill_group(child: &mut Child, stop: &AtomicBool) -> io::Result<Option<std::process::ExitStatus>> {
    let mut pause = Duration::from_millis(1);
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if stop.load(Ordering::Relaxed) {
            break;
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(20));
    }
    // Not waited for yet, so that the group is still this child's.
    let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    for (signal, limit) in [(Signal::TERM, Duration::from_secs(5)), (Signal::KILL, Duration::from_secs(5))] {
        if let Some(group) = group {
            let _ = kill_process_group(group, signal);
        }
        let until = Instant::now() + limit;
        while Instant::now() < until {
            if child.try_wait()?.is_some() {
                return Ok(None);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
    Ok(None)
}

pub(crate) fn io_error(what: &'static str, path: &Path, source: io::Error) -> StepError {
    StepError::Io { what, path: path.to_owned(), source }
}

fn make_directory(path: &Path, mode: u32, owner: Option<&Account>) -> Result<(), StepError> {
    fs::DirBuilder::new()
        .mode(mode & 0o700)
        .create(path)
        .and_then(|()| set_owner_and_mode(path, owner, mode))
        .and_then(|()| path.parent().map_or(Ok(()), sync_directory))
        .map_err(|e| io_error("make the directory", path, e))
}

fn set_owner_and_mode(path: &Path, owner: Option<&Account>, mode: u32) -> io::Result<()> {
    let directory = File::options().read(true).custom_flags(nofollow()).open(path)?;
    if let Some(account) = owner.filter(|a| !a.is_ours()) {
        fchown(&directory, Some(account.uid), Some(account.gid))?;
    }
    directory.set_permissions(fs::Permissions::from_mode(mode))
}

fn replace_file(path: &Path, contents: &[u8], mode: u32, owner: Option<&Account>) -> io::Result<()> {
    let mut name = OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(".new");
    let new = path.with_file_name(name);
    match fs::remove_file(&new) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
        _ => {}
    }
    let mut file = File::options()
        .write(true)
        .create_new(true)
        .mode(mode & 0o600)
        .custom_flags(nofollow())
        .open(&new)?;
    let written = (|| {
        if let Some(account) = owner.filter(|a| !a.is_ours()) {
            fchown(&file, Some(account.uid), Some(account.gid))?;
        }
        file.set_permissions(fs::Permissions::from_mode(mode))?;
        file.write_all(contents)?;
        file.sync_all()?;
        fs::rename(&new, path)?;
        path.parent().map_or(Ok(()), sync_directory)
    })();
    if written.is_err() {
        let _ = fs::remove_file(&new);
    }
    written
}

fn append(path: &Path, text: &str) -> io::Result<()> {
    let mut file = File::options().append(true).custom_flags(nofollow()).open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

/// Opens a log for appending, ours alone.
pub(crate) fn open_log(path: &Path) -> Result<File, StepError> {
    File::options()
        .append(true)
        .create(true)
        .mode(0o600)
        .custom_flags(nofollow())
        .open(path)
        .map_err(|e| io_error("open the log", path, e))
}

/// What a program said, without its middle where it said much: many give the reason first and their usage last.
pub(crate) fn said(output: &[u8]) -> String {
    const FIRST: usize = 5;
    const LAST: usize = 15;
    let text = String::from_utf8_lossy(output);
    let lines: Vec<&str> = text.trim_end().lines().collect();
    if lines.len() <= FIRST + LAST {
        return last_lines(&text, FIRST + LAST);
    }
    let shown = |lines: &[&str]| lines.iter().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n");
    let left_out = lines.len() - FIRST - LAST;
    format!("{}\n  … ({left_out} lines)\n{}", shown(&lines[..FIRST]), shown(&lines[lines.len() - LAST..]))
}

/// The last `lines` lines of `text`.
pub(crate) fn last_lines(text: &str, lines: usize) -> String {
    let all: Vec<&str> = text.trim_end().lines().collect();
    if all.is_empty() {
        return "  (nothing was logged)".into();
    }
    let kept = &all[all.len().saturating_sub(lines)..];
    kept.iter().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n")
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = |owner: &Option<Account>| owner.as_ref().map_or_else(String::new, |a| format!(", of {a}"));
        match self {
            Self::EnsureDirectory { path, mode } => {
                write!(f, "make directory {} unless it exists (mode {mode:04o})", quote(path.as_os_str()))
            }
            Self::MakeMarked { made, mode, owner } => write!(
                f,
                "make directory {} (mode {mode:04o}{}), journalled and marked as pgdyno's",
                quote(made.path().as_os_str()),
                of(owner)
            ),
            Self::MakeDirectory { path, mode, owner } => {
                write!(f, "make directory {} (mode {mode:04o}{})", quote(path.as_os_str()), of(owner))
            }
            Self::WriteFile { path, contents, mode, owner } => {
                write!(f, "write {} (mode {mode:04o}{}):", quote(path.as_os_str()), of(owner))?;
                match contents {
                    Contents::Text(text) => text.lines().try_for_each(|line| write!(f, "\n    {line}")),
                    Contents::Password(_) => f.write_str("\n    (a random password)"),
                }
            }
            Self::AppendToFile { path, text } => {
                write!(f, "append to {}:", quote(path.as_os_str()))?;
                text.lines().filter(|l| !l.is_empty()).try_for_each(|line| write!(f, "\n    {line}"))
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
            Self::StopServer { data } => write!(f, "stop the server in {}", quote(data.as_os_str())),
            Self::RemoveMarked { path } => {
                write!(f, "remove {} and all below it, if it bears pgdyno's marker", quote(path.as_os_str()))
            }
            Self::AllocateFile(file) => file.fmt(f),
            Self::ServeDisk(disk) => disk.fmt(f),
            Self::StopDisk(disk) => disk.fmt_stopping(f),
            Self::AttachLoop(device) => device.fmt(f),
            Self::DetachLoop(device) => device.fmt_detaching(f),
            Self::ClaimDevice(claim) => claim.fmt(f),
            Self::EraseLabelled(labelled) => labelled.fmt(f),
            Self::Mount(mount) => mount.fmt(f),
            Self::Unmount(mount) => mount.fmt_unmounting(f),
            Self::DestroyPool(pool) => pool.fmt(f),
            Self::Set(knob) => knob.fmt(f),
            Self::PutBack(knob) => knob.fmt_putting_back(f),
        }
    }
}

/// A word as a shell would take it whole; only for display, nothing is run by a shell.
pub(crate) fn quote(word: &std::ffi::OsStr) -> String {
    let text = word.to_string_lossy();
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-=,:@%+".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text.into_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests;
