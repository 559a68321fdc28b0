//! Executing steps on this host.

use std::ffi::OsStr;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::{fs, io};

use super::{Effect, Executor, undo};
use crate::account::Account;
use crate::beneath::Directory;
use crate::context::ExecContext;
use crate::device::held::{self, HeldDevice};
use crate::error::{StepError, io_error};
use crate::journal::{Entry, OwnedResource};
use crate::marked::{self, MakeError, Removal, Thing};
use crate::process::end_server;
use crate::setting::{DeviceSetting, Setting};
use crate::step::{Contents, Step};
use crate::tool::{Program, open_log, run_words};
use crate::undo::Undo;

impl Executor for ExecContext<'_> {
    fn execute(&mut self, step: &Step) -> Result<Effect, StepError> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(StepError::Interrupted);
        }
        match step {
            Step::EnsureDirectory { .. }
            | Step::MakeDirectory { .. }
            | Step::WriteFile { .. }
            | Step::AppendToFile { .. }
            | Step::RemoveFile { .. } => change_files(step)?,
            Step::MakeMarked { made, mode, owner } => {
                marked::make(made, *mode, owner.as_ref(), self.journal, &mut self.made)
                    .map_err(|e| from_make_error(e, made.path()))?;
            }
            Step::Run { program, args, as_account, output } => {
                let program = Program { path: program, args, account: as_account.as_ref() };
                self.run_once_free(&program, output)?;
            }
            Step::Start { program, args, as_account, output } => {
                let program = Program { path: program, args, account: as_account.as_ref() };
                let child = program.start(open_log(output)?);
                return child.map(Effect::Started).map_err(|e| program.spawn_error(e));
            }
            Step::StopServer { data } => return self.stop_server(data),
            Step::RemoveMarked { path } => return self.remove_marked(path),
            Step::AllocateFile(file) => file.allocate()?,
            Step::ServeDisk(service) => service.start(self.stop)?,
            Step::AttachLoop(device) => device.attach()?,
            Step::ClaimDevice(claim) => claim.check()?,
            Step::Holding { devices, step } => {
                let held = held::hold(devices)?;
                let effect = self.execute(step)?;
                held.iter().try_for_each(HeldDevice::check)?;
                return Ok(effect);
            }
            Step::Mount(mount) => mount.mount()?,
            Step::Set(setting) => setting.set(self)?,
            Step::PutBack(setting) => return self.put_back(setting),
            Step::Undo(undo) => return undo::execute(undo),
        }
        Ok(Effect::Done)
    }
}

