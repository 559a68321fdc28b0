//! Devices that must not be written: each is refused with its reason, and holds afterwards what it
//! held before.
use std::fs::{self, File};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::JoinHandle;
use std::time::Duration;

use crate::common::disks::{Disk, Mounted, Running, can, checked, run};
use crate::common::stacks::on;
use crate::common::{Place, RUN};
use pgdyno_exec::account::server_account;
use pgdyno_exec::device::claim::Claim;
use pgdyno_exec::device::identity::BlockDevice;
use pgdyno_exec::device::refusal::{Refusal, SafetyError};
use pgdyno_exec::device::safety;
use pgdyno_exec::{ExecContext, Executor as _, Step, StepError};
use pgdyno_model::Advice;
use pgdyno_model::storage::Backing;
use pgdyno_storage::{Stack, StorageError, Surroundings, Wipe};
use pgdyno_test_support::{assert_contains, needs, wait_for};

#[test]
fn what_is_no_free_block_device_is_refused() {
    needs!(can);
    let place = Place::new();
    let all = |path: &Path| Wipe { devices: vec![path.to_owned()], overwrite_signature: true };
    let missing = place.path().join("missing");
    assert!(matches!(
        safety::check(&missing, &all(&missing)).unwrap_err().found,
        Refusal::Unreadable(_)
    ));
    let file = place.path().join("file");
    fs::write(&file, "precious").unwrap();
    assert!(matches!(
        safety::check(&file, &all(&file)).unwrap_err().found,
        Refusal::NotABlockDevice
    ));
    assert_eq!(fs::read_to_string(&file).unwrap(), "precious");
    if let Ok(root) = BlockDevice::under(Path::new("/")) {
        let disk = Path::new("/dev").join(root.disk());
        let error = safety::check(&disk, &all(&disk)).unwrap_err();
        assert!(matches!(error.found, Refusal::RootDisk), "{error}");
    }
    let read_only = Disk::new(&place, "read-only", &["--read-only"]);
    assert!(matches!(read_only.refused(&read_only.wipe()).found, Refusal::ReadOnly));
}

/// A node of the test's own that leads to `disk`, as `mknod` makes it anywhere.
fn made_elsewhere(disk: &Disk, place: &Place) -> PathBuf {
    let node = place.path().join("node");
    let number = BlockDevice::at(&disk.device).unwrap().number;
    let (major, minor) = number.split_once(':').unwrap();
    run("mknod", &[node.to_str().unwrap(), "b", major, minor]);
    node
}

/// Opens `disk` for a use that no other may share.
fn exclusively(disk: &Disk) -> File {
    let flags = rustix::fs::OFlags::EXCL.bits().cast_signed();
    File::options().read(true).custom_flags(flags).open(&disk.device).unwrap()
}

/// Opens `disk` like [`exclusively`], until a thread closes it after `time`.
fn exclusively_for(disk: &Disk, time: Duration) -> JoinHandle<()> {
    let held = exclusively(disk);
    std::thread::spawn(move || {
        std::thread::sleep(time);
        drop(held);
    })
}

#[test]
fn a_use_that_ends_within_a_moment_is_no_reason_against_a_device() {
    needs!(can);
    let place = Place::new();
    let disk = Disk::new(&place, "disk", &[]);
    let ends = exclusively_for(&disk, Duration::from_millis(20));
    safety::check(&disk.device, &disk.wipe()).unwrap();
    ends.join().unwrap();
}

