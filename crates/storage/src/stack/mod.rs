//! A storage stack's parts and steps, known before anything is made.

mod contradictions;
mod design;
mod steps;

use std::path::{Path, PathBuf};

use pgdyno_emulated_disk::DiskServer;
use pgdyno_exec::device::identity::BlockDevice;
use pgdyno_exec::device::safety::Wipe;
use pgdyno_exec::image::{ImageFile, LoopDevice};
use pgdyno_exec::mount::Mount;
use pgdyno_exec::setting::{DeviceSetting, Setting};
use pgdyno_model::storage::{
    Backing, DeviceSettings, EmulatedDisk, FilesystemChoice, LoopFile, Storage, Striper,
};
use pgdyno_model::units::Bytes;
use serde::{Deserialize, Serialize};
pub use steps::undo_of_plan;

use super::filesystem::{self, Filesystem, Volume};

/// The plan of a storage stack: data only. The journal holds what undoes it ([`Stack::undo`]);
/// journals of earlier versions held the plan itself, which is why it can be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stack {
    pub(crate) name: String,
    pub(crate) storage: Storage,
    /// The directory of the stack's own that holds images, links and mount point; for a plain
    /// directory, that one.
    pub(crate) home: PathBuf,
    pub(crate) wipe: Wipe,
    /// The named devices as they were looked at.
    pub(crate) looked_at: Vec<BlockDevice>,
}

/// A loop device, the file or emulated disk that it lies over, and the stack's directory that holds
/// it.
pub(crate) struct Image {
    pub(crate) directory: PathBuf,
    pub(crate) below: Below,
    size: Bytes,
    pub(crate) device: LoopDevice,
}

pub(crate) enum Below {
    File(ImageFile),
    Disk(DiskServer),
}

/// Owned values that a [`Volume`] borrows.
struct Parts {
    devices: Vec<PathBuf>,
    mount_point: PathBuf,
    label: String,
    log: PathBuf,
}

impl Stack {
    /// Returns the stack's name in the experiment file.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the storage that the experiment file asks for.
    pub fn storage(&self) -> &Storage {
        &self.storage
    }

    /// Returns where clusters are to lie: the mount point, or the plain directory.
    pub fn path(&self) -> PathBuf {
        if self.is_made() { self.home.join("mnt") } else { self.home.clone() }
    }

    /// Tells whether anything is made at all; a plain directory is there already.
    pub fn is_made(&self) -> bool {
        self.storage.is_made()
    }

    /// Tells whether the stack lies in a directory that is there already, and not on devices of its
    /// own.
    fn is_in_directory(&self) -> bool {
        matches!(self.storage.backing, Backing::Directory(_))
    }

