//! ReiserFS version 3; Linux 6.13 and later have it no more.

use super::block::{self, BlockFilesystem, Driver};
use super::block_size::BlockSize;
use super::options::{MountRule, Shown};
use super::{FsckProgram, Tool};

pub(super) static REISERFS: BlockFilesystem = BlockFilesystem {
    name: "reiserfs",
    tools: &[
        Tool::new("mkfs.reiserfs", "reiserfsprogs", None, "makes it"),
        Tool::new("debugreiserfs", "reiserfsprogs", None, "tells its geometry"),
    ],
    runs_on: "Linux 6.12 or earlier with CONFIG_REISERFS_FS, such as Debian 12's; Linux 6.13 \
              removed it",
    fsck: FsckProgram::new("reiserfsck", &["--check", "--yes"], "reiserfsprogs"),
    block_size: BlockSize { flags: &["-b", "--block-size"], larger_since: None },
    // -q: does not ask.
    mkfs: |volume| block::arguments(&["-q"], volume),
    label_flag: "-l",
    label_bytes: 15,
    refused: &[
        ("--label", "by its label pgdyno knows again what it made"),
        ("-V", "it only tells the version"),
        ("-j", "the journal would lie on another device"),
        ("--journal-device", "the journal would lie on another device"),
    ],
    least: |_| 0,
    stripes_by: None,
    mount: &[],
    rules: &[
        MountRule { asked: "barrier=flush", shown: Shown::Unless(&["barrier=none"]) },
        MountRule { asked: "data=ordered", shown: Shown::Unless(&["data=*"]) },
        MountRule { asked: "tails=off", shown: Shown::As(&["notail"]) },
    ],
    driver: Driver::of_its_name,
    properties: |mounted| {
        let volatile =
            ["UUID", "LABEL", "Free blocks", "Mount count", "Last check", "Filesystem state"];
        block::tool_properties("debugreiserfs", &[&mounted.source], &volatile)
    },
    version: ("mkfs.reiserfs", "-V"),
};
