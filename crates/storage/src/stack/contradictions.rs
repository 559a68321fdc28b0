//! Whether what a storage asks for goes together.

use pgdyno_model::storage::{Backing, DeviceSettings, Storage, Striper};

use super::super::error::StorageError;
use super::super::filesystem;
use super::{Stack, loop_files};

impl Stack {
    /// Whether what is asked for goes together.
    pub(super) fn check(&self) -> Result<(), StorageError> {
        let refuse = |why: String, help: &str| {
            Err(StorageError::Contradiction { storage: self.name.clone(), why, help: help.into() })
        };
        let Storage { backing, filesystem, device, limit, .. } = &self.storage;
        match (backing, filesystem) {
            (Backing::Directory(_), Some(f)) if f.name == "overlay" => {}
            (_, Some(f)) if f.name == "overlay" => {
                return refuse(
                    "an overlay lies over a directory".into(),
                    "name a directory as `backing`, or leave it out",
                );
            }
            (Backing::Directory(_), Some(f)) => {
                return refuse(
                    format!(
                        "a directory is used as it is, and `filesystem = \"{}\"` asks to make one",
                        f.name
                    ),
                    "leave `filesystem` out (or say \"none\", or \"overlay\"), or choose a loop file or a device as `backing`",
                );
            }
            (
                Backing::Loop(_) | Backing::Emulated(_) | Backing::Device(_) | Backing::Raid0(_),
                None,
            ) => {
                return refuse(
                    "a block device carries no files without a filesystem".into(),
                    "add `filesystem`, for example `filesystem = \"ext4\"`",
                );
            }
            (Backing::Ram(_), None) if *device != DeviceSettings::default() || limit.is_some() => {
                return refuse(
                    "a tmpfs lies on no device that could be set or limited".into(),
                    "add a `filesystem`, or leave `device` and `limit` out",
                );
            }
            _ => {}
        }
        if let Backing::Raid0(raid) = backing {
            if raid.members.len() < 2 {
                return refuse(
                    format!("a RAID-0 of {} members stripes nothing", raid.members.len()),
                    "name two or more",
                );
            }
            let joins = |m: &Backing| {
                matches!(m, Backing::Loop(_) | Backing::Emulated(_) | Backing::Device(_))
            };
            if !raid.members.iter().all(joins) {
                return refuse(
                    "a RAID-0 joins loop files, emulated disks and devices only".into(),
                    "name such as its members",
                );
            }
            let named = raid
                .members
                .iter()
                .flat_map(Backing::devices)
                .collect::<std::collections::BTreeSet<_>>();
            if named.len() != self.named().len() {
                return refuse("a device is named twice".into(), "name each member once");
            }
            let kind = filesystem.as_ref().map_or("", |f| f.name.as_str());
            if let Some(by @ (Striper::Btrfs | Striper::Zfs)) = raid.by
                && by.name() != kind
            {
                return refuse(
                    format!("{} does not stripe for `filesystem = \"{kind}\"`", by.name()),
                    "choose mdadm or LVM in `by`, or leave it out",
                );
            }
            if raid.chunk.is_some_and(|c| !c.0.is_power_of_two() || c.0 < 4096) {
                return refuse(
                    "a stripe's chunk is a power of two, at least 4 KiB".into(),
                    "choose another `chunk`, for example 64 KiB",
                );
            }
        }
        let sectors = loop_files(backing).into_iter().map(|f| f.sector_size);
        let sectors =
            sectors.chain(backing.emulated().into_iter().map(|d| d.sector_size)).flatten();
        if let Some(size) = sectors.into_iter().find(|s| ![512, 4096].contains(s)) {
            return refuse(format!("a sector size of {size} bytes"), "choose 512 or 4096");
        }
        for disk in backing.emulated() {
            if disk.size.0 % 4096 != 0 || disk.size.0 == 0 {
                return refuse(
                    format!("an emulated disk of {} bytes", disk.size.0),
                    "choose a `size` that is a multiple of 4 KiB",
                );
            }
        }
        if device.trim && filesystem.as_ref().is_some_and(|f| f.name == "zfs") {
            return refuse(
                "ZFS does not answer `fstrim`, which `device.trim` runs before every trial".into(),
                "leave `trim` out, and with OpenZFS set `autotrim` in `pool`",
            );
        }
        if let Some(choice) = filesystem {
            let failed = |source| StorageError::Filesystem {
                storage: self.name.clone(),
                source: Box::new(source),
                left: Vec::new(),
            };
            let filesystem = filesystem::by_name(&choice.name).map_err(failed)?;
            filesystem.check(&self.volume(&self.parts(), choice)).map_err(failed)?;
        }
        Ok(())
    }
}
