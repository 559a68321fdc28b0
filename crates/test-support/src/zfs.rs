//! zfs-fuse for tests, where the kernel has no ZFS.

use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// zfs-fuse's daemon where none runs, the test's own, ended by its id; tests with it go one after
/// the other.
pub struct Daemon {
    /// The daemon, unless one ran before.
    pub child: Option<Child>,
    _alone: MutexGuard<'static, ()>,
}

static ZFS: Mutex<()> = Mutex::new(());

/// Has the tests with the daemon wait: zfs-fuse does not let go of a filesystem while another mount
/// namespace has it.
pub fn keep_away() -> MutexGuard<'static, ()> {
    ZFS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn zfs_answers() -> bool {
    let list =
        Command::new("zpool").arg("list").stdout(Stdio::null()).stderr(Stdio::null()).status();
    list.is_ok_and(|status| status.success())
}

impl Daemon {
    /// Starts the daemon where none answers and the process is root; waits for other tests with it.
    #[expect(clippy::new_without_default, reason = "a daemon is nobody's default")]
    pub fn new() -> Self {
        let alone = keep_away();
        if zfs_answers() || !rustix::process::geteuid().is_root() {
            return Self { child: None, _alone: alone };
        }
        let daemon = Command::new("zfs-fuse")
            .arg("--no-daemon")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let child = daemon.ok();
        let until = Instant::now() + Duration::from_secs(20);
        while child.is_some() && !zfs_answers() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(50));
        }
        Self { child, _alone: alone }
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            // Asked to end, it sleeps for four seconds first. Its own statistics stay mounted.
            let _ = child.kill();
            let _ = child.wait();
            let _ = Command::new("umount").arg("/zfs-kstat").stderr(Stdio::null()).status();
        }
    }
}