    /// Returns the name that the stack's filesystem, pool, RAID or volume group bears.
    pub fn label(&self) -> String {
        self.home.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// Returns the path by which steps name `device`: the node in `/dev` that it led to when it was
    /// looked at.
    fn node(&self, device: &Path) -> PathBuf {
        let looked_at = self.looked_at.iter().find(|d| d.path == device);
        looked_at.map_or_else(|| device.to_owned(), BlockDevice::node)
    }

    /// Returns the plan with the named devices of `other`, which has looked at them.
    #[must_use]
    pub fn with_devices_of(mut self, other: &Self) -> Self {
        self.looked_at.clone_from(&other.looked_at);
        self
    }

    /// Returns the user's block devices that the stack writes to.
    pub(crate) fn named(&self) -> Vec<PathBuf> {
        self.storage.devices().into_iter().map(Path::to_owned).collect()
    }

    /// Returns the room that images take in each directory. The directory of an overlay needs none,
    /// and is among them since it has to be there.
    pub fn needed(&self) -> Vec<(PathBuf, Bytes)> {
        if self.is_in_directory() && self.is_made() {
            return self.home.parent().map(|p| (p.to_owned(), Bytes(0))).into_iter().collect();
        }
        let parent = |i: &Image| i.directory.parent().map(Path::to_owned);
        self.images()
            .iter()
            .filter(|_| self.memory().is_none())
            .filter_map(|i| Some((parent(i)?, i.size)))
            .collect()
    }

    /// Returns the program that stripes a RAID-0.
    pub(crate) fn striper(&self) -> Option<Striper> {
        let Backing::Raid0(raid) = &self.storage.backing else { return None };
        let own = match self.storage.filesystem.as_ref().map(|f| f.name.as_str()) {
            Some("btrfs") => Striper::Btrfs,
            Some("zfs") => Striper::Zfs,
            _ => Striper::Mdadm,
        };
        Some(raid.by.unwrap_or(own))
    }

    /// Iterates over the parameters that the stack sets in the kernel's modules: module, parameter
    /// and value.
    pub(crate) fn module_parameters(&self) -> impl Iterator<Item = (&str, &str, &str)> {
        let modules = self.storage.device.module_parameters.iter();
        modules.flat_map(|(module, parameters)| {
            let parameters = parameters.iter();
            parameters.map(|(name, value)| (module.as_str(), name.as_str(), value.as_str()))
        })
    }

    /// Returns the settings of the stack's devices, in the order in which they are set.
    pub(crate) fn settings(&self) -> Vec<DeviceSetting> {
        let Storage {
            device: DeviceSettings { scheduler, read_ahead_kb, nr_requests, write_cache, hook, .. },
            limit,
            ..
        } = &self.storage;
        let mut settings = Vec::new();
        let queue = |attribute: &str, value: &dyn ToString| Setting::Queue {
            attribute: String::from(attribute),
            value: value.to_string(),
        };
        // The scheduler first: it resets nr_requests.
        settings.extend(scheduler.as_ref().map(|v| queue("scheduler", v)));
        settings.extend(nr_requests.as_ref().map(|v| queue("nr_requests", v)));
        settings.extend(read_ahead_kb.as_ref().map(|v| queue("read_ahead_kb", v)));
        settings.extend(write_cache.map(Setting::WriteCache));
        settings.extend(limit.filter(|l| !l.is_empty()).map(Setting::Limit));
        let devices = match self.home.parent() {
            _ if !self.is_in_directory() => self.members(),
            Some(parent) if self.is_made() => vec![parent.to_owned()],
            _ => vec![self.home.clone()],
        };
        let mut all: Vec<DeviceSetting> = devices
            .into_iter()
            .flat_map(|device| {
                settings
                    .iter()
                    .map(move |s| DeviceSetting { device: device.clone(), setting: s.clone() })
            })
            .collect();
        all.extend(self.module_parameters().map(|(module, parameter, value)| {
            let (module, parameter) = (module.to_owned(), parameter.to_owned());
            let setting = Setting::ModuleParameter { module, parameter, value: value.to_owned() };
            DeviceSetting { device: self.path(), setting }
        }));
        let raid = self.storage.device.raid_volume.zip(self.storage.device.raid_cache);
        all.extend(raid.map(|(volume, policy)| {
            let setting = Setting::RaidCache { volume, policy };
            DeviceSetting { device: self.path(), setting }
        }));
        all.extend(hook.clone().map(|hook| {
            let setting = Setting::Hook { hook, storage: self.name.clone() };
            DeviceSetting { device: self.path(), setting }
        }));
        all
    }

    /// Calls `work` with the filesystem that is made and where it lies; none where none is made.
    pub(crate) fn with_filesystem<T>(
        &self,
        work: impl FnOnce(&'static dyn Filesystem, &Volume<'_>) -> T,
    ) -> Option<T> {
        let choice = self.storage.filesystem.as_ref()?;
        // A name that nothing is known by was refused by `check`.
        let filesystem = filesystem::by_name(&choice.name).ok()?;
        let parts = self.parts();
        Some(work(filesystem, &self.volume(&parts, choice)))
    }

    fn parts(&self) -> Parts {
        let devices = match self.striper() {
            Some(Striper::Mdadm) => vec![Path::new("/dev/md").join(self.label())],
            Some(Striper::Lvm) => vec![Path::new("/dev").join(self.label()).join("data")],
            Some(Striper::Btrfs | Striper::Zfs) | None => self.members(),
        };
        Parts { devices, mount_point: self.path(), label: self.label(), log: self.log() }
    }

    fn volume<'a>(&self, parts: &'a Parts, choice: &'a FilesystemChoice) -> Volume<'a> {
        let chunk = match &self.storage.backing {
            Backing::Raid0(raid) if !self.is_joined() => raid.chunk,
            _ => None,
        };
        let Parts { devices, mount_point, label, log } = parts;
        Volume { devices, mount_point, label, choice, chunk, log }
    }

    /// Tells whether a block device of its own joins the members.
    pub(crate) fn is_joined(&self) -> bool {
        matches!(self.striper(), Some(Striper::Mdadm | Striper::Lvm))
    }

    /// Returns the backings, one level of RAID-0 opened.
    pub(crate) fn flat(&self) -> Vec<&Backing> {
        match &self.storage.backing {
            Backing::Raid0(raid) => raid.members.iter().collect(),
            one => vec![one],
        }
    }

    /// Returns the link to the loop device of member `n`.
    fn link(&self, n: usize) -> PathBuf {
        self.home.join(format!("device-{n}"))
    }

    /// Returns the block devices of its members, as the steps name them.
    pub(crate) fn members(&self) -> Vec<PathBuf> {
        let flat = self.flat().into_iter().enumerate();
        flat.filter_map(|(n, backing)| match backing {
            Backing::Loop(_) | Backing::Emulated(_) => Some(self.link(n)),
            Backing::Ram(_) => self.storage.filesystem.as_ref().map(|_| self.link(n)),
            Backing::Device(path) => Some(self.node(path)),
            Backing::Directory(_) | Backing::Raid0(_) => None,
        })
        .collect()
    }

    fn images(&self) -> Vec<Image> {
        let label = self.label();
        let within = |named: &Option<PathBuf>| {
            named.as_ref().map_or_else(|| self.home.clone(), |d| d.join(&label))
        };
        let image = |(n, backing): (usize, &Backing)| {
            let offset = match backing {
                Backing::Loop(file) => file.offset,
                _ => None,
            };
            let (directory, size, sector_size, direct_io) = match backing {
                Backing::Loop(file) => {
                    (within(&file.directory), file.size, file.sector_size, file.direct_io)
                }
                // Past every page cache: what was written is in the emulated disk's hands, and what
                // it lost is read as lost.
                Backing::Emulated(disk) => {
                    (within(&disk.directory), disk.size, disk.sector_size, true)
                }
                // tmpfs has no direct I/O to offer.
                Backing::Ram(size) if self.storage.filesystem.is_some() => {
                    (self.home.join("ram"), *size, None, false)
                }
                _ => return None,
            };
            let (image, below) = if let Backing::Emulated(disk) = backing {
                let disk = disk.clone();
                let server =
                    DiskServer { directory: directory.join(format!("emulated-{n}")), disk };
                (server.file(), Below::Disk(server))
            } else {
                let path = directory.join(format!("image-{n}"));
                let size = Bytes(size.0.saturating_add(offset.map_or(0, |offset| offset.0)));
                (path.clone(), Below::File(ImageFile { path, size }))
            };
            let device = LoopDevice { image, link: self.link(n), sector_size, direct_io, offset };
            Some(Image { directory, below, size, device })
        };
        self.flat().into_iter().enumerate().filter_map(image).collect()
    }

    /// Returns the tmpfs of a RAM disk: the storage itself, or what holds the file of its loop
    /// device.
    fn memory(&self) -> Option<Mount> {
        let Backing::Ram(size) = self.storage.backing else { return None };
        let (target, size) = match self.storage.filesystem {
            None => (self.path(), size.0),
            // Room for the file's own bookkeeping.
            Some(_) => (self.home.join("ram"), size.0.saturating_add(1 << 20)),
        };
        let options = vec![format!("size={size}"), "mode=0755".into(), "noatime".into()];
        Some(Mount { filesystem: "tmpfs".into(), source: self.label().into(), target, options })
    }

    /// Returns the directories beside [`Self::home`] that hold images.
    fn further_directories(&self) -> Vec<PathBuf> {
        let mut further: Vec<PathBuf> = Vec::new();
        for Image { directory, .. } in self.images().into_iter().filter(|_| self.memory().is_none())
        {
            if directory != self.home && !further.contains(&directory) {
                further.push(directory);
            }
        }
        further
    }

    fn log(&self) -> PathBuf {
        self.home.join("log")
    }
}

/// Returns the loop files of a backing.
pub(crate) fn loop_files(backing: &Backing) -> Vec<&LoopFile> {
    match backing {
        Backing::Loop(file) => vec![file],
        Backing::Raid0(raid) => raid.members.iter().flat_map(loop_files).collect(),
        Backing::Directory(_) | Backing::Device(_) | Backing::Ram(_) | Backing::Emulated(_) => {
            Vec::new()
        }
    }
}

/// Returns the directory that is named for the first of a backing's files.
fn first_directory(backing: &Backing) -> Option<&Path> {
    match backing {
        Backing::Loop(LoopFile { directory, .. })
        | Backing::Emulated(EmulatedDisk { directory, .. }) => directory.as_deref(),
        Backing::Raid0(raid) => {
            let made = |m: &&Backing| matches!(m, Backing::Loop(_) | Backing::Emulated(_));
            raid.members.iter().find(made).and_then(first_directory)
        }
        Backing::Directory(_) | Backing::Device(_) | Backing::Ram(_) => None,
    }
}
