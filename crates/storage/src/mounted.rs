//! A stack that was made, and its taking down: by its owner, or by a later process from the journal
//! alone.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use pgdyno_emulated_disk::{Cut, DiskServer};
use pgdyno_exec::account::Account;
use pgdyno_exec::device::identity::{BlockDevice, Identity};
use pgdyno_exec::device::refusal::{Refusal, SafetyError};
use pgdyno_exec::device::safety;
use pgdyno_exec::directory::StorageDirectory;
use pgdyno_exec::journal::{Entry, Journal, OwnedResource};
use pgdyno_exec::tool::run_tool;
use pgdyno_exec::{Effect, ExecContext, Executor, Step, StepError, execute_all, take_down};
use pgdyno_model::storage::{DeviceSettings, StackFacts};

use crate::check::absolute;
use crate::error::StorageError;
use crate::filesystem::Filesystem;
use crate::stack::Stack;

const LIMIT: &str = "limited through pgdyno's control group, which lets bursts through and is no \
                     stand-in for a slow disk; under version 1, pages that the kernel writes back \
                     by itself count only if that is the root group";

/// A stack that was made. Dropping it takes it down.
#[derive(Debug)]
pub struct MountedStack {
    stack: Stack,
    journal: Journal,
    made: Vec<Entry>,
    /// pgdyno's own directory, which goes when it is empty.
    _directory: Option<StorageDirectory>,
}

impl Stack {
    /// Makes the stack. The servers run as `account`.
    ///
    /// # Errors
    /// [`StorageError`]; the parts made until then are taken down.
    pub fn make(
        self,
        account: &Account,
        journal: &Journal,
        stop: &AtomicBool,
    ) -> Result<MountedStack, StorageError> {
        let name = self.name().to_owned();
        if let Some(source) = self.refusals().into_iter().next() {
            return Err(StorageError::Unsafe { storage: name, source: Box::new(source) });
        }
        let default = absolute(&pgdyno_exec::paths::default_storage_dir())?;
        let directory = match self.home.parent() {
            Some(parent) if (self.is_made() && parent == default) || self.home == default => {
                let failed = |source| StorageError::Directory { storage: name.clone(), source };
                Some(StorageDirectory::open(None, account).map_err(failed)?)
            }
            _ => None,
        };
        let mut mounted = MountedStack {
            stack: self,
            journal: journal.clone(),
            made: Vec::new(),
            _directory: directory,
        };
        let steps = mounted.stack.steps();
        let made = execute_all(&mut OwningExecutor { mounted: &mut mounted, stop }, &steps);
        if let Err(source) = made {
            return Err(StorageError::step(&name, source, mounted.take_down()));
        }
        let read_back = mounted.stack.with_filesystem(Filesystem::read_back);
        if let Some(Err(source)) = read_back {
            return Err(StorageError::filesystem(&name, source, mounted.take_down()));
        }
        Ok(mounted)
    }
}

/// Executes steps on this host, and hands what each one made to the stack at once, so that a panic
/// in a later step takes it down.
struct OwningExecutor<'a> {
    mounted: &'a mut MountedStack,
    stop: &'a AtomicBool,
}

impl Executor for OwningExecutor<'_> {
    fn execute(&mut self, step: &Step) -> Result<Effect, StepError> {
        let mut context = ExecContext::new(&self.mounted.journal, self.stop);
        let effect = context.execute(step);
        self.mounted.made.append(&mut context.made);
        effect
    }
}

impl MountedStack {
    /// Returns the stack's plan.
    pub fn stack(&self) -> &Stack {
        &self.stack
    }

    /// Returns the directory that clusters go to.
    pub fn path(&self) -> PathBuf {
        self.stack.path()
    }

    /// Reads the facts of the stack from the kernel and from programs, as they are now. The drives'
    /// serial numbers are hashed unless `keep_serials` is set.
    ///
    /// # Errors
    /// [`StorageError`]: a fact cannot be read, or is not what was asked for.
    pub fn facts(&self, keep_serials: bool) -> Result<StackFacts, StorageError> {
        let storage = || self.stack.name.clone();
        let unsafe_to_tell = |path: &Path, source| StorageError::Unsafe {
            storage: storage(),
            source: Box::new(SafetyError {
                device: path.to_owned(),
                found: Refusal::Unreadable(source),
            }),
        };
        let mut devices = Vec::new();
        for path in self.stack.members() {
            let found = BlockDevice::at(&path).map_err(|e| unsafe_to_tell(&path, e))?;
            // By the name that the user knows.
            let named = self.stack.looked_at.iter().find(|device| device.is_same(&found)).cloned();
            let device = named.unwrap_or(found);
            devices.push(Identity::from_device(&device, keep_serials).into());
        }
        let filesystem = self.stack.with_filesystem(Filesystem::read_back).transpose();
        let filesystem =
            filesystem.map_err(|e| StorageError::filesystem(&self.stack.name, e, Vec::new()))?;
        let settings = self.stack.settings();
        let settings = settings.iter().map(|s| s.read_back().map_err(|e| self.unread(e)));
        let settings = settings.collect::<Result<_, _>>()?;
        Ok(StackFacts {
            devices,
            striper: self.stack.striper(),
            filesystem,
            settings,
            notes: self.stack.notes(),
        })
    }

