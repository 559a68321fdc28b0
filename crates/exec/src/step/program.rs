//! Programs that steps start: as whom, with what environment, and what they say.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use super::{StepError, io_error};
use crate::account::Account;
use crate::journal::nofollow;
use crate::tool::search_path;

/// Has `command` run as `account`, without root's groups and without our environment but for
/// [`PASSED_ON`]: a program of the server's account can show its environment to everybody who may
/// log in to the server.
pub fn run_as(command: &mut Command, account: &Account) {
    command.env_clear().env("LC_ALL", "C").env("PATH", search_path());
    for name in PASSED_ON {
        command.envs(std::env::var_os(name).map(|value| (name, value)));
    }
    if !account.is_ours() {
        // The standard library drops all supplementary groups with the user.
        command.uid(account.uid).gid(account.gid);
    }
}

/// What programs of the server's account see of our environment: the time zone, which initdb writes
/// down, and the folders of libraries, without which a build that was moved does not start.
const PASSED_ON: [&str; 2] = ["TZ", "LD_LIBRARY_PATH"];

/// Waits for a child in its own process group; on `stop` ends the group. None when it was stopped.
pub(super) fn wait_or_kill_group(
    child: &mut Child,
    stop: &AtomicBool,
) -> io::Result<Option<std::process::ExitStatus>> {
    let mut pause = Duration::from_millis(1);
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if stop.load(Ordering::Relaxed) {
            break;
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(20));
    }
    // Not waited for yet, so that the group is still this child's.
    let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    for (signal, limit) in
        [(Signal::TERM, Duration::from_secs(5)), (Signal::KILL, Duration::from_secs(5))]
    {
        if let Some(group) = group {
            let _ = kill_process_group(group, signal);
        }
        let until = Instant::now() + limit;
        while Instant::now() < until {
            if child.try_wait()?.is_some() {
                return Ok(None);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
    Ok(None)
}

/// The first MiB of the log `path`, which the program may have filled.
pub(super) fn beginning(path: &Path) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    File::open(path)?.take(1 << 20).read_to_end(&mut text)?;
    Ok(text)
}

/// Opens a log for appending, ours alone.
pub fn open_log(path: &Path) -> Result<File, StepError> {
    File::options()
        .append(true)
        .create(true)
        .mode(0o600)
        .custom_flags(nofollow())
        .open(path)
        .map_err(|e| io_error("open the log", path, e))
}

/// What a program said, without its middle where it said much: many give the reason first and their
/// usage last.
pub fn said(output: &[u8]) -> String {
    const FIRST: usize = 5;
    const LAST: usize = 15;
    let text = String::from_utf8_lossy(output);
    let lines: Vec<&str> = text.trim_end().lines().collect();
    if lines.len() <= FIRST + LAST {
        return last_lines(&text, FIRST + LAST);
    }
    let shown = |lines: &[&str]| {
        lines.iter().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n")
    };
    let left_out = lines.len() - FIRST - LAST;
    format!(
        "{}\n  … ({left_out} lines)\n{}",
        shown(&lines[..FIRST]),
        shown(&lines[lines.len() - LAST..])
    )
}

/// The last `lines` lines of `text`.
pub fn last_lines(text: &str, lines: usize) -> String {
    let all: Vec<&str> = text.trim_end().lines().collect();
    if all.is_empty() {
        return "  (nothing was logged)".into();
    }
    let kept = &all[all.len().saturating_sub(lines)..];
    kept.iter().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n")
}
