//! ext2, ext3 and ext4: one driver today (that of ext4), one set of programs, three histories.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use pgdyno_exec::mountinfo::MountEntry;

use super::block::{self, BlockFilesystem, Driver};
use super::block_size::BlockSize;
use super::options::{MountRule, Shown};
use super::{FilesystemError, FsckProgram, Tool, Volume};

pub(super) static EXT2: BlockFilesystem = ext("ext2", &tools("mkfs.ext2"));
pub(super) static EXT3: BlockFilesystem = ext("ext3", &tools("mkfs.ext3"));
pub(super) static EXT4: BlockFilesystem = ext("ext4", &tools("mkfs.ext4"));

const fn tools(mkfs: &'static str) -> [Tool; 2] {
    let debian = "e2fsprogs";
    let fedora = Some("e2fsprogs");
    [
        Tool::new(mkfs, debian, fedora, "makes it"),
        Tool::new("dumpe2fs", debian, fedora, "tells its geometry"),
    ]
}

const fn ext(name: &'static str, tools: &'static [Tool; 2]) -> BlockFilesystem {
    BlockFilesystem {
        name,
        tools,
        runs_on: "a kernel with CONFIG_EXT4_FS, as nearly every one has it",
        fsck: FsckProgram::new("e2fsck", &["-f", "-n"], "e2fsprogs"),
        block_size: BlockSize { flags: &["-b"], larger_since: Some((6, 19)) },
        mkfs,
        label_flag: "-L",
        label_bytes: 16,
        refused: &[
            ("-n", "it only shows what would be made"),
            ("-S", "it writes superblocks over what is there and makes no filesystem"),
            ("-F", "it forces what mke2fs holds to be wrong"),
            ("-V", "it only tells the version"),
        ],
        // 224 KiB with blocks of 4096 bytes (mke2fs 1.47); the rest is for pgdyno's own look at
        // both ends.
        least: |_| 1 << 20,
        stripes_by: None,
        mount: &[],
        rules: &[
            MountRule { asked: "dioread_lock", shown: Shown::As(&["nodioread_nolock"]) },
            MountRule { asked: "barrier=1", shown: Shown::As(&["barrier"]) },
            MountRule { asked: "barrier=0", shown: Shown::As(&["nobarrier"]) },
            MountRule { asked: "auto_da_alloc=1", shown: Shown::As(&["auto_da_alloc"]) },
            MountRule { asked: "auto_da_alloc=0", shown: Shown::As(&["noauto_da_alloc"]) },
            MountRule { asked: "init_itable", shown: Shown::As(&["init_itable=*"]) },
        ],
        driver,
        properties,
        version: ("mke2fs", "-V"),
    }
}

/// Blocks of 4096 bytes also on small volumes, where mke2fs takes 1024, so that a small trial
/// stands for a large one; the inode tables and the journal written now, not by a thread of the
/// kernel's while trials run.
fn mkfs(volume: &Volume<'_>) -> Vec<String> {
    let mut extended = "lazy_itable_init=0,lazy_journal_init=0,nodiscard".to_owned();
    let mut others = Vec::new();
    let mut user = volume.choice.mkfs.iter();
    // mke2fs heeds the last `-E` alone, so that the user's are joined to ours.
    while let Some(argument) = user.next() {
        let joined = match argument.strip_prefix("-E") {
            Some("") => user.next().cloned(),
            Some(value) => Some(value.to_owned()),
            None => {
                others.push(argument.clone());
                continue;
            }
        };
        if let Some(value) = joined {
            extended = format!("{extended},{value}");
        }
    }
    let own = ["-q", "-b", "4096", "-E", &extended];
    own.into_iter().map(str::to_owned).chain(others).collect()
}

/// Returns the driver that lists the filesystem under `/sys/fs`, and its own list of options, which
/// names the defaults too.
fn driver(mounted: &MountEntry) -> Driver {
    let device = mounted.device().unwrap_or_default();
    let names = ["ext4", "ext3", "ext2"];
    let name =
        names.into_iter().find(|name| Path::new("/sys/fs").join(name).join(&device).exists());
    let list = name.map(|name| Path::new("/proc/fs").join(name).join(&device).join("options"));
    let text = list.and_then(|path| fs::read_to_string(path).ok()).unwrap_or_default();
    Driver {
        name: name.unwrap_or(&mounted.filesystem).to_owned(),
        options: text.lines().map(|line| line.trim().to_owned()).collect(),
    }
}

fn properties(mounted: &MountEntry) -> Result<BTreeMap<String, String>, FilesystemError> {
    let volatile = [
        "Filesystem volume name",
        "Last ",
        "Filesystem UUID",
        "Filesystem state",
        "Filesystem created",
        "Filesystem magic",
        "Filesystem OS",
        "Free ",
        "Mount count",
        "Check interval",
        "Lifetime writes",
        "Reserved blocks ",
        "Journal UUID",
        "Journal inode",
        "Journal backup",
        "Journal sequence",
        "Journal start",
        "Directory Hash Seed",
        "First orphan",
        "Orphan file inode",
    ];
    let mut properties = block::tool_properties("dumpe2fs", &["-h", &mounted.source], &volatile)?;
    // Checksums of superblock and journal; `Checksum type` and `Journal checksum type` stay.
    properties.remove("Checksum");
    properties.remove("Journal checksum");
    // A mounted journal is always one to be recovered, until it is unmounted.
    if let Some(features) = properties.get_mut("Filesystem features") {
        *features = features.replace("needs_recovery ", "");
    }
    Ok(properties)
}
