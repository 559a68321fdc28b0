//! A victim whose every file-related system call is a step, at which an attacker may act.
//!
//! [`trace`] starts a program anew, stops it (ptrace(2)) before and after each call that has to do
//! with a watched place, and calls back. An attack that swaps a name for a symbolic link there
//! happens at that step each time, not by luck of timing.
//!
//! Programs that a victim starts under its own account are followed; those under another account
//! are let go.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use nix::sys::ptrace::{self, Options};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

/// Ends a victim that hangs; nothing is measured by it.
const HANGS: Duration = Duration::from_secs(300);

/// A place that a call names.
#[derive(Clone, Debug)]
pub(crate) struct Named {
    /// As the call has it, with the path of its directory's descriptor before it. Links are not
    /// followed.
    pub(crate) path: PathBuf,
    /// Whether it is looked up from `/` or the working directory, not from a descriptor.
    pub(crate) is_by_path: bool,
}

/// A file-related system call.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    /// Number among the calls that have to do with the watched place, from 0.
    pub(crate) step: usize,
    /// Effective user of the process that makes the call.
    pub(crate) uid: u32,
    /// Name of the call: `openat2`.
    pub(crate) name: &'static str,
    /// Places that the call names: two for a rename or link.
    pub(crate) places: Vec<Named>,
    /// Whether the call makes, changes or removes something, or opens a file so that this may be
    /// done.
    pub(crate) is_write: bool,
}

/// When a callback is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    /// The call has not been made yet.
    Before,
    /// The call is over.
    After,
}

/// How a victim ended.
#[derive(Debug)]
pub(crate) struct Ended {
    /// Exit status; none when a signal ended the victim.
    pub(crate) code: Option<i32>,
    /// Standard output and standard error.
    pub(crate) output: String,
    /// Steps that the victim took (count).
    pub(crate) steps: usize,
}

/// How a call names places: by the positions of its arguments.
#[derive(Clone, Copy)]
enum Shape {
    Path(usize),
    At(usize, usize),
    Paths(usize, usize),
    Ats([usize; 4]),
    Descriptor(usize),
}

/// Effect of a call.
#[derive(Clone, Copy)]
enum Kind {
    Look,
    Write,
    /// Depends on the open flags in that argument.
    Open(usize),
    /// Depends on the flags at the beginning of the `open_how` there.
    OpenHow(usize),
}

use Kind::{Look, Open, OpenHow};
use Shape::{At, Ats, Descriptor, Paths};

#[rustfmt::skip]
const CALLS: &[(libc::c_long, &str, Shape, Kind)] = &[
    (libc::SYS_openat, "openat", At(0, 1), Open(2)),
    (libc::SYS_openat2, "openat2", At(0, 1), OpenHow(2)),
    (libc::SYS_mkdirat, "mkdirat", At(0, 1), Kind::Write),
    (libc::SYS_mknodat, "mknodat", At(0, 1), Kind::Write),
    (libc::SYS_unlinkat, "unlinkat", At(0, 1), Kind::Write),
    (libc::SYS_renameat2, "renameat2", Ats([0, 1, 2, 3]), Kind::Write),
    (libc::SYS_renameat, "renameat", Ats([0, 1, 2, 3]), Kind::Write),
    (libc::SYS_linkat, "linkat", Ats([0, 1, 2, 3]), Kind::Write),
    (libc::SYS_symlinkat, "symlinkat", At(1, 2), Kind::Write),
    (libc::SYS_fchmodat, "fchmodat", At(0, 1), Kind::Write),
    (libc::SYS_fchownat, "fchownat", At(0, 1), Kind::Write),
    (libc::SYS_truncate, "truncate", Shape::Path(0), Kind::Write),
    (libc::SYS_fchmod, "fchmod", Descriptor(0), Kind::Write),
    (libc::SYS_fchown, "fchown", Descriptor(0), Kind::Write),
    (libc::SYS_ftruncate, "ftruncate", Descriptor(0), Kind::Write),
    (libc::SYS_newfstatat, "newfstatat", At(0, 1), Look),
    (libc::SYS_statx, "statx", At(0, 1), Look),
    (libc::SYS_faccessat, "faccessat", At(0, 1), Look),
    (libc::SYS_readlinkat, "readlinkat", At(0, 1), Look),
    (libc::SYS_getdents64, "getdents64", Descriptor(0), Look),
    (libc::SYS_execve, "execve", Shape::Path(0), Look),
];

