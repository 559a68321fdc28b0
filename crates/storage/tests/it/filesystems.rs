//! Filesystems on loop devices of the tests' own: made, mounted, read back, refused, taken down.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use pgdyno_exec::journal::Journal;
use pgdyno_exec::mount::{Mount, MountError};
use pgdyno_exec::{ExecContext, Executor as _, Step, StepError, mountinfo};
use pgdyno_model::Advice;
use pgdyno_model::storage::{FilesystemChoice, FilesystemFacts};
use pgdyno_model::units::Bytes;
use pgdyno_storage::filesystem::{self, Filesystem, FilesystemError, Volume};
use pgdyno_test_support::zfs::Daemon;
use pgdyno_test_support::{skip, test_name};
use rustix::process::{Pid, Signal};

static RUN: AtomicBool = AtomicBool::new(false);

/// Loop devices over files of its own; taken down with it.
struct Disks {
    root: tempfile::TempDir,
    loops: Vec<String>,
    devices: Vec<PathBuf>,
    journal: Journal,
    choice: FilesystemChoice,
    chunk: Option<Bytes>,
}

impl Disks {
    /// None, and said so, where they cannot be made.
    fn new(test: &str, filesystem: &str, members: usize) -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            skip(test, "loop devices need root");
            return None;
        }
        if let Err(e) = filesystem::by_name(filesystem).unwrap().check_machine() {
            skip(test, e.to_string().lines().next().unwrap_or_default());
            return None;
        }
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("real/mnt")).unwrap();
        std::os::unix::fs::symlink("real", root.path().join("link")).unwrap();
        let journal = Journal::open(&root.path().join("state")).unwrap();
        let (loops, devices) = (Vec::new(), Vec::new());
        let choice = FilesystemChoice { name: filesystem.into(), ..FilesystemChoice::default() };
        let mut disks = Self { root, loops, devices, journal, choice, chunk: None };
        for n in 0..members {
            let image = disks.path(&format!("image-{n}"));
            let file = File::create_new(&image).unwrap();
            let size = 320 << 20;
            rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, size).unwrap();
            let device = output(Command::new("losetup").args(["--find", "--show"]).arg(&image));
            disks.loops.push(device.trim().to_owned());
            let link = disks.path(&format!("device-{n}"));
            std::os::unix::fs::symlink(device.trim(), &link).unwrap();
            disks.devices.push(link);
        }
        Some(disks)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    /// Behind a symbolic link, as a directory that a user names may be.
    fn point(&self) -> PathBuf {
        self.path("link/mnt")
    }

    fn filesystem(&self) -> &'static dyn Filesystem {
        filesystem::by_name(&self.choice.name).unwrap()
    }

    fn with_volume<T>(&self, act: impl FnOnce(&Volume<'_>) -> T) -> T {
        let label = self.root.path().file_name().unwrap().to_string_lossy().to_lowercase();
        // Eight digits, as of a journal's id.
        let label = format!(
            "pgdyno-{:08x}",
            label.bytes().fold(0_u32, |h, b| h.wrapping_mul(31) + u32::from(b))
        );
        act(&Volume {
            devices: &self.devices,
            mount_point: &self.point(),
            label: &label,
            choice: &self.choice,
            chunk: self.chunk,
            log: &self.path("log"),
        })
    }

    fn perform(&self, steps: &[Step]) -> Result<(), StepError> {
        let mut performing = ExecContext { journal: &self.journal, stop: &RUN, made: Vec::new() };
        steps.iter().try_for_each(|step| performing.execute(step).map(drop))
    }

    fn make(&self) -> Result<(), StepError> {
        self.with_volume(|v| self.filesystem().check(v)).unwrap();
        self.perform(&self.with_volume(|v| self.filesystem().make(v)))
    }

    fn read_back(&self) -> Result<FilesystemFacts, FilesystemError> {
        self.with_volume(|v| self.filesystem().read_back(v))
    }

    fn take_down(&self) -> Result<(), StepError> {
        self.perform(&self.with_volume(|v| self.filesystem().take_down(v)))
    }

    fn is_mounted(&self) -> bool {
        !mountinfo::mounted_beneath(self.root.path()).unwrap().is_empty()
    }
}

impl Drop for Disks {
    fn drop(&mut self) {
        if self.is_mounted() {
            let _ = self.take_down();
        }
        for device in &self.loops {
            let _ = Command::new("losetup").args(["--detach", device]).status();
        }
    }
}

