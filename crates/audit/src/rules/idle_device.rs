//! Whether the device was under test at all.

use std::fmt;

use serde_json::json;

use super::rule::{Rule, Verdicts, exact};
use crate::figure::Figure;
use crate::finding::Confidence::Possible;
use crate::finding::Severity::Warning;
use crate::recognise::{CpuLine, Evidence};

/// From this share of CPU time at work on (percent) the processors may have been the limit.
const BUSY: f64 = 60.0;

/// Below this utilisation (percent) a device had time left.
const UTILISED: f64 = 90.0;

pub(super) const RULES: &[Rule] = &[Rule {
    name: "idle-device",
    looks_for: "iostat's devices all below 90% utilised while processors were at work for 60% of the time or more: the disk was not under test",
    source: "iostat(1), %util and avg-cpu; B. Gregg, Systems Performance, the USE method",
    judge: idle_device,
}];

/// Use of the processors and of the busiest device while a load ran.
#[derive(Clone, Copy, Debug)]
pub struct MachineUse<'a> {
    /// The busiest device's name; empty where the source tells of one without a name.
    pub device: &'a str,
    /// Share of the time in which the device had a request under way (percent).
    pub utilised: f64,
    /// Share of all CPU time that is neither idle nor waits for the disk (percent).
    pub cpu: f64,
}

impl MachineUse<'_> {
    /// Returns whether the processors may have been the limit while the device had time left.
    pub fn is_device_idle(&self) -> bool {
        self.utilised < UTILISED && self.cpu >= BUSY
    }
}

impl fmt::Display for MachineUse<'_> {
    /// `the busiest device, sda, was 45.2% utilised while …`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = if self.device.is_empty() { "" } else { ", " };
        let comma = if self.device.is_empty() { "" } else { "," };
        write!(
            f,
            "the busiest device{named}{}{comma} was {}% utilised while processors were at work for {}% of the time",
            self.device,
            exact(self.utilised),
            exact(tenths(self.cpu))
        )?;
        if self.is_device_idle() {
            f.write_str(
                ": the disk was not under test, and a utilisation below 100% does not say that it is good",
            )?;
        }
        Ok(())
    }
}

fn tenths(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

fn idle_device(evidence: &Evidence, verdicts: &mut Verdicts) {
    let busy = evidence.recognised.cpus.iter().map(|cpu| (cpu, at_work(cpu)));
    let Some((cpu, busy)) = busy.max_by(|a, b| a.1.total_cmp(&b.1)) else { return };
    let utilised = evidence.recognised.devices.iter().filter_map(|device| {
        let (_, util) = device.columns.iter().find(|(name, _)| name.trim_matches('%') == "util")?;
        Some((device.device.as_str(), *util))
    });
    let busiest = utilised.max_by(|a, b| a.1.value.total_cmp(&b.1.value));
    let Some((device, Figure { value: util, line, .. })) = busiest else { return };
    let lines = [line, cpu.line];
    let computed = json!({ "device": device, "utilised_percent": util, "cpu_percent": busy });
    let machine = MachineUse { device, utilised: util, cpu: busy };
    if machine.is_device_idle() {
        verdicts.found(Warning, Possible, &lines, machine.to_string(), computed);
    } else {
        verdicts.right(&lines, machine.to_string(), computed);
    }
}

/// CPU time that is neither idle nor waits for the disk (percent).
fn at_work(cpu: &CpuLine) -> f64 {
    let parts = cpu.parts.iter();
    let working = parts.filter(|(name, _)| matches!(name.as_str(), "user" | "nice" | "system"));
    working.map(|(_, share)| share.value).sum()
}
