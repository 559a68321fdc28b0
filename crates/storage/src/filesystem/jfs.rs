//! JFS, IBM's.

use super::block::{self, BlockFilesystem, Driver};
use super::block_size::BlockSize;
use super::options::{MountRule, Shown};
use super::{FsckProgram, Tool};

pub(super) static JFS: BlockFilesystem = BlockFilesystem {
    name: "jfs",
    tools: &[
        Tool::new("mkfs.jfs", "jfsutils", Some("jfsutils"), "makes it"),
        Tool::new("jfs_tune", "jfsutils", Some("jfsutils"), "tells its geometry"),
    ],
    runs_on: "a kernel with CONFIG_JFS_FS, such as Debian's and Ubuntu's",
    fsck: FsckProgram::new("jfs_fsck", &["-f", "-n"], "jfsutils"),
    block_size: BlockSize::NONE,
    // -q: does not ask.
    mkfs: |volume| block::arguments(&["-q"], volume),
    label_flag: "-L",
    // The superblock has room for 16, jfs_tune and blkid show 11.
    label_bytes: 11,
    refused: &[
        ("-V", "it only tells the version"),
        ("-j", "the journal would lie on another device"),
    ],
    // mkfs.jfs(8).
    least: |_| 16 << 20,
    stripes_by: None,
    mount: &[],
    rules: &[
        MountRule { asked: "integrity", shown: Shown::Unless(&["nointegrity"]) },
        MountRule { asked: "nodiscard", shown: Shown::Unless(&["discard", "discard=*"]) },
        MountRule { asked: "discard", shown: Shown::As(&["discard=*"]) },
    ],
    driver: Driver::of_its_name,
    properties: |mounted| {
        let volatile =
            ["JFS magic", "JFS state", "Filesystem creation", "File system UUID", "Volume label"];
        block::tool_properties("jfs_tune", &["-l", &mounted.source], &volatile)
    },
    version: ("mkfs.jfs", "-V"),
};
