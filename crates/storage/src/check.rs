//! Whether this machine can make a stack, before anything is made.

use std::path::Path;

use pgdyno_emulated_disk::{CAN_SERVE, FUSE};
use pgdyno_exec::account::Account;
use pgdyno_exec::device::identity::BlockDevice;
use pgdyno_exec::device::refusal::{Refusal, SafetyError};
use pgdyno_exec::device::safety::{self, Wipe};
use pgdyno_exec::directory::{self, DirectoryError};
use pgdyno_exec::random::random_hex;
use pgdyno_exec::setting::{module, raid_cache};
use pgdyno_exec::tool::locate;
use pgdyno_model::storage::{Backing, EmulatedDisk, LoopFile, Raid0, Storage, Striper};
use pgdyno_model::units::Bytes;

use super::error::StorageError;
use super::filesystem::Tool;
use super::stack::{Stack, loop_files};

/// Surroundings of a plan, beside the experiment: a directory, an account and the user's consent.
#[derive(Clone, Copy, Debug)]
pub struct Surroundings<'a> {
    /// Directory for stacks that name none: see [`pgdyno_exec::paths::default_storage_dir`].
    pub default_directory: &'a Path,
    /// Account that the servers run as.
    pub account: &'a Account,
    /// Devices that the user allows to be erased.
    pub wipe: &'a Wipe,
}

const fn tool(program: &'static str, package: &'static str, purpose: &'static str) -> Tool {
    Tool::new(program, package, Some(package), purpose)
}

const LOSETUP: Tool = tool("losetup", "mount", "attaches loop devices");
const WIPEFS: Tool = tool("wipefs", "util-linux", "tells and removes signatures");
const BLKDISCARD: Tool = tool("blkdiscard", "util-linux", "discards a device's blocks");
const FSTRIM: Tool = tool("fstrim", "util-linux", "discards a filesystem's free blocks");
const MDADM: Tool = tool("mdadm", "mdadm", "makes software RAIDs");
const LVM: Tool = tool("lvcreate", "lvm2", "makes logical volumes");
const HDPARM: Tool = tool("hdparm", "hdparm", "sets a drive's write cache");
const NVME: Tool = tool("nvme", "nvme-cli", "sets an NVMe drive's write cache");

impl Stack {
    /// Returns the stack that `[storage.<name>]` asks for, if this machine can make it: root,
    /// programs, kernel, room, the directories, and of named devices their existence. Whether these
    /// may be overwritten is looked at by [`Stack::refusals`] and again when the stack is made.
    /// Nothing is changed.
    ///
    /// # Errors
    /// [`StorageError`] with the first reason why not.
    pub fn plan(
        name: &str,
        storage: &Storage,
        around: &Surroundings<'_>,
    ) -> Result<Self, StorageError> {
        let mut storage = storage.clone();
        resolve(&mut storage.backing)?;
        choose_striper(&mut storage);
        let default = absolute(around.default_directory)?;
        let label = format!(
            "pgdyno-{}",
            random_hex::<4>().map_err(pgdyno_exec::journal::JournalError::Random)?
        );
        let mut stack = Self::design(name, &storage, &default, &label, around.wipe)?;
        stack.check_rights()?;
        stack.check_tools()?;
        stack.check_kernel()?;
        stack.check_directories(&default, around.account)?;
        for device in stack.named() {
            let failed = |source| StorageError::Unsafe {
                storage: name.into(),
                source: Box::new(SafetyError {
                    device: device.clone(),
                    found: Refusal::Unreadable(source),
                }),
            };
            let found = BlockDevice::at(&device).map_err(failed)?;
            if let Some(same) = stack.looked_at.iter().find(|d| d.number == found.number) {
                let why =
                    format!("{} and {} are the same device", same.path.display(), device.display());
                return Err(StorageError::contradiction(name, why, "name each member once"));
            }
            stack.looked_at.push(found);
        }
        stack.check_sizes()?;
        Ok(stack)
    }

    /// Returns the sum of the members' sizes; none for a directory, or if a device is not there.
    pub fn size(&self) -> Option<Bytes> {
        let sizes = self.sizes();
        let sum = sizes
            .iter()
            .try_fold(0_u64, |sum, (_, size)| Some(sum.saturating_add(size.as_ref()?.0)));
        sum.filter(|_| !sizes.is_empty()).map(Bytes)
    }