    /// Sets the devices as `device` says, where that differs from how they are set. Settings made
    /// before are put back first.
    ///
    /// # Errors
    /// [`StorageError`]: something could not be put back, or is not what was asked for.
    pub fn set(&mut self, device: &DeviceSettings, stop: &AtomicBool) -> Result<(), StorageError> {
        if self.stack.storage.device == *device {
            return Ok(());
        }
        let left = self.put_back();
        let name = self.stack.name.clone();
        if !left.is_empty() {
            return Err(StorageError::PutBack { storage: name, left });
        }
        let steps = self.stack.setting_steps(device);
        let executed = self.with_context(stop, |context| execute_all(context, &steps));
        self.stack.storage.device = device.clone();
        executed.map_err(|source| {
            let left = self.put_back();
            // Nothing is set now, so that the next call sets whatever it asks for.
            self.stack.storage.device =
                DeviceSettings { trim: device.trim, ..DeviceSettings::default() };
            StorageError::step(&name, source, left)
        })
    }

    /// Puts all settings of the devices back. Returns those that could not be put back, and those
    /// that somebody else has set since.
    fn put_back(&mut self) -> Vec<String> {
        let steps: Vec<Step> = self.stack.settings().into_iter().rev().map(Step::PutBack).collect();
        self.with_context(&AtomicBool::new(false), |context| take_down(context, &steps))
    }

