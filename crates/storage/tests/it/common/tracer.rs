//! A test program whose every system call on files is a step, before which another may act.
//!
//! [`trace`] starts a program anew, stops it (ptrace(2)) before each call that has to do with a
//! watched place, and calls back. An attack that swaps a name for a symbolic link there happens at
//! that step each time, not by luck of timing.
//!
//! Programs that it starts under its own account are followed; those under another account are let
//! go.

use std::collections::BTreeSet;
use std::fs::{File, read_link, read_to_string};
use std::io::{self, Read, Seek, Write};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use nix::sys::ptrace::{self, Options};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

/// Ends a program that hangs; nothing is measured by it.
const HANGS: Duration = Duration::from_secs(300);

/// A place that a call names.
#[derive(Debug)]
pub(crate) struct Named {
    /// As the call has it, with the path of its directory's descriptor before it. Links are not
    /// followed.
    pub(crate) path: PathBuf,
    /// Whether it is looked up from `/` or the working directory, not from a descriptor.
    pub(crate) is_by_path: bool,
}

/// A call on files.
#[derive(Debug)]
pub(crate) struct Call {
    /// Number among the calls that have to do with the watched place, from 0.
    pub(crate) step: usize,
    /// Name of the call: `openat2`.
    pub(crate) name: &'static str,
    /// Places that the call names: two for a rename or link.
    pub(crate) places: Vec<Named>,
}

/// How a program ended.
#[derive(Debug)]
pub(crate) struct Ended {
    /// Exit status; none when a signal ended it.
    pub(crate) code: Option<i32>,
    /// Standard output and standard error.
    pub(crate) output: String,
    /// Steps that it took (count).
    pub(crate) steps: usize,
}

/// How a call names places: by the positions of a directory's descriptor and of a path from there
/// among its arguments.
type Shape = &'static [(Option<usize>, Option<usize>)];
const PATH: Shape = &[(None, Some(0))];
const PATHS: Shape = &[(None, Some(0)), (None, Some(1))];
const NEW_PATH: Shape = &[(None, Some(1))];
const AT: Shape = &[(Some(0), Some(1))];
const ATS: Shape = &[(Some(0), Some(1)), (Some(2), Some(3))];
const NEW_AT: Shape = &[(Some(1), Some(2))];
const DESCRIPTOR: Shape = &[(Some(0), None)];

#[rustfmt::skip]
const CALLS: &[(libc::c_long, &str, Shape)] = &[
    (libc::SYS_openat, "openat", AT),
    (libc::SYS_openat2, "openat2", AT),
    (libc::SYS_mkdirat, "mkdirat", AT),
    (libc::SYS_mknodat, "mknodat", AT),
    (libc::SYS_unlinkat, "unlinkat", AT),
    (libc::SYS_renameat2, "renameat2", ATS),
    (libc::SYS_renameat, "renameat", ATS),
    (libc::SYS_linkat, "linkat", ATS),
    (libc::SYS_symlinkat, "symlinkat", NEW_AT),
    (libc::SYS_fchmodat, "fchmodat", AT),
    (libc::SYS_fchownat, "fchownat", AT),
    (libc::SYS_truncate, "truncate", PATH),
    (libc::SYS_fchmod, "fchmod", DESCRIPTOR),
    (libc::SYS_fchown, "fchown", DESCRIPTOR),
    (libc::SYS_ftruncate, "ftruncate", DESCRIPTOR),
    (libc::SYS_newfstatat, "newfstatat", AT),
    (libc::SYS_statx, "statx", AT),
    (libc::SYS_faccessat, "faccessat", AT),
    (libc::SYS_readlinkat, "readlinkat", AT),
    (libc::SYS_getdents64, "getdents64", DESCRIPTOR),
    (libc::SYS_execve, "execve", PATH),
];

