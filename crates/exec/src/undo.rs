//! Undo steps: the journal's description of how a thing is taken down or a setting put back.
//!
//! The list of verbs is closed. They hold names and paths and no commands, so that nothing in the
//! journal is ever run. An [`Executor`](crate::executor::Executor) executes undo steps like all
//! other steps.

use std::fmt;
use std::path::PathBuf;

use pgdyno_model::raid::{RaidVolume, WritePolicy};
use serde::{Deserialize, Serialize};

use crate::device::identity::BlockDevice;
use crate::quote::quote_path;
use crate::service_paths::mount_point_of;

/// One undo step. Each one also succeeds where there is nothing to undo.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "verb")]
#[allow(missing_docs, reason = "the names say it")]
pub enum Undo {
    /// Unmounts a filesystem, if that very one is mounted there.
    Unmount {
        target: PathBuf,
        /// Filesystem type, as `mount -t` wants it.
        filesystem: String,
        /// The block device, or the filesystem's own kind of source.
        source: PathBuf,
    },
    /// Detaches every loop device over an image, and removes the link to it.
    DetachLoop {
        image: PathBuf,
        /// The symbolic link that leads to the device.
        link: PathBuf,
    },
    /// Unmounts an emulated disk, and waits until the process that serves it has ended.
    StopDisk {
        /// The disk's own directory.
        directory: PathBuf,
    },
    /// Stops the md array `/dev/md/NAME`.
    StopArray { name: String },
    /// Removes a volume group of LVM's, and the labels from its members.
    RemoveVolumeGroup {
        name: String,
        members: Vec<PathBuf>,
        /// The user's devices among them, as they were looked at.
        #[serde(default)]
        looked_at: Vec<BlockDevice>,
    },
    /// Destroys a pool of ZFS.
    DestroyPool { name: String },
    /// Removes the signatures from a device, if they bear pgdyno's label.
    EraseLabelled {
        device: PathBuf,
        label: String,
        /// The device as it was looked at before it was written; none where an earlier version did
        /// not note it.
        looked_at: Option<BlockDevice>,
    },
    /// Writes files of the kernel's back, in this order.
    WriteKernelFiles {
        /// The files; each lies in sysfs or in a control group's filesystem.
        files: Vec<KernelFileChange>,
    },
    /// Switches a drive's volatile write cache back.
    SetDriveCache {
        /// The drive: `/dev/sda`.
        device: PathBuf,
        /// The disk's sequence number, which no other disk of that boot has; none where it was not
        /// known.
        sequence: Option<u64>,
        /// Whether it was on.
        on: bool,
    },
    /// Sets the write cache of a RAID controller's volume back.
    SetRaidCache {
        volume: RaidVolume,
        /// Policy before pgdyno changed it.
        policy: WritePolicy,
    },
    /// Runs the `restore` command of the user's own hook. Only the process that ran the hook does
    /// so; a later process asks the user to run it.
    RunHook {
        /// The storage's name in the experiment file; empty where an earlier version did not note
        /// it.
        storage: String,
    },
}

/// A text that was written to a file of the kernel's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelFileChange {
    /// Path of the file.
    pub file: PathBuf,
    /// Content before pgdyno wrote the file.
    pub was: String,
    /// Content that pgdyno wrote; none for a file that the kernel changed along with the one before
    /// it in the list.
    pub set: Option<String>,
}

impl Undo {
    /// Tells whether it puts a setting back. Only such steps are executed for a journalled setting.
    pub fn is_of_setting(&self) -> bool {
        matches!(
            self,
            Self::WriteKernelFiles { .. } | Self::SetDriveCache { .. } | Self::SetRaidCache { .. }
        )
    }

    /// Tells whether the steps after it are executed even if it fails. An array or a volume group
    /// may never have been made; later steps notice if something still holds its devices.
    pub fn may_fail(&self) -> bool {
        matches!(self, Self::StopArray { .. } | Self::RemoveVolumeGroup { .. })
    }

    /// Tells whether it is still needed after a restart of the machine. A RAID controller keeps its
    /// settings, for example.
    pub fn outlives_boot(&self) -> bool {
        !matches!(self, Self::WriteKernelFiles { .. } | Self::SetDriveCache { .. })
    }
}

impl fmt::Display for Undo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unmount { target, .. } => write!(f, "unmount {}", quote_path(target)),
            Self::DetachLoop { link, .. } => {
                let link = quote_path(link);
                write!(f, "run: losetup --detach (the device of {link})\nremove {link}")
            }
            Self::StopDisk { directory } => {
                let point = mount_point_of(directory);
                write!(f, "unmount {} (the process that serves it ends)", quote_path(&point))
            }
            Self::StopArray { name } => write!(f, "run: mdadm --stop /dev/md/{name}"),
            Self::RemoveVolumeGroup { name, members, .. } => {
                write!(f, "run: vgremove --force --yes {name}\nrun: pvremove")?;
                members.iter().try_for_each(|member| write!(f, " {}", quote_path(member)))
            }
            Self::DestroyPool { name } => {
                write!(f, "run, if there is such a pool: zpool destroy {name}")
            }
            Self::EraseLabelled { device, label, looked_at } => {
                let node = looked_at.as_ref().map_or_else(|| device.clone(), BlockDevice::node);
                let device = quote_path(&node);
                write!(
                    f,
                    "run, if {device} bears the label {label}: wipefs --all {device}, then clear \
                     its first and last MiB"
                )
            }
            Self::WriteKernelFiles { files } => {
                let files: Vec<String> = files.iter().map(|w| quote_path(&w.file)).collect();
                write!(f, "write {} back as before", files.join(", "))
            }
            Self::SetDriveCache { device, on, .. } => {
                let state = if *on { "on" } else { "off" };
                write!(f, "switch the write cache of {} {state}", quote_path(device))
            }
            Self::SetRaidCache { volume, policy } => {
                write!(f, "set the write cache of {volume} to {}", policy.name())
            }
            Self::RunHook { storage } => {
                write!(f, "run the commands of `storage.{storage}.device.hook.restore`")
            }
        }
    }
}