#[test]
fn a_device_in_use_is_refused_whatever_was_consented_to() {
    needs!(can);
    let place = Place::new();
    let disk = Disk::new(&place, "disk", &[]);
    {
        let _held = exclusively(&disk);
        assert!(matches!(disk.refused(&disk.wipe()).found, Refusal::InUse));
    }
    {
        let _open = File::options().write(true).open(&disk.device).unwrap();
        let error = disk.refused(&disk.wipe());
        assert_contains(error.to_string(), &[&format!("process {} (", std::process::id())]);
    }
    refused_under_any_name(&disk, &place);
    refused_while_mapped(&disk, &place);
    let node = made_elsewhere(&disk, &place);
    refused_below_loop(&disk, &node, true);
    refused_below_loop(&disk, &disk.device, false);
    run("mkfs.ext4", &["-q", disk.path()]);
    {
        let mounted = Mounted::new(&disk, &place);
        let error = disk.refused(&disk.wipe());
        assert!(
            matches!(&error.found, Refusal::Mounted { at, .. } if Path::new(at) == mounted.0),
            "{error}"
        );
        assert!(error.help().unwrap().contains("unmount"));
    }
    let swap = Swap::new();
    // Not compared with what it held: a machine short of memory writes to it.
    let error = checked(&swap.disk.device, &swap.disk.wipe()).unwrap_err();
    assert!(matches!(error.found, Refusal::Swap(_)), "{error}");
}

/// Swap of the test's own, until it is dropped.
struct Swap {
    disk: Disk,
    #[expect(dead_code, reason = "its drop removes the folder, after the disk's")]
    folder: tempfile::TempDir,
}

impl Swap {
    /// As small as mkswap takes it, and never in memory: pages of a file in memory that are swapped
    /// out to that very file can never be read again, and whoever needs one waits forever.
    fn new() -> Self {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let image = folder.path().join("swap");
        fs::write(&image, [0; 64 << 10]).unwrap();
        let device = run("losetup", &["--find", "--show", image.to_str().unwrap()]);
        let swap = Self { disk: Disk { image, device: device.into() }, folder };
        run("mkswap", &[swap.disk.path()]);
        run("swapon", &[swap.disk.path()]);
        swap
    }
}

impl Drop for Swap {
    fn drop(&mut self) {
        let _ = Command::new("swapoff").arg(self.disk.path()).status();
    }
}

fn refused_under_any_name(disk: &Disk, place: &Place) {
    // Another name for it, which is gone by the time of the look; and no name at all.
    let node = made_elsewhere(disk, place);
    let _open = File::options().write(true).open(&node).unwrap();
    let error = disk.refused(&disk.wipe());
    assert!(matches!(error.found, Refusal::Open { .. }), "{error}");
    fs::remove_file(&node).unwrap();
    let error = disk.refused(&disk.wipe());
    assert!(matches!(error.found, Refusal::Open { .. }), "{error}");
}

fn refused_while_mapped(disk: &Disk, place: &Place) {
    // In memory alone, its descriptor closed.
    let node = made_elsewhere(disk, place);
    let text = "import mmap, os, sys, time\n\
                f = open(sys.argv[1], 'r+b')\n\
                m = mmap.mmap(f.fileno(), 4096)\n\
                os.closerange(3, 100)\n\
                open(sys.argv[2], 'w').close()\n\
                time.sleep(600)\n";
    let ready = place.path().join("mapped");
    let mut python = Command::new("python3");
    let child = Running(python.args(["-c", text]).arg(&node).arg(&ready).spawn().unwrap());
    wait_for("a mapping", || ready.exists().then_some(()));
    fs::remove_file(&node).unwrap();
    let error = disk.refused(&disk.wipe());
    assert_contains(error.to_string(), &[&format!("process {} (", child.0.id()), "in memory"]);
}

/// A loop device lies over it, attached by the name `node`, which `is_removed` then.
fn refused_below_loop(disk: &Disk, node: &Path, is_removed: bool) {
    let on_top = run("losetup", &["--find", "--show", "--read-only", node.to_str().unwrap()]);
    if is_removed {
        fs::remove_file(node).unwrap();
    }
    let error = disk.refused(&disk.wipe());
    run("losetup", &["--detach", &on_top]);
    assert!(
        matches!(&error.found, Refusal::Held { holders, .. } if *holders == [on_top]),
        "{error}"
    );
}