/// Calls that newer processors' kernels left out.
#[cfg(target_arch = "x86_64")]
#[rustfmt::skip]
const OLD_CALLS: &[(libc::c_long, &str, Shape, Kind)] = &[
    (libc::SYS_open, "open", Shape::Path(0), Open(1)),
    (libc::SYS_creat, "creat", Shape::Path(0), Kind::Write),
    (libc::SYS_mkdir, "mkdir", Shape::Path(0), Kind::Write),
    (libc::SYS_rmdir, "rmdir", Shape::Path(0), Kind::Write),
    (libc::SYS_unlink, "unlink", Shape::Path(0), Kind::Write),
    (libc::SYS_rename, "rename", Paths(0, 1), Kind::Write),
    (libc::SYS_link, "link", Paths(0, 1), Kind::Write),
    (libc::SYS_symlink, "symlink", Shape::Path(1), Kind::Write),
    (libc::SYS_chmod, "chmod", Shape::Path(0), Kind::Write),
    (libc::SYS_chown, "chown", Shape::Path(0), Kind::Write),
    (libc::SYS_lchown, "lchown", Shape::Path(0), Kind::Write),
    (libc::SYS_stat, "stat", Shape::Path(0), Look),
    (libc::SYS_lstat, "lstat", Shape::Path(0), Look),
    (libc::SYS_readlink, "readlink", Shape::Path(0), Look),
];
#[cfg(not(target_arch = "x86_64"))]
const OLD_CALLS: &[(libc::c_long, &str, Shape, Kind)] = &[];

/// Runs `command` to its end and calls back before and after each file-related call that names
/// something below `place`, or `place` itself.
///
/// # Errors
/// It cannot be started, or the kernel lets nobody trace it (`EPERM` in some containers).
pub(crate) fn trace(
    command: &Command,
    place: &Path,
    on_call: &mut dyn FnMut(&Call, Moment),
) -> io::Result<Ended> {
    let mut output = tempfile::tempfile()?;
    // It waits on its standard input until it is held.
    let mut shell = Command::new("/bin/sh");
    shell
        .args(["-c", "read _ && exec \"$@\"", "sh"])
        .arg(command.get_program())
        .args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    shell.stdin(Stdio::piped()).stdout(output.try_clone()?).stderr(output.try_clone()?);
    let mut child = shell.spawn()?;
    let main = Pid::from_raw(i32::try_from(child.id()).map_err(io::Error::other)?);
    if let Err(e) = hold(main, &mut child) {
        let _ = child.kill();
        let _ = child.wait();
        return Err(e);
    }
    let (done, hung) = mpsc::channel::<()>();
    let watchdog = std::thread::spawn(move || {
        if hung.recv_timeout(HANGS) == Err(mpsc::RecvTimeoutError::Timeout) {
            let _ = nix::sys::signal::kill(main, nix::sys::signal::Signal::SIGKILL);
        }
    });
    let (code, steps) =
        Follower { place, on_call, followed: BTreeSet::new(), entered: BTreeMap::new(), steps: 0 }
            .follow(main)?;
    drop(done);
    let _ = watchdog.join();
    let mut text = Vec::new();
    output.seek(SeekFrom::Start(0))?;
    output.read_to_end(&mut text)?;
    Ok(Ended { code, output: String::from_utf8_lossy(&text).into_owned(), steps })
}

/// Seizes the waiting shell, and lets it go on to the program.
fn hold(main: Pid, child: &mut Child) -> io::Result<()> {
    let options = Options::PTRACE_O_TRACESYSGOOD
        | Options::PTRACE_O_TRACECLONE
        | Options::PTRACE_O_TRACEFORK
        | Options::PTRACE_O_TRACEVFORK
        | Options::PTRACE_O_TRACEEXEC
        | Options::PTRACE_O_EXITKILL;
    ptrace::seize(main, options)?;
    ptrace::interrupt(main)?;
    waitpid(main, Some(WaitPidFlag::__WALL))?;
    ptrace::syscall(main, None)?;
    child.stdin.take().ok_or_else(|| io::Error::other("no stdin"))?.write_all(b"\n")
}

/// Returns the thread that an event is about.
fn event_message(pid: Pid) -> Option<i32> {
    ptrace::getevent(pid).ok().and_then(|thread| i32::try_from(thread).ok())
}

