//! The steps that make a stack, and the steps that take it down.

use std::ffi::OsString;

use pgdyno_emulated_disk::DiskServer;
use pgdyno_exec::Step;
use pgdyno_exec::device::claim::Claim;
use pgdyno_exec::image::LoopDevice;
use pgdyno_exec::journal::OwnedResource;
use pgdyno_exec::undo::Undo;
use pgdyno_model::storage::{Backing, DeviceSettings, Raid0, Storage, Striper};

use super::{Below, Image, Stack};
use crate::filesystem::{self, Filesystem};

impl Stack {
    /// Returns the steps that make the stack, in order.
    pub fn steps(&self) -> Vec<Step> {
        let mut steps = Vec::new();
        if self.is_made() {
            let stack =
                OwnedResource::Stack { path: self.home.clone(), undo: self.undo(), plan: None };
            steps.push(Step::MakeMarked { made: stack, mode: 0o711, owner: None });
            for path in self.further_directories() {
                steps.push(Step::MakeMarked {
                    made: OwnedResource::Directory { path },
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
        steps.extend(self.claim_steps());
        steps.extend(self.join().into_iter().map(|step| self.holding(step)));
        let made = self.with_filesystem(Filesystem::make).unwrap_or_default();
        steps.extend(made.into_iter().map(|step| self.holding(step)));
        steps.extend(self.settings().into_iter().map(|setting| self.holding(Step::Set(setting))));
        steps
    }

    /// Returns the steps that look at the named devices once more, and clear them where that was
    /// asked.
    fn claim_steps(&self) -> Vec<Step> {
        let mut steps = Vec::new();
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
        steps
    }

    /// Returns `step`, executed while the named devices are held open.
    fn holding(&self, step: Step) -> Step {
        match self.looked_at.is_empty() {
            true => step,
            false => Step::Holding { devices: self.looked_at.clone(), step: Box::new(step) },
        }
    }

    /// Returns the steps that set its devices as `device` says, with the limit on them.
    pub fn setting_steps(&self, device: &DeviceSettings) -> Vec<Step> {
        let storage = Storage { device: device.clone(), ..self.storage.clone() };
        let settings = Self { storage, ..self.clone() }.settings();
        settings.into_iter().map(|setting| self.holding(Step::Set(setting))).collect()
    }

    /// Returns the steps that take the stack down, in order.
    pub fn take_down_steps(&self) -> Vec<Step> {
        let mut steps: Vec<Step> = self.settings().into_iter().rev().map(Step::PutBack).collect();
        steps.extend(self.with_filesystem(Filesystem::take_down).unwrap_or_default());
        steps.extend(self.part());
        for Image { below, device, .. } in self.images().into_iter().rev() {
            steps.push(detach(device));
            if let Below::Disk(server) = below {
                steps.push(Step::Undo(Undo::StopDisk { directory: server.directory }));
            }
        }
        steps.extend(self.memory().map(|mount| filesystem::unmount(&mount)));
        let label = self
            .with_filesystem(|filesystem, volume| filesystem.label(volume.label))
            .unwrap_or_default();
        for device in self.named() {
            // A RAID bears the stack's own label, a filesystem what it has room for.
            let labels = if self.is_joined() { self.label() } else { label.clone() };
            let looked_at = self.looked_at.iter().find(|d| d.path == device).cloned();
            steps.push(Step::Undo(Undo::EraseLabelled { device, looked_at, label: labels }));
        }
        steps
            .extend(self.further_directories().into_iter().map(|path| Step::RemoveMarked { path }));
        if self.is_made() {
            steps.push(Step::RemoveMarked { path: self.home.clone() });
        }
        steps
    }

    /// Returns the undo steps that the journal keeps, from [`Self::take_down_steps`]. Left out are
    /// the stack's directories, which `marked` removes, and its settings, which have entries of
    /// their own.
    pub fn undo(&self) -> Vec<Undo> {
        let undo = |step| if let Step::Undo(undo) = step { Some(undo) } else { None };
        self.take_down_steps().into_iter().filter_map(undo).collect()
    }

    /// Returns the stack's emulated disks, in the order of the experiment file.
    pub fn disks(&self) -> Vec<DiskServer> {
        let disk = |image: Image| match image.below {
            Below::Disk(server) => Some(server),
            Below::File(_) => None,
        };
        self.images().into_iter().filter_map(disk).collect()
    }

    /// Returns the steps that take its filesystem off its devices, and of emulated disks the loop
    /// devices off them.
    pub(crate) fn unmount_steps(&self) -> Vec<Step> {
        let mut steps = self.with_filesystem(Filesystem::take_down).unwrap_or_default();
        steps.extend(self.emulated_loops().into_iter().rev().map(detach));
        steps
    }

    /// Returns the steps that undo [`Self::unmount_steps`].
    pub(crate) fn mount_steps(&self) -> Vec<Step> {
        let mut steps: Vec<Step> =
            self.emulated_loops().into_iter().map(Step::AttachLoop).collect();
        let made = self.with_filesystem(Filesystem::make).unwrap_or_default();
        let mounts = made.into_iter().filter(|step| matches!(step, Step::Mount(_)));
        steps.extend(mounts.map(|step| self.holding(step)));
        steps
    }

    /// Tells whether [`Self::unmount_steps`] and [`Self::mount_steps`] do for it: the kernel mounts
    /// it, and it is no volume that has to be put together first.
    pub(crate) fn is_remountable(&self) -> bool {
        let steps = self.with_filesystem(Filesystem::make).unwrap_or_default();
        !self.is_in_directory()
            && !self.is_joined()
            && steps.iter().any(|step| matches!(step, Step::Mount(_)))
    }

    fn emulated_loops(&self) -> Vec<LoopDevice> {
        let images = self.images().into_iter();
        images.filter(|i| matches!(i.below, Below::Disk(_))).map(|i| i.device).collect()
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
}

fn detach(device: LoopDevice) -> Step {
    let LoopDevice { image, link, .. } = device;
    Step::Undo(Undo::DetachLoop { image, link })
}

/// Turns the plan of a stack, which journals of earlier versions held, into the steps that undo it;
/// none where it cannot be read.
pub fn undo_of_plan(plan: &serde_json::Value) -> Option<Vec<Undo>> {
    serde_json::from_value::<Stack>(plan.clone()).ok().map(|stack| stack.undo())
}