#[test]
fn a_members_device_is_refused_and_a_signature_without_consent() {
    needs!(can);
    let place = Place::new();
    let disk = Disk::new(&place, "disk", &[]);
    let unnamed = disk.refused(&Wipe { devices: Vec::new(), overwrite_signature: true });
    assert!(matches!(unnamed.found, Refusal::NotNamed(_)), "{unnamed}");
    assert!(
        unnamed.to_string().contains("134.2 MB") && unnamed.help().unwrap().contains("--wipe"),
        "{unnamed}"
    );
    let named = Wipe { overwrite_signature: false, ..disk.wipe() };
    disk.checked(&named).unwrap();
    run("mkfs.ext4", &["-q", "-L", "precious", disk.path()]);
    let held = disk.refused(&named);
    let told = safety::describe(&disk.device, false).unwrap();
    assert!(
        told.contains("(134.2 MB, no by-id name, model unknown")
            && told.ends_with("ext4 (labelled precious)"),
        "{told}"
    );
    assert_eq!(
        held.to_string(),
        format!("will not write to {}: it holds ext4 (labelled precious)", disk.path())
    );
    assert!(held.help().unwrap().contains("--overwrite-signature"));
    // A link to it is the same device.
    let link = place.path().join("link");
    std::os::unix::fs::symlink(&disk.device, &link).unwrap();
    checked(&link, &disk.wipe()).unwrap();

    let second = Disk::new(&place, "second", &[]);
    if Command::new("mkfs.btrfs").arg("--version").output().is_ok() {
        run("mkfs.btrfs", &["-q", "-f", "-d", "raid0", "-m", "raid0", disk.path(), second.path()]);
        for member in [&disk, &second] {
            let error = member.refused(&member.wipe());
            assert!(matches!(&error.found, Refusal::Member(of) if of == "btrfs"), "{error}");
        }
    }
}

#[test]
fn a_device_whose_ends_are_not_zeros_takes_the_same_consent_as_one_with_a_filesystem() {
    needs!(can);
    let place = Place::new();
    let disk = Disk::of_size(8 << 20, &place, "disk", &[]);
    let named = Wipe { overwrite_signature: false, ..disk.wipe() };
    for (at, end) in
        [(0, "first"), ((1 << 20) - 1, "first"), (7 << 20, "last"), ((8 << 20) - 1, "last")]
    {
        let device = File::options().write(true).open(&disk.device).unwrap();
        device.write_all_at(b"x", at).unwrap();
        device.sync_all().unwrap();
        drop(device);
        let error = disk.checked(&named).unwrap_err();
        let found = format!("its {end} 1048576 bytes (byte {at}) are not zeros");
        assert!(error.to_string().contains(&found), "{error}");
        assert!(error.help().unwrap().contains("--overwrite-signature"));
        assert!(
            safety::describe(&disk.device, false)
                .unwrap()
                .contains(&format!("its {end} 1048576 bytes"))
        );
        disk.checked(&disk.wipe()).unwrap();
        File::options().write(true).open(&disk.device).unwrap().write_all_at(b"\0", at).unwrap();
        disk.checked(&named).unwrap();
    }
}

#[test]
fn a_device_that_somebody_looks_at_is_waited_for() {
    needs!(can);
    let place = Place::new();
    let disk = Disk::new(&place, "disk", &[]);
    run("mkfs.ext4", &["-q", disk.path()]);
    let ends = exclusively_for(&disk, Duration::from_millis(300));
    let step = Step::Run {
        program: "wipefs".into(),
        args: vec!["--all".into(), disk.path().into()],
        as_account: None,
        output: place.path().join("log"),
    };
    ExecContext { journal: &place.journal, stop: &RUN, made: Vec::new() }.execute(&step).unwrap();
    ends.join().unwrap();
    assert_eq!(run("wipefs", &["--noheadings", disk.path()]), "");
}

