//! Checks that a storage does not contradict itself.

use std::collections::BTreeSet;

use pgdyno_exec::setting::module;
use pgdyno_model::storage::{Backing, DeviceSettings, Raid0, Storage, Striper};

use super::{Stack, loop_files};
use crate::error::StorageError;
use crate::filesystem;

/// Checks that `stack` does not contradict itself.
///
/// # Errors
/// [`StorageError::Contradiction`], or the filesystem's refusal.
pub(super) fn check(stack: &Stack) -> Result<(), StorageError> {
    let Storage { backing, filesystem, .. } = &stack.storage;
    let mut found = of_backing(&stack.storage);
    if let Backing::Raid0(raid) = backing {
        found = found.or_else(|| of_raid(stack, raid));
    }
    let found = found.or_else(|| of_sizes(&stack.storage)).or_else(|| of_modules(stack));
    let found = found.or_else(|| of_raid_cache(&stack.storage.device));
    if let Some((why, help)) = found {
        return Err(StorageError::contradiction(&stack.name, why, help));
    }
    if let Some(choice) = filesystem {
        let failed = |source| StorageError::filesystem(&stack.name, source, Vec::new());
        let filesystem = filesystem::by_name(&choice.name).map_err(failed)?;
        filesystem.check(&stack.volume(&stack.parts(), choice)).map_err(failed)?;
    }
    Ok(())
}

/// A contradiction and its remedy.
type Contradiction = (String, &'static str);

fn of_backing(storage: &Storage) -> Option<Contradiction> {
    let Storage { backing, filesystem, device, limit, .. } = storage;
    Some(match (backing, filesystem) {
        (Backing::Directory(_), Some(f)) if f.name == "overlay" => return None,
        (_, Some(f)) if f.name == "overlay" => (
            "an overlay lies over a directory".into(),
            "name a directory as `backing`, or leave it out",
        ),
        (Backing::Directory(_), Some(f)) => (
            format!(
                "a directory is used as it is, and `filesystem = \"{}\"` asks to make one",
                f.name
            ),
            "leave `filesystem` out (or say \"none\", or \"overlay\"), or choose a loop file or a \
             device as `backing`",
        ),
        (
            Backing::Loop(_) | Backing::Emulated(_) | Backing::Device(_) | Backing::Raid0(_),
            None,
        ) => (
            "a block device carries no files without a filesystem".into(),
            "add `filesystem`, for example `filesystem = \"ext4\"`",
        ),
        (Backing::Ram(_), None) if *device != DeviceSettings::default() || limit.is_some() => (
            "a tmpfs lies on no device that could be set or limited".into(),
            "add a `filesystem`, or leave `device` and `limit` out",
        ),
        _ => return None,
    })
}

fn of_raid(stack: &Stack, raid: &Raid0) -> Option<Contradiction> {
    if raid.members.len() < 2 {
        let why = format!("a RAID-0 of {} members stripes nothing", raid.members.len());
        return Some((why, "name two or more"));
    }
    let joins =
        |m: &Backing| matches!(m, Backing::Loop(_) | Backing::Emulated(_) | Backing::Device(_));
    if !raid.members.iter().all(joins) {
        let why = "a RAID-0 joins loop files, emulated disks and devices only".into();
        return Some((why, "name such as its members"));
    }
    let named = raid.members.iter().flat_map(Backing::devices).collect::<BTreeSet<_>>();
    if named.len() != stack.named().len() {
        return Some(("a device is named twice".into(), "name each member once"));
    }
    let kind = stack.storage.filesystem.as_ref().map_or("", |f| f.name.as_str());
    if let Some(by @ (Striper::Btrfs | Striper::Zfs)) = raid.by
        && by.name() != kind
    {
        let why = format!("{} does not stripe for `filesystem = \"{kind}\"`", by.name());
        return Some((why, "choose mdadm or LVM in `by`, or leave it out"));
    }
    raid.chunk.filter(|c| !c.0.is_power_of_two() || c.0 < 4096).map(|_| {
        let why = "a stripe's chunk is a power of two, at least 4 KiB".into();
        (why, "choose another `chunk`, for example 64 KiB")
    })
}

fn of_modules(stack: &Stack) -> Option<Contradiction> {
    let is_value = |value: &str| !value.is_empty() && !value.contains(['\n', '\0']);
    let mut wrong = stack.module_parameters().filter(|(module, parameter, value)| {
        !(module::is_name(module) && module::is_name(parameter) && is_value(value))
    });
    wrong.next().map(|(module, parameter, value)| {
        let why = format!("`{module}.{parameter}` = `{value}` names no parameter of a module");
        (why, "names have letters, digits and `_`, as below /sys/module; a value is one line")
    })
}

fn of_raid_cache(device: &DeviceSettings) -> Option<Contradiction> {
    (device.raid_cache.is_some() && device.raid_volume.is_none()).then(|| {
        let why = "`device.raid_cache` names no RAID controller's volume".into();
        (why, "add `device.raid_volume = { tool = \"storcli\", controller = 0, volume = 0 }`")
    })
}

fn of_sizes(storage: &Storage) -> Option<Contradiction> {
    let Storage { backing, filesystem, device, .. } = storage;
    let sectors = loop_files(backing).into_iter().map(|f| f.sector_size);
    let mut sectors =
        sectors.chain(backing.emulated().into_iter().map(|d| d.sector_size)).flatten();
    if let Some(size) = sectors.find(|s| ![512, 4096].contains(s)) {
        return Some((format!("a sector size of {size} bytes"), "choose 512 or 4096"));
    }
    let mut offsets = loop_files(backing).into_iter().filter_map(|file| file.offset);
    if let Some(offset) = offsets.find(|offset| offset.0 % 512 != 0 || offset.0 > 1 << 30) {
        let why = format!("a loop device that begins at byte {} of its file", offset.0);
        return Some((why, "choose an `offset` that is a multiple of 512, of at most 1 GiB"));
    }
    for disk in backing.emulated() {
        if disk.size.0 % 4096 != 0 || disk.size.0 == 0 {
            let why = format!("an emulated disk of {} bytes", disk.size.0);
            return Some((why, "choose a `size` that is a multiple of 4 KiB"));
        }
    }
    (device.trim && filesystem.as_ref().is_some_and(|f| f.name == "zfs")).then(|| {
        let why = "ZFS does not answer `fstrim`, which `device.trim` runs before every trial";
        (why.into(), "leave `trim` out, and with OpenZFS set `autotrim` in `pool`")
    })
}
