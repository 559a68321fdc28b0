//! Programs: where they are found, as whom and with which environment they run, and how they are
//! waited for.
//!
//! Everything that pgdyno starts is started here, a [`Program`] or a
//! [command of the user's](run_user_command). A script's `\shell` alone is the engine's own.
//!
//! This file knows nothing of steps, since the account that steps run as is found by a program.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use std::{fmt, fs, thread};

use rustix::process::{Pid, Signal, kill_process_group};
use serde::{Deserialize, Serialize};

use crate::mountinfo::{self, MountEntry};

/// An account of this machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Account {
    /// Name in passwd.
    pub name: String,
    /// User id.
    pub uid: u32,
    /// Id of the primary group.
    pub gid: u32,
}

impl Account {
    /// Tells whether this is the account that this process runs as.
    pub fn is_ours(&self) -> bool {
        self.uid == rustix::process::geteuid().as_raw()
    }
}

impl fmt::Display for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// Returns `PATH` and the folders of root's programs, which `su` and some containers leave out of
/// it.
fn search_path() -> OsString {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> =
        std::env::split_paths(&path).filter(|p| p.is_absolute()).collect();
    for folder in ["/usr/local/sbin", "/usr/sbin", "/sbin"].map(PathBuf::from) {
        if !folders.contains(&folder) {
            folders.push(folder);
        }
    }
    std::env::join_paths(folders).unwrap_or(path)
}

/// Finds the program `name`; none when it is not installed.
pub fn locate(name: &str) -> Option<PathBuf> {
    let executable = |p: &PathBuf| {
        p.metadata().is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
    };
    std::env::split_paths(&search_path()).map(|folder| folder.join(name)).find(executable)
}

/// A program with its arguments.
#[derive(Clone, Copy, Debug)]
pub struct Program<'a, S> {
    /// Path of the program, or a name that is searched as [`locate`] does.
    pub path: &'a Path,
    /// Arguments; no shell reads them.
    pub args: &'a [S],
    /// Account that the program runs as; none means this process's own.
    pub account: Option<&'a Account>,
}

impl<S: AsRef<OsStr>> Program<'_, S> {
    /// Starts it with its output going to `log`, and does not wait.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(&self, log: File) -> io::Result<Child> {
        self.command(log)?.spawn()
    }

    /// Runs it to its end, and returns its output, whatever its exit status. None: `give_up`
    /// became true, and it was ended.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn answer(&self, give_up: &dyn Fn() -> bool) -> io::Result<Option<Output>> {
        let mut command = self.quiet_command();
        wait_or_end(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?, give_up)
    }

    /// Returns the program, not started yet, with its output going to `log`.
    pub(crate) fn command(&self, log: File) -> io::Result<Command> {
        let mut command = self.quiet_command();
        command.stdout(log.try_clone()?).stderr(log);
        Ok(command)
    }

    /// Returns the program in a process group of its own, so that a Ctrl-C at the terminal reaches
    /// pgdyno alone.
    ///
    /// A program of another account's gets neither root's groups nor our environment but for
    /// `PASSED_ON`: a program of the server's account can show its environment to everybody who
    /// may log in to the server.
    fn quiet_command(&self) -> Command {
        let has_folder = self.path.components().nth(1).is_some();
        let path = has_folder.then(|| std::path::absolute(self.path).ok()).flatten();
        let mut command = without_dead_mounts(path.as_deref().unwrap_or(self.path), self.args);
        if self.path.file_name() == Some(NAMES_ITS_DEVICES.as_ref()) {
            let args = self.args.iter().map(|arg| Path::new(arg.as_ref()));
            command.args(args.map(mountinfo::real_source));
        } else {
            command.args(self.args);
        }
        command.current_dir("/").process_group(0).stdin(Stdio::null());
        if let Some(account) = self.account {
            command.env_clear();
            for name in PASSED_ON {
                command.envs(std::env::var_os(name).map(|value| (name, value)));
            }
            if !account.is_ours() {
                // The standard library drops all supplementary groups with the user.
                command.uid(account.uid).gid(account.gid);
            }
        }
        // The user's PGDATA, PGPORT and the like are meant for other servers.
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.as_bytes().starts_with(b"PG"))
        {
            command.env_remove(name);
        }
        // Messages are read by pgdyno.
        command.env("LC_ALL", "C").env("PATH", search_path());
        command
    }
}

