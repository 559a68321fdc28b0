//! The rules, one subject a file. A new rule is one more item of a slice; a new subject a file and
//! its line here.

mod copy_on_write;
mod cpu;
mod device;
mod health;
mod memory;
mod mount;
mod place;

use pgdyno_model::facts::{BlockDevice, DeviceKind};

use super::advice::{Facts, Rule};

/// The rules about what lies under a directory; on screen they come in this order within a
/// severity.
pub(super) const OF_STORAGE: &[&[Rule]] =
    &[place::RULES, mount::RULES, health::RULES, device::RULES, copy_on_write::RULES];

/// The rules about the machine, after those.
pub(super) const OF_HOST: &[&[Rule]] = &[memory::RULES, cpu::RULES];

impl Facts<'_> {
    fn sysctl(&self, name: &str) -> Option<u64> {
        self.host.settings.sysctl.get(name)?.parse().ok()
    }

    fn disks(&self) -> impl Iterator<Item = &BlockDevice> {
        self.storage.layers().into_iter().filter(|d| d.kind == DeviceKind::Disk)
    }
}

/// What a rule says where a sysctl is not there.
fn no_sysctl(name: &str) -> super::advice::Judged {
    super::advice::Judged::Unseen(format!("the kernel shows no {name}"))
}

#[cfg(test)]
mod tests;
