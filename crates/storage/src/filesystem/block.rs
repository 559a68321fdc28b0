//! Filesystems that a program makes on block devices and the kernel mounts: their common part.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{fs, io};

use pgdyno_exec::Step;
use pgdyno_exec::mount::Mount;
use pgdyno_exec::mountinfo::{self, MountEntry};
use pgdyno_exec::tool::run_tool;
use pgdyno_model::storage::FilesystemFacts;
use pgdyno_model::units::Bytes;
use rustix::io::Errno;
use rustix::mount::FsOpenFlags;

use super::block_size::BlockSize;
use super::options::{self, MountRule};
use super::{Filesystem, FilesystemError, FsckProgram, Tool, Volume, installed, kernel};

/// A filesystem on block devices, described.
pub(super) struct BlockFilesystem {
    /// Name, as in experiment files and for `mount -t`.
    pub(super) name: &'static str,
    /// Programs that the filesystem needs; the first one makes it.
    pub(super) tools: &'static [Tool],
    /// A kernel that has the filesystem, to be named where this one has not: `Linux before 6.13,
    /// …`.
    pub(super) runs_on: &'static str,
    /// Program that checks the filesystem and ends with status 0 if it finds nothing wrong; none
    /// where every check writes.
    pub(super) fsck: Option<FsckProgram>,
    /// How the first program is told the size of blocks.
    pub(super) block_size: BlockSize,
    /// pgdyno's own arguments for that program, before the user's.
    pub(super) mkfs: fn(&Volume<'_>) -> Vec<String>,
    /// The program's flag for the label, which is pgdyno's.
    pub(super) label_flag: &'static str,
    /// The longest label (bytes).
    pub(super) label_bytes: usize,
    /// Flags of the program that would make nothing or something else, with the reason.
    pub(super) refused: &'static [(&'static str, &'static str)],
    /// The smallest size that the first program accepts, for each device (bytes).
    pub(super) least: fn(&Volume<'_>) -> u64,
    /// The mount option that names a further device, if the filesystem stripes by itself.
    pub(super) stripes_by: Option<&'static str>,
    /// pgdyno's mount options, beside `noatime`.
    pub(super) mount: &'static [&'static str],
    /// How the kernel shows options.
    pub(super) rules: &'static [MountRule],
    /// Returns the driver, and the options that it shows besides those in mountinfo.
    pub(super) driver: fn(&MountEntry) -> Driver,
    /// Reads geometry and features from the filesystem's own programs.
    pub(super) properties: fn(&MountEntry) -> Result<BTreeMap<String, String>, FilesystemError>,
    /// The program that prints the version, and its flag for that.
    pub(super) version: (&'static str, &'static str),
}

/// The kernel's side of a mounted filesystem.
pub(super) struct Driver {
    pub(super) name: String,
    pub(super) options: Vec<String>,
}

impl Driver {
    /// Returns the driver that bears the filesystem's own name, and tells nothing further.
    pub(super) fn of_its_name(mounted: &MountEntry) -> Self {
        Self { name: mounted.filesystem.clone(), options: Vec::new() }
    }
}

const MKFS_FIELD: &str = "mkfs";
const MOUNT_FIELD: &str = "mount";
const NAMES_A_DEVICE: &str = "it names a device or a file";
const NAME_IT_ELSEWHERE: &str =
    "name devices in `storage.<name>.backing`, where they are checked before they are written";

impl BlockFilesystem {
    fn check_mkfs(&self, argument: &str) -> Result<(), FilesystemError> {
        let names_a_device =
            ["device=", "logdev=", "rtdev=", "name="].iter().any(|key| argument.contains(key));
        // Programs run in `/`, and some take any further word for a device.
        let is_there = fs::metadata(Path::new("/").join(argument)).is_ok_and(|m| !m.is_dir());
        if argument.contains('/') || names_a_device || is_there {
            return Err(self.refuse(MKFS_FIELD, argument, NAMES_A_DEVICE, NAME_IT_ELSEWHERE));
        }
        // Flags with a value in the same word begin alike.
        let is = |flag: &str| {
            argument == flag
                || (argument.starts_with(flag)
                    && (argument[flag.len()..].starts_with('=') || flag.len() == 2))
        };
        if is(self.label_flag) {
            let why = "by its label pgdyno knows again what it made";
            return Err(self.refuse(MKFS_FIELD, argument, why, "leave the label out"));
        }
        match self.refused.iter().find(|(flag, _)| is(flag)) {
            Some((_, why)) => Err(self.refuse(MKFS_FIELD, argument, why, "leave it out")),
            None => Ok(()),
        }
    }