    /// Returns the members, each by a name for messages and with its size, where that is known.
    fn sizes(&self) -> Vec<(String, Option<Bytes>)> {
        let size = |backing: &Backing| match backing {
            Backing::Loop(file) => Some(("the loop file".to_owned(), Some(file.size))),
            Backing::Emulated(disk) => Some(("the emulated disk".to_owned(), Some(disk.size))),
            Backing::Ram(size) => Some(("the RAM disk".to_owned(), Some(*size))),
            Backing::Device(path) => {
                let size = BlockDevice::at(path).ok().and_then(|device| device.size());
                Some((path.display().to_string(), size))
            }
            Backing::Directory(_) | Backing::Raid0(_) => None,
        };
        self.flat().into_iter().filter_map(size).collect()
    }

    /// Checks that no member is so small that the filesystem's own program would refuse it, before
    /// anything is made or wiped.
    fn check_sizes(&self) -> Result<(), StorageError> {
        let known = self
            .with_filesystem(|filesystem, volume| (filesystem.name(), filesystem.least(volume)));
        let Some((filesystem, least)) = known else { return Ok(()) };
        let mut sizes = self.sizes();
        if self.is_joined() {
            sizes = vec![("its RAID".into(), self.size())];
        }
        let too_small =
            |(on, size): (String, Option<Bytes>)| Some((on, size.filter(|size| *size < least)?));
        match sizes.into_iter().find_map(too_small) {
            Some((on, size)) => {
                let storage = self.name().into();
                Err(StorageError::TooSmall { storage, on, size, filesystem, least })
            }
            None => Ok(()),
        }
    }

    /// Returns the errors of the named devices that must not be written, one for each.
    pub fn refusals(&self) -> Vec<SafetyError> {
        self.named().iter().filter_map(|device| safety::check(device, &self.wipe).err()).collect()
    }

    fn check_rights(&self) -> Result<(), StorageError> {
        let what = if self.is_made() {
            "make filesystems"
        } else if !self.settings().is_empty() || self.storage().device.trim {
            "set devices"
        } else {
            return Ok(());
        };
        if rustix::process::geteuid().is_root() {
            return Ok(());
        }
        Err(StorageError::NotRoot { storage: self.name().into(), what })
    }

    fn check_tools(&self) -> Result<(), StorageError> {
        let Storage { backing, device, .. } = self.storage();
        let mut tools = Vec::new();
        if !loop_files(backing).is_empty()
            || !backing.emulated().is_empty()
            || (matches!(backing, Backing::Ram(_)) && self.storage.filesystem.is_some())
        {
            tools.push(LOSETUP);
        }
        if !self.named().is_empty() {
            tools.push(WIPEFS);
        }
        if device.trim {
            tools.push(if self.named().is_empty() { FSTRIM } else { BLKDISCARD });
        }
        match self.striper() {
            Some(Striper::Mdadm) => tools.push(MDADM),
            Some(Striper::Lvm) => tools.push(LVM),
            _ => {}
        }
        if device.write_cache.is_some() {
            for path in self.named() {
                let disk = BlockDevice::at(&path).map(|d| d.disk()).unwrap_or_default();
                tools.extend(disk.starts_with("sd").then_some(HDPARM));
                tools.extend(disk.starts_with("nvme").then_some(NVME));
            }
        }
        if let Some(raid) = device.raid_volume
            && raid_cache::installed(raid.tool).is_none()
        {
            return Err(StorageError::RaidToolMissing {
                storage: self.name().into(),
                tool: raid.tool,
            });
        }
        match tools.into_iter().find(|t| locate(t.program).is_none()) {
            Some(tool) => Err(StorageError::ToolMissing { storage: self.name().into(), tool }),
            None => Ok(()),
        }
    }

