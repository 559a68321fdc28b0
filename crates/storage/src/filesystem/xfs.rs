//! XFS.

use std::collections::BTreeMap;

use pgdyno_exec::mountinfo::MountEntry;
use pgdyno_exec::tool::run_tool;

use super::block::{self, BlockFilesystem, Driver};
use super::block_size::BlockSize;
use super::options::{MountRule, Shown};
use super::{FilesystemError, FsckProgram, Tool};

const USER_QUOTA: Shown = Shown::As(&["usrquota"]);

pub(super) static XFS: BlockFilesystem = BlockFilesystem {
    name: "xfs",
    tools: &[
        Tool::new("mkfs.xfs", "xfsprogs", Some("xfsprogs"), "makes it"),
        Tool::new("xfs_info", "xfsprogs", Some("xfsprogs"), "tells its geometry"),
    ],
    runs_on: "a kernel with CONFIG_XFS_FS, as most distributions' have it",
    fsck: FsckProgram::new("xfs_repair", &["-n"], "xfsprogs"),
    block_size: BlockSize { flags: &["-b"], larger_since: Some((6, 12)) },
    // -K: does not discard.
    mkfs: |volume| block::arguments(&["-q", "-K"], volume),
    label_flag: "-L",
    label_bytes: 12,
    refused: &[
        ("-N", "it only shows what would be made"),
        ("-c", "a file of options could name other devices"),
        ("-V", "it only tells the version"),
        ("-f", "it overwrites what is there"),
    ],
    // Since xfsprogs 5.19, which refuses less.
    least: |_| 300 << 20,
    stripes_by: None,
    mount: &[],
    rules: &[
        MountRule { asked: "nodiscard", shown: Shown::Unless(&["discard"]) },
        MountRule { asked: "noikeep", shown: Shown::Unless(&["ikeep"]) },
        MountRule { asked: "nolargeio", shown: Shown::Unless(&["largeio"]) },
        MountRule { asked: "attr2", shown: Shown::Unless(&["noattr2"]) },
        MountRule { asked: "lifetime", shown: Shown::Unless(&["nolifetime"]) },
        MountRule { asked: "dax=inode", shown: Shown::Unless(&["dax=*"]) },
        MountRule { asked: "quota", shown: USER_QUOTA },
        MountRule { asked: "uquota", shown: USER_QUOTA },
        MountRule { asked: "gquota", shown: Shown::As(&["grpquota"]) },
        MountRule { asked: "pquota", shown: Shown::As(&["prjquota"]) },
    ],
    driver: Driver::of_its_name,
    properties,
    version: ("mkfs.xfs", "-V"),
};

fn properties(mounted: &MountEntry) -> Result<BTreeMap<String, String>, FilesystemError> {
    let point = mounted.point.display().to_string();
    Ok(geometry(&run_tool("xfs_info", &[point])?))
}

/// `xfs_info` as properties: `data.bsize`, `meta-data.crc`, `log` = `internal log`, …
fn geometry(text: &str) -> BTreeMap<String, String> {
    let mut properties = BTreeMap::new();
    let mut section = String::new();
    for line in text.lines() {
        let Some((name, rest)) = line.split_once('=') else { continue };
        let mut rest = rest;
        if !name.trim().is_empty() {
            section = name.trim().to_owned();
            // What the section is comes first, and may be two words; columns are two blanks apart.
            let (what, columns) = rest.split_once("  ").unwrap_or((rest, ""));
            rest = columns;
            // The first section is what it lies on, which differs each time.
            if section != "meta-data" {
                properties.insert(section.clone(), what.trim().to_owned());
            }
        }
        let pairs = rest.split([' ', ',']).filter_map(|word| word.split_once('='));
        properties.extend(pairs.map(|(key, value)| (format!("{section}.{key}"), value.to_owned())));
    }
    properties.retain(|_, value| !value.is_empty());
    properties
}

#[cfg(test)]
mod tests {
    use super::*;

    // As xfsprogs 6.1.0 prints it.
    const INFO: &str = "\
meta-data=/dev/loop0             isize=512    agcount=4, agsize=19200 blks
         =                       sectsz=512   attr=2, projid32bit=1
         =                       crc=1        finobt=1, sparse=1, rmapbt=0
data     =                       bsize=4096   blocks=76800, imaxpct=25
         =                       sunit=0      swidth=0 blks
naming   =version 2              bsize=4096   ascii-ci=0, ftype=1
log      =internal log           bsize=4096   blocks=16384, version=2
         =                       sectsz=512   sunit=0 blks, lazy-count=1
realtime =none                   extsz=4096   blocks=0, rtextents=0
";

    #[test]
    fn xfs_info_is_read_section_by_section() {
        let told = geometry(INFO);
        for (key, value) in [
            ("meta-data.agcount", "4"),
            ("meta-data.crc", "1"),
            ("data.bsize", "4096"),
            ("data.swidth", "0"),
            ("naming", "version 2"),
            ("naming.ftype", "1"),
            ("log", "internal log"),
            ("log.blocks", "16384"),
            ("log.sectsz", "512"),
            ("meta-data.sectsz", "512"),
            ("realtime", "none"),
        ] {
            assert_eq!(told.get(key).map(String::as_str), Some(value), "{key} in {told:?}");
        }
        assert!(!told.contains_key("meta-data"), "{told:?}");
    }
}
