//! Details of filesystems with several devices or without writes in place: btrfs and ZFS.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;

use pgdyno_exec::mountinfo::{self, MountEntry};
use pgdyno_exec::tool::{ToolError, ask_tool};
use rustix::fs::IFlags;

use super::device::{named, of_mount};
use super::health::TOOL_LIMIT;
use super::tree::Tree;

/// Properties of a filesystem, as its own files or programs report them.
#[derive(Debug, Default)]
pub(super) struct FilesystemDetails {
    /// Properties by the filesystem's own names.
    pub(super) geometry: BTreeMap<String, String>,
    /// Kernel names of the filesystem's devices, if it knows them better than the mount does.
    pub(super) devices: Vec<String>,
    /// Facts that could not be found out, and why.
    pub(super) unavailable: Vec<String>,
}

/// Properties of ZFS that affect a database.
const PROPERTIES: &[&str] = &[
    "atime",
    "checksum",
    "compression",
    "copies",
    "logbias",
    "primarycache",
    "recordsize",
    "redundant_metadata",
    "sync",
];

/// Tells whether `filesystem` is ZFS, the kernel's or zfs-fuse.
pub fn is_zfs(filesystem: &str) -> bool {
    matches!(filesystem, "zfs" | "fuse.zfs")
}

/// Reads the details of the filesystem at `mount`, from files alone unless `programs` may be run.
pub(super) fn details(
    tree: &Tree,
    mounts: &[MountEntry],
    mount: &MountEntry,
    programs: bool,
) -> FilesystemDetails {
    match mount.filesystem.as_str() {
        "btrfs" => btrfs(tree, mount),
        // ZFS has no files for it.
        other if programs && is_zfs(other) => zfs(tree, mounts, &mount.source),
        _ => FilesystemDetails::default(),
    }
}

/// Returns the attributes of chattr(1) that `directory` has; none on a filesystem without them.
pub(super) fn flags(directory: &Path) -> Option<IFlags> {
    rustix::fs::ioctl_getflags(File::open(directory).ok()?).ok()
}

/// Returns the attributes that new files in `directory` inherit from it, for
/// [`StorageFacts::attributes`]. `flags` are the directory's.
///
/// [`StorageFacts::attributes`]: pgdyno_model::facts::StorageFacts::attributes
pub(super) fn attributes(directory: &Path, flags: Option<IFlags>) -> Vec<String> {
    const FLAGS: [(IFlags, &str); 4] = [
        (IFlags::SYNC, "+S"),
        (IFlags::DIRSYNC, "+D"),
        (IFlags::JOURNALING, "+j"),
        (IFlags::COMPRESSED, "+c"),
    ];
    let set = FLAGS.iter().filter(|(flag, _)| flags.is_some_and(|flags| flags.contains(*flag)));
    let mut all: Vec<String> = set.map(|(_, letter)| (*letter).to_owned()).collect();
    let mut value = [0; 64];
    if let Ok(length) = rustix::fs::getxattr(directory, "btrfs.compression", &mut value) {
        let value = String::from_utf8_lossy(&value[..length]);
        all.push(format!("compression={value}"));
    }
    all
}

fn btrfs(tree: &Tree, mount: &MountEntry) -> FilesystemDetails {
    const ALL: &str = "sys/fs/btrfs";
    let mut told = FilesystemDetails::default();
    let Some(first) = named(tree, &mount.source) else { return told };
    let devices = |uuid: &str| tree.names(format!("{ALL}/{uuid}/devices"));
    let Some(uuid) = tree.names(ALL).into_iter().find(|uuid| devices(uuid).contains(&first)) else {
        return told;
    };
    for part in ["data", "metadata"] {
        let folder = format!("{ALL}/{uuid}/allocation/{part}");
        // Beside plain files there is one folder for each profile in use.
        let profiles: Vec<String> = tree
            .names(&folder)
            .into_iter()
            .filter(|n| tree.is_directory(format!("{folder}/{n}")))
            .collect();
        if !profiles.is_empty() {
            told.geometry.insert(part.to_owned(), profiles.join(", "));
        }
    }
    told.devices = devices(&uuid);
    told
}

fn zfs(tree: &Tree, mounts: &[MountEntry], dataset: &str) -> FilesystemDetails {
    let mut told = FilesystemDetails::default();
    let pool = dataset.split('/').next().unwrap_or(dataset);
    match answer("zfs", &["get", "-Hp", "-o", "property,value", "all", dataset]) {
        Ok(text) => told.geometry.extend(properties(&text)),
        Err(why) => told.unavailable.push(format!("the properties of {dataset}: {why}")),
    }
    match answer("zdb", &["-C", pool]).map(|text| ashift(&text)) {
        Ok(Some(shift)) => drop(told.geometry.insert("ashift".to_owned(), shift.to_string())),
        Ok(None) => told.unavailable.push(format!("the ashift of {pool}: zdb -C names none")),
        Err(why) => told.unavailable.push(format!("the ashift of {pool}: {why}")),
    }
    // zfs-fuse has neither option; links are followed here in any case.
    let status =
        answer("zpool", &["status", "-LP", pool]).or_else(|_| answer("zpool", &["status", pool]));
    match status {
        Ok(text) => {
            // A member may be a file: then the pool lies on what the file's filesystem lies on.
            let under =
                |path: &String| of_mount(tree, mountinfo::holding(mounts, Path::new(path))?);
            let (nodes, files): (Vec<_>, Vec<_>) =
                members(&text).into_iter().partition(|path| path.starts_with("/dev/"));
            told.devices = nodes.iter().filter_map(|path| named(tree, path)).collect();
            for device in files.iter().filter_map(under) {
                if !told.devices.contains(&device) {
                    told.devices.push(device);
                }
            }
            if let Some(state) = text.lines().find_map(|l| l.trim().strip_prefix("state: ")) {
                told.geometry.insert("state".to_owned(), state.to_owned());
            }
        }
        Err(why) => told.unavailable.push(format!("the devices of {pool}: {why}")),
    }
    told
}

