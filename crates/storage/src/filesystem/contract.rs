//! The trait that each filesystem implements.

use std::path::{Path, PathBuf};

use pgdyno_exec::Step;
use pgdyno_exec::mount::Mount;
use pgdyno_exec::undo::Undo;
use pgdyno_model::storage::{FilesystemChoice, FilesystemFacts};
use pgdyno_model::units::Bytes;

use super::error::FilesystemError;
use super::tool::Tool;

/// Where a filesystem is to lie.
#[derive(Clone, Copy, Debug)]
pub struct Volume<'a> {
    /// The block devices, as the steps name them; more than one only where [`Filesystem::stripes`].
    pub devices: &'a [PathBuf],
    /// An empty directory.
    pub mount_point: &'a Path,
    /// The filesystem's label or the pool's name: `pgdyno-` and eight hexadecimal digits of the
    /// journal's id.
    pub label: &'a str,
    /// Filesystem and options that the experiment file asks for.
    pub choice: &'a FilesystemChoice,
    /// Bytes on one device before the next has its turn; none means the filesystem's default.
    pub chunk: Option<Bytes>,
    /// The file that the programs' output is appended to.
    pub log: &'a Path,
}

/// A program that checks an unmounted filesystem and repairs nothing.
#[derive(Clone, Copy, Debug)]
pub struct FsckProgram {
    /// Program to run.
    pub tool: Tool,
    /// Flags of the program; the device follows them.
    pub flags: &'static [&'static str],
}

impl FsckProgram {
    pub(super) const fn new(
        program: &'static str,
        flags: &'static [&'static str],
        debian: &'static str,
    ) -> Option<Self> {
        let tool = Tool::new(program, debian, Some(debian), "checks it");
        Some(Self { tool, flags })
    }
}

/// A kind of filesystem.
pub trait Filesystem: Sync {
    /// Returns its name, as in experiment files and for `mount -t`.
    fn name(&self) -> &'static str;

    /// Returns the programs it takes to make it and to read it back.
    fn tools(&self) -> &'static [Tool];

    /// Tells whether it stripes over several devices by itself.
    fn stripes(&self) -> bool {
        false
    }

    /// Returns the least that each of the volume's devices must have for its program to make it.
    /// Measured, or from the program's own manual; 0 where neither is at hand.
    fn least(&self, _: &Volume<'_>) -> Bytes {
        Bytes(0)
    }

    /// Returns the label on its devices, where the filesystem has no room for all of `label`.
    fn label(&self, label: &str) -> String {
        label.to_owned()
    }

    /// Checks whether `volume` can be made at all: what was asked is free of contradictions, and
    /// names nothing but the volume's own devices. Needs no root and asks nothing of the machine.
    ///
    /// # Errors
    /// [`FilesystemError`] with the contradiction.
    fn check(&self, volume: &Volume<'_>) -> Result<(), FilesystemError>;

    /// Checks whether this machine can make it: its programs are there, and the kernel has it.
    /// Needs root.
    ///
    /// # Errors
    /// [`FilesystemError`] with the missing program and its package.
    fn check_machine(&self) -> Result<(), FilesystemError>;

    /// Checks whether this machine's kernel mounts blocks of the size that `volume` asks for.
    ///
    /// # Errors
    /// [`FilesystemError::LargeBlocks`].
    fn check_blocks(&self, _: &Volume<'_>) -> Result<(), FilesystemError> {
        Ok(())
    }

    /// Returns the program that checks it, where there is one that can leave everything as it is.
    fn fsck(&self) -> Option<&FsckProgram> {
        None
    }

    /// Returns the steps that make and mount it.
    fn make(&self, volume: &Volume<'_>) -> Vec<Step>;

    /// Returns the steps that unmount it and undo what [`Self::make`] did beyond the devices. Each
    /// one also succeeds where there is nothing to undo, so that they serve after a half-done
    /// [`Self::make`].
    fn take_down(&self, volume: &Volume<'_>) -> Vec<Step>;

    /// Reads the filesystem's facts from the kernel and from its own programs.
    ///
    /// # Errors
    /// [`FilesystemError`]: it cannot be read, or an option was not obtained.
    fn read_back(&self, volume: &Volume<'_>) -> Result<FilesystemFacts, FilesystemError>;

    /// Returns the error of `word` in `field`, which pgdyno does not pass on.
    fn refuse(
        &self,
        field: &'static str,
        word: &str,
        why: &'static str,
        help: &'static str,
    ) -> FilesystemError {
        FilesystemError::Refused { filesystem: self.name(), field, word: word.into(), why, help }
    }

    /// Returns the error of an option that is not in effect: `shown` is there instead.
    fn not_obtained(&self, volume: &Volume<'_>, option: String, shown: String) -> FilesystemError {
        let (filesystem, mount_point) = (self.name(), volume.mount_point.to_owned());
        FilesystemError::NotObtained { filesystem, mount_point, option, shown }
    }
}

/// Returns the step that runs `program`, its output in the volume's log.
pub(super) fn run(program: &str, args: Vec<String>, volume: &Volume<'_>) -> Step {
    Step::Run {
        program: program.into(),
        args: args.into_iter().map(Into::into).collect(),
        as_account: None,
        output: volume.log.to_owned(),
    }
}

/// Returns the step that takes `mount` down.
pub(crate) fn unmount(mount: &Mount) -> Step {
    let Mount { filesystem, source, target, .. } = mount.clone();
    Step::Undo(Undo::Unmount { target, filesystem, source })
}