/// Calls that newer processors' kernels left out.
#[cfg(target_arch = "x86_64")]
#[rustfmt::skip]
const OLD_CALLS: &[(libc::c_long, &str, Shape)] = &[
    (libc::SYS_open, "open", PATH),
    (libc::SYS_creat, "creat", PATH),
    (libc::SYS_mkdir, "mkdir", PATH),
    (libc::SYS_rmdir, "rmdir", PATH),
    (libc::SYS_unlink, "unlink", PATH),
    (libc::SYS_rename, "rename", PATHS),
    (libc::SYS_link, "link", PATHS),
    (libc::SYS_symlink, "symlink", NEW_PATH),
    (libc::SYS_chmod, "chmod", PATH),
    (libc::SYS_chown, "chown", PATH),
    (libc::SYS_lchown, "lchown", PATH),
    (libc::SYS_stat, "stat", PATH),
    (libc::SYS_lstat, "lstat", PATH),
    (libc::SYS_readlink, "readlink", PATH),
];
#[cfg(not(target_arch = "x86_64"))]
const OLD_CALLS: &[(libc::c_long, &str, Shape)] = &[];

/// Runs `command` to its end and calls back before each call on files that names something below
/// `place`, or `place` itself.
///
/// # Errors
/// It cannot be started, or the kernel lets nobody trace it (`EPERM` in some containers).
pub(crate) fn trace(
    command: &Command,
    place: &Path,
    on_call: &mut dyn FnMut(&Call),
) -> io::Result<Ended> {
    let mut output = tempfile::tempfile()?;
    // It waits on its standard input until it is held.
    let mut shell = Command::new("/bin/sh");
    shell
        .args(["-c", "read _ && exec \"$@\"", "sh"])
        .arg(command.get_program())
        .args(command.get_args())
        .envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    shell.stdin(Stdio::piped()).stdout(output.try_clone()?).stderr(output.try_clone()?);
    let mut child = shell.spawn()?;
    let main = Pid::from_raw(i32::try_from(child.id()).map_err(io::Error::other)?);
    let options = Options::PTRACE_O_TRACESYSGOOD
        | Options::PTRACE_O_TRACECLONE
        | Options::PTRACE_O_TRACEFORK
        | Options::PTRACE_O_TRACEVFORK
        | Options::PTRACE_O_TRACEEXEC
        | Options::PTRACE_O_EXITKILL;
    ptrace::seize(main, options)?;
    child.stdin.take().ok_or_else(|| io::Error::other("no stdin"))?.write_all(b"\n")?;
    let (done, hung) = mpsc::channel::<()>();
    let watchdog = std::thread::spawn(move || {
        if hung.recv_timeout(HANGS) == Err(mpsc::RecvTimeoutError::Timeout) {
            let _ = nix::sys::signal::kill(main, nix::sys::signal::Signal::SIGKILL);
        }
    });
    let (code, steps) = follow(main, place, on_call)?;
    drop(done);
    let _ = watchdog.join();
    let mut text = Vec::new();
    output.rewind()?;
    output.read_to_end(&mut text)?;
    Ok(Ended { code, output: String::from_utf8_lossy(&text).into_owned(), steps })
}

/// Follows what `main` starts until `main` ends, and returns its exit status and the count of
/// steps. Calls of its first thread, which is the test runner's, are none.
fn follow(
    main: Pid,
    place: &Path,
    on_call: &mut dyn FnMut(&Call),
) -> io::Result<(Option<i32>, usize)> {
    let (mut within_a_call, mut step) = (BTreeSet::new(), 0);
    loop {
        // Children of this thread alone: other tests wait for theirs.
        let status = waitpid(None, Some(WaitPidFlag::__WALL | WaitPidFlag::__WNOTHREAD))?;
        let Some(pid) = status.pid() else { continue };
        let mut signal = None;
        match status {
            WaitStatus::Exited(_, code) if pid == main => return Ok((Some(code), step)),
            WaitStatus::Signaled(..) if pid == main => return Ok((None, step)),
            WaitStatus::Exited(..) | WaitStatus::Signaled(..) => {
                within_a_call.remove(&pid);
                continue;
            }
            WaitStatus::PtraceEvent(_, _, libc::PTRACE_EVENT_EXEC) if !is_ours(pid) => {
                within_a_call.remove(&pid);
                let _ = ptrace::detach(pid, None);
                continue;
            }
            // Whichever of its threads made the call, the process's first one returns from it.
            WaitStatus::PtraceEvent(_, _, libc::PTRACE_EVENT_EXEC) => {
                within_a_call.insert(pid);
            }
            WaitStatus::PtraceSyscall(_) if !within_a_call.remove(&pid) => {
                within_a_call.insert(pid);
                if let Some(call) = entered_call(pid, place, step) {
                    step += 1;
                    on_call(&call);
                }
            }
            WaitStatus::Stopped(_, delivered) => signal = Some(delivered),
            _ => {}
        }
        // One that was killed meanwhile is reported next.
        let _ = match pid == main {
            true => ptrace::cont(pid, signal),
            false => ptrace::syscall(pid, signal),
        };
    }
}

