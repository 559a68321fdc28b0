//! Output of programs beside the load generators: pg_test_fsync, iostat.

use serde::{Deserialize, Serialize};

use super::scan::Scan;
use crate::figure::Figure;

/// One method of pg_test_fsync.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FsyncLine {
    /// Heading above it: the comparison that it is part of.
    pub section: String,
    /// The method, or what else the line names.
    pub method: String,
    /// Operations in a second.
    pub per_second: Figure,
    /// Microseconds for each, where the program prints them (from 9.3 on).
    pub us: Option<Figure>,
}

impl FsyncLine {
    /// Whether it is one write made durable: what a commit waits for.
    pub(crate) fn is_one_write(&self) -> bool {
        self.section.starts_with("Compare file sync methods using one")
    }
}

/// CPU of iostat: its parts (percent), by name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CpuLine {
    /// Where it stands in the file, from 1.
    pub line: usize,
    /// `user`, `nice`, `system`, `iowait`, `steal`, `idle`.
    pub parts: Vec<(String, Figure)>,
}

/// A device of iostat.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DeviceLine {
    /// The device.
    pub device: String,
    /// Columns by iostat's names.
    pub columns: Vec<(String, Figure)>,
}

/// pg_test_fsync's lines.
pub(super) fn fsync(scan: &mut Scan<'_>) -> Vec<FsyncLine> {
    let mut section = String::new();
    let mut found = Vec::new();
    for (at, line) in scan.lines.iter().enumerate() {
        let text = line.text.trim();
        let heads = [
            "Compare file sync",
            "Compare open_sync",
            "Test if fsync",
            "Non-Sync'ed",
            "Non-sync'ed",
        ];
        if heads.iter().any(|head| text.starts_with(head)) {
            section = text.trim_end_matches(':').to_owned();
            scan.read[at] = true;
        } else if let Some(read) = fsync_line(text, &section, line.number) {
            found.push(read);
            scan.read[at] = true;
        } else if text.ends_with("n/a") && !section.is_empty() {
            scan.read[at] = true;
        }
    }
    found
}

fn fsync_line(text: &str, section: &str, line: usize) -> Option<FsyncLine> {
    let (before, after) = text.split_once("ops/sec")?;
    let (method, number) = before.trim_end().rsplit_once(char::is_whitespace)?;
    let us = after.trim().strip_suffix("usecs/op").and_then(|us| Figure::read(us.trim(), line));
    let method = method.trim().trim_end_matches(':').to_owned();
    Some(FsyncLine {
        section: section.to_owned(),
        method,
        per_second: Figure::read(number, line)?,
        us,
    })
}

/// iostat's lines on CPUs and devices.
pub(super) fn iostat(scan: &mut Scan<'_>) -> (Vec<CpuLine>, Vec<DeviceLine>) {
    let (mut cpus, mut devices) = (Vec::new(), Vec::new());
    let mut cpu_names: Option<Vec<String>> = None;
    let mut device_names: Option<Vec<String>> = None;
    for (at, line) in scan.lines.iter().enumerate() {
        let text = line.text.trim();
        let mut words = text.split_whitespace();
        let first = words.next();
        let names = |words: std::str::SplitWhitespace<'_>| {
            words.map(|w| w.trim_start_matches('%').to_owned()).collect()
        };
        match first {
            None => device_names = None,
            Some("avg-cpu:") => {
                cpu_names = Some(names(words));
                scan.read[at] = true;
            }
            Some("Device:" | "Device")
                if text.contains("%util") || text.contains("tps") && text.contains("/s") =>
            {
                device_names = Some(names(words));
                scan.read[at] = true;
            }
            Some(first) => {
                // Some locales write a decimal comma.
                let figure = |word: &str| Figure::read(&word.replace(',', "."), line.number);
                if let Some(names) = cpu_names.take() {
                    let values: Vec<_> = text.split_whitespace().filter_map(figure).collect();
                    if values.len() == names.len() {
                        cpus.push(CpuLine {
                            line: line.number,
                            parts: names.into_iter().zip(values).collect(),
                        });
                        scan.read[at] = true;
                        continue;
                    }
                }
                if let Some(names) = &device_names {
                    let values: Vec<_> = words.filter_map(figure).collect();
                    if values.len() == names.len() {
                        let columns = names.iter().cloned().zip(values).collect();
                        devices.push(DeviceLine { device: first.to_owned(), columns });
                        scan.read[at] = true;
                    } else {
                        device_names = None;
                    }
                }
            }
        }
    }
    (cpus, devices)
}