/// The program that tells the kernel its devices by the names that it was given, and is given no
/// links.
///
/// The kernel keeps the names. A link may lead to another loop device later. Then the kernel does
/// not see that the member of a volume has another number, and forgets it once somebody scans the
/// device that has the old one.
const NAMES_ITS_DEVICES: &str = "mkfs.btrfs";

/// Programs that look at the file of every mounted loop device, and fail if one cannot be reached.
const LOOK_AT_EVERY_MOUNT: [&str; 2] = ["mkfs.btrfs", "btrfs"];

/// Returns the command of `program`, which is to have `args`. Where it would fail over dead mounts,
/// which are no concern of its own, it runs in a mount namespace that lacks them; the machine keeps
/// them.
///
/// The namespace also lacks what lies on other loop devices or FUSE servers, zfs-fuse among them:
/// while it lasts, nobody could take that down.
fn without_dead_mounts<S: AsRef<OsStr>>(program: &Path, args: &[S]) -> Command {
    // Lazily, without helpers and without a look at the path or at mtab. What was unmounted in the
    // meantime is no failure; if another mount stays, the program itself tells.
    // All at once: until the last is gone, whoever takes one down waits.
    const UNMOUNT_AND_RUN: &str =
        "set -f; mounts=$1; shift; IFS='\n'; umount -lnci $mounts; unset IFS; exec \"$@\"";
    let looks = program
        .file_name()
        .is_some_and(|name| LOOK_AT_EVERY_MOUNT.iter().any(|other| name == *other));
    let mounts = if looks { mountinfo::mounts().unwrap_or_default() } else { Vec::new() };
    if !mounts.iter().any(is_dead) {
        return Command::new(program);
    }
    let needed: Vec<PathBuf> = args
        .iter()
        .map(|arg| Path::new(arg.as_ref()))
        .filter(|path| path.is_absolute())
        .filter_map(|path| path.canonicalize().ok())
        .chain(locate(&program.to_string_lossy()))
        .collect();
    let is_needed = |mount: &MountEntry| needed.iter().any(|path| path.starts_with(&mount.point));
    let may_go = |mount: &MountEntry| {
        let is_of_a_process = mount.filesystem.starts_with("fuse");
        let is_one_line = !mount.point.as_os_str().as_encoded_bytes().contains(&b'\n');
        (mount.loop_file().is_some() || is_of_a_process) && is_one_line
    };
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "private", "sh", "-c", UNMOUNT_AND_RUN, "sh"]);
    // The last first: it may lie upon another.
    let gone = mounts.iter().rev().filter(|mount| may_go(mount) && !is_needed(mount));
    let points: Vec<&OsStr> = gone.map(|mount| mount.point.as_os_str()).collect();
    command.arg(points.join(OsStr::new("\n"))).arg(program);
    command
}

/// Tells whether a filesystem's loop device lies in a file that cannot be reached, as in a FUSE
/// filesystem whose server was killed: already, or while it is looked at.
fn is_dead(mount: &MountEntry) -> bool {
    let looked = mount.loop_file().map(fs::metadata);
    let is_lost = |e: io::Error| {
        matches!(e.kind(), io::ErrorKind::NotConnected | io::ErrorKind::ConnectionAborted)
    };
    looked.is_some_and(|looked| looked.is_err_and(is_lost))
}

/// Environment variables that programs of the server's account inherit: the time zone, which initdb
/// writes down, and the folders of libraries, without which a build that was moved does not start.
const PASSED_ON: [&str; 2] = ["TZ", "LD_LIBRARY_PATH"];

