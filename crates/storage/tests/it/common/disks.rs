//! Loop devices of a test's own, with what uses them.

use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use pgdyno_exec::device::identity::BlockDevice;
use pgdyno_exec::device::refusal::{Refusal, SafetyError};
use pgdyno_exec::device::safety;
use pgdyno_exec::program::Program;
use pgdyno_storage::Wipe;
use pgdyno_test_support::wait_for;
use rustix::fs::SeekFrom;
use rustix::io::Errno;
use sha2::{Digest, Sha256};

use super::Place;

/// Whether devices can be made here; if not, that is said.
pub(crate) fn can(test: &str) -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        use std::io::Write;
        // Past the test runner, which captures what passing tests print.
        let _ = writeln!(std::io::stderr(), "\nskipped: {test}: loop devices need root");
    }
    root
}

/// One at a time: of two that look for a free loop device, the second opens the first's for a
/// moment, and it is in use then.
static LOSETUP: Mutex<()> = Mutex::new(());

/// Runs `program` as pgdyno does, beside dead mounts too, and returns what it says.
///
/// A device that is busy is tried again: a look of this process's that is over lasts, as another
/// test's child has a copy of its descriptor until it is executed. `mkfs.btrfs` fails over a mount
/// whose server is killed meanwhile.
pub(crate) fn run(program: &str, args: &[&str]) -> String {
    const PASSING: [&str; 3] = ["busy", "in use by the system", "cannot check mount status"];
    wait_for(program, || match try_run(program, args) {
        Ok(said) => Some(said),
        Err(why) if PASSING.iter().any(|word| why.contains(word)) => None,
        Err(why) => panic!("{program} {args:?}: {why}"),
    })
}

fn try_run(program: &str, args: &[&str]) -> Result<String, String> {
    let _alone =
        (program == "losetup").then(|| LOSETUP.lock().unwrap_or_else(PoisonError::into_inner));
    let program = Program { path: Path::new(program), args, account: None };
    let output = program.answer(&|| false).unwrap().unwrap();
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    Ok(String::from_utf8(output.stdout).unwrap().trim().to_owned())
}

/// Returns the verdict on `device` as `wipe` allows, once no other test's child or `losetup` has it
/// open.
pub(crate) fn checked(device: &Path, wipe: &Wipe) -> Result<BlockDevice, SafetyError> {
    wait_for("the device to be let go of", || match safety::check(device, wipe) {
        Err(SafetyError { found: Refusal::Open { .. }, .. }) => None,
        said => Some(said),
    })
}

/// A loop device of the test's own, detached when dropped.
pub(crate) struct Disk {
    pub(crate) image: PathBuf,
    pub(crate) device: PathBuf,
}

/// The file of a disk, made unless it is there.
fn image(bytes: u64, place: &Place, name: &str) -> PathBuf {
    let image = place.path().join(name);
    if !image.exists() {
        File::create_new(&image).unwrap().set_len(bytes).unwrap();
    }
    image
}

impl Disk {
    pub(crate) fn new(place: &Place, name: &str, options: &[&str]) -> Self {
        Self::of_size(128 << 20, place, name, options)
    }

    pub(crate) fn of_size(bytes: u64, place: &Place, name: &str, options: &[&str]) -> Self {
        let mut args = vec!["--find", "--show"];
        args.extend(options);
        let image = image(bytes, place, name);
        args.push(image.to_str().unwrap());
        Self { device: run("losetup", &args).into(), image }
    }

    /// On a loop device that nobody else is given when its number is free for a moment.
    pub(crate) fn of_its_own_number(bytes: u64, place: &Place, name: &str) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(180);
        let image = image(bytes, place, name);
        // One that an earlier process made is given to whoever looks for a free one.
        let device = wait_for("a loop device of its own number", || {
            let device = format!("/dev/loop{}", NEXT.fetch_add(1, Ordering::Relaxed));
            try_run("losetup", &[&device, image.to_str().unwrap()]).ok().map(|_| device)
        });
        Self { device: device.into(), image }
    }

    /// Puts `other`'s file behind this disk's device, as when a drive is pulled and another one
    /// plugged in.
    pub(crate) fn change_for(&self, other: &Self) {
        run("losetup", &["--detach", self.path()]);
        let name = self.device.file_name().unwrap().to_str().unwrap();
        let bound = PathBuf::from(format!("/sys/block/{name}/loop"));
        // The kernel detaches a device when the last descriptor closes. A program that another test
        // starts has copies of this process's descriptors until it is executed.
        for _ in 0..1000 {
            if !bound.exists() {
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        run("losetup", &[self.path(), other.image.to_str().unwrap()]);
    }

    pub(crate) fn path(&self) -> &str {
        self.device.to_str().unwrap()
    }

    /// A sum over its file's length and all that it holds. Blocks of zeros are left out, whether
    /// they are holes or were written, so that a disk that is nearly empty is read in no time.
    pub(crate) fn checksum(&self) -> Vec<u8> {
        const BLOCK: usize = 64 << 10;
        rustix::fs::sync();
        let file = File::open(&self.image).unwrap();
        let (mut sum, mut block) = (Sha256::new(), vec![0; BLOCK]);
        sum.update(file.metadata().unwrap().len().to_le_bytes());
        let mut at = 0;
        loop {
            match rustix::fs::seek(&file, SeekFrom::Data(at)) {
                Ok(data) => at = data - data % BLOCK as u64,
                // None behind it.
                Err(Errno::NXIO) => break,
                Err(error) => panic!("{}: {error}", self.image.display()),
            }
            let read = file.read_at(&mut block, at).unwrap();
            if block[..read] != [0; BLOCK][..read] {
                sum.update(at.to_le_bytes());
                sum.update(&block[..read]);
            }
            at += read as u64;
        }
        sum.finalize().to_vec()
    }

    /// That it is refused as `wipe` allows, and not touched.
    pub(crate) fn refused(&self, wipe: &Wipe) -> SafetyError {
        let before = self.checksum();
        let error = safety::check(&self.device, wipe).unwrap_err();
        assert_eq!(self.checksum(), before, "{error}");
        error
    }

    /// [`checked`], and it is not touched.
    pub(crate) fn checked(&self, wipe: &Wipe) -> Result<BlockDevice, SafetyError> {
        let before = self.checksum();
        let said = checked(&self.device, wipe);
        assert_eq!(self.checksum(), before, "{said:?}");
        said
    }

    /// All consent that can be given.
    pub(crate) fn wipe(&self) -> Wipe {
        Wipe { devices: vec![self.device.clone()], overwrite_signature: true }
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("losetup").args(["--detach", self.path()]).status();
    }
}

/// A mount of the test's own.
pub(crate) struct Mounted(pub(crate) PathBuf);

impl Mounted {
    pub(crate) fn new(disk: &Disk, place: &Place) -> Self {
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
pub(crate) struct Running(pub(crate) Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
