//! Applies settings to devices, reads them back, and restores the earlier values.

use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use super::error::SettingError;
use super::kernel_file::{current, write};
use super::write_cache::WriteCache;
use super::{DeviceSetting, Setting, limit, module, raid_cache};
use crate::context::ExecContext;
use crate::device::identity::BlockDevice;
use crate::error::StepError;
use crate::tool::run_words;
use crate::undo::{KernelFileChange, Undo};

/// Scheduler queues that the kernel resets when the scheduler is changed.
const RESET_BY_SCHEDULER: [&str; 2] = ["nr_requests", "wbt_lat_usec"];

impl DeviceSetting {
    /// Sets it: journals how it was, sets, reads back.
    pub fn set(&self, context: &mut ExecContext<'_>) -> Result<(), StepError> {
        match &self.setting {
            Setting::Queue { attribute, value } => {
                let queue = self.block_device()?.disk_sysfs().join("queue");
                let mut files = vec![KernelFileChange {
                    was: current(&queue.join(attribute), None)?,
                    file: queue.join(attribute),
                    set: Some(value.clone()),
                }];
                if *attribute == "scheduler" {
                    for file in RESET_BY_SCHEDULER.map(|name| queue.join(name)) {
                        // Not every queue has each of them, and one without wbt answers EINVAL.
                        if let Ok(was) = current(&file, None) {
                            files.push(KernelFileChange { file, was, set: None });
                        }
                    }
                }
                write_journalled(&files, &self.device, context)
            }
            Setting::WriteCache(on) => self.set_write_cache(*on, context),
            Setting::Limit(limit) => {
                let device = self.block_device()?;
                let files = limit::files(limit, &device)?;
                files
                    .into_iter()
                    .try_for_each(|file| write_journalled(&[file], &self.device, context))
            }
            Setting::ModuleParameter { module, parameter, value } => {
                module::check(module, parameter)?;
                let file = module::file(module, parameter);
                let was = current(&file, None)?;
                let set = Some(module::as_shown(value, &was));
                write_journalled(&[KernelFileChange { file, was, set }], &self.device, context)
            }
            Setting::RaidCache { volume, policy } => {
                let was = raid_cache::read(volume)?;
                if was == *policy {
                    return Ok(());
                }
                let undo = Undo::SetRaidCache { volume: *volume, policy: was };
                context.record_setting(&self.device, &self.device, undo)?;
                raid_cache::write(volume, *policy)
            }
            Setting::Hook { hook, storage } => {
                context.record_setting(
                    &self.device,
                    &self.device,
                    Undo::RunHook { storage: storage.clone() },
                )?;
                run_words(&hook.set)?;
                let shown = run_words(&hook.read_back)?;
                match &hook.expect {
                    Some(asked) if asked.trim() != shown.trim() => Err(SettingError::NotObtained {
                        of: format!("`{}`", hook.read_back.join(" ")),
                        asked: asked.trim().into(),
                        shown: shown.trim().into(),
                    }
                    .into()),
                    _ => Ok(()),
                }
            }
        }
    }

    /// Reads the current value, and returns it with the setting's name.
    pub fn read_back(&self) -> Result<(String, String), StepError> {
        match &self.setting {
            Setting::Queue { attribute, .. } => {
                let file = self.block_device()?.disk_sysfs().join("queue").join(attribute);
                Ok((format!("queue/{attribute}"), current(&file, None)?))
            }
            Setting::WriteCache(_) => {
                let cache = WriteCache::by_device(&self.block_device()?);
                Ok((format!("write cache ({})", cache.through()), cache.read()?))
            }
            Setting::Limit(limit) => {
                let files = limit::files(limit, &self.block_device()?)?;
                let shown: Result<Vec<String>, StepError> = files
                    .iter()
                    .map(|f| {
                        Ok(format!("{} {}", f.file.display(), current(&f.file, f.set.as_deref())?))
                    })
                    .collect();
                Ok(("limit".into(), shown?.join(", ")))
            }
            Setting::ModuleParameter { module, parameter, .. } => {
                let shown = current(&module::file(module, parameter), None)?;
                Ok((format!("{module}.{parameter}"), shown))
            }
            Setting::RaidCache { volume, .. } => {
                Ok((self.name(), raid_cache::read(volume)?.name().into()))
            }
            Setting::Hook { hook, .. } => {
                Ok((hook.read_back.join(" "), run_words(&hook.read_back)?.trim().to_owned()))
            }
        }
    }

