//! The filesystem's own check after a power cut: it looks and repairs nothing.

use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use pgdyno_exec::tool::{ToolError, ask_tool};
use pgdyno_model::crash::Fsck;

use crate::error::StorageError;
use crate::filesystem::{Filesystem, FsckProgram};
use crate::mounted::{MountedStack, attaches};

impl MountedStack {
    /// Unmounts the filesystem, has its fsck look at it for at most `limit`, and mounts it again.
    /// Whatever used it must have ended.
    ///
    /// Findings of fsck are no error, nor is it one if fsck cannot be run.
    ///
    /// # Errors
    /// [`StorageError`]: the filesystem is in use, is not of a kind that can be mounted again, or
    /// does not mount any more.
    pub fn fsck(&mut self, limit: Duration, stop: &AtomicBool) -> Result<Fsck, StorageError> {
        self.check_remountable()?;
        let unmount = self.stack().with_filesystem(Filesystem::take_down).unwrap_or_default();
        self.execute(&unmount, &AtomicBool::new(false))?;
        self.wait_released()?;
        let filesystem = self.stack().with_filesystem(|filesystem, volume| {
            (filesystem.name(), filesystem.fsck(), volume.devices.first().cloned())
        });
        let found = match filesystem {
            Some((_, Some(program), Some(device))) => look(program, &device, limit),
            Some((name, ..)) => {
                Fsck::NotRun { why: format!("{name} has no check that repairs nothing") }
            }
            None => Fsck::NotRun { why: "there is no filesystem of its own".into() },
        };
        let mut mount = self.stack().mount_steps();
        // The device is still there.
        mount.retain(|step| !attaches(step));
        self.execute(&mount, stop)?;
        Ok(found)
    }
}

/// Runs `program` on `device`.
fn look(program: &FsckProgram, device: &Path, limit: Duration) -> Fsck {
    let tool = program.tool;
    let flags = program.flags.iter().map(PathBuf::from);
    let args: Vec<PathBuf> = flags.chain([device.to_owned()]).collect();
    let began = Instant::now();
    let answer = ask_tool(tool.program, &args, limit);
    let ms = began.elapsed().as_secs_f64() * 1e3;
    let command = [&[tool.program], program.flags].concat().join(" ");
    match answer {
        Ok(output) => judged(command, ms, &output),
        Err(ToolError::Missing { program }) => {
            Fsck::NotRun { why: format!("{program} is not installed (Debian: {})", tool.debian) }
        }
        Err(e) => Fsck::NotRun { why: e.to_string() },
    }
}

/// Returns what `command`, which ended after `ms`, found.
fn judged(command: String, ms: f64, output: &Output) -> Fsck {
    /// Lines that a record keeps.
    const LINES: usize = 20;
    match output.status.code() {
        Some(0) => Fsck::Clean { command, ms },
        Some(status) => {
            let text = [output.stderr.as_slice(), &output.stdout].concat();
            let text = String::from_utf8_lossy(&text);
            let said = text.lines().filter(|line| !line.trim().is_empty()).take(LINES);
            Fsck::Complained { command, ms, status, said: said.collect::<Vec<_>>().join("\n") }
        }
        None => Fsck::NotRun { why: format!("{command} ended with {}", output.status) },
    }
}

#[cfg(test)]
mod tests {
    use pgdyno_exec::tool::ask_tool;

    use super::*;

    fn said(script: &str) -> Fsck {
        let output = ask_tool("sh", &["-c", script], Duration::from_secs(15)).unwrap();
        judged("fsck -n".into(), 1.0, &output)
    }

    #[test]
    fn the_exit_status_tells_whether_fsck_complained() {
        assert_eq!(said("echo fine"), Fsck::Clean { command: "fsck -n".into(), ms: 1.0 });
        let complaint = said("echo Pass 1; echo; echo bad inode >&2; exit 4");
        let Fsck::Complained { status: 4, said: text, .. } = complaint else {
            panic!("{complaint:?}")
        };
        assert_eq!(text, "bad inode\nPass 1");
        assert!(matches!(said("kill -9 $$"), Fsck::NotRun { .. }));
    }

    #[test]
    fn a_missing_fsck_is_named_with_its_package() {
        let tool =
            crate::filesystem::Tool::new("pgdyno-no-such-fsck", "nothing", None, "checks it");
        let program = FsckProgram { tool, flags: &["-n"] };
        let Fsck::NotRun { why } = look(&program, Path::new("/dev/null"), Duration::from_secs(15))
        else {
            panic!("it is not there")
        };
        assert!(why.contains("pgdyno-no-such-fsck") && why.contains("nothing"), "{why}");
    }
}
