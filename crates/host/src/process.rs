//! Who owns what pgdyno made, and which processes are really the ones meant.

use std::path::Path;
use std::time::{Duration, Instant};

use pgdyno_model::facts::Owner;
use procfs::process::Process;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// This process, as an owner.
///
/// # Errors
/// `/proc` is not readable.
pub fn current_owner() -> std::io::Result<Owner> {
    let pid = i32::try_from(std::process::id()).map_err(std::io::Error::other)?;
    let started_ticks =
        started_ticks(pid).ok_or_else(|| std::io::Error::other(format!("cannot read /proc/{pid}/stat")))?;
    Ok(Owner { pid, started_ticks, boot_id: boot_id()? })
}

/// Whether the very process that `owner` names still runs: same boot, same pid, same start, not a zombie.
#[must_use]
pub fn is_alive(owner: &Owner) -> bool {
    boot_id().is_ok_and(|id| id == owner.boot_id) && started_ticks(owner.pid) == Some(owner.started_ticks)
}

pub(crate) fn boot_id() -> std::io::Result<String> {
    Ok(std::fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim().to_owned())
}

/// The start of process `pid` in clock ticks since boot; none when it is gone or a zombie.
fn started_ticks(pid: i32) -> Option<u64> {
    let stat = Process::new(pid).ok()?.stat().ok()?;
    (!matches!(stat.state, 'Z' | 'X')).then_some(stat.starttime)
}

/// One process of the machine, told apart from later ones that get its pid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    pid: i32,
    started_ticks: u64,
}

impl Identity {
    /// The process that has `pid` now; none when there is none.
    pub(crate) fn of(pid: i32) -> Option<Self> {
        started_ticks(pid).map(|started_ticks| Self { pid, started_ticks })
    }

    pub(crate) fn pid(self) -> i32 {
        self.pid
    }

    pub(crate) fn started_ticks(self) -> u64 {
        self.started_ticks
    }

    pub(crate) fn is_alive(self) -> bool {
        started_ticks(self.pid) == Some(self.started_ticks)
    }

    /// Sends `signal` to this very process; a process that is gone needs none.
    pub(crate) fn signal(self, signal: Signal) {
        let Some(pid) = Pid::from_raw(self.pid) else { return };
        // The descriptor holds on to the process; whether it is the one meant is asked after it is held.
        if let Ok(fd) = pidfd_open(pid, PidfdFlags::empty()) {
            if self.is_alive() {
                let _ = pidfd_send_signal(&fd, signal);
            }
        } else if self.is_alive() {
            let _ = rustix::process::kill_process(pid, signal);
        }
    }

    /// Waits until the process is gone, at most `limit`; whether it is.
    pub(crate) fn wait_gone(self, limit: Duration) -> bool {
        let until = Instant::now() + limit;
        while self.is_alive() {
            if Instant::now() >= until {
                return false;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        true
    }
}

/// The processes whose parent is `parent`, as of now.
pub(crate) fn children(parent: i32) -> Vec<Identity> {
    let Ok(all) = procfs::process::all_processes() else { return Vec::new() };
    all.filter_map(Result::ok)
        .filter_map(|p| p.stat().ok())
        .filter(|s| s.ppid == parent && !matches!(s.state, 'Z' | 'X'))
        .map(|s| Identity { pid: s.pid, started_ticks: s.starttime })
        .collect()
}

/// The server that runs in the data directory `data`: the pid in its `postmaster.pid`, if that process is a postgres
/// that works in that directory.
pub(crate) fn postmaster_of(data: &Path) -> Option<Identity> {
    let data = data.canonicalize().ok()?;
    let text = std::fs::read_to_string(data.join("postmaster.pid")).ok()?;
    let pid: i32 = text.lines().next()?.trim().parse().ok()?;
    let identity = Identity::of(pid)?;
    let process = Process::new(pid).ok()?;
    (works_in(&process, &data) && identity.is_alive()).then_some(identity)
}

/// Every process of a server that works in the data directory `data`, its postmaster or not.
pub(crate) fn servers_in(data: &Path) -> Vec<Identity> {
    let (Ok(data), Ok(all)) = (data.canonicalize(), procfs::process::all_processes()) else {
        return Vec::new();
    };
    all.filter_map(Result::ok).filter(|p| works_in(p, &data)).filter_map(|p| Identity::of(p.pid())).collect()
}

fn works_in(process: &Process, data: &Path) -> bool {
    if !process.stat().is_ok_and(|s| s.comm == "postgres") {
        return false;
    }
    match std::fs::read_link(format!("/proc/{}/cwd", process.pid())) {
        Ok(cwd) => cwd == data,
        // Root without CAP_SYS_PTRACE, as in many containers, may read another user's command line only.
        Err(e) if e.kind() == std::io::ErrorKind::PermissionDenied => {
            process.cmdline().is_ok_and(|words| words.iter().any(|w| Path::new(w) == data))
        }
        Err(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_is_alive_only_with_its_own_start_and_boot() {
        let me = current_owner().unwrap();
        assert!(is_alive(&me));
        assert!(!is_alive(&Owner { started_ticks: me.started_ticks + 1, ..me.clone() }));
        assert!(!is_alive(&Owner { boot_id: "another boot".into(), ..me }));
    }

    #[test]
    fn a_zombie_owns_nothing() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        // It ends without being waited for: a zombie until `wait`.
        let until = Instant::now() + Duration::from_secs(10);
        while started_ticks(pid).is_some() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(2));
        }
        assert!(Path::new(&format!("/proc/{pid}")).exists());
        assert_eq!(started_ticks(pid), None);
        child.wait().unwrap();
    }
}