    fn set_write_cache(&self, on: bool, context: &mut ExecContext<'_>) -> Result<(), StepError> {
        let device = self.block_device()?;
        let cache = WriteCache::by_device(&device);
        let was = cache.read()?;
        let asked = cache.word(on);
        if was == asked {
            return Ok(());
        }
        match &cache {
            WriteCache::Queue(file) => write_journalled(
                &[KernelFileChange { file: file.clone(), was, set: Some(asked.into()) }],
                &self.device,
                context,
            ),
            _ => {
                let (node, sequence) = (Path::new("/dev").join(device.disk()), device.sequence);
                let undo = Undo::SetDriveCache { device: node, sequence, on: !on };
                context.record_setting(&self.device, &self.device, undo)?;
                run_words(&cache.command(on))?;
                let shown = cache.read()?;
                if shown == asked {
                    return Ok(());
                }
                let of = format!("{} for the write cache", cache.through());
                Err(SettingError::NotObtained { of, asked: asked.into(), shown }.into())
            }
        }
    }

    fn block_device(&self) -> Result<BlockDevice, StepError> {
        let found = fs::metadata(&self.device).and_then(|m| {
            if m.file_type().is_block_device() {
                BlockDevice::at(&self.device)
            } else {
                BlockDevice::under(&self.device)
            }
        });
        let failed = |source| SettingError::NoDevice {
            what: self.name(),
            device: self.device.clone(),
            source,
        };
        Ok(found.map_err(failed)?)
    }
}

/// Puts a setting back. What somebody else has set to another value meanwhile is left as it is:
/// told as `Ok(Some)`.
///
/// # Errors
/// [`StepError`]: a file or a drive could not be written.
pub fn put_back(undo: &Undo) -> Result<Option<String>, StepError> {
    match undo {
        Undo::WriteKernelFiles { files } => put_files_back(files),
        Undo::SetDriveCache { device, sequence, on } => {
            // A drive that is gone took its cache with it.
            let Ok(drive) = BlockDevice::at(device) else { return Ok(None) };
            if sequence.is_some() && *sequence != drive.sequence {
                return Ok(Some("another drive has its name now".into()));
            }
            match WriteCache::by_device(&drive) {
                WriteCache::Queue(file) => {
                    Ok(Some(format!("its write cache is that of {} now", file.display())))
                }
                cache => run_words(&cache.command(*on)).map(|_| None),
            }
        }
        Undo::SetRaidCache { volume, policy } => {
            if raid_cache::read(volume)? != *policy {
                raid_cache::write(volume, *policy)?;
            }
            Ok(None)
        }
        other => Ok(Some(format!("`{other}` is not done from the journal"))),
    }
}

fn put_files_back(files: &[KernelFileChange]) -> Result<Option<String>, StepError> {
    for KernelFileChange { file, was, set } in files {
        // A device that is gone took its queue with it.
        let Ok(now) = current(file, set.as_deref()) else { continue };
        if now == *was {
            continue;
        }
        if let Some(set) = set.as_ref().filter(|set| **set != now) {
            return Ok(Some(format!(
                "it is now {now}, neither as it was ({was}) nor as pgdyno set it ({set})"
            )));
        }
        write(file, was)?;
    }
    Ok(None)
}

/// Journals how the files are, writes them, and reads them back.
fn write_journalled(
    files: &[KernelFileChange],
    device: &Path,
    context: &mut ExecContext<'_>,
) -> Result<(), StepError> {
    if files.iter().all(|f| f.set.as_ref().is_none_or(|set| *set == f.was)) {
        return Ok(());
    }
    let Some(first) = files.first().map(|f| f.file.clone()) else { return Ok(()) };
    context.record_setting(&first, device, Undo::WriteKernelFiles { files: files.to_vec() })?;
    for KernelFileChange { file, set, .. } in files {
        let Some(asked) = set else { continue };
        write(file, asked)?;
        let shown = current(file, Some(asked))?;
        if shown != *asked {
            let of = file.display().to_string();
            return Err(SettingError::NotObtained { of, asked: asked.clone(), shown }.into());
        }
    }
    Ok(())
}
