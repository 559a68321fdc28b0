//! Filesystems: how each is made, mounted, read back and taken down. One file a filesystem.
//!
//! All filesystems get the same few settings, so that they can be compared:
//!
//! - `noatime`: a read that writes would measure the wrong thing.
//! - Everything is initialised at once. Nothing is left to the background while trials run.
//! - Nothing is discarded, neither by `mkfs` nor later. A discard would give back the blocks of a
//!   preallocated loop file. `storage.<name>.device.trim` and the mount option `discard` ask for
//!   it.
//!
//! Everything else is the default of the filesystem's own programs.

mod bcachefs;
mod block;
mod block_size;
mod btrfs;
mod contract;
pub mod error;
mod ext;
mod f2fs;
mod installed;
mod jfs;
mod kernel;
mod nilfs2;
mod options;
mod overlay;
mod reiserfs;
pub mod tool;
mod xfs;
pub mod zfs;

pub(crate) use contract::unmount;
pub use contract::{Filesystem, FsckProgram, Volume};
pub use error::FilesystemError;
use pgdyno_text::nearest::nearest;
pub use tool::Tool;

/// Every filesystem.
pub const FILESYSTEMS: &[&dyn Filesystem] = &[
    &ext::EXT2,
    &ext::EXT3,
    &ext::EXT4,
    &xfs::XFS,
    &btrfs::BTRFS,
    &zfs::Zfs,
    &jfs::JFS,
    &reiserfs::REISERFS,
    &f2fs::F2FS,
    &nilfs2::NILFS2,
    &bcachefs::BCACHEFS,
    &overlay::Overlay,
];

