//! Settings of devices while trials run: journalled as they were, read back, and put back.
//!
//! A [`DeviceSetting`] is data. Executing [`Step::Set`](crate::step::Step::Set) journals the value
//! before, sets and reads back; [`Step::PutBack`](crate::step::Step::PutBack) restores it.

mod apply;
mod error;
mod kernel_file;
pub mod limit;
pub mod module;
pub mod raid_cache;
mod write_cache;

use std::fmt;
use std::path::PathBuf;

pub use apply::put_back;
pub use error::SettingError;
pub use kernel_file::in_brackets;
use pgdyno_model::raid::{RaidVolume, WritePolicy};
use pgdyno_model::storage::{Hook, Limit};
use serde::{Deserialize, Serialize};
use write_cache::WriteCache;

use crate::quote::quote;
use crate::undo::Undo;

/// A setting of one device, as it is to be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceSetting {
    /// Block device, or a directory: the device that carries its filesystem is meant then.
    pub device: PathBuf,
    /// Attribute to set, with its value.
    pub setting: Setting,
}

/// An attribute and its value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Setting {
    /// An attribute in the `queue` folder of the disk in sysfs.
    Queue {
        /// Name of the file in that folder: `scheduler`, `read_ahead_kb`, …
        attribute: String,
        value: String,
    },
    /// The drive's volatile write cache: by hdparm on `sd*` and `hd*`, by nvme on `nvme*`, else
    /// `queue/write_cache`, which tells the kernel alone whether to send flushes.
    WriteCache(bool),
    /// Upper bounds for the device's traffic.
    Limit(Limit),
    /// A parameter of a kernel module. It holds for the whole host, not for the device alone.
    ModuleParameter {
        /// The module's name, as `/sys/module` has it.
        module: String,
        /// The parameter's name.
        parameter: String,
        value: String,
    },
    /// The policy of the write cache of a RAID controller's volume.
    RaidCache { volume: RaidVolume, policy: WritePolicy },
    /// The user's own commands.
    Hook {
        hook: Hook,
        /// The storage's name in the experiment file, by which the user finds them again.
        storage: String,
    },
}

impl DeviceSetting {
    /// Tells whether `undo`, journalled for this setting's device, undoes this setting.
    pub(crate) fn is_undone_by(&self, undo: &Undo) -> bool {
        let first = |undo: &Undo| match undo {
            Undo::WriteKernelFiles { files } => files.first().map(|f| f.file.clone()),
            _ => None,
        };
        match (&self.setting, undo) {
            (Setting::Hook { .. }, Undo::RunHook { .. })
            | (Setting::RaidCache { .. }, Undo::SetRaidCache { .. })
            | (Setting::WriteCache(_), Undo::SetDriveCache { .. }) => true,
            (Setting::Queue { attribute, .. }, undo) => {
                first(undo).is_some_and(|file| file.ends_with(attribute))
            }
            (Setting::WriteCache(_), undo) => {
                first(undo).is_some_and(|file| file.ends_with("write_cache"))
            }
            (Setting::ModuleParameter { module, parameter, .. }, undo) => {
                first(undo).is_some_and(|file| file == module::file(module, parameter))
            }
            (Setting::Limit(_), undo) => first(undo).is_some_and(|file| limit::is_list(&file)),
            (Setting::Hook { .. } | Setting::RaidCache { .. }, _) => false,
        }
    }

    fn name(&self) -> String {
        match &self.setting {
            Setting::Queue { attribute, .. } => format!("queue/{attribute}"),
            Setting::WriteCache(_) => "the write cache".into(),
            Setting::Limit(_) => "the limit".into(),
            Setting::ModuleParameter { parameter, .. } => parameter.clone(),
            Setting::RaidCache { volume, .. } => format!("the write cache of {volume}"),
            Setting::Hook { .. } => "the user's own setting".into(),
        }
    }

    /// Writes the line of a dry run for putting the setting back.
    pub(crate) fn fmt_putting_back(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = quote(self.device.as_os_str());
        match &self.setting {
            Setting::Hook { hook, .. } => write!(f, "run: {}", words(&hook.restore)),
            Setting::RaidCache { volume, policy } => {
                let others = [WritePolicy::WriteBack, WritePolicy::WriteThrough];
                let was = others.into_iter().find(|other| other != policy).unwrap_or(*policy);
                let back = words(&raid_cache::set_command(volume, was));
                write!(f, "if it was {}, run: {back}", was.name())
            }
            Setting::Limit(_) => write!(f, "lift the limit on {of}"),
            Setting::ModuleParameter { module, parameter, .. } => {
                write!(f, "put {} back as it was", module::file(module, parameter).display())
            }
            _ => write!(f, "put {} of the disk under {of} back as it was", self.name()),
        }
    }
}

impl fmt::Display for DeviceSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = quote(self.device.as_os_str());
        match &self.setting {
            Setting::Queue { attribute, value } => {
                write!(f, "set queue/{attribute} of the disk under {of} to {value}")?;
            }
            Setting::WriteCache(on) => {
                match WriteCache::by_name(
                    &self.device.canonicalize().unwrap_or(self.device.clone()),
                ) {
                    WriteCache::Queue(_) => {
                        let state = if *on { "write back" } else { "write through" };
                        write!(f, "set queue/write_cache of the disk under {of} to {state}")?;
                    }
                    cache => write!(f, "run: {}", words(&cache.command(*on)))?,
                }
            }
            Setting::Limit(limit) => write!(f, "hold {of} down to {limit}")?,
            Setting::ModuleParameter { module, parameter, value } => {
                let file = module::file(module, parameter);
                write!(f, "write {} to {}", quote(value.as_ref()), file.display())?;
            }
            Setting::RaidCache { volume, policy } => {
                let [show, set] =
                    [raid_cache::show_command(volume), raid_cache::set_command(volume, *policy)];
                let (show, set) = (words(&show), words(&set));
                return write!(
                    f,
                    "run: {show} (journalled as it was)\nunless it is {}, run: {set}\nrun: {show}",
                    policy.name()
                );
            }
            Setting::Hook { hook, .. } => {
                return write!(f, "run: {}\nrun: {}", words(&hook.set), words(&hook.read_back));
            }
        }
        f.write_str(" (journalled as it was)")
    }
}

fn words(words: &[String]) -> String {
    words.iter().map(|w| quote(w.as_ref())).collect::<Vec<_>>().join(" ")
}