    /// Calls `work` with a context that knows the things made until now.
    fn with_context<T>(
        &mut self,
        stop: &AtomicBool,
        work: impl FnOnce(&mut ExecContext<'_>) -> T,
    ) -> T {
        // A copy: after a panic in a step the stack still knows what it made.
        let mut context = ExecContext { journal: &self.journal, stop, made: self.made.clone() };
        let result = work(&mut context);
        self.made = context.made;
        result
    }

    /// Returns the stack's emulated disks, in the order of the experiment file; none for another
    /// kind of backing.
    pub fn disks(&self) -> Vec<DiskServer> {
        self.stack.disks()
    }

    /// Takes the filesystem off its devices, as a machine does that goes down. Emulated disks lose
    /// their loop devices too, so that nothing of the kernel's outlives the cut. Whatever used the
    /// filesystem must have ended. [`Self::mount`] puts it back.
    ///
    /// # Errors
    /// [`StorageError`]: the filesystem is in use, or is of a kind that cannot be mounted again
    /// (ZFS, RAID, a directory).
    pub fn unmount(&mut self) -> Result<(), StorageError> {
        self.check_remountable()?;
        let is_emulated = !self.stack.disks().is_empty();
        let left = if is_emulated { self.put_back() } else { Vec::new() };
        if !left.is_empty() {
            return Err(StorageError::PutBack { storage: self.stack.name.clone(), left });
        }
        self.execute_around_mount(&self.stack.unmount_steps(), &AtomicBool::new(false))?;
        if is_emulated { Ok(()) } else { self.wait_released() }
    }

    /// Waits until the kernel has let go of the unmounted filesystem. While another mount namespace
    /// holds it, mounting it again would bring back the very one that was unmounted, whatever had
    /// been done to its disk.
    pub(crate) fn wait_released(&self) -> Result<(), StorageError> {
        const PATIENCE: Duration = Duration::from_secs(10);
        let until = Instant::now() + PATIENCE;
        for member in self.stack.members() {
            while let Err(found) = safety::unused(&member) {
                if Instant::now() >= until {
                    return Err(StorageError::NotReleased {
                        storage: self.stack.name.clone(),
                        found,
                    });
                }
                std::thread::sleep(Duration::from_millis(20));
            }
        }
        Ok(())
    }

    /// Mounts the filesystem again, whereby it replays its journal, and restores the devices'
    /// settings. Returns how long the mount took.
    ///
    /// # Errors
    /// [`StorageError`]: the filesystem does not mount, in the kernel's words.
    pub fn mount(&mut self, stop: &AtomicBool) -> Result<Duration, StorageError> {
        self.check_remountable()?;
        let (attach, mount): (Vec<Step>, Vec<Step>) =
            self.stack.mount_steps().into_iter().partition(attaches);
        self.execute_around_mount(&attach, stop)?;
        let began = Instant::now();
        self.execute(&mount, stop)?;
        let took = began.elapsed();
        if !self.stack.disks().is_empty() {
            let device = self.stack.storage.device.clone();
            self.execute_around_mount(&self.stack.setting_steps(&device), stop)?;
        }
        Ok(took)
    }

    /// Executes steps around a mount, whose failure says nothing about the filesystem.
    fn execute_around_mount(
        &mut self,
        steps: &[Step],
        stop: &AtomicBool,
    ) -> Result<(), StorageError> {
        self.with_context(stop, |context| execute_all(context, steps)).map_err(|source| {
            StorageError::Remount { storage: self.stack.name.clone(), source: Box::new(source) }
        })
    }

    /// Restarts the stack after a power cut of its emulated disks: unmounts, gives them power again
    /// and mounts. A disk that still has power loses it, honestly, after the unmount. Returns how
    /// long the mount took.
    ///
    /// # Errors
    /// [`StorageError`]: the filesystem is in use or does not mount, or a disk does not answer.
    pub fn power_cycle(&mut self, stop: &AtomicBool) -> Result<Duration, StorageError> {
        self.unmount()?;
        for disk in self.stack.disks() {
            let power = || {
                let mut control = disk.control()?;
                if control.status()?.powered {
                    control.cut(&Cut::default())?;
                }
                control.power_on()
            };
            power().map_err(|source| StorageError::Emulated {
                storage: self.stack.name.clone(),
                source: Box::new(source),
            })?;
        }
        self.mount(stop)
    }

    pub(crate) fn check_remountable(&self) -> Result<(), StorageError> {
        if self.stack.is_remountable() {
            return Ok(());
        }
        let why = "it is of no kind that is mounted again after a crash";
        let help = "use a filesystem that the kernel mounts, on a loop file or an emulated disk";
        Err(StorageError::contradiction(&self.stack.name, why, help))
    }

    pub(crate) fn execute(
        &mut self,
        steps: &[Step],
        stop: &AtomicBool,
    ) -> Result<(), StorageError> {
        self.with_context(stop, |context| execute_all(context, steps))
            .map_err(|e| StorageError::step(&self.stack.name, e, Vec::new()))
    }

    /// Discards the free blocks of the filesystem, if the experiment file asks for that. Call it
    /// before every trial.
    ///
    /// # Errors
    /// [`StorageError`]: `fstrim` failed.
    pub fn trim(&self) -> Result<(), StorageError> {
        if self.stack.storage.device.trim { self.discard() } else { Ok(()) }
    }

    /// Discards the free blocks of the filesystem.
    ///
    /// # Errors
    /// [`StorageError`]: `fstrim` failed.
    pub fn discard(&self) -> Result<(), StorageError> {
        run_tool("fstrim", &[self.path()]).map(drop).map_err(|e| self.unread(e))
    }

    fn unread(&self, source: StepError) -> StorageError {
        StorageError::ReadBack { storage: self.stack.name.clone(), source: Box::new(source) }
    }

    /// Takes the stack down. Returns the parts that could not be taken down, and why; they stay in
    /// the journal for the next start.
    pub fn take_down(mut self) -> Vec<String> {
        self.remove()
    }

    fn remove(&mut self) -> Vec<String> {
        // Of a stack whose own directory was not made, nothing but settings can be there.
        let is_begun = self.made.iter().any(|e| matches!(e.made, OwnedResource::Stack { .. }));
        let mut steps = self.stack.take_down_steps();
        steps.retain(|step| is_begun || matches!(step, Step::PutBack(_)));
        self.with_context(&AtomicBool::new(false), |context| take_down(context, &steps))
    }
}

/// Tells whether `step` of a mount attaches the device that the filesystem lies on.
pub(crate) fn attaches(step: &Step) -> bool {
    matches!(step, Step::AttachLoop(_))
}

impl Drop for MountedStack {
    fn drop(&mut self) {
        self.remove();
    }
}

impl Stack {
    /// Returns notes for readers of the figures: limits, RAM, overlays, emulated disks.
    fn notes(&self) -> Vec<String> {
        use pgdyno_model::storage::Backing;
        let mut notes = Vec::new();
        if self.storage.limit.is_some_and(|l| !l.is_empty()) {
            notes.push(LIMIT.into());
        }
        if matches!(self.storage.backing, Backing::Ram(_)) && self.storage.filesystem.is_some() {
            notes.push("the RAM disk is a loop device over a file in a tmpfs".into());
        }
        if self.storage.filesystem.as_ref().is_some_and(|f| f.name == "overlay") {
            notes.push(
                "the overlay's files lie in its upper directory, on the filesystem that holds it"
                    .into(),
            );
        }
        for disk in self.storage.backing.emulated() {
            let latency = disk.latency.to_string();
            let latency = if latency.is_empty() { "no latency added".to_owned() } else { latency };
            notes.push(format!(
                "the disk is emulated by pgdyno ({latency}): what is measured on it is no real \
                 device's"
            ));
        }
        notes.dedup();
        notes
    }
}