    fn check_kernel(&self) -> Result<(), StorageError> {
        let storage = || self.name().to_owned();
        if !self.storage().backing.emulated().is_empty() {
            if !CAN_SERVE {
                return Err(StorageError::NoEmulatedDisk { storage: storage() });
            }
            let opened = std::fs::File::options().read(true).write(true).open(FUSE);
            opened.map_err(|source| StorageError::Fuse { storage: storage(), source })?;
        }
        let striping = match self.striper() {
            Some(Striper::Mdadm) => Some(("software RAID", MD)),
            Some(Striper::Lvm) => Some(("device mapper", MAPPER)),
            _ => None,
        };
        if let Some((what, looked_for)) = striping.filter(|(_, file)| !Path::new(file).exists()) {
            return Err(StorageError::NotInKernel { storage: storage(), what, looked_for });
        }
        let checked = self.with_filesystem(|filesystem, volume| {
            filesystem.check_machine().and_then(|()| filesystem.check_blocks(volume))
        });
        checked
            .unwrap_or(Ok(()))
            .map_err(|e| StorageError::filesystem(&self.name, e, Vec::new()))?;
        // The filesystem's own programs have loaded its module by now.
        let mut parameters = self.module_parameters();
        parameters.try_for_each(|(module, parameter, _)| {
            let failed = |source| StorageError::ModuleParameter { storage: storage(), source };
            module::check(module, parameter).map_err(failed)
        })
    }

    /// Checks that the directories of loop files are there, can be passed, and have room.
    fn check_directories(&self, default: &Path, account: &Account) -> Result<(), StorageError> {
        let failed = |source| StorageError::Directory { storage: self.name().into(), source };
        if let Backing::Ram(size) = self.storage().backing {
            let available = pgdyno_facts::memory_available().unwrap_or_default();
            if size > available {
                let why = format!("it needs {size} of main memory, and {available} is available");
                return Err(StorageError::contradiction(&self.name, why, "choose a smaller size"));
            }
        }
        let mut needed = self.needed();
        needed.sort();
        for group in needed.chunk_by(|a, b| a.0 == b.0) {
            let path = &group[0].0;
            if path != default {
                directory::check(path, account).map_err(failed)?;
            }
            // pgdyno's own directory is made only when the stack is.
            let existing = path.ancestors().find(|p| p.is_dir()).unwrap_or(path);
            let sum = Bytes(group.iter().map(|(_, size)| size.0).sum());
            if let Some(available) = directory::too_little_room(existing, sum).map_err(failed)? {
                return Err(failed(DirectoryError::NoRoom {
                    path: path.clone(),
                    available,
                    needed: sum,
                }));
            }
        }
        Ok(())
    }
}

/// Shows that the kernel has md.
const MD: &str = "/proc/mdstat";
/// Shows that the kernel has the device mapper.
const MAPPER: &str = "/dev/mapper/control";

/// Where nothing is said of who stripes, and the filesystem does not: mdadm where it can, else LVM.
fn choose_striper(storage: &mut Storage) {
    let own =
        storage.filesystem.as_ref().is_some_and(|f| ["btrfs", "zfs"].contains(&f.name.as_str()));
    if let Backing::Raid0(raid @ Raid0 { by: None, .. }) = &mut storage.backing
        && !own
    {
        let mdadm = Path::new(MD).exists() && locate(MDADM.program).is_some();
        let lvm = Path::new(MAPPER).exists() && locate(LVM.program).is_some();
        raid.by = (!mdadm && lvm).then_some(Striper::Lvm);
    }
}

/// Makes every path absolute, since programs are run in `/`, and that of loop files one without
/// links, as the kernel will show it. A device keeps the name by which the user knows it.
fn resolve(backing: &mut Backing) -> Result<(), StorageError> {
    match backing {
        Backing::Loop(LoopFile { directory, .. })
        | Backing::Emulated(EmulatedDisk { directory, .. }) => {
            if let Some(directory) = directory {
                *directory = absolute(directory)?;
            }
            Ok(())
        }
        Backing::Raid0(raid) => raid.members.iter_mut().try_for_each(resolve),
        Backing::Device(path) | Backing::Directory(Some(path)) => {
            let failed = |source| StorageError::Resolve { path: path.clone(), source };
            *path = std::path::absolute(&*path).map_err(failed)?;
            Ok(())
        }
        Backing::Directory(None) | Backing::Ram(_) => Ok(()),
    }
}

/// Returns the path without links, as far as it exists.
pub(super) fn absolute(path: &Path) -> Result<std::path::PathBuf, StorageError> {
    let failed = |source| StorageError::Resolve { path: path.to_owned(), source };
    let path = std::path::absolute(path).map_err(failed)?;
    let Some(existing) = path.ancestors().find(|p| p.exists()) else { return Ok(path) };
    let real = existing.canonicalize().map_err(failed)?;
    Ok(path
        .strip_prefix(existing)
        .map_or_else(|_| path.clone(), |rest| real.join(rest))
        .components()
        .collect())
}
