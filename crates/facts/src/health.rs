//! The health of disks, from smartmontools.

use std::time::Duration;

use pgdyno_exec::tool::ask_tool;
use pgdyno_model::facts::{Health, SmartReport, SmartType};
use serde_json::Value;

use super::serials::Serials;

/// Time limit for a tool's answer: a sleeping drive needs seconds to wake up.
pub(super) const TOOL_LIMIT: Duration = Duration::from_secs(15);

/// Most of a report that is kept (bytes, as JSON). The longest reports have a vendor's own tables.
const REPORT_BYTES: usize = 128 << 10;

/// Keys whose values identify one disk.
const NAMING: [&str; 7] =
    ["serial_number", "wwn", "eui64", "nguid", "uuid", "logical_unit_id", "ieee_oui_identifier"];

/// Question to smartctl.
#[derive(Clone, Copy)]
pub(super) struct Question<'a> {
    /// Device type; none lets smartctl find out.
    pub(super) device_type: Option<&'a SmartType>,
    pub(super) serials: Serials,
}

/// Reads the health of the disk with the kernel's name `disk`.
pub(super) fn read(disk: &str, question: Question<'_>) -> Health {
    let device = format!("/dev/{disk}");
    let device_type = question.device_type.map(ToString::to_string);
    let mut args = vec!["--json", "--xall"];
    if let Some(device_type) = &device_type {
        args.extend(["--device", device_type]);
    }
    args.push(&device);
    let health = match ask_tool("smartctl", &args, TOOL_LIMIT) {
        Ok(answer) => parse(&String::from_utf8_lossy(&answer.stdout), question.serials),
        Err(e) => Health { unavailable: Some(e.to_string()), ..Health::default() },
    };
    Health { device_type: question.device_type.cloned(), ..health }
}

/// Reads the health from smartctl's JSON, which has everything. The exit status is not needed: its
/// bits tell of old errors too.
fn parse(text: &str, serials: Serials) -> Health {
    let Ok(json) = serde_json::from_str::<Value>(text) else {
        let unavailable =
            Some("smartctl's answer is no JSON; version 7.0 or later is needed".to_owned());
        return Health { unavailable, ..Health::default() };
    };
    let passed = json["smart_status"]["passed"].as_bool();
    let nvme = |name: &str| json["nvme_smart_health_information_log"][name].as_u64();
    let attribute = |id: u64| {
        let table = json["ata_smart_attributes"]["table"].as_array()?;
        table.iter().find(|a| a["id"] == id)?["raw"]["value"].as_u64()
    };
    let ata_errors = |log: &str| json["ata_smart_error_log"][log]["count"].as_u64();
    Health {
        unavailable: passed.is_none().then(|| words(&json)),
        passed,
        critical_warning: nvme("critical_warning"),
        percentage_used: nvme("percentage_used"),
        available_spare: nvme("available_spare"),
        available_spare_threshold: nvme("available_spare_threshold"),
        media_errors: nvme("media_errors"),
        reallocated_sectors: attribute(5),
        pending_sectors: attribute(197),
        temperature: json["temperature"]["current"].as_i64(),
        power_on_hours: json["power_on_time"]["hours"].as_u64(),
        errors_logged: ata_errors("extended")
            .or_else(|| ata_errors("summary"))
            .or_else(|| nvme("num_err_log_entries")),
        device_type: None,
        report: Some(report(json, serials)),
    }
}

/// The whole answer, bounded and without what names the disk.
fn report(mut document: Value, serials: Serials) -> SmartReport {
    hide(&mut document, serials);
    let size = |value: &Value| value.to_string().len();
    let mut left_out = Vec::new();
    while size(&document) > REPORT_BYTES
        && let Some(parts) = document.as_object_mut()
        && let Some(longest) = parts.iter().max_by_key(|(_, part)| size(part))
    {
        let longest = longest.0.clone();
        parts.remove(&longest);
        left_out.push(longest);
    }
    SmartReport { document, left_out }
}

