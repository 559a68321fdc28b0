//! Temperatures from `/sys/class/hwmon`: of CPU packages and cores, of NVMe devices, and of disks
//! with the driver `drivetemp`.

use std::fs;
use std::path::{Path, PathBuf};

use pgdyno_model::telemetry::Kind;

use super::probe::{EACH_SAMPLE, ProbeError, ProbeResult, column, fixed_columns};

const HWMON: &str = "/sys/class/hwmon";

pub(super) fn make(_: Option<&Path>) -> ProbeResult {
    let sensors = sensors(Path::new(HWMON));
    if sensors.is_empty() {
        return Err(ProbeError::NotVisible { what: "temperature sensor", place: HWMON });
    }
    let (columns, files): (_, Vec<PathBuf>) =
        sensors.into_iter().map(|(name, file)| (column(name, "°C", Kind::Gauge), file)).unzip();
    Ok(fixed_columns(EACH_SAMPLE, columns, move || Ok(files.iter().map(|f| celsius(f)).collect())))
}

/// Returns all temperatures below `root`, by name of the chip, number and label.
fn sensors(root: &Path) -> Vec<(String, PathBuf)> {
    let text = |path: PathBuf| fs::read_to_string(path).ok().map(|t| t.trim().to_owned());
    let entries = |path: &Path| -> Vec<PathBuf> {
        let mut all: Vec<PathBuf> =
            fs::read_dir(path).into_iter().flatten().flatten().map(|e| e.path()).collect();
        all.sort();
        all
    };
    let mut out = Vec::new();
    for chip in entries(root) {
        let number = chip.file_name().and_then(|n| n.to_str()).unwrap_or_default().to_owned();
        let name = text(chip.join("name")).unwrap_or_default();
        for file in entries(&chip) {
            let Some(sensor) = file
                .file_name()
                .and_then(|n| n.to_str())
                .and_then(|n| n.strip_prefix("temp")?.strip_suffix("_input").map(str::to_owned))
            else {
                continue;
            };
            let label = text(chip.join(format!("temp{sensor}_label")))
                .unwrap_or_else(|| format!("temp{sensor}"));
            out.push((format!("{name}({number}).{label}"), file));
        }
    }
    out
}

/// A sensor that does not answer has no value in this sample.
fn celsius(file: &Path) -> Option<f64> {
    let thousandths: f64 = fs::read_to_string(file).ok()?.trim().parse().ok()?;
    Some(thousandths / 1000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sensors_are_named_by_chip_and_label_and_read_in_degrees() {
        let root = tempfile::tempdir().unwrap();
        let chip = root.path().join("hwmon0");
        fs::create_dir(&chip).unwrap();
        for (file, text) in [
            ("name", "nvme\n"),
            ("temp1_input", "38850\n"),
            ("temp1_label", "Composite\n"),
            ("temp2_input", "x"),
        ] {
            fs::write(chip.join(file), text).unwrap();
        }
        let found = sensors(root.path());
        let names: Vec<&str> = found.iter().map(|(n, _)| n.as_str()).collect();
        assert_eq!(names, ["nvme(hwmon0).Composite", "nvme(hwmon0).temp2"]);
        assert_eq!(celsius(&found[0].1), Some(38.85));
        assert_eq!(celsius(&found[1].1), None);
    }
}
