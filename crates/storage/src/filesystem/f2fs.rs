//! F2FS, for flash.

use pgdyno_exec::tool::run_tool;

use super::block::{self, BlockFilesystem, Driver};
use super::block_size::BlockSize;
use super::options::{MountRule, Shown};
use super::{FsckProgram, Tool};

pub(super) static F2FS: BlockFilesystem = BlockFilesystem {
    name: "f2fs",
    tools: &[
        Tool::new("mkfs.f2fs", "f2fs-tools", Some("f2fs-tools"), "makes it"),
        Tool::new("dump.f2fs", "f2fs-tools", Some("f2fs-tools"), "tells its geometry"),
    ],
    runs_on: "a kernel with CONFIG_F2FS_FS, such as Debian's, Ubuntu's and Fedora's",
    fsck: FsckProgram::new("fsck.f2fs", &["--dry-run"], "f2fs-tools"),
    block_size: BlockSize { flags: &["-b"], larger_since: None },
    // -t 0: does not discard.
    mkfs: |volume| block::arguments(&["-q", "-t", "0"], volume),
    label_flag: "-l",
    label_bytes: 511,
    refused: &[
        ("-c", "it names further devices"),
        ("-f", "it overwrites what is there"),
        ("-V", "it only tells the version"),
    ],
    least: |_| 0,
    stripes_by: None,
    mount: &[],
    rules: &[
        MountRule { asked: "barrier", shown: Shown::Unless(&["nobarrier"]) },
        MountRule { asked: "nodiscard", shown: Shown::Unless(&["discard"]) },
        MountRule { asked: "noextent_cache", shown: Shown::Unless(&["extent_cache"]) },
        MountRule { asked: "fsync_mode=posix", shown: Shown::As(&["fsync_mode=posix"]) },
    ],
    driver: Driver::of_its_name,
    properties: |mounted| {
        let text = run_tool("dump.f2fs", &[&mounted.source])?;
        let geometry = text
            .lines()
            .filter_map(|line| line.strip_prefix("Info: "))
            .map(|l| l.replacen(" = ", ": ", 1));
        let text = geometry.collect::<Vec<_>>().join("\n");
        let volatile =
            ["CKPT", "checkpoint", "superblock encrypt", "MKFS", "FSCK", "Mounted", "Check FS"];
        Ok(block::colon_properties(&text, &volatile))
    },
    version: ("mkfs.f2fs", "-V"),
};