/// Replaces what names the disk, however deep it lies.
fn hide(value: &mut Value, serials: Serials) {
    match value {
        Value::Object(parts) => {
            for (name, part) in parts.iter_mut() {
                let names = NAMING.iter().any(|naming| name.ends_with(naming));
                match part {
                    part if names => {
                        let text = part.as_str().map_or_else(|| part.to_string(), str::to_owned);
                        if serials == Serials::Hashed {
                            *part = Value::String(serials.render(&text));
                        }
                    }
                    part => hide(part, serials),
                }
            }
        }
        Value::Array(parts) => parts.iter_mut().for_each(|part| hide(part, serials)),
        _ => {}
    }
}

/// Why there is no verdict, as smartctl words it.
fn words(json: &Value) -> String {
    let said: Vec<&str> = json["smartctl"]["messages"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|m| m["string"].as_str())
        .collect();
    if said.is_empty() { "smartctl gives no verdict on it".to_owned() } else { said.join("; ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Health {
        Health { report: None, ..parse(text, Serials::Hashed) }
    }

    #[test]
    fn a_virtual_disk_is_unavailable_in_smartctls_own_words() {
        let health = parsed(
            r#"{"smartctl":{"messages":[
               {"string":"/dev/vda: Unable to detect device type","severity":"error"}],
               "exit_status":1}}"#,
        );
        let unavailable = Some("/dev/vda: Unable to detect device type".to_owned());
        assert_eq!(health, Health { unavailable, ..Health::default() });
        assert!(parsed("usage").unavailable.unwrap().contains("7.0"));
    }

    #[test]
    fn an_nvme_drive_and_an_ata_drive() {
        let nvme = parsed(
            r#"{"smart_status":{"passed":true},"temperature":{"current":41},
               "power_on_time":{"hours":1000},
               "nvme_smart_health_information_log":{"critical_warning":4,"available_spare":100,
               "available_spare_threshold":10,"percentage_used":3,"media_errors":0,
               "num_err_log_entries":7}}"#,
        );
        assert_eq!(
            (nvme.passed, nvme.critical_warning, nvme.percentage_used, nvme.errors_logged),
            (Some(true), Some(4), Some(3), Some(7))
        );
        assert_eq!(
            (nvme.temperature, nvme.power_on_hours, nvme.unavailable),
            (Some(41), Some(1000), None)
        );
        let ata = parsed(
            r#"{"smart_status":{"passed":false},"ata_smart_attributes":{"table":[
               {"id":5,"raw":{"value":8}},{"id":197,"raw":{"value":2}}]},
               "ata_smart_error_log":{"extended":{"revision":1,"count":12}}}"#,
        );
        assert_eq!(
            (ata.passed, ata.reallocated_sectors, ata.pending_sectors, ata.errors_logged),
            (Some(false), Some(8), Some(2), Some(12))
        );
    }

    #[test]
    fn the_whole_report_is_kept_with_its_logs_and_without_serial_numbers() {
        let text = r#"{"serial_number":"OCZ-1","wwn":{"naa":5,"oui":9,"id":1},
            "firmware_version":"1.5",
            "nvme_namespaces":[{"id":1,"eui64":{"oui":1,"ext_id":2}}],
            "ata_smart_self_test_log":{"standard":{"count":0}}}"#;
        let SmartReport { document, left_out } = parse(text, Serials::Hashed).report.unwrap();
        let hashed = |value: &Value| value.as_str().unwrap().starts_with("sha256:");
        assert!(hashed(&document["serial_number"]) && hashed(&document["wwn"]), "{document}");
        assert!(hashed(&document["nvme_namespaces"][0]["eui64"]), "{document}");
        assert_eq!(document["firmware_version"], "1.5");
        assert_eq!(document["ata_smart_self_test_log"]["standard"]["count"], 0);
        assert!(left_out.is_empty());
        let kept = parse(text, Serials::Kept).report.unwrap().document;
        assert_eq!((&kept["serial_number"], &kept["wwn"]["id"]), (&"OCZ-1".into(), &1.into()));
    }

    #[test]
    fn a_report_that_is_too_long_loses_its_longest_parts_by_name() {
        let table = vec![0; REPORT_BYTES];
        let text = serde_json::json!({ "smart_status": { "passed": true }, "vendor_log": table });
        let health = parse(&text.to_string(), Serials::Hashed);
        let report = health.report.unwrap();
        assert_eq!((report.left_out, health.passed), (vec!["vendor_log".to_owned()], Some(true)));
        assert_eq!(report.document["smart_status"]["passed"], true);
    }
}