impl ExecContext<'_> {
    /// Runs the program of a step to its end, again where its failure passes.
    fn run_once_free<S: AsRef<OsStr>>(
        &self,
        program: &Program<'_, S>,
        log: &Path,
    ) -> Result<(), StepError> {
        held::once_free(held::BUSY_FOR, held::passes, || program.run(log, self.stop))
    }

    /// Ends the server in the data directory `data` of a cluster that this context made. The
    /// cluster is looked at as before its removal, and what stands in place of a directory is not
    /// followed.
    fn stop_server(&self, data: &Path) -> Result<Effect, StepError> {
        let is_it = |entry: &&Entry| {
            matches!(
                &entry.made,
                OwnedResource::Cluster { path } if data.parent() == Some(path.as_path())
            )
        };
        let Some(entry) = self.made.iter().find(is_it) else { return Ok(Effect::NothingToUndo) };
        let failed = |e| io_error("stop the server in", data, e);
        let directory = match marked::open(entry, self.journal).map_err(failed)? {
            Thing::Directory(directory) => directory,
            _ => return Ok(Effect::NothingToUndo),
        };
        let name = data.file_name().unwrap_or_default();
        let Ok(directory) = directory.directory(name) else { return Ok(Effect::NothingToUndo) };
        let ended = end_server(&directory).map_err(failed)?;
        Ok(ended.map_or(Effect::NothingToUndo, |pid| Effect::ServerEnded { pid }))
    }

    /// Removes the marked directory that this context made at `path`, and strikes it out.
    fn remove_marked(&mut self, path: &Path) -> Result<Effect, StepError> {
        let is_it = |entry: &Entry| {
            entry.made.path() == path && !matches!(entry.made, OwnedResource::Setting { .. })
        };
        let Some(at) = self.made.iter().rposition(is_it) else { return Ok(Effect::NothingToUndo) };
        let removal = marked::remove_made(&self.made[at], self.journal)
            .map_err(|e| io_error("remove", path, e))?;
        let entry = self.made.remove(at);
        self.journal.done(&entry.id)?;
        Ok(match removal {
            Removal::Removed => Effect::Done,
            Removal::Absent => Effect::NothingToUndo,
            Removal::NotOurs(found) => Effect::LeftAlone { found },
        })
    }

    /// Puts back whatever this context set for `setting`, the last first, and strikes it out.
    fn put_back(&mut self, setting: &DeviceSetting) -> Result<Effect, StepError> {
        let is_it = |entry: &Entry| match &entry.made {
            OwnedResource::Setting { device, undo, .. } => {
                *device == setting.device && setting.is_undone_by(undo)
            }
            _ => false,
        };
        let mut left = Vec::new();
        while let Some(at) = self.made.iter().rposition(is_it) {
            let entry = self.made.remove(at);
            let OwnedResource::Setting { path, undo, .. } = &entry.made else { continue };
            match (undo, &setting.setting) {
                // The experiment's words, and not the journal's.
                (Undo::RunHook { .. }, Setting::Hook { hook, .. }) => {
                    run_words(&hook.restore)?;
                }
                _ => {
                    if let Effect::LeftAlone { found } = undo::execute(undo)? {
                        left.push(format!("left {} alone: {found}", path.display()));
                    }
                }
            }
            self.journal.done(&entry.id)?;
        }
        Ok(if left.is_empty() {
            Effect::Done
        } else {
            Effect::LeftAlone { found: left.join("; ") }
        })
    }
}

fn change_files(step: &Step) -> Result<(), StepError> {
    let (what, path, result) = match step {
        Step::EnsureDirectory { path, mode } => {
            let made = fs::DirBuilder::new().recursive(true).mode(*mode).create(path);
            ("make the directory", path, made)
        }
        Step::MakeDirectory { path, mode, owner } => {
            ("make the directory", path, make_directory(path, *mode, owner.as_ref()))
        }
        Step::WriteFile { path, contents, mode, owner } => {
            let text = match contents {
                Contents::Text(text) => text.as_str(),
                Contents::Password(secret) | Contents::Key(secret) => secret.reveal(),
            };
            let write = |(parent, name): (Directory, &OsStr)| {
                parent.replace_file(name, text.as_bytes(), owner.as_ref(), *mode)
            };
            ("write", path, parent_of(path).and_then(write))
        }
        Step::AppendToFile { path, text } => {
            let append =
                |(parent, name): (Directory, &OsStr)| parent.append_to_file(name, text.as_bytes());
            ("append to", path, parent_of(path).and_then(append))
        }
        Step::RemoveFile { path } => {
            ("remove", path, parent_of(path).and_then(|(parent, name)| parent.remove_file(name)))
        }
        _ => return Ok(()),
    };
    result.map_err(|e| io_error(what, path, e))
}

/// Opens the directory that `path` lies in, and returns it with the name in it. That directory may
/// be another account's; those above it are not.
fn parent_of(path: &Path) -> io::Result<(Directory, &OsStr)> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    };
    Ok((Directory::open(parent)?, name))
}

fn make_directory(path: &Path, mode: u32, owner: Option<&Account>) -> io::Result<()> {
    let (parent, name) = parent_of(path)?;
    let made = parent.create_directory(name, 0o700)?;
    made.hand_over(owner, mode)?;
    parent.sync()
}

fn from_make_error(error: MakeError, path: &Path) -> StepError {
    match error {
        MakeError::Untrusted(e) => StepError::Untrusted(Box::new(e)),
        MakeError::Journal(e) => e.into(),
        MakeError::Io { what, source } => io_error(what, path, source),
    }
}

#[cfg(test)]
mod tests;
