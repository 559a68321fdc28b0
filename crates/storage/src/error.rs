//! A storage stack that cannot be made.

use std::path::PathBuf;

use pgdyno_emulated_disk::{ControlError, FUSE};
use pgdyno_exec::StepError;
use pgdyno_exec::device::refusal::SafetyError;
use pgdyno_exec::directory::DirectoryError;
use pgdyno_exec::journal::JournalError;
use pgdyno_exec::setting::SettingError;
use pgdyno_model::raid::RaidTool;
use pgdyno_model::units::Bytes;
use pgdyno_model::{Advice, FailureKind};

use super::filesystem::{FilesystemError, Tool};

/// A storage stack that cannot be made, or is not what was asked for.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum StorageError {
    /// The experiment file contradicts itself.
    #[error("cannot make storage `{storage}`: {why}")]
    Contradiction {
        storage: String,
        why: String,
        /// Advice: how to resolve the contradiction.
        help: String,
    },
    /// A device is too small for the filesystem.
    #[error(
        "cannot make storage `{storage}`: {on} has {size}, and {filesystem} takes at least {least}"
    )]
    TooSmall {
        storage: String,
        /// The device, or what stands for one.
        on: String,
        size: Bytes,
        filesystem: &'static str,
        least: Bytes,
    },
    /// Only root may make it.
    #[error("cannot {what} for storage `{storage}`: pgdyno does not run as root")]
    NotRoot { storage: String, what: &'static str },
    /// A program is missing.
    #[error(
        "cannot make storage `{storage}`: the program {}, which {}, is not installed",
        tool.program, tool.purpose
    )]
    ToolMissing { storage: String, tool: Tool },
    /// The program of a RAID controller is missing.
    #[error(
        "cannot set the RAID controller of storage `{storage}`: the program {} is not installed",
        tool.name()
    )]
    RaidToolMissing { storage: String, tool: RaidTool },
    /// The kernel lacks a part that the stack needs.
    #[error("cannot make storage `{storage}`: this kernel has no {what} ({looked_for} is missing)")]
    NotInKernel { storage: String, what: &'static str, looked_for: &'static str },
    /// A module of the kernel, or a parameter of it, is not there or cannot be set.
    #[error("cannot make storage `{storage}`")]
    ModuleParameter { storage: String, source: SettingError },
    /// The filesystem: it cannot be made, or was made and is not what was asked for.
    #[error("storage `{storage}`{}", and_left(left))]
    Filesystem {
        storage: String,
        source: Box<FilesystemError>,
        /// Parts that could not be taken down again, and why.
        left: Vec<String>,
    },
    /// The directory that is to hold the stack cannot carry a cluster.
    #[error("storage `{storage}`")]
    Directory { storage: String, source: DirectoryError },
    /// A named device must not be written.
    #[error("storage `{storage}`")]
    Unsafe { storage: String, source: Box<SafetyError> },
    /// A step failed; what was made before it is taken down.
    #[error("cannot make storage `{storage}`{}", and_left(left))]
    Make {
        storage: String,
        source: Box<StepError>,
        /// Parts that could not be taken down again, and why.
        left: Vec<String>,
    },
    /// Settings of the devices could not be put back, so that nothing else is set.
    #[error("cannot put the devices of storage `{storage}` back as they were: {}", left.join("; "))]
    PutBack { storage: String, left: Vec<String> },
    /// The kernel or a program did not answer about the stack that was made.
    #[error("cannot read back storage `{storage}`")]
    ReadBack { storage: String, source: Box<StepError> },
    /// A filesystem that was unmounted is still in use: mounted again it would be the same, its
    /// power cut as before.
    #[error("cannot mount storage `{storage}` anew: {found}, after it was unmounted")]
    NotReleased { storage: String, found: SafetyError },
    /// The stack could not be taken off its devices and put back on them; whether it mounts was not
    /// tried.
    #[error("cannot take storage `{storage}` off its devices and put it back on them")]
    Remount { storage: String, source: Box<StepError> },
    /// This build of pgdyno lacks the emulated disk.
    #[error("cannot make storage `{storage}`: this build of pgdyno has no emulated disk")]
    NoEmulatedDisk { storage: String },
    /// FUSE cannot be used here.
    #[error(
        "cannot make storage `{storage}`: an emulated disk is served through FUSE, and {FUSE} \
         cannot be opened"
    )]
    Fuse { storage: String, source: std::io::Error },
    /// An emulated disk refuses a request, or does not answer.
    #[error("storage `{storage}`")]
    Emulated { storage: String, source: Box<ControlError> },
    /// The kernel gives no random numbers for a name.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// A path cannot be resolved.
    #[error("cannot resolve {}", path.display())]
    Resolve { path: PathBuf, source: std::io::Error },
}

