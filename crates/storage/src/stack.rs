//! What a storage stack is made of and in which steps, known before anything is made.

mod contradictions;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use pgdyno_model::storage::{
    Backing, DeviceSettings, EmulatedDisk, FilesystemChoice, LoopFile, Raid0, Storage, Striper,
};
use pgdyno_model::units::Bytes;
use serde::{Deserialize, Serialize};

use super::error::StorageError;
use super::filesystem::{self, Filesystem, Volume};
use pgdyno_emulated_disk::DiskServer;
use pgdyno_exec::device::claim::{Claim, Labelled};
use pgdyno_exec::device::identity::BlockDevice;
use pgdyno_exec::device::safety::Wipe;
use pgdyno_exec::image::{ImageFile, LoopDevice};
use pgdyno_exec::journal::Made;
use pgdyno_exec::mount::Mount;
use pgdyno_exec::perform_undo as undo;
use pgdyno_exec::setting::{Knob, Setting};
use pgdyno_exec::step::Step;
use pgdyno_exec::undo::Undo;

/// The plan of a storage stack: data only. The journal holds what undoes it ([`Stack::undo`]);
/// journals of earlier versions held the plan itself, which is why it can be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stack {
    pub(super) name: String,
    pub(super) storage: Storage,
    /// The directory of the stack's own that holds images, links and mount point; for a plain
    /// directory, that one.
    pub(super) home: PathBuf,
    pub(super) wipe: Wipe,
    /// The named devices as they were looked at.
    pub(super) looked_at: Vec<BlockDevice>,
}

/// What a loop device lies over, and the directory of the stack's that holds it.
struct Image {
    directory: PathBuf,
    below: Below,
    device: LoopDevice,
}

enum Below {
    File(ImageFile),
    Disk(DiskServer),
}

impl Image {
    fn size(&self) -> Bytes {
        match &self.below {
            Below::File(file) => file.size,
            Below::Disk(server) => server.disk.size,
        }
    }
}

/// What [`Volume`] borrows.
struct Parts {
    devices: Vec<PathBuf>,
    mount_point: PathBuf,
    label: String,
    log: PathBuf,
}

impl Stack {
    /// The stack that the experiment's `[storage.<name>]` asks for, in a directory called `label`
    /// that is made below `default`, or below the directory that the file names. Looks at nothing
    /// on the machine: for that see [`Stack::plan`].
    ///
    /// # Errors
    /// [`StorageError`]: what was asked for does not go together.
    pub fn design(
        name: &str,
        storage: &Storage,
        default: &Path,
        label: &str,
        wipe: &Wipe,
    ) -> Result<Self, StorageError> {
        let storage = without_none(name, storage)?;
        let home = match &storage.backing {
            Backing::Directory(path) => {
                let directory = path.as_deref().unwrap_or(default);
                if storage.filesystem.is_some() {
                    directory.join(label)
                } else {
                    directory.to_owned()
                }
            }
            backing => first_directory(backing).unwrap_or(default).join(label),
        };
        let stack =
            Self { name: name.into(), storage, home, wipe: wipe.clone(), looked_at: Vec::new() };
        stack.check()?;
        Ok(stack)
    }

    /// Its name in the experiment file.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What was asked for.
    #[must_use]
    pub fn storage(&self) -> &Storage {
        &self.storage
    }

