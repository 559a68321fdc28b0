//! Everything that touches the host, as data.
//!
//! A [`Step`]'s `Display` is what a dry run prints; an [`Executor`](crate::executor::Executor)
//! executes it. Both read the same value. Steps serialise, but for passwords.
//!
//! ```
//! use pgdyno_exec::Step;
//!
//! let step = Step::RemoveFile { path: "/var/lib/pgdyno/it's".into() };
//! assert_eq!(step.to_string(), r"remove '/var/lib/pgdyno/it'\''s'");
//! ```

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

use pgdyno_model::target::Secret;
use serde::Serialize;

use crate::account::Account;
use crate::device::claim::Claim;
use crate::device::identity::BlockDevice;
use crate::error::as_whom;
use crate::image::{ImageFile, LoopDevice};
use crate::journal::OwnedResource;
use crate::mount::Mount;
use crate::quote::{quote, quote_path};
use crate::service::Service;
use crate::setting::DeviceSetting;
use crate::undo::Undo;

/// The contents of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Contents {
    /// Text that anybody may see.
    Text(String),
    /// A password: neither shown nor serialised.
    Password(#[serde(skip)] Secret),
    /// A private key: neither shown nor serialised.
    Key(#[serde(skip)] Secret),
}

/// One thing done to the host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "step", content = "of")]
#[allow(missing_docs, reason = "the names say it")]
pub enum Step {
    /// Makes a directory, with its parents, unless it exists.
    EnsureDirectory {
        path: PathBuf,
        /// Permissions of the directory, if the step makes it.
        mode: u32,
    },
    /// Makes a directory that must not exist yet, writes it down in the journal first and marks it
    /// as pgdyno's.
    MakeMarked {
        /// Entry for the journal, with the directory's path.
        made: OwnedResource,
        mode: u32,
        /// Owner of the directory; none means this process's account.
        owner: Option<Account>,
    },
    /// Makes a directory that must not exist yet.
    MakeDirectory {
        path: PathBuf,
        mode: u32,
        /// Owner of the directory; none means this process's account.
        owner: Option<Account>,
    },
    /// Writes a file, replacing it whole: readers see the old text or the new, also after a power
    /// loss.
    WriteFile {
        path: PathBuf,
        contents: Contents,
        mode: u32,
        /// Owner of the file; none means this process's account.
        owner: Option<Account>,
    },
    /// Appends text to an existing file.
    AppendToFile {
        path: PathBuf,
        /// The text to add.
        text: String,
    },
    /// Removes a file.
    RemoveFile { path: PathBuf },
    /// Runs a program to its end; anything but exit status 0 is an error.
    Run {
        program: PathBuf,
        /// Arguments, passed as they are: no shell.
        args: Vec<OsString>,
        /// Account that the program runs as; none means this process's own.
        as_account: Option<Account>,
        /// File that the program's output is appended to.
        output: PathBuf,
    },
    /// Starts a program that stays: a server.
    Start {
        program: PathBuf,
        args: Vec<OsString>,
        /// Account that the program runs as; none means this process's own.
        as_account: Option<Account>,
        /// File that the program's output is appended to.
        output: PathBuf,
    },
    /// Ends the server that runs in a data directory, and waits until it is gone.
    StopServer {
        /// Data directory of the cluster.
        data: PathBuf,
    },
    /// Removes a directory and all below it, if the journal names it and it bears pgdyno's marker
    /// with the journal's id.
    RemoveMarked { path: PathBuf },
    /// Makes a file of its full size, which must not exist yet.
    AllocateFile(ImageFile),
    /// Makes an emulated disk and starts the process that serves it.
    ServeDisk(Service),
    /// Attaches a loop device to a file of pgdyno's and links to it.
    AttachLoop(LoopDevice),
    /// Looks once more whether a named device is the one planned for, and may be written.
    ClaimDevice(Claim),
    /// Does another step while named devices are held open, and looks right before and right after
    /// that they still are the devices that were looked at.
    Holding { devices: Vec<BlockDevice>, step: Box<Step> },
    /// Mounts a filesystem.
    Mount(Mount),
    /// Sets something on a device or on the kernel, and journals how it was.
    Set(DeviceSetting),
    /// Puts back what [`Step::Set`] set.
    PutBack(DeviceSetting),
    /// Undoes what other steps made: unmounts, detaches, destroys, erases.
    Undo(Undo),
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EnsureDirectory { path, mode } => {
                write!(f, "make directory {} unless it exists (mode {mode:04o})", quote_path(path))
            }
            Self::MakeMarked { made, mode, owner } => write!(
                f,
                "make directory {} (mode {mode:04o}{}), journalled and marked as pgdyno's",
                quote_path(made.path()),
                owned_by(owner.as_ref())
            ),
            Self::MakeDirectory { path, mode, owner } => {
                write!(
                    f,
                    "make directory {} (mode {mode:04o}{})",
                    quote_path(path),
                    owned_by(owner.as_ref())
                )
            }
            Self::WriteFile { path, contents, mode, owner } => {
                write!(
                    f,
                    "write {} (mode {mode:04o}{}):",
                    quote_path(path),
                    owned_by(owner.as_ref())
                )?;
                contents.fmt(f)
            }
            Self::AppendToFile { path, text } => {
                write!(f, "append to {}:", quote_path(path))?;
                text.lines()
                    .filter(|l| !l.is_empty())
                    .try_for_each(|line| write!(f, "\n    {line}"))
            }
            Self::RemoveFile { path } => write!(f, "remove {}", quote_path(path)),
            Self::Run { program, args, as_account, .. } => {
                command(f, "run", as_account.as_ref(), program, args)
            }
            Self::Start { program, args, as_account, .. } => {
                command(f, "start", as_account.as_ref(), program, args)
            }
            Self::StopServer { data } => write!(f, "stop the server in {}", quote_path(data)),
            Self::RemoveMarked { path } => {
                write!(
                    f,
                    "remove {} and all below it, if it bears pgdyno's marker",
                    quote_path(path)
                )
            }
            Self::AllocateFile(file) => file.fmt(f),
            Self::ServeDisk(service) => service.fmt(f),
            Self::AttachLoop(device) => device.fmt(f),
            Self::ClaimDevice(claim) => claim.fmt(f),
            Self::Holding { devices, step } => {
                let devices: Vec<String> = devices.iter().map(BlockDevice::numbers).collect();
                write!(
                    f,
                    "{step}\n    (while {} is held open, and is looked at before and after)",
                    devices.join(", ")
                )
            }
            Self::Mount(mount) => mount.fmt(f),
            Self::Set(setting) => setting.fmt(f),
            Self::PutBack(setting) => setting.fmt_putting_back(f),
            Self::Undo(undo) => undo.fmt(f),
        }
    }
}

impl fmt::Display for Contents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => text.lines().try_for_each(|line| write!(f, "\n    {line}")),
            Self::Password(_) => f.write_str("\n    (a random password)"),
            Self::Key(_) => f.write_str("\n    (a private key)"),
        }
    }
}

fn owned_by(owner: Option<&Account>) -> String {
    owner.map_or_else(String::new, |account| format!(", of {account}"))
}

fn command(
    f: &mut fmt::Formatter<'_>,
    verb: &str,
    account: Option<&Account>,
    program: &Path,
    args: &[OsString],
) -> fmt::Result {
    write!(f, "{verb}{}: {}", as_whom(account), quote_path(program))?;
    args.iter().try_for_each(|arg| write!(f, " {}", quote(arg)))
}