    fn check_mount(&self, option: &str) -> Result<(), FilesystemError> {
        if let Some((why, help)) = no_option(option) {
            return Err(self.refuse(MOUNT_FIELD, option, why, help));
        }
        let names_a_device = |key: &str| option.starts_with(key);
        if option.contains("=/")
            || ["logdev=", "rtdev=", "device=", "journal_dev="].into_iter().any(names_a_device)
        {
            return Err(self.refuse(MOUNT_FIELD, option, NAMES_A_DEVICE, NAME_IT_ELSEWHERE));
        }
        Ok(())
    }

    /// Returns the options as asked for, without those that only name the volume's own devices.
    fn mount_options(&self, volume: &Volume<'_>) -> Vec<String> {
        let defaults: Vec<&str> =
            ["noatime"].into_iter().chain(self.mount.iter().copied()).collect();
        options::merged(&defaults, &volume.choice.mount)
    }

    fn mount_of(&self, volume: &Volume<'_>) -> Mount {
        let mut options = self.mount_options(volume);
        if let Some(key) = self.stripes_by {
            options.extend(volume.devices.iter().skip(1).map(|d| format!("{key}={}", d.display())));
        }
        Mount {
            filesystem: self.name.to_owned(),
            source: volume.devices.first().cloned().unwrap_or_default(),
            target: volume.mount_point.to_owned(),
            options,
        }
    }
}

impl Filesystem for BlockFilesystem {
    fn name(&self) -> &'static str {
        self.name
    }

    fn tools(&self) -> &'static [Tool] {
        self.tools
    }

    fn stripes(&self) -> bool {
        self.stripes_by.is_some()
    }

    fn least(&self, volume: &Volume<'_>) -> Bytes {
        Bytes((self.least)(volume))
    }

    fn label(&self, label: &str) -> String {
        // The random digits are what tells volumes apart; the name gives way to them.
        match label.rsplit_once('-') {
            Some((name, digits)) if label.len() > self.label_bytes => {
                let room = self.label_bytes.saturating_sub(digits.len() + 1);
                format!("{}-{digits}", name.get(..room).unwrap_or(name))
            }
            _ => label.to_owned(),
        }
    }

    fn check(&self, volume: &Volume<'_>) -> Result<(), FilesystemError> {
        for (field, properties) in
            [("pool", &volume.choice.pool), ("dataset", &volume.choice.dataset)]
        {
            if let Some(name) = properties.keys().next() {
                let help = "use `mkfs` and `mount`, or `filesystem = \"zfs\"`";
                return Err(self.refuse(field, name, "only zfs has pools and datasets", help));
            }
        }
        volume.choice.mkfs.iter().try_for_each(|argument| self.check_mkfs(argument))?;
        let user = options::merged(&[], &volume.choice.mount);
        user.iter().try_for_each(|option| self.check_mount(option))?;
        match volume.chunk.filter(|_| self.stripes() && volume.devices.len() > 1) {
            Some(chunk) => {
                let why = "it stripes in pieces of its own size";
                let help = "leave it out, or stripe `by = \"mdadm\"` or `by = \"lvm\"`";
                Err(self.refuse("chunk", &chunk.to_string(), why, help))
            }
            None => Ok(()),
        }
    }

    fn check_machine(&self) -> Result<(), FilesystemError> {
        let kernel = kernel_has(self.name, self.runs_on, self.tools);
        // A package alone would not do.
        if matches!(kernel, Err(FilesystemError::NotInKernel { .. })) {
            return kernel;
        }
        installed::installed(self.name, self.tools)?;
        kernel
    }

    fn fsck(&self) -> Option<&FsckProgram> {
        self.fsck.as_ref()
    }

    fn check_blocks(&self, volume: &Volume<'_>) -> Result<(), FilesystemError> {
        self.block_size.check(self.name, &volume.choice.mkfs)
    }

    fn make(&self, volume: &Volume<'_>) -> Vec<Step> {
        let mut args = (self.mkfs)(volume);
        args.extend([self.label_flag.to_owned(), self.label(volume.label)]);
        args.extend(volume.devices.iter().map(|d| d.display().to_string()));
        let mkfs = super::contract::run(self.tools[0].program, args, volume);
        vec![mkfs, Step::Mount(self.mount_of(volume))]
    }

    fn take_down(&self, volume: &Volume<'_>) -> Vec<Step> {
        vec![super::unmount(&self.mount_of(volume))]
    }

    fn read_back(&self, volume: &Volume<'_>) -> Result<FilesystemFacts, FilesystemError> {
        let mounted = mounted(self.name, &self.mount_of(volume).source, volume.mount_point)?;
        let driver = (self.driver)(&mounted);
        let mut shown = mounted.options();
        shown.extend(driver.options.into_iter().filter(|o| !mounted.options().contains(o)));
        if let Some(option) =
            options::first_missing(&self.mount_options(volume), &shown, self.rules)
        {
            let shown = options::instead(option, &shown, &mounted.options());
            return Err(self.not_obtained(volume, option.to_owned(), shown));
        }
        Ok(FilesystemFacts {
            kind: mounted.filesystem.clone(),
            driver: driver.name,
            tools: installed::version(self.version.0, self.version.1)?,
            mount_point: mounted.point.display().to_string(),
            source: mounted.source.clone(),
            options: shown,
            properties: (self.properties)(&mounted)?,
        })
    }
}