struct Follower<'a> {
    place: &'a Path,
    on_call: &'a mut dyn FnMut(&Call, Moment),
    /// Threads that live, as far as is known.
    followed: BTreeSet<i32>,
    /// Threads that are within a call: with what it is if it is a step.
    entered: BTreeMap<i32, Option<Call>>,
    steps: usize,
}

impl Follower<'_> {
    fn follow(&mut self, main: Pid) -> io::Result<(Option<i32>, usize)> {
        let mut code = None;
        self.followed.insert(main.as_raw());
        while !self.followed.is_empty() {
            // Children of this thread alone: other tests wait for theirs.
            let status = match waitpid(None, Some(WaitPidFlag::__WALL | WaitPidFlag::__WNOTHREAD)) {
                Ok(status) => status,
                Err(nix::errno::Errno::ECHILD) => break,
                Err(nix::errno::Errno::EINTR) => continue,
                Err(e) => return Err(e.into()),
            };
            let (pid, signal) = match status {
                WaitStatus::Exited(pid, exit) => {
                    code = if pid == main { Some(exit) } else { code };
                    self.forget(pid.as_raw());
                    continue;
                }
                WaitStatus::Signaled(pid, ..) => {
                    self.forget(pid.as_raw());
                    continue;
                }
                WaitStatus::PtraceSyscall(pid) => {
                    self.stopped_at_call(pid);
                    (pid, None)
                }
                WaitStatus::PtraceEvent(pid, _, libc::PTRACE_EVENT_EXEC) => {
                    // The thread that made the call has the process's id now.
                    if let Some(former) =
                        event_message(pid).filter(|former| *former != pid.as_raw())
                    {
                        self.forget(former);
                    }
                    if user(pid) != Some(nix::unistd::geteuid().as_raw()) {
                        self.forget(pid.as_raw());
                        let _ = ptrace::detach(pid, None);
                        continue;
                    }
                    (pid, None)
                }
                WaitStatus::PtraceEvent(pid, _, event) => {
                    let makes = [
                        libc::PTRACE_EVENT_CLONE,
                        libc::PTRACE_EVENT_FORK,
                        libc::PTRACE_EVENT_VFORK,
                    ];
                    // What it made is known before it is seen, unless it was first and is gone or
                    // let go.
                    let made = event_message(pid).filter(|_| makes.contains(&event));
                    self.followed.extend(made.filter(|made| is_traced(*made)));
                    (pid, None)
                }
                WaitStatus::Stopped(pid, signal) => (pid, Some(signal)),
                _ => continue,
            };
            self.followed.insert(pid.as_raw());
            // One that was killed meanwhile is reported next.
            let _ = ptrace::syscall(pid, signal);
        }
        Ok((code, self.steps))
    }

    fn forget(&mut self, pid: i32) {
        self.followed.remove(&pid);
        self.entered.remove(&pid);
    }

    fn stopped_at_call(&mut self, pid: Pid) {
        if let Some(entered) = self.entered.remove(&pid.as_raw()) {
            if let Some(call) = entered {
                (self.on_call)(&call, Moment::After);
            }
            return;
        }
        let call = self.entered_call(pid);
        if let Some(call) = &call {
            self.steps += 1;
            (self.on_call)(call, Moment::Before);
        }
        self.entered.insert(pid.as_raw(), call);
    }

    fn entered_call(&self, pid: Pid) -> Option<Call> {
        let (number, arguments) = registers(pid)?;
        let mut all = CALLS.iter().chain(OLD_CALLS);
        let (_, name, shape, kind) = all.find(|(known, ..)| u64::try_from(*known) == Ok(number))?;
        let memory = File::open(format!("/proc/{pid}/mem")).ok()?;
        let text = |at: usize| text_at(&memory, arguments[at]);
        let named = |fd: Option<usize>, path: usize| {
            name_place(pid, fd.map(|fd| arguments[fd]), text(path)?)
        };
        let places: Vec<Named> = match *shape {
            Shape::Path(path) => vec![named(None, path)?],
            At(fd, path) => vec![named(Some(fd), path)?],
            Paths(a, b) => vec![named(None, a)?, named(None, b)?],
            Ats([fd, path, fd2, path2]) => vec![named(Some(fd), path)?, named(Some(fd2), path2)?],
            Descriptor(fd) => vec![name_place(pid, Some(arguments[fd]), PathBuf::new())?],
        };
        if !places.iter().any(|named| named.path.starts_with(self.place)) {
            return None;
        }
        let flags = match *kind {
            Look => 0,
            Kind::Write => WRITES,
            Open(at) => arguments[at],
            OpenHow(at) => number_at(&memory, arguments[at])?,
        };
        Some(Call {
            step: self.steps,
            uid: user(pid)?,
            name,
            places,
            is_write: flags & WRITES != 0,
        })
    }
}

