//! A drive's volatile write cache.

use std::path::{Path, PathBuf};

use super::error::SettingError;
use super::kernel_file::current;
use crate::device::identity::BlockDevice;
use crate::error::StepError;
use crate::tool::run_words;

/// The way to reach a drive's write cache.
pub(crate) enum WriteCache {
    Hdparm(String),
    Nvme(String),
    Queue(PathBuf),
}

impl WriteCache {
    pub(crate) fn by_device(device: &BlockDevice) -> Self {
        Self::by_name(&Path::new("/dev").join(device.disk()))
    }

    /// By the disk's name, which tells its driver.
    pub(crate) fn by_name(disk: &Path) -> Self {
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

    pub(crate) fn through(&self) -> &'static str {
        match self {
            Self::Hdparm(_) => "hdparm -W",
            Self::Nvme(_) => "nvme set-feature 6",
            Self::Queue(_) => "queue/write_cache, the kernel's view alone",
        }
    }

    pub(crate) fn word(&self, on: bool) -> &'static str {
        match (self, on) {
            (Self::Queue(_), true) => "write back",
            (Self::Queue(_), false) => "write through",
            (_, true) => "on",
            (_, false) => "off",
        }
    }

    /// Returns the program that sets it, with its arguments; none where a file of the kernel's is
    /// written.
    pub(crate) fn command(&self, on: bool) -> Vec<String> {
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

    pub(crate) fn read(&self) -> Result<String, StepError> {
        let (asked, device) = match self {
            Self::Queue(file) => return current(file, None),
            Self::Hdparm(node) => (vec!["hdparm".into(), "-W".into(), node.clone()], node),
            Self::Nvme(node) => {
                (["nvme", "get-feature", node, "--feature-id=6"].map(String::from).to_vec(), node)
            }
        };
        let answer = run_words(&asked)?;
        Ok(cache_state(&answer).ok_or_else(|| SettingError::NotUnderstood {
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
