//! Files of the kernel's: in sysfs, or in a control group's filesystem.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Component, Path};

use rustix::fs::OFlags;

use super::error::SettingError;
use super::limit;
use crate::error::{StepError, io_error};

/// Returns the value in `file`: of alternatives the one in brackets, and of a control group's list
/// the line of the device that `set` begins with.
pub(super) fn current(file: &Path, set: Option<&str>) -> Result<String, StepError> {
    let mut text = String::new();
    kernel_file(file, File::options().read(true))
        .and_then(|mut open| open.read_to_string(&mut text))
        .map_err(|e| io_error("read", file, e))?;
    Ok(match set.filter(|_| limit::is_list(file)) {
        Some(set) => limit::line_of(&text, set),
        None => in_brackets(text.trim()),
    })
}

/// Returns the chosen one of a file's alternatives: `none [mq-deadline] kyber` → `mq-deadline`.
pub fn in_brackets(text: &str) -> String {
    let chosen = text.split_once('[').and_then(|(_, r)| r.split_once(']')).map(|(c, _)| c);
    chosen.unwrap_or(text).to_owned()
}

pub(super) fn write(file: &Path, value: &str) -> Result<(), StepError> {
    let written = kernel_file(file, File::options().write(true))
        .and_then(|mut open| open.write_all(value.as_bytes()));
    written.map_err(|source| {
        SettingError::Refused { file: file.to_owned(), value: value.to_owned(), source }.into()
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

#[test]
fn the_scheduler_in_use_is_the_bracketed_one() {
    assert_eq!(in_brackets("none [mq-deadline] kyber"), "mq-deadline");
    assert_eq!(in_brackets("none"), "none");
}
