//! Why a device must not be written.

use std::io;
use std::path::PathBuf;

use pgdyno_model::{Advice, FailureKind};

use super::identity::Identity;
use crate::trust::TrustError;

/// A device that must not be written.
#[derive(Debug, thiserror::Error)]
#[error("will not write to {}: {found}", device.display())]
#[allow(missing_docs, reason = "the messages say it")]
pub struct SafetyError {
    pub device: PathBuf,
    pub found: Refusal,
}

/// The contents of a device cannot be told.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum SignatureError {
    #[error("{0}")]
    Wipefs(String),
    #[error("wipefs: {0}")]
    Json(serde_json::Error),
}

/// A reason not to write to a device.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum Refusal {
    #[error("it cannot be looked at: {0}")]
    Unreadable(io::Error),
    #[error("it is no block device")]
    NotABlockDevice,
    #[error("it is read-only")]
    ReadOnly,
    #[error("the root filesystem is on this disk")]
    RootDisk,
    #[error("{name} is mounted at {at}{namespace}")]
    Mounted { name: String, at: String, namespace: String },
    #[error("{0} is in use as swap")]
    Swap(String),
    #[error("{name} is part of {}", holders.join(", "))]
    Held { name: String, holders: Vec<String> },
    #[error("{by} has {name} open for writing")]
    Open { name: String, by: String },
    #[error("somebody has it open for their own use (O_EXCL is refused)")]
    InUse,
    #[error("it is a member of {0}")]
    Member(String),
    #[error("it holds {0}")]
    Signature(String),
    #[error("{0}; --wipe does not name it")]
    NotNamed(Box<Identity>),
    #[error("it is another device than the one looked at: {was}, now {is}")]
    Changed { was: String, is: String },
    #[error("what it holds cannot be told: {0}")]
    NotTold(SignatureError),
    #[error("what lies under the loop device {} cannot be told: {cause}", node.display())]
    LoopUnknown { node: PathBuf, cause: io::Error },
    #[error("its {0} are not zeros, which may be data that bears no known signature")]
    NotZeros(String),
    #[error("{0}")]
    Untrusted(Box<TrustError>),
}

impl Advice for SafetyError {
    fn help(&self) -> Option<String> {
        let device = self.device.display();
        let another = "or name another device in `storage.<name>.backing`";
        match &self.found {
            Refusal::NotNamed(identity) => {
                let path =
                    identity.by_id.as_ref().map_or(device.to_string(), |p| p.display().to_string());
                Some(format!(
                    "everything on it will be lost; if that is meant, add `--wipe {path}`"
                ))
            }
            Refusal::Signature(_) | Refusal::NotZeros(_) => Some(format!(
                "if that may be lost, add `--overwrite-signature` to `--wipe {device}`, {another}"
            )),
            Refusal::Untrusted(e) => {
                let help = e.help().map_or_else(String::new, |help| format!("{help}; or "));
                Some(format!("{help}name the device by its path below /dev"))
            }
            Refusal::Changed { .. } => Some("see what is plugged in, and begin anew".into()),
            Refusal::Member(kind) => {
                Some(format!("take it out with {kind}'s own program, {another}"))
            }
            Refusal::Mounted { at, .. } => Some(format!("unmount {at}, {another}")),
            Refusal::Swap(name) => Some(format!("`swapoff /dev/{name}`, {another}")),
            Refusal::Held { .. } | Refusal::InUse | Refusal::Open { .. } => {
                Some(format!("end its use, {another}"))
            }
            Refusal::LoopUnknown { node, .. } => {
                let name = node.file_name().unwrap_or_default().to_string_lossy();
                Some(format!(
                    "detach it, or make its node anew: `mknod {} b $(tr : ' ' < \
                     /sys/block/{name}/dev)`",
                    node.display()
                ))
            }
            Refusal::NotTold(_) => Some("install util-linux, which has `wipefs`".into()),
            _ => Some("name another device in `storage.<name>.backing`".into()),
        }
    }

    fn kind(&self) -> FailureKind {
        FailureKind::Input
    }
}
