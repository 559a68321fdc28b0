//! What is set on a device while trials run: journalled as it was, read back, and put back.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf};

use pgdyno_model::storage::{Hook, Limit};
use rustix::fs::OFlags;

use crate::device::identity::BlockDevice;
use crate::journal::Made;
use crate::step::{Performing, StepError, quote};
use crate::tool as program;
use crate::undo::{Undo, Written};

pub mod limit;

/// One thing to be set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Knob {
    /// A block device, or a directory: the device that carries its filesystem is meant then.
    pub device: PathBuf,
    /// What.
    pub setting: Setting,
}

/// What is set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Setting {
    /// An attribute in the `queue` folder of the disk in sysfs.
    Queue {
        /// Its name: `scheduler`, `read_ahead_kb`, …
        attribute: &'static str,
        /// Its value.
        value: String,
    },
    /// The drive's volatile write cache: by hdparm on `sd*` and `hd*`, by nvme on `nvme*`, else
    /// `queue/write_cache`, which tells the kernel alone whether to send flushes.
    WriteCache(bool),
    /// Upper bounds for the device's traffic.
    Limit(Limit),
    /// The user's own commands.
    Hook {
        /// The commands.
        hook: Hook,
        /// The storage's name in the experiment file, by which the user finds them again.
        storage: String,
    },
}

