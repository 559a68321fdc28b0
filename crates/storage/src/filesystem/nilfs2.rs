//! NILFS2, a log-structured filesystem. Its cleaner (`nilfs_cleanerd`) is a daemon that
//! mount.nilfs2 starts; pgdyno mounts without it, so that nothing moves blocks while trials run: a
//! volume that is too small for a trial's writes fills up.

use super::Tool;
use super::block::{self, BlockFilesystem, Driver};
use super::block_size::BlockSize;
use super::options::{MountRule, Shown};

pub(super) static NILFS2: BlockFilesystem = BlockFilesystem {
    name: "nilfs2",
    tools: &[
        Tool::new("mkfs.nilfs2", "nilfs-tools", Some("nilfs-utils"), "makes it"),
        Tool::new("nilfs-tune", "nilfs-tools", Some("nilfs-utils"), "tells its geometry"),
    ],
    runs_on: "a kernel with CONFIG_NILFS2_FS, such as Debian's and Ubuntu's",
    fsck: None,
    block_size: BlockSize { flags: &["-b"], larger_since: None },
    // -K: does not discard.
    mkfs: |volume| block::arguments(&["-q", "-K"], volume),
    label_flag: "-L",
    label_bytes: 80,
    refused: &[
        ("-n", "it only shows what would be made"),
        ("-f", "it overwrites what is there"),
        ("-V", "it only tells the version"),
    ],
    least: |_| 0,
    stripes_by: None,
    mount: &[],
    rules: &[
        MountRule { asked: "barrier", shown: Shown::Unless(&["nobarrier"]) },
        MountRule { asked: "nodiscard", shown: Shown::Unless(&["discard"]) },
        MountRule { asked: "order=relaxed", shown: Shown::Unless(&["order=strict"]) },
        MountRule {
            asked: "errors=remount-ro",
            shown: Shown::Unless(&["errors=continue", "errors=panic"]),
        },
    ],
    driver: Driver::of_its_name,
    properties: |mounted| {
        let volatile = [
            "Filesystem volume name",
            "Filesystem UUID",
            "Filesystem magic",
            "Filesystem state",
            "Filesystem created",
            "Last ",
            "Free ",
            "Mount count",
            "Current checkpoint",
            "CRC seed",
            "CRC check",
        ];
        block::tool_properties("nilfs-tune", &["-l", &mounted.source], &volatile)
    },
    version: ("mkfs.nilfs2", "-V"),
};