fn output(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn list(words: &[&str]) -> Vec<String> {
    words.iter().map(|&w| w.to_owned()).collect()
}

/// Made, written to, read back as `expected`, and taken down without a trace; the facts.
fn whole_life(disks: &Disks, expected: &[(&str, &str)]) -> FilesystemFacts {
    disks.make().unwrap();
    let facts = disks.read_back().unwrap();
    for (name, value) in expected {
        assert_eq!(
            facts.properties.get(*name).map(String::as_str),
            Some(*value),
            "{name} in {facts:#?}"
        );
    }
    assert!(!facts.tools.is_empty() && !facts.driver.is_empty(), "{facts:?}");
    let mut file = File::create_new(disks.point().join("written")).unwrap();
    file.write_all(b"to disk").unwrap();
    file.sync_all().unwrap();
    drop(file);
    // Nothing was discarded that the file had been given.
    for n in 0..disks.devices.len() {
        use std::os::unix::fs::MetadataExt;
        let image = fs::metadata(disks.path(&format!("image-{n}"))).unwrap();
        assert!(image.blocks() * 512 >= image.size(), "a hole was punched into image-{n}");
    }
    disks.take_down().unwrap();
    assert!(!disks.is_mounted());
    assert_eq!(fs::read_dir(disks.point()).unwrap().count(), 0);
    // Once more: there is nothing left to do, which is no error.
    disks.take_down().unwrap();
    facts
}

#[test]
fn ext2_ext3_and_ext4_live_and_leave() {
    for (name, journal) in [("ext2", false), ("ext3", true), ("ext4", true)] {
        let Some(disks) = Disks::new(test_name!(), name, 1) else { return };
        let facts = whole_life(&disks, &[("Block size", "4096")]);
        assert_eq!(facts.kind, name);
        assert!(facts.options.contains(&"noatime".to_owned()), "{facts:?}");
        assert_eq!(
            facts.properties["Filesystem features"].contains("has_journal"),
            journal,
            "{facts:?}"
        );
    }
}

#[test]
fn ext4_obtains_what_was_asked_or_says_so() {
    let Some(mut disks) = Disks::new(test_name!(), "ext4", 1) else { return };
    disks.choice.mkfs = list(&["-E", "stride=16", "-b", "1024"]);
    disks.choice.mount = list(&["barrier=0", "commit=17,nodelalloc", "relatime"]);
    let facts = whole_life(&disks, &[("Block size", "1024"), ("RAID stride", "16")]);
    assert!(facts.options.contains(&"nobarrier".to_owned()), "{facts:?}");

    // Taken by the kernel, and of no effect.
    disks.choice.mount = list(&["nobh"]);
    wipe(&disks);
    disks.choice.mkfs.clear();
    disks.make().unwrap();
    let error = disks.read_back().unwrap_err();
    assert!(
        matches!(&error, FilesystemError::NotObtained { option, .. } if option == "nobh"),
        "{error}"
    );
    disks.take_down().unwrap();
}

/// Clears the disks' signatures, as a stack does between two filesystems.
fn wipe(disks: &Disks) {
    for device in &disks.loops {
        output(Command::new("wipefs").args(["--all", "--quiet", device]));
    }
}

#[test]
fn an_option_that_the_kernel_refuses_is_quoted_in_its_words() {
    for (name, option, words) in [
        ("xfs", "nobarrier", "Unknown parameter 'nobarrier'"),
        ("ext2", "data=journal", "data="),
        ("ext4", "commit=soon", "commit"),
        ("btrfs", "space_cache=v7", "space_cache"),
    ] {
        let Some(mut disks) = Disks::new(test_name!(), name, 1) else { return };
        disks.choice.mount = list(&[option]);
        let error = disks.make().unwrap_err();
        let text = error.to_string();
        assert!(text.contains(words) && text.contains(option), "{text}");
        assert!(matches!(error, StepError::Mount(_)) && !disks.is_mounted(), "{text}");
        disks.take_down().unwrap();
    }
}

#[test]
fn xfs_lives_and_leaves() {
    let Some(mut disks) = Disks::new(test_name!(), "xfs", 1) else { return };
    disks.choice.mkfs = list(&["-m", "reflink=0", "-b", "size=4096"]);
    disks.choice.mount = list(&["logbsize=262144", "logbufs=8", "nodiscard"]);
    let facts = whole_life(
        &disks,
        &[("meta-data.crc", "1"), ("meta-data.reflink", "0"), ("data.bsize", "4096")],
    );
    assert!(facts.options.contains(&"logbsize=256k".to_owned()), "{facts:?}");
    assert_eq!((facts.kind.as_str(), facts.driver.as_str()), ("xfs", "xfs"));
}

#[test]
fn xfs_without_checksums_is_made_and_then_refused_by_the_kernel() {
    let Some(mut disks) = Disks::new(test_name!(), "xfs", 1) else { return };
    disks.choice.mkfs = list(&["-m", "crc=0"]);
    match disks.make() {
        // A kernel that still has the old format tells it on reading back.
        Ok(()) => assert_eq!(disks.read_back().unwrap().properties["meta-data.crc"], "0"),
        Err(e) => {
            assert!(e.to_string().contains("XFS") || e.to_string().contains("mkfs.xfs"), "{e}");
        }
    }
    disks.take_down().unwrap();
}

#[test]
fn btrfs_lives_and_leaves() {
    let Some(mut disks) = Disks::new(test_name!(), "btrfs", 1) else { return };
    disks.choice.mkfs = list(&["-m", "single"]);
    disks.choice.mount = list(&["compress=zstd", "commit=30"]);
    let facts =
        whole_life(&disks, &[("Metadata", "single"), ("devices", "1"), ("nodesize", "16384")]);
    assert!(facts.options.contains(&"compress=zstd:3".to_owned()), "{facts:?}");
    assert!(!facts.options.iter().any(|o| o.starts_with("discard")), "{facts:?}");
}

#[test]
fn btrfs_stripes_over_two_disks() {
    let Some(disks) = Disks::new(test_name!(), "btrfs", 2) else { return };
    let facts = whole_life(&disks, &[("Data", "RAID0"), ("devices", "2")]);
    // btrfs keeps the name that its first scan told it, which is to be no link.
    assert_eq!(fs::canonicalize(&facts.source).unwrap(), Path::new(&disks.loops[0]));
    assert_eq!(facts.source, disks.loops[0]);
}

#[test]
fn an_option_that_btrfs_drops_without_a_word_is_an_error() {
    let Some(mut disks) = Disks::new(test_name!(), "btrfs", 1) else { return };
    disks.choice.mount = list(&["nodatacow", "compress=zstd"]);
    disks.make().unwrap();
    let error = disks.read_back().unwrap_err();
    assert!(
        matches!(&error, FilesystemError::NotObtained { option, .. } if option == "nodatacow"),
        "{error}"
    );
    disks.take_down().unwrap();
}

fn pools() -> String {
    output(Command::new("zpool").args(["list", "-H", "-o", "name"]))
}

#[test]
fn zfs_lives_and_leaves() {
    let _daemon = Daemon::new();
    let Some(mut disks) = Disks::new(test_name!(), "zfs", 1) else { return };
    let before = pools();
    disks.choice.pool = BTreeMap::from([("ashift".into(), "13".into())]);
    let properties = [("recordsize", "8K"), ("compression", "gzip"), ("logbias", "throughput")];
    disks.choice.dataset = properties.iter().map(|&(n, v)| (n.into(), v.into())).collect();
    let facts = whole_life(
        &disks,
        &[("recordsize", "8192"), ("compression", "gzip"), ("atime", "off"), ("pool.ashift", "13")],
    );
    assert!(facts.driver.contains("zfs-fuse") == (facts.kind == "fuse.zfs"), "{facts:?}");
    assert_eq!(pools(), before);
}

#[test]
fn zfs_is_unmounted_once_its_daemon_knows_which_files_are_closed() {
    let test = test_name!();
    let daemon = Daemon::new();
    let Some(disks) = Disks::new(test, "zfs", 1) else { return };
    let Some(child) = &daemon.child else {
        return skip(test, "ZFS is served by the kernel or by somebody else's daemon");
    };
    disks.make().unwrap();
    let signal = |signal| rustix::process::kill_process(Pid::from_child(child), signal).unwrap();
    // More than the kernel hands to a daemon at a time.
    let files: Vec<_> = (0..100).map(|_| File::open(disks.point()).unwrap()).collect();
    signal(Signal::STOP);
    drop(files);
    std::thread::scope(|scope| {
        let taken_down = scope.spawn(|| disks.take_down());
        // Long enough to unmount.
        std::thread::sleep(Duration::from_millis(300));
        signal(Signal::CONT);
        taken_down.join().unwrap().unwrap();
    });
}

#[test]
fn zfs_is_taken_down_also_when_its_daemon_has_died() {
    let test = test_name!();
    let mut daemon = Daemon::new();
    let Some(disks) = Disks::new(test, "zfs", 1) else { return };
    let Some(child) = &mut daemon.child else {
        return skip(test, "ZFS is served by the kernel or by somebody else's daemon");
    };
    disks.make().unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    daemon.child = None;
    assert!(disks.read_back().is_err());
    disks.take_down().unwrap();
    assert!(!disks.is_mounted());
}

#[test]
fn a_property_that_zfs_refuses_is_quoted_and_leaves_no_pool() {
    let _daemon = Daemon::new();
    let Some(mut disks) = Disks::new(test_name!(), "zfs", 1) else { return };
    let before = pools();
    disks.choice.dataset = BTreeMap::from([("recordsize".into(), "7".into())]);
    let error = disks.make().unwrap_err().to_string();
    assert!(error.contains("recordsize"), "{error}");
    assert_ne!(pools(), before, "the pool was made before its dataset was refused");
    disks.take_down().unwrap();
    assert_eq!(pools(), before);
}

#[test]
fn a_mount_point_that_is_not_empty_or_in_use_is_refused() {
    let Some(disks) = Disks::new(test_name!(), "ext4", 1) else { return };
    fs::write(disks.point().join("somebody's"), "data").unwrap();
    let error = disks.make().unwrap_err();
    assert!(
        matches!(
            &error,
            StepError::Mount(MountError::NotEmpty { found, .. }) if found == "somebody's"
        ),
        "{error}"
    );
    fs::remove_file(disks.point().join("somebody's")).unwrap();
    let mount = disks.with_volume(|v| disks.filesystem().make(v).pop().unwrap());
    disks.perform(std::slice::from_ref(&mount)).unwrap();
    let error = disks.perform(&[mount]).unwrap_err();
    assert!(matches!(&error, StepError::Mount(MountError::Occupied { .. })), "{error}");
    disks.take_down().unwrap();
}

#[test]
fn what_somebody_else_mounted_is_left_mounted() {
    let Some(disks) = Disks::new(test_name!(), "ext4", 1) else { return };
    let somebodys = Mount {
        filesystem: "tmpfs".into(),
        source: "somebodys".into(),
        target: disks.point(),
        options: list(&["size=1m"]),
    };
    somebodys.mount().unwrap();
    let error = disks.take_down().unwrap_err();
    let still = mountinfo::mounted_at(&disks.point()).unwrap().unwrap();
    let Mount { target, filesystem, source, .. } = &somebodys;
    pgdyno_exec::mount::unmount(target, filesystem, source).unwrap();
    assert!(matches!(&error, StepError::Mount(MountError::NotOurs { .. })), "{error}");
    assert_eq!((still.filesystem.as_str(), still.source.as_str()), ("tmpfs", "somebodys"));
    assert!(!disks.is_mounted());
}

#[test]
fn who_keeps_a_filesystem_in_use_is_named() {
    let Some(disks) = Disks::new(test_name!(), "ext4", 1) else { return };
    disks.make().unwrap();
    let mut sleeper = Command::new("sleep").arg("600").current_dir(disks.point()).spawn().unwrap();
    let error = disks.take_down().unwrap_err();
    let named = format!("process {} (sleep: ", sleeper.id());
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
    assert!(error.to_string().contains(&named), "{error}");
    disks.take_down().unwrap();
}

#[test]
fn a_filesystem_that_the_kernel_lacks_is_told_before_anything_is_made() {
    if !rustix::process::geteuid().is_root() {
        return skip(test_name!(), "fsopen needs root");
    }
    let known = fs::read_to_string("/proc/filesystems").unwrap();
    for filesystem in filesystem::FILESYSTEMS {
        let name = filesystem.name();
        match filesystem.check_machine() {
            Ok(()) => assert!(
                name == "zfs"
                    || fs::read_to_string("/proc/filesystems")
                        .unwrap()
                        .contains(&format!("\t{name}\n")),
                "{name}"
            ),
            Err(e @ FilesystemError::NotInKernel { .. }) => {
                assert!(!known.contains(&format!("\t{name}\n")), "{e}");
                assert!(e.help().is_some(), "{e}");
            }
            Err(FilesystemError::ToolMissing { tool, .. }) => {
                assert!(!Path::new("/usr/sbin").join(tool.program).exists(), "{name}: {tool:?}");
            }
            Err(e @ FilesystemError::NoZfs { .. }) => {
                assert!(e.help().unwrap().contains("zfs-fuse"), "{e}");
            }
            Err(e) => panic!("{name}: {e}"),
        }
    }
}
