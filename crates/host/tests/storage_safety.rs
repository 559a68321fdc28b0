//! Devices that must not be written: each is refused with its reason, and holds afterwards what it held before.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod common;

use std::fs::{self, File};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use common::{Place, RUN};
use pgdyno_host::step::Performing;
use pgdyno_host::storage::claim::Claim;
use pgdyno_host::storage::identity::BlockDevice;
use pgdyno_host::storage::safety::{self, Found, SafetyError};
use pgdyno_host::storage::{Stack, StorageError, Surroundings, Wipe};
use pgdyno_host::{Step, StepError, server_account};
use pgdyno_model::storage::{Backing, FilesystemChoice, Storage};
use sha2::{Digest, Sha256};

/// Whether devices can be made here; if not, that is said.
fn can(test: &str) -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        use std::io::Write;
        // Past the test runner, which captures what passing tests print.
        let _ = writeln!(std::io::stderr(), "\nskipped: {test}: loop devices need root");
    }
    root
}

/// One at a time: of two that look for a free loop device, the second opens the first's for a moment, and it is in use then.
static LOSETUP: Mutex<()> = Mutex::new(());

fn run(program: &str, args: &[&str]) -> String {
    let _alone = (program == "losetup").then(|| LOSETUP.lock().unwrap_or_else(PoisonError::into_inner));
    let output = Command::new(program).args(args).output().unwrap();
    assert!(output.status.success(), "{program} {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// A loop device of the test's own, detached when dropped.
struct Disk {
    image: PathBuf,
    device: PathBuf,
}

impl Disk {
    fn new(place: &Place, name: &str, options: &[&str]) -> Self {
        Self::of_size(128 << 20, place, name, options)
    }

    fn of_size(bytes: u64, place: &Place, name: &str, options: &[&str]) -> Self {
        let image = place.path().join(name);
        if !image.exists() {
            File::create_new(&image).unwrap().set_len(bytes).unwrap();
        }
        let mut args = vec!["--find", "--show"];
        args.extend(options);
        args.push(image.to_str().unwrap());
        Self { device: run("losetup", &args).into(), image }
    }

    fn path(&self) -> &str {
        self.device.to_str().unwrap()
    }

    fn checksum(&self) -> Vec<u8> {
        rustix::fs::sync();
        Sha256::digest(fs::read(&self.image).unwrap()).to_vec()
    }

    /// That it is refused as `wipe` allows, and not touched.
    fn refused(&self, wipe: &Wipe) -> SafetyError {
        let before = self.checksum();
        let error = safety::check(&self.device, wipe).unwrap_err();
        assert_eq!(self.checksum(), before, "{error}");
        error
    }

    /// All consent that can be given.
    fn wipe(&self) -> Wipe {
        Wipe { devices: vec![self.device.clone()], overwrite_signature: true }
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("losetup").args(["--detach", self.path()]).status();
    }
}

/// A mount of the test's own.
struct Mounted(PathBuf);

impl Mounted {
    fn new(disk: &Disk, place: &Place) -> Self {
        let point = place.path().join("point");
        fs::create_dir_all(&point).unwrap();
        run("mount", &["-o", "ro", disk.path(), point.to_str().unwrap()]);
        Self(point)
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

/// A process of the test's own.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn what_is_no_free_block_device_is_refused() {
    if !can("what_is_no_free_block_device_is_refused") {
        return;
    }
    let place = Place::new();
    let all = |path: &Path| Wipe { devices: vec![path.to_owned()], overwrite_signature: true };
    let missing = place.path().join("missing");
    assert!(matches!(safety::check(&missing, &all(&missing)).unwrap_err().found, Found::Unreadable(_)));
    let file = place.path().join("file");
    fs::write(&file, "precious").unwrap();
    assert!(matches!(safety::check(&file, &all(&file)).unwrap_err().found, Found::NotABlockDevice));
    assert_eq!(fs::read_to_string(&file).unwrap(), "precious");
    if let Ok(root) = BlockDevice::under(Path::new("/")) {
        let disk = Path::new("/dev").join(root.disk());
        let error = safety::check(&disk, &all(&disk)).unwrap_err();
        assert!(matches!(error.found, Found::RootDisk), "{error}");
    }
    let read_only = Disk::new(&place, "read-only", &["--read-only"]);
    assert!(matches!(read_only.refused(&read_only.wipe()).found, Found::ReadOnly));
}

#[test]
fn a_device_in_use_is_refused_whatever_was_consented_to() {
    if !can("a_device_in_use_is_refused_whatever_was_consented_to") {
        return;
    }
    let place = Place::new();
    let disk = Disk::new(&place, "disk", &[]);
    {
        let _held = File::options()
            .read(true)
            .custom_flags(rustix::fs::OFlags::EXCL.bits().cast_signed())
            .open(&disk.device)
            .unwrap();
        assert!(matches!(disk.refused(&disk.wipe()).found, Found::InUse));
    }
    {
        let _open = File::options().write(true).open(&disk.device).unwrap();
        let error = disk.refused(&disk.wipe());
        assert!(error.to_string().contains(&format!("process {} (", std::process::id())), "{error}");
    }
    {
        let on_top = run("losetup", &["--find", "--show", "--read-only", disk.path()]);
        let error = disk.refused(&disk.wipe());
        run("losetup", &["--detach", &on_top]);
        assert!(matches!(&error.found, Found::Held { holders, .. } if *holders == [on_top]), "{error}");
    }
    run("mkfs.ext4", &["-q", disk.path()]);
    {
        let mounted = Mounted::new(&disk, &place);
        let error = disk.refused(&disk.wipe());
        assert!(matches!(&error.found, Found::Mounted { at, .. } if Path::new(at) == mounted.0), "{error}");
        assert!(error.help().unwrap().contains("unmount"));
    }
    {
        // In a mount namespace that is not ours.
        let point = place.path().join("elsewhere");
        fs::create_dir(&point).unwrap();
        let mut child = Command::new("unshare");
        child.args(["--mount", "sh", "-c", "mount -o ro \"$1\" \"$2\" && exec sleep 600", "sh"]);
        let child = Running(child.arg(&disk.device).arg(&point).spawn().unwrap());
        let until = Instant::now() + Duration::from_secs(60);
        let mounts = format!("/proc/{}/mountinfo", child.0.id());
        while !fs::read_to_string(&mounts).unwrap().contains("/elsewhere ") {
            assert!(Instant::now() < until, "nothing was mounted");
            std::thread::sleep(Duration::from_millis(10));
        }
        let error = disk.refused(&disk.wipe());
        assert!(error.to_string().contains(&format!("(seen by process {})", child.0.id())), "{error}");
    }
    run("mkswap", &[disk.path()]);
    run("swapon", &[disk.path()]);
    let error = disk.refused(&disk.wipe());
    run("swapoff", &[disk.path()]);
    assert!(matches!(error.found, Found::Swap(_)), "{error}");
}

#[test]
fn a_members_device_is_refused_and_a_signature_without_consent() {
    if !can("a_members_device_is_refused_and_a_signature_without_consent") {
        return;
    }
    let place = Place::new();
    let disk = Disk::new(&place, "disk", &[]);
    let unnamed = disk.refused(&Wipe { devices: Vec::new(), overwrite_signature: true });
    assert!(matches!(unnamed.found, Found::NotNamed(_)), "{unnamed}");
    assert!(
        unnamed.to_string().contains("134.2 MB") && unnamed.help().unwrap().contains("--wipe"),
        "{unnamed}"
    );
    let named = Wipe { overwrite_signature: false, ..disk.wipe() };
    safety::check(&disk.device, &named).unwrap();
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
    safety::check(&link, &disk.wipe()).unwrap();

    let second = Disk::new(&place, "second", &[]);
    if Command::new("mkfs.btrfs").arg("--version").output().is_ok() {
        run("mkfs.btrfs", &["-q", "-f", "-d", "raid0", "-m", "raid0", disk.path(), second.path()]);
        for member in [&disk, &second] {
            let error = member.refused(&member.wipe());
            assert!(matches!(&error.found, Found::Member(of) if of == "btrfs"), "{error}");
        }
    }
}

#[test]
fn another_device_under_the_same_name_is_noticed_before_it_is_written() {
    if !can("another_device_under_the_same_name_is_noticed_before_it_is_written") {
        return;
    }
    let place = Place::new();
    let (first, second) = (Disk::new(&place, "first", &[]), Disk::new(&place, "second", &[]));
    let link = place.path().join("link");
    std::os::unix::fs::symlink(&first.device, &link).unwrap();
    let wipe = Wipe { devices: vec![link.clone()], overwrite_signature: false };
    let looked_at = Some(safety::check(&link, &wipe).unwrap());
    let claim = Step::ClaimDevice(Claim { looked_at, device: link.clone(), wipe });
    let mut performing = Performing { journal: &place.journal, stop: &RUN, made: Vec::new() };
    claim.perform(&mut performing).unwrap();
    fs::remove_file(&link).unwrap();
    std::os::unix::fs::symlink(&second.device, &link).unwrap();
    let error = claim.perform(&mut performing).unwrap_err();
    assert!(matches!(error, StepError::Safety(SafetyError { found: Found::Changed { .. }, .. })), "{error}");
}

#[test]
fn a_named_device_is_made_only_with_consent_and_bears_nothing_afterwards() {
    if !can("a_named_device_is_made_only_with_consent_and_bears_nothing_afterwards") {
        return;
    }
    let place = Place::new();
    let disk = Disk::of_size(320 << 20, &place, "disk", &[]);
    run("mkfs.ext4", &["-q", disk.path()]);
    let on = |filesystem: &str| Storage {
        backing: Backing::Device(disk.device.clone()),
        filesystem: Some(FilesystemChoice { name: filesystem.into(), ..FilesystemChoice::default() }),
        ..Storage::default()
    };
    let account = server_account().unwrap();
    let plan = |filesystem: &str, wipe: &Wipe| {
        let around = Surroundings { default_directory: place.path(), account: &account, wipe };
        Stack::plan("disk", &on(filesystem), &around)
    };
    for wipe in [Wipe::default(), Wipe { overwrite_signature: false, ..disk.wipe() }] {
        let before = disk.checksum();
        let error = plan("ext4", &wipe).unwrap().make(&account, &place.journal, &RUN).unwrap_err();
        assert!(matches!(error, StorageError::Unsafe { .. }), "{error:?}");
        assert_eq!(disk.checksum(), before);
    }
    for filesystem in ["ext4", "btrfs", "xfs", "zfs"] {
        let stack = match plan(filesystem, &disk.wipe()) {
            Ok(stack) => stack,
            // Said by the tests of filesystems.
            Err(StorageError::Filesystem { .. }) => continue,
            Err(e) => panic!("{e:?}"),
        };
        let made = stack.make(&account, &place.journal, &RUN).unwrap();
        assert_eq!(made.facts(false).unwrap().devices[0].path, disk.path());
        assert_eq!(made.take_down(), [""; 0]);
        assert_eq!(run("wipefs", &["--noheadings", disk.path()]), "", "{filesystem}");
    }
    assert_eq!(place.journal.entries().unwrap(), []);
}