/// Returns the filesystem called `name`.
///
/// # Errors
/// [`FilesystemError::Unknown`], with the nearest names.
pub fn by_name(name: &str) -> Result<&'static dyn Filesystem, FilesystemError> {
    FILESYSTEMS.iter().copied().find(|f| f.name() == name).ok_or_else(|| {
        let known: Vec<&'static str> = FILESYSTEMS.iter().map(|f| f.name()).collect();
        FilesystemError::Unknown { name: name.to_owned(), nearest: nearest(name, &known) }
    })
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use pgdyno_model::storage::FilesystemChoice;
    use pgdyno_model::units::Bytes;

    use pgdyno_model::Advice;

    use super::*;

    /// Returns a volume of `members` devices with what `choice` asks for.
    fn with_volume<T>(
        choice: &FilesystemChoice,
        members: usize,
        act: impl FnOnce(&Volume<'_>) -> T,
    ) -> T {
        let devices: Vec<PathBuf> =
            (0..members).map(|n| format!("/disk/s/device-{n}").into()).collect();
        let (mount_point, label, log) =
            (Path::new("/disk/s/mnt"), "pgdyno-1a2b3c4d", Path::new("/disk/s/log"));
        act(&Volume { devices: &devices, mount_point, label, choice, chunk: None, log })
    }

    fn choice(name: &str) -> FilesystemChoice {
        FilesystemChoice { name: name.into(), ..FilesystemChoice::default() }
    }

    fn shown(choice: &FilesystemChoice, members: usize) -> String {
        let filesystem = by_name(&choice.name).unwrap();
        let steps = with_volume(choice, members, |v| {
            [filesystem.make(v), filesystem.take_down(v)].concat()
        });
        steps.iter().map(|step| format!("{step}\n")).collect()
    }

    #[test]
    fn a_dry_run_shows_each_filesystem_with_its_defaults() {
        let all: Vec<String> = FILESYSTEMS.iter().map(|f| shown(&choice(f.name()), 1)).collect();
        insta::assert_snapshot!(all.join("\n"));
    }

    #[test]
    fn a_dry_run_shows_what_was_asked_beside_the_defaults() {
        let words = |list: &[&str]| list.iter().map(|&w| w.to_owned()).collect::<Vec<_>>();
        let ext4 = FilesystemChoice {
            mkfs: words(&["-E", "stride=16", "-O", "^has_journal"]),
            mount: words(&["data=writeback,barrier=0", "relatime"]),
            ..choice("ext4")
        };
        let zfs = FilesystemChoice {
            pool: [("ashift".into(), "12".into())].into(),
            dataset: [("recordsize".into(), "8K".into()), ("atime".into(), "on".into())].into(),
            ..choice("zfs")
        };
        let all = [shown(&ext4, 1), shown(&choice("btrfs"), 2), shown(&zfs, 2)];
        insta::assert_snapshot!(all.join("\n"));
    }

    #[test]
    fn what_contradicts_or_names_other_devices_is_refused() {
        let refused = |name: &str, field: &str, word: &str| {
            let mut choice = choice(name);
            match field {
                "mkfs" => choice.mkfs = vec![word.into()],
                "mount" => choice.mount = vec!["nodev".into(), word.into()],
                "pool" => choice.pool = [(word.into(), "x".into())].into(),
                _ => choice.dataset = [(word.into(), "x".into())].into(),
            }
            let error = with_volume(&choice, 1, |v| by_name(name).unwrap().check(v)).unwrap_err();
            assert!(
                matches!(error, FilesystemError::Refused { .. }) && error.help().is_some(),
                "{error}"
            );
            format!("{error}\n")
        };
        let all: String = [
            ("xfs", "mkfs", "/dev/sda"),
            ("ext4", "mkfs", "device=UUID=1234"),
            ("xfs", "mkfs", "logdev=sdb"),
            ("xfs", "mkfs", "size=1g,name=sdb"),
            ("xfs", "mkfs", "-coptions=mine"),
            ("ext4", "mkfs", "-Lmine"),
            ("btrfs", "mkfs", "--label=mine"),
            ("ext4", "mkfs", "-n"),
            ("xfs", "mount", "logdev=/dev/sdb"),
            ("btrfs", "mount", "device=/dev/sdb"),
            ("ext4", "mount", "ro"),
            ("ext4", "mount", "remount"),
            ("ext4", "pool", "ashift"),
            ("zfs", "mkfs", "mirror"),
            ("zfs", "mount", "noatime"),
            ("zfs", "pool", "altroot"),
            ("zfs", "dataset", "mountpoint"),
            ("overlay", "mkfs", "-f"),
            ("overlay", "mount", "upperdir=/home"),
            ("overlay", "mount", "ro"),
        ]
        .into_iter()
        .map(|(name, field, word)| refused(name, field, word))
        .collect();
        insta::assert_snapshot!(all);
    }

    #[test]
    fn a_chunk_is_refused_where_the_filesystem_stripes_its_own_way() {
        for name in ["btrfs", "zfs"] {
            let check = |members| {
                with_volume(&choice(name), members, |v| {
                    by_name(name).unwrap().check(&Volume { chunk: Some(Bytes(65536)), ..*v })
                })
            };
            assert!(check(1).is_ok());
            assert!(matches!(check(2), Err(FilesystemError::Refused { field: "chunk", .. })));
        }
    }

    #[test]
    fn a_misspelt_filesystem_is_answered_with_the_nearest() {
        let error = by_name("ext5").err().unwrap();
        assert_eq!(error.to_string(), "pgdyno knows no filesystem `ext5`");
        let help = error.help().unwrap();
        assert!(
            help.starts_with("known are, the most alike first: ext2, ext3, ext4, xfs, "),
            "{help}"
        );
    }

    #[test]
    fn every_label_has_room_and_keeps_its_digits() {
        for filesystem in FILESYSTEMS {
            let label = filesystem.label("pgdyno-1a2b3c4d");
            assert!(label.starts_with("pg") && label.ends_with("-1a2b3c4d"), "{label}");
        }
        assert_eq!(by_name("xfs").unwrap().label("pgdyno-1a2b3c4d"), "pgd-1a2b3c4d");
        assert_eq!(by_name("jfs").unwrap().label("pgdyno-1a2b3c4d"), "pg-1a2b3c4d");
    }
}