/// A setting that was not obtained.
#[derive(Debug, thiserror::Error)]
pub enum KnobError {
    /// The device under a directory, or the device itself, is not known.
    #[error("cannot set {what} of the device under {}", device.display())]
    NoDevice {
        /// What was to be set.
        what: String,
        /// On what.
        device: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The file cannot be read or written.
    #[error("cannot set {} to {value}", file.display())]
    Refused {
        /// The file.
        file: PathBuf,
        /// The value.
        value: String,
        /// Why not.
        source: io::Error,
    },
    /// It was accepted, and shows another value.
    #[error("asked {of} for {asked}, and it shows {shown}")]
    NotObtained {
        /// Of what.
        of: String,
        /// What was asked for.
        asked: String,
        /// What was obtained.
        shown: String,
    },
    /// The answer of a program is not understood.
    #[error("cannot tell the write cache of {device}: `{program}` answered: {answer}")]
    NotUnderstood {
        /// Of what.
        device: String,
        /// Who was asked.
        program: String,
        /// What it said.
        answer: String,
    },
    /// No control group can hold the device down.
    #[error(transparent)]
    Limit(#[from] limit::LimitError),
}

impl KnobError {
    /// What to do.
    #[must_use]
    pub fn help(&self) -> Option<String> {
        match self {
            Self::Refused { file, .. } => {
                let choices = fs::read_to_string(file).ok().filter(|t| t.contains('['))?;
                Some(format!("the kernel offers: {}", choices.trim()))
            }
            Self::NoDevice { .. } => {
                Some("leave `storage.<name>.device` out for this storage".into())
            }
            Self::NotObtained { .. } => Some("ask for a value that the device takes".into()),
            Self::NotUnderstood { .. } => {
                Some("set it by commands of your own in `storage.<name>.device.hook`".into())
            }
            Self::Limit(e) => e.help(),
        }
    }
}

/// Scheduler queues that the kernel resets when the scheduler is changed.
const RESET_BY_SCHEDULER: [&str; 2] = ["nr_requests", "wbt_lat_usec"];

impl Knob {
    /// Sets it: journals how it was, sets, reads back.
    pub fn set(&self, performing: &mut Performing<'_>) -> Result<(), StepError> {
        match &self.setting {
            Setting::Queue { attribute, value } => {
                let queue = self.block_device()?.disk_sysfs().join("queue");
                let mut files = vec![Written {
                    was: current(&queue.join(attribute), None)?,
                    file: queue.join(attribute),
                    set: Some(value.clone()),
                }];
                if *attribute == "scheduler" {
                    for file in RESET_BY_SCHEDULER.map(|name| queue.join(name)) {
                        // Not every queue has each of them, and one without wbt answers EINVAL.
                        if let Ok(was) = current(&file, None) {
                            files.push(Written { file, was, set: None });
                        }
                    }
                }
                write_journalled(&files, performing)
            }
            Setting::WriteCache(on) => self.set_write_cache(*on, performing),
            Setting::Limit(limit) => {
                let device = self.block_device()?;
                let files = limit::files(limit, &device).map_err(KnobError::from)?;
                files.into_iter().try_for_each(|file| write_journalled(&[file], performing))
            }
            Setting::Hook { hook, storage } => {
                record(&self.device, Undo::RunHook { storage: storage.clone() }, performing)?;
                run(&hook.set)?;
                let shown = run(&hook.read_back)?;
                match &hook.expect {
                    Some(asked) if asked.trim() != shown.trim() => Err(KnobError::NotObtained {
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

    /// What it is set to now, by its name.
    pub fn read_back(&self) -> Result<(String, String), StepError> {
        match &self.setting {
            Setting::Queue { attribute, .. } => {
                let file = self.block_device()?.disk_sysfs().join("queue").join(attribute);
                Ok((format!("queue/{attribute}"), current(&file, None)?))
            }
            Setting::WriteCache(_) => {
                let cache = Cache::of(&self.block_device()?);
                Ok((format!("write cache ({})", cache.through()), cache.read()?))
            }
            Setting::Limit(limit) => {
                let files = limit::files(limit, &self.block_device()?).map_err(KnobError::from)?;
                let shown: Result<Vec<String>, StepError> = files
                    .iter()
                    .map(|f| {
                        Ok(format!("{} {}", f.file.display(), current(&f.file, f.set.as_deref())?))
                    })
                    .collect();
                Ok(("limit".into(), shown?.join(", ")))
            }
            Setting::Hook { hook, .. } => {
                Ok((hook.read_back.join(" "), run(&hook.read_back)?.trim().to_owned()))
            }
        }
    }

    fn set_write_cache(&self, on: bool, performing: &mut Performing<'_>) -> Result<(), StepError> {
        let device = self.block_device()?;
        let cache = Cache::of(&device);
        let was = cache.read()?;
        let asked = cache.word(on);
        if was == asked {
            return Ok(());
        }
        match &cache {
            Cache::Queue(file) => write_journalled(
                &[Written { file: file.clone(), was, set: Some(asked.into()) }],
                performing,
            ),
            _ => {
                let (node, sequence) = (Path::new("/dev").join(device.disk()), device.sequence);
                let undo = Undo::SetDriveCache { device: node, sequence, on: !on };
                record(&self.device, undo, performing)?;
                run(&cache.command(on))?;
                let shown = cache.read()?;
                if shown == asked {
                    return Ok(());
                }
                let of = format!("{} for the write cache", cache.through());
                Err(KnobError::NotObtained { of, asked: asked.into(), shown }.into())
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
        let failed =
            |source| KnobError::NoDevice { what: self.name(), device: self.device.clone(), source };
        Ok(found.map_err(failed)?)
    }

    fn name(&self) -> String {
        match &self.setting {
            Setting::Queue { attribute, .. } => format!("queue/{attribute}"),
            Setting::WriteCache(_) => "the write cache".into(),
            Setting::Limit(_) => "the limit".into(),
            Setting::Hook { .. } => "the user's own setting".into(),
        }
    }

    /// How a dry run shows that it is put back.
    pub fn fmt_putting_back(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = quote(self.device.as_os_str());
        match &self.setting {
            Setting::Hook { hook, .. } => write!(f, "run: {}", words(&hook.restore)),
            Setting::Limit(_) => write!(f, "lift the limit on {of}"),
            _ => write!(f, "put {} of the disk under {of} back as it was", self.name()),
        }
    }
}

impl fmt::Display for Knob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = quote(self.device.as_os_str());
        match &self.setting {
            Setting::Queue { attribute, value } => {
                write!(f, "set queue/{attribute} of the disk under {of} to {value}")?;
            }
            Setting::WriteCache(on) => {
                match Cache::by_name(&self.device.canonicalize().unwrap_or(self.device.clone())) {
                    Cache::Queue(_) => {
                        let state = if *on { "write back" } else { "write through" };
                        write!(f, "set queue/write_cache of the disk under {of} to {state}")?;
                    }
                    cache => write!(f, "run: {}", words(&cache.command(*on)))?,
                }
            }
            Setting::Limit(limit) => write!(f, "hold {of} down to {}", limit::shown(limit))?,
            Setting::Hook { hook, .. } => {
                return write!(f, "run: {}\nrun: {}", words(&hook.set), words(&hook.read_back));
            }
        }
        f.write_str(" (journalled as it was)")
    }
}

/// Puts a setting back. What somebody else has set to another value meanwhile is left as it is:
/// told as `Ok(Some)`.
///
/// # Errors
/// What could not be put back, and why.
pub fn put_back(undo: &Undo) -> Result<Option<String>, StepError> {
    match undo {
        Undo::WriteKernelFiles { files } => put_files_back(files),
        Undo::SetDriveCache { device, sequence, on } => {
            // A drive that is gone took its cache with it.
            let Ok(drive) = BlockDevice::at(device) else { return Ok(None) };
            if sequence.is_some() && *sequence != drive.sequence {
                return Ok(Some("another drive has its name now".into()));
            }
            match Cache::of(&drive) {
                Cache::Queue(file) => {
                    Ok(Some(format!("its write cache is that of {} now", file.display())))
                }
                cache => run(&cache.command(*on)).map(|_| None),
            }
        }
        other => Ok(Some(format!("`{other}` is not done from the journal"))),
    }
}

fn put_files_back(files: &[Written]) -> Result<Option<String>, StepError> {
    for Written { file, was, set } in files {
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

/// How a drive's write cache is reached.
enum Cache {
    Hdparm(String),
    Nvme(String),
    Queue(PathBuf),
}

impl Cache {
    fn of(device: &BlockDevice) -> Self {
        Self::by_name(&Path::new("/dev").join(device.disk()))
    }

    /// By the disk's name, which tells its driver.
    fn by_name(disk: &Path) -> Self {
        let name = disk.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let node = disk.display().to_string();
        if name.starts_with("sd") || name.starts_with("hd") {
            Self::Hdparm(node)
        } else if name.starts_with("nvme") {
            Self::Nvme(node)
        } else {
            Self::Queue(Path::new("/sys/class/block").join(name).join("queue/write_cache"))
        }
    }

    fn through(&self) -> &'static str {
        match self {
            Self::Hdparm(_) => "hdparm -W",
            Self::Nvme(_) => "nvme set-feature 6",
            Self::Queue(_) => "queue/write_cache, the kernel's view alone",
        }
    }

    fn word(&self, on: bool) -> &'static str {
        match (self, on) {
            (Self::Queue(_), true) => "write back",
            (Self::Queue(_), false) => "write through",
            (_, true) => "on",
            (_, false) => "off",
        }
    }

    /// The program that sets it, with its arguments; none where a file of the kernel's is written.
    fn command(&self, on: bool) -> Vec<String> {
        let value = u8::from(on);
        match self {
            Self::Hdparm(node) => vec!["hdparm".into(), format!("-W{value}"), node.clone()],
            Self::Nvme(node) => {
                ["nvme", "set-feature", node, "--feature-id=6", &format!("--value={value}")]
                    .map(String::from)
                    .to_vec()
            }
            Self::Queue(file) => {
                vec!["write".into(), self.word(on).into(), "to".into(), file.display().to_string()]
            }
        }
    }

    fn read(&self) -> Result<String, StepError> {
        let (asked, device) = match self {
            Self::Queue(file) => return current(file, None),
            Self::Hdparm(node) => (vec!["hdparm".into(), "-W".into(), node.clone()], node),
            Self::Nvme(node) => {
                (["nvme", "get-feature", node, "--feature-id=6"].map(String::from).to_vec(), node)
            }
        };
        let answer = run(&asked)?;
        Ok(cache_state(&answer).ok_or_else(|| KnobError::NotUnderstood {
            device: device.clone(),
            program: asked.join(" "),
            answer: answer.trim().into(),
        })?)
    }
}

/// Reads hdparm's `write-caching =  1 (on)` and nvme's
/// `get-feature:0x06 (…), Current value:0x00000001`.
fn cache_state(answer: &str) -> Option<String> {
    let hdparm = || {
        let rest = answer.split_once("write-caching =")?.1;
        rest.split_whitespace().next().map(str::to_owned)
    };
    let nvme = || {
        let rest = answer.to_lowercase();
        let value = rest.split_once("current value:")?.1.split_whitespace().next()?.to_owned();
        u32::from_str_radix(value.trim_start_matches("0x"), 16).ok().map(|v| (v & 1).to_string())
    };
    match hdparm().or_else(nvme)?.as_str() {
        "1" => Some("on".into()),
        "0" => Some("off".into()),
        _ => None,
    }
}

/// Journals how the files are, writes them, and reads them back.
fn write_journalled(files: &[Written], performing: &mut Performing<'_>) -> Result<(), StepError> {
    if files.iter().all(|f| f.set.as_ref().is_none_or(|set| *set == f.was)) {
        return Ok(());
    }
    let Some(first) = files.first().map(|f| f.file.clone()) else { return Ok(()) };
    record(&first, Undo::WriteKernelFiles { files: files.to_vec() }, performing)?;
    for Written { file, set, .. } in files {
        let Some(asked) = set else { continue };
        write(file, asked)?;
        let shown = current(file, Some(asked))?;
        if shown != *asked {
            let of = file.display().to_string();
            return Err(KnobError::NotObtained { of, asked: asked.clone(), shown }.into());
        }
    }
    Ok(())
}

fn record(path: &Path, undo: Undo, performing: &mut Performing<'_>) -> Result<(), StepError> {
    let entry = performing.journal.record(&Made::Setting { path: path.to_owned(), undo })?;
    performing.made.push(entry);
    Ok(())
}

/// What the file holds: of alternatives the one in brackets; of a control group's list, the line of
/// the device that `set` begins with.
fn current(file: &Path, set: Option<&str>) -> Result<String, StepError> {
    let mut text = String::new();
    kernel_file(file, File::options().read(true))
        .and_then(|mut open| open.read_to_string(&mut text))
        .map_err(|e| crate::step::io_error("read", file, e))?;
    Ok(match set.filter(|_| limit::is_list(file)) {
        Some(set) => limit::line_of(&text, set),
        None => in_brackets(text.trim()),
    })
}

/// Returns the chosen one of a file's alternatives: `none [mq-deadline] kyber` → `mq-deadline`.
fn in_brackets(text: &str) -> String {
    let chosen = text.split_once('[').and_then(|(_, r)| r.split_once(']')).map(|(c, _)| c);
    chosen.unwrap_or(text).to_owned()
}

fn write(file: &Path, value: &str) -> Result<(), StepError> {
    let written = kernel_file(file, File::options().write(true))
        .and_then(|mut open| open.write_all(value.as_bytes()));
    written.map_err(|source| {
        KnobError::Refused { file: file.to_owned(), value: value.to_owned(), source }.into()
    })
}

/// Opens a file of the kernel's: in sysfs, or in a control group's filesystem. The journal names
/// such files, and no other file is ever written by its words.
fn kernel_file(path: &Path, options: &fs::OpenOptions) -> io::Result<File> {
    let refused = |why| Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    if !path.is_absolute() || path.components().any(|c| c == Component::ParentDir) {
        return refused("it is no path of a file of the kernel's");
    }
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = options.clone().custom_flags(flags.bits().cast_signed()).open(path)?;
    let filesystem = rustix::fs::fstatfs(&file)?.f_type;
    let known = [libc::SYSFS_MAGIC, libc::CGROUP_SUPER_MAGIC, libc::CGROUP2_SUPER_MAGIC];
    if !file.metadata()?.is_file() || !known.contains(&filesystem) {
        return refused("it lies neither in sysfs nor in a control group's filesystem");
    }
    Ok(file)
}

/// Runs a program with its arguments, no shell; what it printed.
pub fn run(words: &[String]) -> Result<String, StepError> {
    let (program, args) = words.split_first().map_or(("", &[][..]), |(p, a)| (p.as_str(), a));
    program::output(program, args)
}

fn words(words: &[String]) -> String {
    words.iter().map(|w| quote(w.as_ref())).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answers_of_hdparm_and_nvme_are_understood() {
        assert_eq!(cache_state("\n/dev/sda:\n write-caching =  1 (on)\n").as_deref(), Some("on"));
        assert_eq!(cache_state("\n/dev/sda:\n write-caching =  0 (off)\n").as_deref(), Some("off"));
        assert_eq!(cache_state("\n/dev/sda:\n write-caching = not supported\n"), None);
        let nvme = "get-feature:0x06 (Volatile Write Cache), Current value:0x00000001\n";
        assert_eq!(cache_state(nvme).as_deref(), Some("on"));
        assert_eq!(
            cache_state("get-feature:0x6 (Volatile Write Cache), Current value:00000000")
                .as_deref(),
            Some("off")
        );
        assert_eq!(cache_state("NVMe status: INVALID_FIELD"), None);
    }
}