#[test]
fn a_device_too_small_for_its_filesystem_is_refused_before_anything_is_wiped() {
    needs!(can);
    let account = server_account().unwrap();
    for (filesystem, least) in [("xfs", 300_u64 << 20), ("btrfs", 109 << 20)] {
        let place = Place::new();
        let small = Disk::of_size(least - (1 << 20), &place, "small", &[]);
        let enough = Disk::of_size(least, &place, "enough", &[]);
        run("mkfs.ext4", &["-q", small.path()]);
        let before = small.checksum();
        let plan = |disk: &Disk| {
            let storage = on(Backing::Device(disk.device.clone()), filesystem);
            let wipe = disk.wipe();
            let around =
                Surroundings { default_directory: place.path(), account: &account, wipe: &wipe };
            Stack::plan("disk", &storage, &around)
        };
        match plan(&small) {
            // Said by the tests of filesystems.
            Err(StorageError::Filesystem { .. }) => continue,
            Err(StorageError::TooSmall { .. }) => {}
            other => panic!("{other:?}"),
        }
        assert_eq!(small.checksum(), before);
        // The same limit as the program's own.
        let made = plan(&enough).unwrap().make(&account, &place.journal, &RUN).unwrap();
        assert_eq!(made.take_down(), [""; 0]);
        assert!(
            !Command::new(format!("mkfs.{filesystem}"))
                .args(["-f", small.path()])
                .output()
                .unwrap()
                .status
                .success()
        );
    }
}

#[test]
fn another_device_under_the_same_name_is_noticed_before_it_is_written() {
    needs!(can);
    let place = Place::new();
    let (first, second) = (Disk::new(&place, "first", &[]), Disk::new(&place, "second", &[]));
    let link = place.path().join("link");
    std::os::unix::fs::symlink(&first.device, &link).unwrap();
    let wipe = Wipe { devices: vec![link.clone()], overwrite_signature: false };
    let looked_at = Some(checked(&link, &wipe).unwrap());
    let claim = Step::ClaimDevice(Claim { looked_at, device: link.clone(), wipe });
    let mut performing = ExecContext { journal: &place.journal, stop: &RUN, made: Vec::new() };
    performing.execute(&claim).unwrap();
    fs::remove_file(&link).unwrap();
    std::os::unix::fs::symlink(&second.device, &link).unwrap();
    let error = performing.execute(&claim).unwrap_err();
    assert!(
        matches!(error, StepError::Safety(SafetyError { found: Refusal::Changed { .. }, .. })),
        "{error}"
    );
}

#[test]
fn a_named_device_is_made_only_with_consent_and_bears_nothing_afterwards() {
    needs!(can);
    assert_bears_nothing(&["ext4", "btrfs", "xfs"]);
}

/// A device with a signature is refused without consent; each of the filesystems is made on it, and
/// taken down without a trace.
pub(crate) fn assert_bears_nothing(filesystems: &[&str]) {
    let place = Place::new();
    let disk = Disk::of_size(320 << 20, &place, "disk", &[]);
    run("mkfs.ext4", &["-q", disk.path()]);
    let small = Disk::new(&place, "small", &[]);
    run("mkfs.ext4", &["-q", small.path()]);
    let account = server_account().unwrap();
    let plan = |disk: &Disk, filesystem: &str, wipe: &Wipe| {
        let around = Surroundings { default_directory: place.path(), account: &account, wipe };
        Stack::plan("disk", &on(Backing::Device(disk.device.clone()), filesystem), &around)
    };
    for wipe in [Wipe::default(), Wipe { overwrite_signature: false, ..small.wipe() }] {
        let before = small.checksum();
        let stack = plan(&small, "ext4", &wipe).unwrap();
        let error = stack.make(&account, &place.journal, &RUN).unwrap_err();
        assert!(matches!(error, StorageError::Unsafe { .. }), "{error:?}");
        assert_eq!(small.checksum(), before);
    }
    for &filesystem in filesystems {
        let stack = match plan(&disk, filesystem, &disk.wipe()) {
            Ok(stack) => stack,
            // Said by the tests of filesystems.
            Err(StorageError::Filesystem { .. }) => continue,
            Err(e) => panic!("{e:?}"),
        };
        let made = stack.make(&account, &place.journal, &RUN).unwrap();
        assert_eq!(made.facts(false).unwrap().devices[0].path, disk.path());
        assert_eq!(made.take_down(), [""; 0]);
        assert_eq!(run("wipefs", &["--noheadings", disk.path()]), "", "{filesystem}");
        // What pgdyno left is no data of anybody's: the next run takes no second consent.
        disk.checked(&Wipe { overwrite_signature: false, ..disk.wipe() }).unwrap();
    }
    assert_eq!(place.journal.entries().unwrap(), []);
}