#[allow(clippy::cast_sign_loss, reason = "flags")]
const WRITES: u64 = (libc::O_WRONLY | libc::O_RDWR | libc::O_CREAT | libc::O_TRUNC) as u64;

fn name_place(pid: Pid, descriptor: Option<u64>, given: PathBuf) -> Option<Named> {
    let link = |name: String| std::fs::read_link(format!("/proc/{pid}/{name}")).ok();
    // A descriptor's path through /proc is no lookup of the path.
    let mut components = given.components();
    let mut rest = ["proc", "self", "fd"].iter();
    let through_proc = given.is_absolute()
        && components.next().is_some()
        && rest.all(|name| components.next().is_some_and(|c| c.as_os_str() == *name));
    if through_proc {
        let number = components.next()?.as_os_str().to_str()?.to_owned();
        let path = link(format!("fd/{number}"))?.join(components.as_path());
        return Some(Named { path, is_by_path: false });
    }
    if given.is_absolute() {
        return Some(Named { path: given, is_by_path: true });
    }
    #[allow(clippy::cast_possible_truncation, reason = "the kernel takes an int")]
    let descriptor = descriptor.map(|d| d as i32).filter(|d| *d != libc::AT_FDCWD);
    let base = match descriptor {
        Some(descriptor) => link(format!("fd/{descriptor}"))?,
        None => link("cwd".into())?,
    };
    let path = if given.as_os_str().is_empty() { base } else { base.join(&given) };
    Some(Named { path, is_by_path: descriptor.is_none() })
}

fn registers(pid: Pid) -> Option<(u64, [u64; 6])> {
    let r = ptrace::getregs(pid).ok()?;
    #[cfg(target_arch = "x86_64")]
    return Some((r.orig_rax, [r.rdi, r.rsi, r.rdx, r.r10, r.r8, r.r9]));
    #[cfg(target_arch = "aarch64")]
    return Some((r.regs[8], [r.regs[0], r.regs[1], r.regs[2], r.regs[3], r.regs[4], r.regs[5]]));
}

fn number_at(memory: &File, address: u64) -> Option<u64> {
    let mut bytes = [0; 8];
    memory.read_exact_at(&mut bytes, address).ok()?;
    Some(u64::from_ne_bytes(bytes))
}

fn text_at(memory: &File, address: u64) -> Option<PathBuf> {
    use std::os::unix::ffi::OsStringExt;
    const PAGE: u64 = 4096;
    if address == 0 {
        return Some(PathBuf::new());
    }
    let (mut text, mut at) = (Vec::new(), address);
    while text.len() < 4096 {
        // The next page may not be there.
        let mut piece = vec![0; usize::try_from(PAGE - at % PAGE).ok()?];
        let n = memory.read_at(&mut piece, at).ok().filter(|n| *n > 0)?;
        match piece[..n].iter().position(|byte| *byte == 0) {
            Some(end) => {
                text.extend_from_slice(&piece[..end]);
                return Some(std::ffi::OsString::from_vec(text).into());
            }
            None => text.extend_from_slice(&piece[..n]),
        }
        at += n as u64;
    }
    None
}

/// The effective user of a thread.
fn user(pid: Pid) -> Option<u32> {
    status(pid.as_raw(), "Uid:")?.split_whitespace().nth(1)?.parse().ok()
}

fn is_traced(pid: i32) -> bool {
    status(pid, "TracerPid:").is_some_and(|tracer| tracer.trim() != "0")
}

/// A line of `/proc/PID/status`, without its name.
fn status(pid: i32, name: &str) -> Option<String> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    text.lines().find_map(|line| line.strip_prefix(name)).map(str::to_owned)
}

/// This test binary started anew for the one test `name`, which is `#[ignore]`d and reads the
/// variables `given`.
pub(crate) fn victim(name: &str, given: &[(&str, &Path)]) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", name, "--ignored", "--nocapture", "--test-threads=1"]);
    command.env("RUST_BACKTRACE", "0");
    for (name, value) in given {
        command.env(name, value);
    }
    command
}