fn and_left(left: &[String]) -> String {
    if left.is_empty() {
        String::new()
    } else {
        format!(" (and not all of it could be removed: {})", left.join("; "))
    }
}

impl StorageError {
    /// Returns the error of a `storage` that does not go together.
    pub(crate) fn contradiction(
        storage: &str,
        why: impl Into<String>,
        help: impl Into<String>,
    ) -> Self {
        Self::Contradiction { storage: storage.into(), why: why.into(), help: help.into() }
    }

    /// Returns the error of a filesystem; `left` could not be taken down.
    pub(crate) fn filesystem(storage: &str, source: FilesystemError, left: Vec<String>) -> Self {
        Self::Filesystem { storage: storage.into(), source: Box::new(source), left }
    }

    /// Returns the error of a step; `left` could not be taken down.
    pub(crate) fn step(storage: &str, source: StepError, left: Vec<String>) -> Self {
        Self::Make { storage: storage.into(), source: Box::new(source), left }
    }
}

impl Advice for StorageError {
    fn help(&self) -> Option<String> {
        match self {
            Self::Contradiction { help, .. } => Some(help.clone()),
            Self::TooSmall { .. } => Some("choose a larger one, or another filesystem".into()),
            Self::NotRoot { .. } => Some(
                "run pgdyno as root (`sudo`), or use a directory: `storage.<name>.directory`; \
                 `pgdyno run quickstart` and `pgdyno crash --fault process` need no root"
                    .into(),
            ),
            Self::ToolMissing { tool, .. } => {
                let fedora =
                    tool.fedora.map_or_else(String::new, |package| format!(", Fedora: {package}"));
                Some(format!("install it (Debian: {}{fedora})", tool.debian))
            }
            Self::RaidToolMissing { tool, .. } => {
                let from = match tool {
                    RaidTool::Storcli => "Broadcom's storcli64, or Dell's perccli64",
                    RaidTool::Megacli => "LSI's MegaCli64",
                    RaidTool::Ssacli => "HPE's ssacli, or hpssacli",
                    RaidTool::Arcconf => "Microchip's arcconf",
                };
                Some(format!(
                    "install {from}, and put its folder into PATH; the controller must be in this \
                     machine"
                ))
            }
            Self::NotInKernel { .. } => Some(
                "load the kernel's module for it, or let the filesystem stripe (btrfs, zfs)".into(),
            ),
            Self::ModuleParameter { source, .. } => source.help(),
            Self::Filesystem { source, .. } => source.help(),
            Self::Directory { source, .. } => source.help(),
            Self::Unsafe { source, .. } => source.help(),
            Self::Make { source, left, .. } => source
                .help()
                .or_else(|| (!left.is_empty()).then(|| "`pgdyno clean` tries again".into())),
            Self::ReadBack { source, .. } | Self::Remount { source, .. } => source.help(),
            Self::NotReleased { .. } => Some(
                "end the processes that began in a mount namespace of their own meanwhile \
                 (containers, `unshare`, services)"
                    .into(),
            ),
            Self::Journal(e) => e.help(),
            Self::NoEmulatedDisk { .. } => Some(
                "released packages have it; in a clone, `cargo build --release --features \
                 emulated-disk` makes a build that has it"
                    .into(),
            ),
            Self::Fuse { source, .. } => Some(match source.kind() {
                std::io::ErrorKind::NotFound => String::from(
                    "load the kernel's module (`modprobe fuse`); in a container, hand the device \
                     in (`--device /dev/fuse`)",
                ),
                _ => String::from(
                    "run pgdyno outside of the container, or hand the device in (`--device \
                     /dev/fuse --cap-add SYS_ADMIN`)",
                ),
            }),
            Self::Emulated { .. } => {
                Some("`pgdyno clean` takes its remains down once this run is over".into())
            }
            Self::Resolve { .. } | Self::PutBack { .. } => None,
        }
    }

    fn kind(&self) -> FailureKind {
        match self {
            Self::Unsafe { .. } | Self::Contradiction { .. } | Self::TooSmall { .. } => {
                FailureKind::Input
            }
            Self::NotRoot { .. }
            | Self::ToolMissing { .. }
            | Self::RaidToolMissing { .. }
            | Self::NotInKernel { .. }
            | Self::ModuleParameter { .. } => FailureKind::Unavailable,
            Self::Filesystem { source, .. } => source.kind(),
            Self::Make { source, .. }
            | Self::ReadBack { source, .. }
            | Self::Remount { source, .. }
                if source.kind() == FailureKind::Interrupted =>
            {
                FailureKind::Interrupted
            }
            _ => FailureKind::Storage,
        }
    }
}
