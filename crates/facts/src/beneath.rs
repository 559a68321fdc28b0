//! Filesystems beneath the one that a directory lies on.

use std::path::PathBuf;

use pgdyno_exec::mountinfo::{self, MountEntry};
use pgdyno_model::facts::{BlockDevice, FilesystemBeneath};

/// Returns the filesystems beneath `mount`, which lies on `devices`: the one that holds an
/// overlay's upper directory, those that hold the files of loop devices, and so on to the bottom.
///
/// An upper directory that cannot be seen from here, as in a container, ends the way down.
pub(super) fn beneath(
    mounts: &[MountEntry],
    mount: &MountEntry,
    devices: &[&BlockDevice],
) -> Vec<FilesystemBeneath> {
    let files = devices.iter().filter_map(|device| device.backing.as_ref());
    let files = files.map(|backing| PathBuf::from(&backing.file));
    let mut found = Vec::new();
    let mut known = vec![&mount.point];
    for held in mount.upper_directory().into_iter().chain(files) {
        let mut held = Some(held);
        while let Some(path) = held.take() {
            let Some(under) = mountinfo::holding(mounts, &path) else { break };
            if known.contains(&&under.point) {
                break;
            }
            known.push(&under.point);
            found.push(FilesystemBeneath {
                holds: path.display().to_string(),
                filesystem: under.filesystem.clone(),
                mount_point: under.point.display().to_string(),
                mount_options: under.options().join(","),
            });
            held = under.upper_directory();
        }
    }
    found
}

/// Returns the mount that has an overlay's files, as far down as can be seen; `mount` itself if it
/// is no overlay.
pub(super) fn under_overlays<'a>(
    mounts: &'a [MountEntry],
    mount: &'a MountEntry,
) -> &'a MountEntry {
    let under = |mount: &MountEntry| mountinfo::holding(mounts, &mount.upper_directory()?);
    let mut lowest = mount;
    // overlayfs allows two of them on each other. One that is found in itself, as in a container,
    // leads nowhere.
    for _ in 0..2 {
        let Some(deeper) = under(lowest).filter(|under| under.point != lowest.point) else { break };
        lowest = deeper;
    }
    lowest
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use pgdyno_model::facts::LoopFacts;

    use super::*;

    #[test]
    fn the_way_down_ends_at_a_filesystem_on_a_disk_or_in_memory() {
        let here = std::env::temp_dir().canonicalize().unwrap();
        let here = here.display();
        let mounts = mountinfo::parse(&format!(
            "20 1 254:1 / / rw - ext4 /dev/vda1 rw,nobarrier\n\
             21 20 0:40 / /over rw - overlay overlay \
             rw,lowerdir=/l,upperdir={here},workdir=/w,fsync=volatile\n\
             22 20 7:1 / /looped rw - ext4 /dev/loop1 rw\n\
             23 20 0:41 / /memory rw - tmpfs tmpfs rw\n\
             24 20 0:42 / /blind rw - overlay overlay rw,upperdir=relative\n"
        ));
        let at = |point: &str| mounts.iter().find(|m| m.point == Path::new(point)).unwrap();
        let types = |found: Vec<FilesystemBeneath>| -> Vec<String> {
            found.into_iter().map(|f| format!("{} {}", f.filesystem, f.mount_point)).collect()
        };
        assert_eq!(types(beneath(&mounts, at("/over"), &[])), ["ext4 /"]);
        assert_eq!(under_overlays(&mounts, at("/over")).point, Path::new("/"));
        assert_eq!(under_overlays(&mounts, at("/blind")).point, Path::new("/blind"));
        assert!(beneath(&mounts, at("/blind"), &[]).is_empty());
        let on_memory = BlockDevice {
            backing: Some(LoopFacts { file: "/memory/image".into(), ..LoopFacts::default() }),
            ..BlockDevice::default()
        };
        assert_eq!(types(beneath(&mounts, at("/looped"), &[&on_memory])), ["tmpfs /memory"]);
        let on_overlay = BlockDevice {
            backing: Some(LoopFacts { file: "/over/image".into(), ..LoopFacts::default() }),
            ..BlockDevice::default()
        };
        let found = beneath(&mounts, at("/looped"), &[&on_overlay]);
        assert_eq!(
            found[0].mount_options,
            format!("rw,lowerdir=/l,upperdir={here},workdir=/w,fsync=volatile")
        );
        assert_eq!(types(found), ["overlay /over", "ext4 /"]);
    }
}
