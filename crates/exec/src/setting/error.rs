//! Settings of a device that were not obtained.

use std::path::PathBuf;
use std::{fs, io};

use pgdyno_model::Advice;

/// A setting that was not obtained.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum SettingError {
    /// The device under a directory, or the device itself, is not known.
    #[error("cannot set {what} of the device under {}", device.display())]
    NoDevice { what: String, device: PathBuf, source: io::Error },
    /// The file cannot be read or written.
    #[error("cannot set {} to {value}", file.display())]
    Refused { file: PathBuf, value: String, source: io::Error },
    /// It was accepted, and shows another value.
    #[error("asked {of} for {asked}, and it shows {shown}")]
    NotObtained {
        /// Of what.
        of: String,
        asked: String,
        shown: String,
    },
    /// The answer of a program is not understood.
    #[error("cannot tell the write cache of {device}: `{program}` answered: {answer}")]
    NotUnderstood {
        /// Of what.
        device: String,
        /// The program with its arguments.
        program: String,
        answer: String,
    },
    /// The kernel has no such module.
    #[error(
        "cannot set {parameter} of the kernel module {module}: it is not loaded ({} is missing)",
        folder.display()
    )]
    NoModule { module: String, parameter: String, folder: PathBuf },
    /// The module has no such parameter.
    #[error(
        "cannot set {parameter} of the kernel module {module}: it has no such parameter ({} is \
         missing)",
        file.display()
    )]
    NoParameter { module: String, parameter: String, file: PathBuf },
    /// The parameter can be set only while the module is loaded.
    #[error(
        "cannot set {parameter} of the kernel module {module}: {} is read-only",
        file.display()
    )]
    ReadOnly { module: String, parameter: String, file: PathBuf },
    /// Neither version of control groups can hold the device down.
    #[error(
        "cannot limit a device: this process's control group has neither `io.max` (version 2; \
         looked in {}) nor `blkio.throttle.*` (version 1; looked in {})",
        v2.as_deref().map_or("no group".into(), |p| p.display().to_string()),
        v1.as_deref().map_or("no group".into(), |p| p.display().to_string())
    )]
    NoController { v2: Option<PathBuf>, v1: Option<PathBuf> },
}

impl Advice for SettingError {
    fn help(&self) -> Option<String> {
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
            Self::NoModule { module, .. } => Some(format!(
                "load it (`modprobe {module}`), or leave it out of `device.module_parameters`"
            )),
            Self::NoParameter { module, .. } => {
                Some(format!("`modinfo -p {module}` lists the parameters of the module"))
            }
            Self::ReadOnly { module, parameter, .. } => Some(format!(
                "set it when the module is loaded: `modprobe {module} {parameter}=…`"
            )),
            Self::NoController { .. } => Some(
                "with systemd, start pgdyno by `systemd-run --scope -p IOAccounting=yes pgdyno …`, \
                 which gives it a group with `io.max`; or leave `limit` out"
                    .into(),
            ),
        }
    }
}
