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

/// The pools' names, one a line; nothing where no daemon answers.
fn pools() -> Option<String> {
    let list = Command::new("zpool").args(["list", "-H", "-o", "name"]).output().ok()?;
    list.status.success().then(|| String::from_utf8_lossy(&list.stdout).into_owned())
}

impl Daemon {
    /// Starts the daemon where none answers and the process is root; waits for other tests with it.
    #[expect(clippy::new_without_default, reason = "a daemon is nobody's default")]
    pub fn new() -> Self {
        let alone = keep_away();
        if pools().is_some() || !rustix::process::geteuid().is_root() {
            return Self { child: None, _alone: alone };
        }
        let daemon = Command::new("zfs-fuse")
            .arg("--no-daemon")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let child = daemon.ok();
        let until = Instant::now() + Duration::from_secs(20);
        while child.is_some() && pools().is_none() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(50));
        }
        Self { child, _alone: alone }
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let Some(child) = &mut self.child else { return };
        // Ended by SIGTERM it sleeps four seconds first, which only pools are worth.
        if pools() != Some(String::new()) {
            let pid = rustix::process::Pid::from_child(child);
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
            let until = Instant::now() + Duration::from_secs(15);
            while matches!(child.try_wait(), Ok(None)) && Instant::now() < until {
                std::thread::sleep(Duration::from_millis(50));
            }
        }
        if matches!(child.try_wait(), Ok(Some(_))) {
            return;
        }
        let _ = child.kill();
        let _ = child.wait();
        // Its own statistics stay mounted, with nobody to serve them.
        let _ = Command::new("umount").arg("/zfs-kstat").stderr(Stdio::null()).status();
    }
}
