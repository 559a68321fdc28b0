//! bcachefs; outside of the kernel's own tree since Linux 6.18, as a module of its own.

use super::block::{self, BlockFilesystem, Driver};
use super::block_size::BlockSize;
use super::options::{MountRule, Shown};
use super::{FsckProgram, Tool};

pub(super) static BCACHEFS: BlockFilesystem = BlockFilesystem {
    name: "bcachefs",
    tools: &[
        Tool::new("mkfs.bcachefs", "bcachefs-tools", Some("bcachefs-tools"), "makes it"),
        Tool::new("bcachefs", "bcachefs-tools", Some("bcachefs-tools"), "tells its geometry"),
    ],
    runs_on: "Linux 6.7 to 6.17 with CONFIG_BCACHEFS_FS, or a later one with the project's own \
              module",
    fsck: FsckProgram::new("bcachefs", &["fsck", "-n"], "bcachefs-tools"),
    block_size: BlockSize::NONE,
    mkfs: |volume| block::arguments(&["-q"], volume),
    label_flag: "-L",
    label_bytes: 32,
    refused: &[
        ("--fs_label", "by its label pgdyno knows again what it made"),
        ("-f", "it overwrites what is there"),
        ("--force", "it overwrites what is there"),
        ("--discard", "the blocks of a preallocated file would be given back"),
    ],
    least: |_| 0,
    stripes_by: None,
    mount: &[],
    rules: &[MountRule { asked: "nodiscard", shown: Shown::Unless(&["discard"]) }],
    driver: Driver::of_its_name,
    properties: |mounted| {
        let volatile = [
            "External UUID",
            "Internal UUID",
            "Label",
            "Created",
            "Sequence number",
            "Time of last",
        ];
        block::tool_properties("bcachefs", &["show-super", &mounted.source], &volatile)
    },
    version: ("bcachefs", "version"),
};