/// Runs a command of the user's as a shell would: in this process's directory and environment, its
/// complaints going where this process's go. None: `stop` became true, and it was ended.
///
/// # Errors
/// It cannot be started.
pub fn run_user_command(words: &[String], stop: &AtomicBool) -> io::Result<Option<ExitStatus>> {
    let (program, args) = words.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let mut command = Command::new(program);
    command.args(args).process_group(0).stdin(Stdio::null()).stdout(Stdio::null());
    let output = wait_or_end(command.spawn()?, &|| stop.load(Ordering::Relaxed))?;
    Ok(output.map(|output| output.status))
}

/// Runs a command of the user's in a shell, with `input` on its standard input and its output going
/// where this process's complaints go. None: `give_up` became true, and it was ended.
///
/// # Errors
/// It cannot be started.
pub fn run_user_shell(
    command: &str,
    input: Vec<u8>,
    give_up: &dyn Fn() -> bool,
) -> io::Result<Option<ExitStatus>> {
    let stderr = io::stderr().as_fd().try_clone_to_owned()?;
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", command]).process_group(0).stdin(Stdio::piped()).stdout(stderr);
    let mut child = shell.spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        // In a thread, since a full pipe would block. A command that does not read it is fine.
        thread::spawn(move || drop(stdin.write_all(&input)));
    }
    Ok(wait_or_end(child, give_up)?.map(|output| output.status))
}

/// Starts `words` with pipes for standard input, output and errors: in this process's directory and
/// environment, and in a process group of its own, so that a Ctrl-C at the terminal reaches pgdyno
/// alone.
///
/// # Errors
/// It cannot be started.
pub fn start_piped(words: &[OsString]) -> io::Result<Child> {
    let (program, args) = words.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let mut command = Command::new(program);
    command.args(args).process_group(0);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()
}

/// Starts `words` to outlive this process and its terminal: in its directory and environment, with
/// no input and its output going to `log`. It has to call [`leave_terminal`].
///
/// Where systemd runs, the program gets a scope of its own, so that it also outlives a session that
/// systemd ends as a whole at logout.
///
/// # Errors
/// It cannot be started.
pub fn start_detached(words: &[OsString], log: &File) -> io::Result<Child> {
    let mut all = scope_words();
    all.extend_from_slice(words);
    let (program, args) = all.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log.try_clone()?);
    command.spawn()
}

/// Begins a session without a terminal, for a process of [`start_detached`].
///
/// # Errors
/// setsid(2)'s.
pub fn leave_terminal() -> io::Result<()> {
    match rustix::process::setsid() {
        // The leader of a group, as of a service: no terminal's signal reaches it either.
        Err(rustix::io::Errno::PERM) => Ok(()),
        begun => Ok(begun.map(drop)?),
    }
}

/// Returns the words that start a program in a scope of systemd, as the same process; none where no
/// manager answers.
fn scope_words() -> Vec<OsString> {
    if !Path::new("/run/systemd/system").is_dir() {
        return Vec::new();
    }
    let mut words = vec!["systemd-run", "--scope", "--quiet", "--collect"];
    if !rustix::process::geteuid().is_root() {
        words.push("--user");
    }
    let args = [&words[1..], &["--", "true"]].concat();
    // Asked first: a manager that refuses must not cost the run.
    match ask_tool(words[0], &args, Duration::from_secs(5)) {
        Ok(output) if output.status.success() => {
            words.push("--");
            words.into_iter().map(OsString::from).collect()
        }
        _ => Vec::new(),
    }
}

