//! Whether the device was under test at all.

use super::rule::{AuditRule, Verdicts};
use crate::finding::Confidence::Possible;
use crate::finding::Severity::Warning;
use crate::finding::{DesignKind, MachineUse};
use crate::recognise::{CpuLine, Evidence};

pub(super) const RULES: &[AuditRule] = &[AuditRule { name: "idle-device", judge: idle_device }];

fn idle_device(evidence: &Evidence, verdicts: &mut Verdicts) {
    let busy = evidence.recognised.cpus.iter().map(|cpu| (cpu, at_work(cpu)));
    let Some((cpu, cpu_percent)) = busy.max_by(|a, b| a.1.total_cmp(&b.1)) else { return };
    let utilised = evidence.recognised.devices.iter().filter_map(|device| {
        let (_, util) = device.columns.iter().find(|(name, _)| name.trim_matches('%') == "util")?;
        Some((device.device.clone(), *util))
    });
    let busiest = utilised.max_by(|a, b| a.1.value.total_cmp(&b.1.value));
    let Some((device, util)) = busiest else { return };
    let machine = MachineUse { device, utilised_percent: util.value, cpu_percent };
    let fault = machine.is_device_idle().then_some((Warning, Possible));
    verdicts.judge(fault, [util.line, cpu.line], DesignKind::Machine(machine));
}

/// CPU time that is neither idle nor waits for the disk (percent).
fn at_work(cpu: &CpuLine) -> f64 {
    let parts = cpu.parts.iter();
    let working = parts.filter(|(name, _)| matches!(name.as_str(), "user" | "nice" | "system"));
    working.map(|(_, share)| share.value).sum()
}