/// Whether a thread runs as this process's user.
fn is_ours(pid: Pid) -> bool {
    let status = read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let users = status.lines().find_map(|line| line.strip_prefix("Uid:"));
    let effective = users.and_then(|users| users.split_whitespace().nth(1)?.parse().ok());
    effective == Some(nix::unistd::geteuid().as_raw())
}

fn entered_call(pid: Pid, place: &Path, step: usize) -> Option<Call> {
    let (number, arguments) = registers(pid)?;
    let mut all = CALLS.iter().chain(OLD_CALLS);
    let (_, name, shape) = all.find(|(known, ..)| u64::try_from(*known) == Ok(number))?;
    let memory = File::open(format!("/proc/{pid}/mem")).ok()?;
    let named = |(descriptor, path): &(Option<usize>, Option<usize>)| {
        let path = path.map_or(Some(PathBuf::new()), |at| path_at(&memory, arguments[at]));
        name_place(pid, descriptor.map(|at| arguments[at]), path?)
    };
    let places: Vec<Named> = shape.iter().map(named).collect::<Option<_>>()?;
    let is_step = places.iter().any(|named| named.path.starts_with(place)) && is_ours(pid);
    is_step.then_some(Call { step, name, places })
}

fn registers(pid: Pid) -> Option<(u64, [u64; 6])> {
    let r = ptrace::getregs(pid).ok()?;
    #[cfg(target_arch = "x86_64")]
    return Some((r.orig_rax, [r.rdi, r.rsi, r.rdx, r.r10, r.r8, r.r9]));
    #[cfg(target_arch = "aarch64")]
    return Some((r.regs[8], [r.regs[0], r.regs[1], r.regs[2], r.regs[3], r.regs[4], r.regs[5]]));
}

/// Returns the path at an address, which may be none.
fn path_at(memory: &File, address: u64) -> Option<PathBuf> {
    if address == 0 {
        return Some(PathBuf::new());
    }
    // As much of it as there is: the next page may be missing.
    let mut text = vec![0; 4096];
    memory.read_at(&mut text, address).ok()?;
    text.truncate(text.iter().position(|byte| *byte == 0)?);
    Some(std::ffi::OsString::from_vec(text).into())
}

fn name_place(pid: Pid, descriptor: Option<u64>, given: PathBuf) -> Option<Named> {
    let link = |name: String| read_link(format!("/proc/{pid}/{name}")).ok();
    // A descriptor's path through /proc is no lookup of the path.
    if let Ok(through_proc) = given.strip_prefix("/proc/self/fd") {
        let mut components = through_proc.components();
        let number = components.next()?.as_os_str().to_str()?.to_owned();
        let path = link(format!("fd/{number}"))?.join(components.as_path());
        return Some(Named { path, is_by_path: false });
    }
    if given.is_absolute() {
        return Some(Named { path: given, is_by_path: true });
    }
    let descriptor = descriptor.map(|d| d as i32).filter(|d| *d != libc::AT_FDCWD);
    let base = match descriptor {
        Some(descriptor) => link(format!("fd/{descriptor}"))?,
        None => link("cwd".into())?,
    };
    let path = if given.as_os_str().is_empty() { base } else { base.join(&given) };
    Some(Named { path, is_by_path: descriptor.is_none() })
}