/// Returns why `option` cannot be used for a filesystem of PostgreSQL, and advice.
pub(super) fn no_option(option: &str) -> Option<(&'static str, &'static str)> {
    let orders = ["remount", "bind", "rbind", "move", "loop", "noauto", "nofail"];
    let why = match option {
        "ro" => "PostgreSQL writes to it",
        order if orders.contains(&order) => {
            "it is no option of a filesystem but an order to mount(8)"
        }
        _ => return None,
    };
    Some((why, "leave it out"))
}

/// Returns the mount at `point` if it is `filesystem` from `source`.
pub(super) fn mounted(
    filesystem: &'static str,
    source: &Path,
    point: &Path,
) -> Result<MountEntry, FilesystemError> {
    let table =
        |source| FilesystemError::Io { path: PathBuf::from("/proc/self/mountinfo"), source };
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let found = match mountinfo::mounted_at(point).map_err(table)? {
        Some(m) if m.filesystem == filesystem && real(Path::new(&m.source)) == real(source) => {
            return Ok(m);
        }
        Some(m) => format!("{} ({}) is mounted there", m.filesystem, m.source),
        None => "nothing is mounted there".to_owned(),
    };
    Err(FilesystemError::NotMounted { filesystem, mount_point: point.to_owned(), found })
}

/// Checks whether the kernel has the filesystem or a module that brings it, which is then loaded.
/// `runs_on` names a kernel that has it, `tools` the programs that it needs besides.
pub(super) fn kernel_has(
    name: &'static str,
    runs_on: &'static str,
    tools: &'static [Tool],
) -> Result<(), FilesystemError> {
    match rustix::mount::fsopen(name, FsOpenFlags::FSOPEN_CLOEXEC) {
        Ok(_closed) => Ok(()),
        Err(Errno::NODEV) => {
            Err(FilesystemError::NotInKernel { name, kernel: kernel::release(), runs_on, tools })
        }
        Err(e) => Err(FilesystemError::Kernel { name, source: io::Error::from(e) }),
    }
}

/// Returns what `tool` prints as properties, see [`colon_properties`].
pub(super) fn tool_properties(
    tool: &str,
    args: &[&str],
    volatile: &[&str],
) -> Result<BTreeMap<String, String>, FilesystemError> {
    Ok(colon_properties(&run_tool(tool, args)?, volatile))
}

/// Parses lines `Key: value` into properties, without keys that begin with one of `volatile`.
///
/// Volatile are times, counters and names, which differ between two equal filesystems.
pub(super) fn colon_properties(text: &str, volatile: &[&str]) -> BTreeMap<String, String> {
    let pair = |line: &str| {
        let (key, value) = line.split_once(':')?;
        Some((key.trim().to_owned(), value.split_whitespace().collect::<Vec<_>>().join(" ")))
    };
    let told = |key: &str, value: &str| {
        !key.is_empty() && !value.is_empty() && !volatile.iter().any(|v| key.starts_with(v))
    };
    text.lines().filter_map(pair).filter(|(key, value)| told(key, value)).collect()
}

/// Returns pgdyno's own arguments, then the user's.
pub(super) fn arguments(own: &[&str], volume: &Volume<'_>) -> Vec<String> {
    own.iter().map(|&a| a.to_owned()).chain(volume.choice.mkfs.iter().cloned()).collect()
}
