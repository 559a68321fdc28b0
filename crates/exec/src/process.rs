//! Processes: owners of journalled things, and identities that survive the reuse of pids.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use pgdyno_model::facts::Owner;
use procfs::process::Process;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use sha2::{Digest as _, Sha256};

use crate::beneath::{Directory, FileIdentity};

/// This process, as an owner.
///
/// # Errors
/// `/proc` is not readable.
pub fn current_owner() -> std::io::Result<Owner> {
    let pid = i32::try_from(std::process::id()).map_err(std::io::Error::other)?;
    let started_ticks = started_ticks(pid)
        .ok_or_else(|| std::io::Error::other(format!("cannot read /proc/{pid}/stat")))?;
    Ok(Owner { pid, started_ticks, boot_id: boot_id()?, host: host_id() })
}

/// Returns what tells this machine from others: a digest of `/etc/machine-id`, which itself is not
/// for others to know. None where there is no such file, as in many containers.
pub fn host_id() -> Option<String> {
    static ID: OnceLock<Option<String>> = OnceLock::new();
    let read = || digest_of_machine_id(&std::fs::read_to_string("/etc/machine-id").ok()?);
    ID.get_or_init(read).clone()
}

/// Returns the digest of the text of `/etc/machine-id`; none where it names no machine.
pub fn digest_of_machine_id(text: &str) -> Option<String> {
    let id = text.trim();
    if id.len() != 32 || !id.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let digest = Sha256::digest(format!("pgdyno host {id}"));
    Some(digest[..8].iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Tells whether the process that `owner` names was one of this machine and is gone. What processes
/// of other machines left is not ours to judge; earlier versions named no machine.
pub fn is_gone(owner: &Owner) -> bool {
    is_of_this_host(owner) && !is_alive(owner)
}

/// Tells whether `owner` is, or was, a process of this machine, as far as it names one.
pub fn is_of_this_host(owner: &Owner) -> bool {
    owner.host.is_none() || owner.host == host_id() || boot_id().is_ok_and(|id| id == owner.boot_id)
}

/// Tells whether the very process that `owner` names still runs: same boot, same pid, same start,
/// not a zombie.
pub fn is_alive(owner: &Owner) -> bool {
    boot_id().is_ok_and(|id| id == owner.boot_id)
        && started_ticks(owner.pid) == Some(owner.started_ticks)
}

/// Returns the id of this boot.
///
/// # Errors
/// `/proc` is not readable.
pub fn boot_id() -> std::io::Result<String> {
    Ok(std::fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim().to_owned())
}

/// Returns the start of process `pid` in clock ticks since boot; none when it is gone or a zombie.
pub(crate) fn started_ticks(pid: i32) -> Option<u64> {
    let stat = Process::new(pid).ok()?.stat().ok()?;
    (!matches!(stat.state, 'Z' | 'X')).then_some(stat.starttime)
}

/// A process, distinguished by its start from later ones with its pid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    pid: i32,
    started_ticks: u64,
}

impl Identity {
    /// Returns the process that has `pid` now; none when there is none.
    pub fn from_pid(pid: i32) -> Option<Self> {
        started_ticks(pid).map(|started_ticks| Self { pid, started_ticks })
    }

    /// Returns its pid.
    pub fn pid(self) -> i32 {
        self.pid
    }

    /// Returns its start, in clock ticks since boot.
    pub fn started_ticks(self) -> u64 {
        self.started_ticks
    }

    /// Tells whether this very process still runs.
    pub fn is_alive(self) -> bool {
        started_ticks(self.pid) == Some(self.started_ticks)
    }

    /// Sends `signal` to this very process; a process that is gone needs none.
    pub fn signal(self, signal: Signal) {
        let Some(pid) = Pid::from_raw(self.pid) else { return };
        // The descriptor holds on to the process; whether it is the one meant is asked after it is
        // held.
        if let Ok(fd) = pidfd_open(pid, PidfdFlags::empty()) {
            if self.is_alive() {
                let _ = pidfd_send_signal(&fd, signal);
            }
        } else if self.is_alive() {
            let _ = rustix::process::kill_process(pid, signal);
        }
    }

    /// Waits until the process is gone, at most `limit`; whether it is.
    pub fn wait_gone(self, limit: Duration) -> bool {
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

/// Returns the processes whose parent is `parent`, as of now.
pub fn children(parent: i32) -> Vec<Identity> {
    let Ok(all) = procfs::process::all_processes() else { return Vec::new() };
    all.filter_map(Result::ok)
        .filter_map(|p| p.stat().ok())
        .filter(|s| s.ppid == parent && !matches!(s.state, 'Z' | 'X'))
        .map(|s| Identity { pid: s.pid, started_ticks: s.starttime })
        .collect()
}

/// A data directory and whom its server runs as, for the question which processes work in it.
struct Workplace {
    identity: FileIdentity,
    /// initdb makes a data directory of its own account's, and postgres runs as its data
    /// directory's owner only.
    uid: u32,
    /// Where it lies now, as the kernel tells it.
    path: std::path::PathBuf,
}

impl Workplace {
    fn new(data: &Directory) -> std::io::Result<Self> {
        let uid = rustix::fs::fstat(data)?.st_uid;
        Ok(Self { identity: data.identity()?, uid, path: std::fs::read_link(data.proc_path())? })
    }

    /// Tells whether `process` is a server's of this very directory: whose account it is, which
    /// program, and where it works, by device and inode. What a `postmaster.pid` says, or a path
    /// leads to, does not count.
    fn holds(&self, process: &Process) -> bool {
        let is_here = |cwd: &Path| {
            let cwd = std::fs::metadata(cwd)?;
            Ok(self.identity == FileIdentity { device: cwd.dev(), inode: cwd.ino() })
        };
        serves(process, self.uid, is_here, |word| word == self.path)
    }
}

/// Tells whether `process` is a server's of the account `uid`, with `is_there` for the link to
/// where it works.
///
/// Root without CAP_SYS_PTRACE, as in many containers, may read another user's command line only: a
/// word of it then must be one that `is_named` accepts.
fn serves(
    process: &Process,
    uid: u32,
    is_there: impl Fn(&Path) -> std::io::Result<bool>,
    is_named: impl Fn(&Path) -> bool,
) -> bool {
    if !runs_as(process, uid) {
        return false;
    }
    let of = |name: &str| std::path::PathBuf::from(format!("/proc/{}/{name}", process.pid()));
    match (std::fs::read_link(of("exe")), is_there(&of("cwd"))) {
        (Ok(program), Ok(is_there)) => is_there && is_postgres(&program),
        (Err(e), _) | (_, Err(e)) if e.kind() == std::io::ErrorKind::PermissionDenied => {
            process.stat().is_ok_and(|s| s.comm == "postgres")
                && process.cmdline().is_ok_and(|words| words.iter().any(|w| is_named(Path::new(w))))
        }
        _ => false,
    }
}

/// Tells whether the link `exe` of a process leads to a server's program.
fn is_postgres(program: &Path) -> bool {
    let name = program.file_name().unwrap_or_default().to_string_lossy();
    name.trim_end_matches(" (deleted)") == "postgres"
}

/// Tells whether the process runs as `uid`, by its real and its effective user id.
fn runs_as(process: &Process, uid: u32) -> bool {
    process.status().is_ok_and(|s| s.ruid == uid && s.euid == uid)
}

/// Returns the server that runs in the data directory `data`: the pid in its `postmaster.pid`, if
/// that process is a postgres of the directory's owner that works in this very directory.
pub fn postmaster_of(data: &Directory) -> Option<Identity> {
    use std::io::Read as _;
    let workplace = Workplace::new(data).ok()?;
    let mut text = String::new();
    data.file("postmaster.pid").ok()?.take(4096).read_to_string(&mut text).ok()?;
    let pid: i32 = text.lines().next()?.trim().parse().ok()?;
    let identity = Identity::from_pid(pid)?;
    let process = Process::new(pid).ok()?;
    (workplace.holds(&process) && identity.is_alive()).then_some(identity)
}

/// Returns every process of a server that works in the data directory `data`, its postmaster or
/// not.
pub fn servers_in(data: &Path) -> Vec<Identity> {
    Directory::open(data).map(|data| servers_of(&data)).unwrap_or_default()
}

/// As [`servers_in`], for an open directory.
pub fn servers_of(data: &Directory) -> Vec<Identity> {
    let (Ok(workplace), Ok(all)) = (Workplace::new(data), procfs::process::all_processes()) else {
        return Vec::new();
    };
    let working = all.filter_map(Result::ok).filter(|p| workplace.holds(p));
    working.filter_map(|p| Identity::from_pid(p.pid())).collect()
}

/// Ends the server that runs in `data`, whoever started it, and returns its pid; none: no server
/// runs there.
///
/// # Errors
/// One of its processes does not end.
pub(crate) fn end_server(data: &Directory) -> std::io::Result<Option<i32>> {
    end(postmaster_of(data), servers_of(data))
}

/// Ends the servers that run as `uid` and work below `place`, and returns the pid of one. Nothing
/// there is read: it may lie on a disk that is dead.
///
/// # Errors
/// One of their processes does not end.
pub(crate) fn end_servers_below(place: &Path, uid: u32) -> std::io::Result<Option<i32>> {
    let is_below = |cwd: &Path| Ok(std::fs::read_link(cwd)?.starts_with(place));
    let works_there =
        |process: &Process| serves(process, uid, is_below, |word| word.starts_with(place));
    let Ok(all) = procfs::process::all_processes() else { return Ok(None) };
    let stats = all.filter_map(Result::ok).filter(works_there).filter_map(|p| p.stat().ok());
    let stats: Vec<_> = stats.collect();
    let mut ended = None;
    for postmaster in stats.iter().filter(|s| !stats.iter().any(|other| other.pid == s.ppid)) {
        let postmaster = Identity { pid: postmaster.pid, started_ticks: postmaster.starttime };
        ended = end(Some(postmaster), vec![postmaster])?.or(ended);
    }
    Ok(ended)
}

/// Ends a server's `postmaster` and `all` processes of it, and returns the postmaster's pid.
fn end(postmaster: Option<Identity>, mut all: Vec<Identity>) -> std::io::Result<Option<i32>> {
    if let Some(postmaster) = postmaster {
        all.extend(children(postmaster.pid()));
        postmaster.signal(Signal::QUIT);
        if !postmaster.wait_gone(Duration::from_secs(10)) {
            all.extend(children(postmaster.pid()));
        }
    }
    for process in all {
        // What outlived its postmaster notices that by itself, mostly at once.
        if !process.wait_gone(Duration::from_secs(2)) {
            process.signal(Signal::KILL);
            if !process.wait_gone(Duration::from_secs(10)) {
                let why = format!("its server's process {} does not end", process.pid());
                return Err(std::io::Error::other(why));
            }
        }
    }
    Ok(postmaster.map(Identity::pid))
}

/// The variable in the environment of each program that a step runs: who started it.
pub const STARTED_BY: &str = "PGDYNO_STARTED_BY";

/// Returns the value of [`STARTED_BY`] for programs that this process starts.
///
/// # Errors
/// `/proc` is not readable.
pub fn started_by() -> std::io::Result<String> {
    let owner = current_owner()?;
    let session =
        Process::new(owner.pid).and_then(|p| p.stat()).map_err(std::io::Error::other)?.session;
    Ok(format!("{session} {}", value_of(&owner)))
}

fn value_of(owner: &Owner) -> String {
    format!("{} {} {}", owner.pid, owner.started_ticks, owner.boot_id)
}

/// Returns the programs that the dead process `owner` started for a step and that still run, with
/// all their descendants: an initdb, a mkfs. They run as this process's account or as `account`,
/// and in the session of `owner`: a daemon that one of them left behind is in one of its own, and
/// stays.
///
/// A program whose environment may not be read, as by root without CAP_SYS_PTRACE, is known by an
/// argument that lies in one of `places`.
pub fn programs_of(owner: &Owner, account: Option<u32>, places: &[&Path]) -> Vec<Identity> {
    let ours = rustix::process::geteuid().as_raw();
    let is_foreign = |uid: u32| uid != ours;
    let started = |process: &Process| {
        let uid = match account {
            Some(uid) if runs_as(process, uid) => uid,
            _ if runs_as(process, ours) => ours,
            _ => return false,
        };
        match environment(process) {
            Ok(Some(value)) => value.split_once(' ').is_some_and(|(session, value)| {
                value == value_of(owner)
                    && process.stat().is_ok_and(|s| session.parse() == Ok(s.session))
            }),
            Ok(None) => false,
            Err(_) => is_foreign(uid) && names(process, places),
        }
    };
    let Ok(all) = procfs::process::all_processes() else { return Vec::new() };
    let all: Vec<Process> = all.filter_map(Result::ok).collect();
    let mut found: Vec<i32> = all.iter().filter(|p| started(p)).map(Process::pid).collect();
    let parents: Vec<(i32, i32)> =
        all.iter().filter_map(|p| Some((p.pid(), p.stat().ok()?.ppid))).collect();
    let mut at = 0;
    while let Some(&one) = found.get(at) {
        let children = parents.iter().filter(|(_, parent)| *parent == one).map(|(pid, _)| *pid);
        let new: Vec<i32> = children.filter(|pid| !found.contains(pid)).collect();
        found.extend(new);
        at += 1;
    }
    found.into_iter().filter(|pid| !is_us(*pid)).filter_map(Identity::from_pid).collect()
}

fn is_us(pid: i32) -> bool {
    i32::try_from(std::process::id()) == Ok(pid)
}

/// Returns the value of [`STARTED_BY`] in the environment that the process was started with.
fn environment(process: &Process) -> Result<Option<String>, procfs::ProcError> {
    let value = process.environ()?.remove(std::ffi::OsStr::new(STARTED_BY));
    Ok(value.map(|value| value.to_string_lossy().into_owned()))
}

/// Tells whether an argument of `process` is a path in one of `places`.
fn names(process: &Process, places: &[&Path]) -> bool {
    let is_there = |word: &str| {
        let word = Path::new(word.rsplit_once('=').map_or(word, |(_, value)| value));
        places.iter().any(|place| word.starts_with(place))
    };
    process.cmdline().is_ok_and(|words| words.iter().any(|word| is_there(word)))
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
    fn what_another_machines_process_left_is_not_ours() {
        let me = Owner { host: host_id(), ..current_owner().unwrap() };
        let before = Owner { boot_id: "another boot".into(), ..me.clone() };
        assert!(!is_gone(&me));
        assert!(is_gone(&before));
        // Earlier versions named no machine.
        assert!(is_gone(&Owner { host: None, ..before.clone() }));
        assert!(!is_gone(&Owner { host: Some("another".into()), ..before }));
    }

    #[test]
    fn a_machine_id_is_told_by_its_digest_alone() {
        let id = "b642b4217b34b1e8d3bd915fc65c4452";
        let digest = digest_of_machine_id(&format!("{id}\n")).unwrap();
        assert!(digest.len() == 16 && !id.contains(&digest), "{digest}");
        assert_eq!(digest_of_machine_id("uninitialized\n"), None);
        assert_eq!(digest_of_machine_id(""), None);
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

    #[test]
    fn servers_are_ended_by_where_they_work_and_those_beside_stay() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("postgres");
        // By another process: a file that one of these threads has open for writing cannot be run.
        let copied = std::process::Command::new("cp").arg("/bin/sleep").arg(&program).status();
        assert!(copied.unwrap().success());
        let start = |name: &str, program: &Path| {
            let place = folder.path().join(name);
            std::fs::create_dir_all(place.join("data")).unwrap();
            // Whoever starts the tests may have had the signal ignored.
            let mut command = std::process::Command::new("env");
            command.arg("--default-signal=QUIT").arg(program);
            let child = command.arg("600").current_dir(place.join("data")).spawn().unwrap();
            let runs = format!("/proc/{}/exe", child.id());
            let program = program.canonicalize().unwrap();
            while std::fs::read_link(&runs).unwrap() != program {
                std::thread::sleep(Duration::from_millis(5));
            }
            child
        };
        let mut server = start("stack", &program);
        let mut others = [start("stack-2", &program), start("stack", Path::new("/bin/sleep"))];
        let ours = rustix::process::geteuid().as_raw();
        let ended = end_servers_below(&folder.path().join("stack"), ours).unwrap();
        assert_eq!(ended, i32::try_from(server.id()).ok());
        assert!(!server.wait().unwrap().success());
        for other in &mut others {
            assert_eq!(other.try_wait().unwrap(), None);
            other.kill().unwrap();
            other.wait().unwrap();
        }
    }
}