/// Waits for a child in its own process group, and reads what it writes to pipes. Once `give_up`
/// is true, ends the group and returns none.
pub(crate) fn wait_or_end(
    mut child: Child,
    give_up: &dyn Fn() -> bool,
) -> io::Result<Option<Output>> {
    let (stdout, stderr) = (child.stdout.take().map(read_all), child.stderr.take().map(read_all));
    let is_over = |pipe: &Option<JoinHandle<_>>| pipe.as_ref().is_none_or(JoinHandle::is_finished);
    let mut pause = Duration::from_millis(1);
    loop {
        // Not waited for before its pipes are closed, so that the group is still this child's.
        if is_over(&stdout)
            && is_over(&stderr)
            && let Some(status) = child.try_wait()?
        {
            let text = |pipe: Option<JoinHandle<Vec<u8>>>| {
                pipe.and_then(|pipe| pipe.join().ok()).unwrap_or_default()
            };
            return Ok(Some(Output { status, stdout: text(stdout), stderr: text(stderr) }));
        }
        if give_up() {
            break;
        }
        thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(20));
    }
    let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    for signal in [Signal::TERM, Signal::KILL] {
        if let Some(group) = group {
            let _ = kill_process_group(group, signal);
        }
        let until = Instant::now() + Duration::from_secs(5);
        while Instant::now() < until {
            if child.try_wait()?.is_some() {
                return Ok(None);
            }
            thread::sleep(Duration::from_millis(5));
        }
    }
    // A process stuck in the kernel outlives even this; it is waited for no longer.
    Ok(None)
}

/// Reads in a thread of its own, since a full pipe would block the program.
fn read_all(mut from: impl Read + Send + 'static) -> JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = from.read_to_end(&mut bytes);
        bytes
    })
}

/// A tool that gave no answer.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum ToolError {
    /// The tool is not installed.
    #[error("{program} is not installed")]
    Missing { program: String },
    /// The tool could not be run.
    #[error("cannot run {program}: {cause}")]
    Run { program: String, cause: io::Error },
    /// The tool took longer than allowed.
    #[error("{program} did not answer within {} s", limit.as_secs())]
    Late {
        program: String,
        /// The longest that it may take.
        limit: Duration,
    },
}

/// Runs `program` for at most `limit` and returns its output, whatever its exit status.
///
/// # Errors
/// [`ToolError`]: it is not installed, cannot be run, or does not end in time.
pub fn ask_tool<S: AsRef<OsStr>>(
    program: impl AsRef<Path>,
    args: &[S],
    limit: Duration,
) -> Result<Output, ToolError> {
    let path = program.as_ref();
    let program = path.display().to_string();
    let until = Instant::now() + limit;
    match (Program { path, args, account: None }).answer(&|| Instant::now() >= until) {
        Ok(Some(output)) => Ok(output),
        Ok(None) => Err(ToolError::Late { program, limit }),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Err(ToolError::Missing { program }),
        Err(cause) => Err(ToolError::Run { program, cause }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(15);

    #[test]
    fn a_tool_is_heard_or_named_as_missing() {
        let said = ask_tool("sh", &["-c", "echo out; echo err >&2; exit 3"], LIMIT).unwrap();
        assert_eq!((said.status.code(), &said.stdout[..]), (Some(3), &b"out\n"[..]));
        assert_eq!(said.stderr, b"err\n");
        let missing = ask_tool("pgdyno-no-such-program", &["-V"], LIMIT);
        assert!(matches!(missing, Err(ToolError::Missing { .. })));
        let late = ask_tool("sleep", &["100"], Duration::from_millis(50));
        assert!(matches!(late, Err(ToolError::Late { .. })));
    }

    #[test]
    fn a_program_is_heard_to_its_end_or_ended_when_it_is_given_up() {
        let shell = |script| Program { path: Path::new("sh"), args: script, account: None };
        // More than a pipe holds.
        let talking = ["-c", "head -c 200000 /dev/zero >&2; exit 3"];
        let output = shell(&talking).answer(&|| false).unwrap().unwrap();
        assert_eq!((output.status.code(), output.stderr.len()), (Some(3), 200_000));
        // It would outlast any test.
        assert!(shell(&["-c", "sleep 100000"]).answer(&|| true).unwrap().is_none());
    }

    #[test]
    fn a_command_of_the_users_runs_in_this_directory_until_it_is_stopped() {
        let here = std::env::current_dir().unwrap().display().to_string();
        let words = |script: &str| ["sh", "-c", script].map(str::to_owned);
        let status = run_user_command(&words(&format!("test $PWD = '{here}'")), &false.into());
        assert!(status.unwrap().unwrap().success());
        assert!(run_user_command(&words("sleep 100000"), &true.into()).unwrap().is_none());
    }
}
