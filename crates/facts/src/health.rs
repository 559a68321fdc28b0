//! The health of disks, from smartmontools.

use std::time::Duration;

use pgdyno_exec::tool::ask_tool;
use pgdyno_model::facts::Health;
use serde_json::Value;

/// How long a tool may take to answer: a drive that sleeps needs seconds to wake up.
pub(super) const TOOL_LIMIT: Duration = Duration::from_secs(15);

/// Reads the health of the disk with the kernel's name `disk`.
pub(super) fn read(disk: &str) -> Health {
    let device = format!("/dev/{disk}");
    let args = ["--json", "--info", "--health", "--attributes", &device];
    match ask_tool("smartctl", &args, TOOL_LIMIT) {
        Ok(answer) => parse(&String::from_utf8_lossy(&answer.stdout)),
        Err(e) => Health { unavailable: Some(e.to_string()), ..Health::default() },
    }
}

/// smartctl's JSON. Its exit status is a set of bits that also tell of old errors; the JSON has
/// them all.
fn parse(text: &str) -> Health {
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

    #[test]
    fn a_virtual_disk_is_unavailable_in_smartctls_own_words() {
        let health = parse(
            r#"{"smartctl":{"messages":[{"string":"/dev/vda: Unable to detect device type","severity":"error"}],
               "exit_status":1}}"#,
        );
        let unavailable = Some("/dev/vda: Unable to detect device type".to_owned());
        assert_eq!(health, Health { unavailable, ..Health::default() });
        assert!(parse("usage").unavailable.unwrap().contains("7.0"));
    }

    #[test]
    fn an_nvme_drive_and_an_ata_drive() {
        let nvme = parse(
            r#"{"smart_status":{"passed":true},"temperature":{"current":41},"power_on_time":{"hours":1000},
               "nvme_smart_health_information_log":{"critical_warning":4,"available_spare":100,
               "available_spare_threshold":10,"percentage_used":3,"media_errors":0}}"#,
        );
        assert_eq!(
            (nvme.passed, nvme.critical_warning, nvme.percentage_used),
            (Some(true), Some(4), Some(3))
        );
        assert_eq!(
            (nvme.temperature, nvme.power_on_hours, nvme.unavailable),
            (Some(41), Some(1000), None)
        );
        let ata = parse(
            r#"{"smart_status":{"passed":false},"ata_smart_attributes":{"table":[
               {"id":5,"raw":{"value":8}},{"id":197,"raw":{"value":2}}]}}"#,
        );
        assert_eq!(
            (ata.passed, ata.reallocated_sectors, ata.pending_sectors),
            (Some(false), Some(8), Some(2))
        );
    }
}
