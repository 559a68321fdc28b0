//! Describes what a disk says of itself: attributes and logs of smartctl's report.

use pgdyno_model::facts::{BlockDevice, Health, SmartReport};
use serde_json::Value;

use super::text::Row;

/// Longest log that is written out (characters). The whole is in JSON.
const LONGEST: usize = 400;

/// Returns the row of the report of `disk`, if it has one; a detail.
pub(super) fn row(disk: &BlockDevice) -> Option<Row> {
    let Health { device_type, report, .. } = disk.health.as_ref()?;
    let SmartReport { document, left_out } = report.as_ref()?;
    let mut words = Vec::new();
    if let Some(device_type) = device_type {
        words.push(format!("asked as {device_type}"));
    }
    words.extend(attributes(document));
    words.extend(logs(document));
    words.extend(left_out.iter().map(|part| format!("{part} left out: too long")));
    let (name, text) = (format!("SMART of {}", disk.name), words.join(", "));
    (!text.is_empty()).then_some(Row { name, text, detail: true })
}

/// Attributes of an ATA drive by name, or the health log of an NVMe drive.
fn attributes(document: &Value) -> Vec<String> {
    let ata = document["ata_smart_attributes"]["table"].as_array().into_iter().flatten();
    let named = |attribute: &Value| {
        let raw = attribute["raw"]["string"].as_str().map(str::to_owned);
        let raw = raw.unwrap_or_else(|| attribute["raw"]["value"].to_string());
        Some(format!("{} {raw}", attribute["name"].as_str()?))
    };
    let nvme = document["nvme_smart_health_information_log"].as_object().into_iter().flatten();
    let nvme = nvme.map(|(name, value)| format!("{name} {value}"));
    ata.filter_map(named).chain(nvme).collect()
}

/// Logs of errors and self-tests, of whatever kind of drive, in smartctl's own keys.
fn logs(document: &Value) -> Vec<String> {
    let parts = document.as_object().into_iter().flatten();
    let is_log = |name: &str| {
        let of_errors = name.contains("error") && name.ends_with("_log");
        of_errors || name.contains("self_test")
    };
    let logs = parts.filter(|(name, _)| is_log(name));
    logs.map(|(name, log)| {
        let text = log.to_string();
        let first: String = text.chars().take(LONGEST).collect();
        let more = if first.len() < text.len() { "…" } else { "" };
        format!("{name} {first}{more}")
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use pgdyno_model::facts::SmartReport;
    use serde_json::json;

    use super::*;

    #[test]
    fn attributes_and_logs_of_a_disk_behind_a_controller_are_told() {
        let document = json!({
            "ata_smart_attributes": { "table": [
                { "id": 9, "name": "Power_On_Hours", "raw": { "value": 83, "string": "83" } },
                { "id": 233, "name": "Media_Wearout_Indicator", "raw": { "value": 100 } },
            ] },
            "ata_smart_error_log": { "extended": { "count": 2 } },
            "ata_smart_self_test_log": { "standard": { "count": 0 } },
            "firmware_version": "1.5",
        });
        let report = SmartReport { document, left_out: vec!["vendor_log".into()] };
        let health = Health {
            device_type: Some("megaraid,3".parse().unwrap()),
            report: Some(report),
            ..Health::default()
        };
        let disk =
            BlockDevice { name: "sdc".into(), health: Some(health), ..BlockDevice::default() };
        let row = row(&disk).unwrap();
        assert_eq!((row.name.as_str(), row.detail), ("SMART of sdc", true));
        assert_eq!(
            row.text,
            "asked as megaraid,3, Power_On_Hours 83, Media_Wearout_Indicator 100, \
             ata_smart_error_log {\"extended\":{\"count\":2}}, \
             ata_smart_self_test_log {\"standard\":{\"count\":0}}, vendor_log left out: too long"
        );
        assert!(super::row(&BlockDevice::default()).is_none());
    }
}