    /// Where clusters are to lie: the mount point, or the plain directory.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        if self.is_made() { self.home.join("mnt") } else { self.home.clone() }
    }

    /// Whether anything is made at all; a plain directory is there already.
    #[must_use]
    pub fn is_made(&self) -> bool {
        !self.is_in_directory() || self.storage.filesystem.is_some()
    }

    /// Whether it lies in a directory that is there already, and not on devices of its own.
    fn is_in_directory(&self) -> bool {
        matches!(self.storage.backing, Backing::Directory(_))
    }

    /// What its filesystem, pool, RAID or volume group is called.
    #[must_use]
    pub fn label(&self) -> String {
        self.home.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// Everything that is done to make it, in order.
    #[must_use]
    pub fn steps(&self) -> Vec<Step> {
        let mut steps = Vec::new();
        if self.is_made() {
            let stack = Made::Stack { path: self.home.clone(), undo: self.undo(), plan: None };
            steps.push(Step::MakeMarked { made: stack, mode: 0o711, owner: None });
            for path in self.further_directories() {
                steps.push(Step::MakeMarked {
                    made: Made::Directory { path },
                    mode: 0o700,
                    owner: None,
                });
            }
            steps.push(Step::MakeDirectory { path: self.path(), mode: 0o755, owner: None });
        }
        if let Some(memory) = self.memory() {
            if memory.target != self.path() {
                steps.push(Step::MakeDirectory {
                    path: memory.target.clone(),
                    mode: 0o700,
                    owner: None,
                });
            }
            steps.push(Step::Mount(memory));
        }
        let images = self.images();
        steps.extend(images.iter().map(|i| match &i.below {
            Below::File(file) => Step::AllocateFile(file.clone()),
            Below::Disk(server) => Step::ServeDisk(server.service()),
        }));
        steps.extend(images.into_iter().map(|i| Step::AttachLoop(i.device)));
        for device in self.named() {
            let looked_at = self.looked_at.iter().find(|d| d.path == device).cloned();
            steps.push(Step::ClaimDevice(Claim {
                looked_at,
                device: device.clone(),
                wipe: self.wipe.clone(),
            }));
            let node = self.node(&device);
            if self.wipe.overwrite_signature {
                steps.push(self.holding(self.run("wipefs", ["--all".into(), node.clone().into()])));
            }
            if self.storage.device.trim {
                steps.push(self.holding(self.run("blkdiscard", [node.into()])));
            }
        }
        steps.extend(self.join().into_iter().map(|step| self.holding(step)));
        let made = self.with_filesystem(Filesystem::make).unwrap_or_default();
        steps.extend(made.into_iter().map(|step| self.holding(step)));
        steps.extend(self.knobs().into_iter().map(|knob| self.holding(Step::Set(knob))));
        steps
    }

    /// `step`, done while the named devices are held open.
    fn holding(&self, step: Step) -> Step {
        match self.looked_at.is_empty() {
            true => step,
            false => Step::Holding { devices: self.looked_at.clone(), step: Box::new(step) },
        }
    }

    /// How steps name the named device `device`: by the node in `/dev` of what it led to when it
    /// was looked at.
    fn node(&self, device: &Path) -> PathBuf {
        let looked_at = self.looked_at.iter().find(|d| d.path == device);
        looked_at.map_or_else(|| device.to_owned(), BlockDevice::node)
    }

    /// The plan with the named devices of `other`, which has looked at them.
    #[must_use]
    pub fn with_devices_of(mut self, other: &Self) -> Self {
        self.looked_at.clone_from(&other.looked_at);
        self
    }

    /// The steps that set its devices as `device` says, with the limit on them.
    #[must_use]
    pub fn setting(&self, device: &DeviceSettings) -> Vec<Step> {
        let storage = Storage { device: device.clone(), ..self.storage.clone() };
        let knobs = Self { storage, ..self.clone() }.knobs();
        knobs.into_iter().map(|knob| self.holding(Step::Set(knob))).collect()
    }

    /// Everything that is done to take it down, in order.
    #[must_use]
    pub fn take_down_steps(&self) -> Vec<Step> {
        let mut steps: Vec<Step> = self.knobs().into_iter().rev().map(Step::PutBack).collect();
        steps.extend(self.with_filesystem(Filesystem::take_down).unwrap_or_default());
        steps.extend(self.part());
        for Image { below, device, .. } in self.images().into_iter().rev() {
            steps.push(Step::DetachLoop(device));
            steps.extend(match below {
                Below::Disk(server) => Some(Step::StopDisk(server.service())),
                Below::File(_) => None,
            });
        }
        steps.extend(self.memory().map(Step::Unmount));
        let label = self
            .with_filesystem(|filesystem, volume| filesystem.label(volume.label))
            .unwrap_or_default();
        for device in self.named() {
            // A RAID bears the stack's own label, a filesystem what it has room for.
            let labels = if self.is_joined() { self.label() } else { label.clone() };
            let looked_at = self.looked_at.iter().find(|d| d.path == device).cloned();
            steps.push(Step::EraseLabelled(Labelled { device, looked_at, label: labels }));
        }
        steps
            .extend(self.further_directories().into_iter().map(|path| Step::RemoveMarked { path }));
        if self.is_made() {
            steps.push(Step::RemoveMarked { path: self.home.clone() });
        }
        steps
    }

    /// What the journal keeps of [`Self::take_down_steps`]: all but its directories, whose removal
    /// is `marked`'s, and its settings, which have entries of their own.
    #[must_use]
    pub fn undo(&self) -> Vec<Undo> {
        self.take_down_steps().iter().filter_map(undo::from_step).collect()
    }

    /// The block devices of the user's that it writes to.
    pub(super) fn named(&self) -> Vec<PathBuf> {
        self.storage.devices().into_iter().map(Path::to_owned).collect()
    }

    /// The bytes that its images take in each directory; none in that of an overlay, which has to
    /// be there all the same.
    pub(super) fn needed(&self) -> Vec<(PathBuf, Bytes)> {
        if self.is_in_directory() && self.is_made() {
            return self.home.parent().map(|p| (p.to_owned(), Bytes(0))).into_iter().collect();
        }
        let parent = |i: &Image| i.directory.parent().map(Path::to_owned);
        self.images()
            .iter()
            .filter(|_| self.memory().is_none())
            .filter_map(|i| Some((parent(i)?, i.size())))
            .collect()
    }

    /// Which program stripes, where a RAID-0 is asked for.
    pub(super) fn striper(&self) -> Option<Striper> {
        let Backing::Raid0(raid) = &self.storage.backing else { return None };
        let own = match self.storage.filesystem.as_ref().map(|f| f.name.as_str()) {
            Some("btrfs") => Striper::Btrfs,
            Some("zfs") => Striper::Zfs,
            _ => Striper::Mdadm,
        };
        Some(raid.by.unwrap_or(own))
    }

    /// What is set on its devices.
    pub(super) fn knobs(&self) -> Vec<Knob> {
        let Storage {
            device: DeviceSettings { scheduler, read_ahead_kb, nr_requests, write_cache, hook, .. },
            limit,
            ..
        } = &self.storage;
        let mut settings = Vec::new();
        let queue = |attribute, value: &dyn ToString| Setting::Queue {
            attribute,
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
        let mut knobs: Vec<Knob> = devices
            .into_iter()
            .flat_map(|device| {
                settings.iter().map(move |s| Knob { device: device.clone(), setting: s.clone() })
            })
            .collect();
        knobs.extend(hook.clone().map(|hook| {
            let setting = Setting::Hook { hook, storage: self.name.clone() };
            Knob { device: self.path(), setting }
        }));
        knobs
    }

    /// Calls `work` with the filesystem that is made and where it lies; none where none is made.
    pub(super) fn with_filesystem<T>(
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

    /// Whether a block device of its own joins the members.
    pub(super) fn is_joined(&self) -> bool {
        matches!(self.striper(), Some(Striper::Mdadm | Striper::Lvm))
    }

    /// The backings, one level of RAID-0 opened.
    pub(super) fn flat(&self) -> Vec<&Backing> {
        match &self.storage.backing {
            Backing::Raid0(raid) => raid.members.iter().collect(),
            one => vec![one],
        }
    }

    /// The block devices of its members, as the steps name them.
    pub(super) fn members(&self) -> Vec<PathBuf> {
        let link = |n: usize| self.home.join(format!("device-{n}"));
        let flat = self.flat().into_iter().enumerate();
        flat.filter_map(|(n, backing)| match backing {
            Backing::Loop(_) | Backing::Emulated(_) => Some(link(n)),
            Backing::Ram(_) => self.storage.filesystem.as_ref().map(|_| link(n)),
            Backing::Device(path) => Some(self.node(path)),
            Backing::Directory(_) | Backing::Raid0(_) => None,
        })
        .collect()
    }

    /// The emulated disks under it, in the order of the experiment file.
    #[must_use]
    pub fn disks(&self) -> Vec<DiskServer> {
        let disk = |image: Image| match image.below {
            Below::Disk(server) => Some(server),
            Below::File(_) => None,
        };
        self.images().into_iter().filter_map(disk).collect()
    }

    /// The steps that take its filesystem off its devices, and of emulated disks the loop devices
    /// off them.
    pub(super) fn unmount_steps(&self) -> Vec<Step> {
        let mut steps = self.with_filesystem(Filesystem::take_down).unwrap_or_default();
        steps.extend(self.emulated_loops().into_iter().rev().map(Step::DetachLoop));
        steps
    }

    /// The steps that undo [`Self::unmount_steps`].
    pub(super) fn mount_steps(&self) -> Vec<Step> {
        let mut steps: Vec<Step> =
            self.emulated_loops().into_iter().map(Step::AttachLoop).collect();
        let made = self.with_filesystem(Filesystem::make).unwrap_or_default();
        let mounts = made.into_iter().filter(|step| matches!(step, Step::Mount(_)));
        steps.extend(mounts.map(|step| self.holding(step)));
        steps
    }

    /// Whether [`Self::unmount_steps`] and [`Self::mount_steps`] do for it: the kernel mounts it,
    /// and it is no volume that has to be put together first.
    pub(super) fn is_remountable(&self) -> bool {
        let steps = self.with_filesystem(Filesystem::make).unwrap_or_default();
        !self.is_in_directory()
            && !self.is_joined()
            && steps.iter().any(|step| matches!(step, Step::Mount(_)))
    }

    fn emulated_loops(&self) -> Vec<LoopDevice> {
        let images = self.images().into_iter();
        images.filter(|i| matches!(i.below, Below::Disk(_))).map(|i| i.device).collect()
    }

    fn images(&self) -> Vec<Image> {
        let label = self.label();
        let image = |n: usize, directory: PathBuf, file: &LoopFile| {
            let path = directory.join(format!("image-{n}"));
            let link = self.home.join(format!("device-{n}"));
            let LoopFile { size, sector_size, direct_io, .. } = *file;
            let device = LoopDevice { image: path.clone(), link, sector_size, direct_io };
            Image { directory, below: Below::File(ImageFile { path, size }), device }
        };
        let emulated = |n: usize, directory: PathBuf, disk: &EmulatedDisk| {
            let server = DiskServer {
                directory: directory.join(format!("emulated-{n}")),
                disk: disk.clone(),
            };
            let link = self.home.join(format!("device-{n}"));
            // Past every page cache: what was written is in the emulated disk's hands, and what it
            // lost is read as lost.
            let (sector_size, direct_io) = (disk.sector_size, true);
            let device = LoopDevice { image: server.file(), link, sector_size, direct_io };
            Image { directory, below: Below::Disk(server), device }
        };
        let within = |named: &Option<PathBuf>| {
            named.as_ref().map_or_else(|| self.home.clone(), |d| d.join(&label))
        };
        let flat = self.flat().into_iter().enumerate();
        flat.filter_map(|(n, backing)| match backing {
            Backing::Loop(file) => Some(image(n, within(&file.directory), file)),
            Backing::Emulated(disk) => Some(emulated(n, within(&disk.directory), disk)),
            // tmpfs has no direct I/O to offer.
            Backing::Ram(size) if self.storage.filesystem.is_some() => {
                let file =
                    LoopFile { directory: None, size: *size, sector_size: None, direct_io: false };
                Some(image(n, self.home.join("ram"), &file))
            }
            _ => None,
        })
        .collect()
    }

    /// The tmpfs of a RAM disk: the storage itself, or what holds the file of its loop device.
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

    /// The directories beside [`Self::home`] that hold images.
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

    /// Joins the members into one block device, where the filesystem does not do that itself.
    fn join(&self) -> Vec<Step> {
        let Backing::Raid0(Raid0 { chunk, .. }) = &self.storage.backing else { return Vec::new() };
        let (label, members) = (self.label(), self.members());
        let count = members.len();
        let devices = || members.iter().map(OsString::from);
        match self.striper() {
            Some(Striper::Mdadm) => {
                let mut args: Vec<OsString> = [
                    "--create".into(),
                    format!("/dev/md/{label}"),
                    "--run".into(),
                    "--level=0".into(),
                ]
                .map(OsString::from)
                .into();
                args.extend([
                    format!("--name={label}").into(),
                    format!("--raid-devices={count}").into(),
                ]);
                // mdadm counts in KiB.
                args.extend(chunk.map(|c| format!("--chunk={}", c.0 / 1024).into()));
                args.extend(devices());
                vec![self.run("mdadm", args)]
            }
            Some(Striper::Lvm) => {
                let mut create: Vec<OsString> =
                    ["--yes".into(), format!("--stripes={count}")].map(OsString::from).into();
                create.extend(chunk.map(|c| format!("--stripesize={}b", c.0).into()));
                create.extend(["--extents=100%FREE", "--name=data", &label].map(OsString::from));
                let group = std::iter::once(OsString::from(&label)).chain(devices());
                vec![
                    self.run("pvcreate", devices()),
                    self.run("vgcreate", group),
                    self.run("lvcreate", create),
                ]
            }
            Some(Striper::Btrfs | Striper::Zfs) | None => Vec::new(),
        }
    }

    /// Undoes [`Self::join`].
    fn part(&self) -> Vec<Step> {
        let label = self.label();
        match self.striper() {
            Some(Striper::Mdadm) => vec![Step::Undo(Undo::StopArray { name: label })],
            Some(Striper::Lvm) => {
                let (members, looked_at) = (self.members(), self.looked_at.clone());
                vec![Step::Undo(Undo::RemoveVolumeGroup { name: label, members, looked_at })]
            }
            Some(Striper::Btrfs | Striper::Zfs) | None => Vec::new(),
        }
    }

    fn run(&self, program: &str, args: impl IntoIterator<Item = OsString>) -> Step {
        let args = args.into_iter().collect();
        Step::Run { program: program.into(), args, as_account: None, output: self.log() }
    }

    fn log(&self) -> PathBuf {
        self.home.join("log")
    }
}

/// Turns the plan of a stack, which journals of earlier versions held, into the steps that undo it;
/// none where it cannot be read.
#[must_use]
pub fn undo_of_plan(plan: &serde_json::Value) -> Option<Vec<Undo>> {
    serde_json::from_value::<Stack>(plan.clone()).ok().map(|stack| stack.undo())
}

/// `filesystem = "none"` is the word for none: a directory as it is, and a RAM disk that stays a
/// tmpfs.
fn without_none(name: &str, storage: &Storage) -> Result<Storage, StorageError> {
    let mut storage = storage.clone();
    if let Some(none) = storage.filesystem.take_if(|filesystem| filesystem.name == "none")
        && none != (FilesystemChoice { name: none.name.clone(), ..FilesystemChoice::default() })
    {
        return Err(StorageError::Contradiction {
            storage: name.into(),
            why: "`filesystem = \"none\"` makes nothing, and options for one are given".into(),
            help: "leave `mkfs`, `mount`, `pool` and `dataset` out, or name a filesystem".into(),
        });
    }
    Ok(storage)
}

/// The loop files of a backing.
pub(super) fn loop_files(backing: &Backing) -> Vec<&LoopFile> {
    match backing {
        Backing::Loop(file) => vec![file],
        Backing::Raid0(raid) => raid.members.iter().flat_map(loop_files).collect(),
        Backing::Directory(_) | Backing::Device(_) | Backing::Ram(_) | Backing::Emulated(_) => {
            Vec::new()
        }
    }
}

/// The directory that is named for the first of a backing's files.
fn first_directory(backing: &Backing) -> Option<&Path> {
    match backing {
        Backing::Loop(file) => file.directory.as_deref(),
        Backing::Emulated(disk) => disk.directory.as_deref(),
        Backing::Raid0(raid) => {
            let made = |m: &&Backing| matches!(m, Backing::Loop(_) | Backing::Emulated(_));
            raid.members.iter().find(made).and_then(first_directory)
        }
        Backing::Directory(_) | Backing::Device(_) | Backing::Ram(_) => None,
    }
}