/// A tool that did not answer the question.
#[derive(Debug, thiserror::Error)]
enum AnswerError {
    /// It failed, and printed nothing.
    #[error("{program} failed without a word")]
    Silent { program: &'static str },
    /// It failed, and printed why.
    #[error("{0}")]
    Refused(String),
    /// It gave no answer at all.
    #[error(transparent)]
    Tool(#[from] ToolError),
}

fn answer(program: &'static str, args: &[&str]) -> Result<String, AnswerError> {
    let answer = ask_tool(program, args, TOOL_LIMIT)?;
    if answer.status.success() {
        return Ok(String::from_utf8_lossy(&answer.stdout).into_owned());
    }
    let words = String::from_utf8_lossy(&answer.stderr);
    let words = words.lines().map(str::trim).collect::<Vec<_>>().join(" ");
    Err(if words.trim().is_empty() {
        AnswerError::Silent { program }
    } else {
        AnswerError::Refused(words)
    })
}

fn properties(text: &str) -> impl Iterator<Item = (String, String)> {
    text.lines()
        .filter_map(|line| line.split_once('\t'))
        .filter(|(name, _)| PROPERTIES.contains(name))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
}

/// Returns the smallest of a pool's devices: it is that one which may be too small.
fn ashift(text: &str) -> Option<u32> {
    text.lines().filter_map(|l| l.trim().strip_prefix("ashift: ")?.trim().parse().ok()).min()
}

/// Returns the paths of a pool's members in `zpool status`: those of its devices, which without
/// `-P` come as names below `/dev`, and those of files. What groups them (`mirror-0`) comes as a
/// path too, of nothing.
fn members(text: &str) -> Vec<String> {
    let table = text.lines().skip_while(|line| !line.trim().starts_with("NAME ")).skip(1);
    table
        .map_while(|line| line.split_whitespace().next())
        .map(|word| if word.starts_with('/') { word.to_owned() } else { format!("/dev/{word}") })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::tree::MadeTree;
    use super::*;

    #[test]
    fn btrfs_names_all_its_devices_and_profiles() {
        let made = MadeTree::new();
        made.files(&[
            ("dev/sdb", ""),
            ("sys/class/block/sdb/size", "8"),
            ("sys/fs/btrfs/features/x", ""),
            ("sys/fs/btrfs/5e1f/allocation/data/raid0/total_bytes", "1"),
            ("sys/fs/btrfs/5e1f/allocation/data/flags", "1"),
            ("sys/fs/btrfs/5e1f/allocation/metadata/raid1/total_bytes", "1"),
        ])
        .links(&[
            ("sys/fs/btrfs/5e1f/devices/sdb", "sys/devices/sdb"),
            ("sys/fs/btrfs/5e1f/devices/sdc", "sys/devices/sdc"),
        ]);
        let mounts = mountinfo::parse("30 22 0:40 / /data rw - btrfs /dev/sdb rw,space_cache=v2\n");
        let told = details(&made.tree(), &mounts, &mounts[0], false);
        assert_eq!(told.devices, ["sdb", "sdc"]);
        assert_eq!((&*told.geometry["data"], &*told.geometry["metadata"]), ("raid0", "raid1"));
    }

    #[test]
    fn zfs_is_read_from_what_its_programs_print() {
        let found: BTreeMap<_, _> =
            properties("type\tfilesystem\nrecordsize\t131072\nsync\tstandard\n").collect();
        assert_eq!(found.len(), 2);
        assert_eq!(found["recordsize"], "131072");
        let config = concat!(
            "        vdev_tree:\n            children[0]:\n                ashift: 13\n",
            "            children[1]:\n                ashift: 9\n",
        );
        assert_eq!((ashift(config), ashift("")), (Some(9), None));
        let status = "  pool: tank\n state: ONLINE\nconfig:\n\
                      \tNAME           STATE\n\
                      \ttank           ONLINE\n\
                      \t  /dev/sdb1    ONLINE       0     0     0\n\
                      \t  /dev/sdc1    ONLINE\n";
        assert_eq!(members(status), ["/dev/tank", "/dev/sdb1", "/dev/sdc1"]);
        let status = "config:\n\n\
                      \tNAME        STATE\n\
                      \ttank        ONLINE\n\
                      \t  mirror-0  ONLINE\n\
                      \t    sdb     ONLINE\n\
                      \t    /pool/a ONLINE\n\n\
                      errors: No known data errors\n";
        assert_eq!(members(status), ["/dev/tank", "/dev/mirror-0", "/dev/sdb", "/pool/a"]);
    }
}
