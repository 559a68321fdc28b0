//! Health of disks as smartctl reports it, behind a RAID controller too.
//!
//! A script in smartctl's place answers with a recorded document, and notes its arguments.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::support::{self, World, elements};
use serde_json::Value;

/// Output of smartctl 7.3 for an SSD behind a MegaRAID controller, shortened.
const RECORDED: &str = concat!(
    r#"{
  "json_format_version": [1, 0],
  "smartctl": {"version": [7, 3], "exit_status": 0},
  "device": {"name": "/dev/sdc", "info_name": "/dev/sdc [megaraid_disk_03] [SAT]", "#,
    r#""type": "sat+megaraid,3"},
  "model_name": "OCZ-VERTEX4", "serial_number": "OCZ-69ZP9CV0NG6QQTCH", "firmware_version": "1.5",
  "wwn": {"naa": 5, "oui": 15247511, "id": 21849540960},
  "smart_status": {"passed": true},
  "power_on_time": {"hours": 83},
  "ata_smart_attributes": {"revision": 18, "table": [
    {"id": 5, "name": "Reallocated_Sector_Ct", "value": 100, "raw": {"value": 0, "string": "0"}},
    {"id": 233, "name": "Media_Wearout_Indicator", "value": 100, "#,
    r#""raw": {"value": 100, "string": "100"}}]},
  "ata_smart_error_log": {"extended": {"revision": 1, "sectors": 1, "count": 2, "logged_count": 2}},
  "ata_smart_self_test_log": {"standard": {"revision": 1, "count": 0}}
}"#
);

/// Makes a smartctl that answers with `document` and writes its arguments to `asked`.
fn fake_smartctl(world: &World, document: &str) {
    let answer = world.file("answer.json", document);
    let script = format!(
        "#!/bin/sh\necho \"$@\" >> {}\ncat {}\n",
        world.path("asked").display(),
        answer.display()
    );
    let smartctl = world.file("bin/smartctl", &script);
    std::fs::set_permissions(smartctl, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// Runs pgdyno with the smartctl of [`fake_smartctl`].
fn run(world: &World, args: &[&str]) -> support::Ended {
    let path = std::env::join_paths(
        std::iter::once(world.path("bin"))
            .chain(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())),
    );
    support::ended(world.command(args).env("PATH", path.unwrap()).output().unwrap())
}

/// Returns the health of the first disk below `devices`; none in a container that shows no disk.
fn health(devices: &Value) -> Option<&Value> {
    elements(devices).find_map(|device| {
        Some(&device["health"]).filter(|h| !h.is_null()).or_else(|| health(&device["on"]))
    })
}

fn asked(world: &World) -> String {
    std::fs::read_to_string(world.path("asked")).unwrap_or_default()
}

#[test]
fn a_disk_behind_a_controller_is_asked_by_its_type_and_its_whole_report_kept() {
    let world = World::new();
    fake_smartctl(&world, RECORDED);
    let disk = world.disk().display().to_string();
    let ended = run(&world, &["doctor", &disk, "--json", "--smart", "megaraid,3"]).exits(0);
    let document = ended.json();
    let Some(health) = health(&document["directory"]["storage"]["devices"]) else {
        return eprintln!("skipped: smart: no disk is to be seen below {disk}");
    };
    assert!(asked(&world).contains("--json --xall --device megaraid,3 /dev/"), "{}", asked(&world));
    assert_eq!((&health["passed"], &health["errors_logged"]), (&true.into(), &2.into()));
    assert_eq!(health["device_type"], "megaraid,3");
    let report = &health["report"]["document"];
    assert_eq!(report["ata_smart_error_log"]["extended"]["logged_count"], 2);
    assert_eq!(report["firmware_version"], "1.5");
    assert!(!ended.out.contains("69ZP9CV0NG6QQTCH"), "a serial number");
    let page = run(&world, &["doctor", &disk, "--smart", "megaraid,3", "--verbose"]).out;
    // Wrapped to the page's width.
    let words = page.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("2 errors in its log"), "{page}");
    assert!(words.contains("asked as megaraid,3, Reallocated_Sector_Ct 0,"), "{page}");
}

#[test]
fn a_run_keeps_the_report_of_the_disk_that_its_storage_names() {
    let world = World::new();
    fake_smartctl(&world, RECORDED);
    let directory = format!("storage.disk.directory={}", world.disk().display());
    let sets = [directory.as_str(), "storage.disk.smart=cciss,1", "telemetry.fsync=0s"];
    let args = support::quick(&world, "quickstart", &[&sets[..], &support::ONE_TRIAL].concat());
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    run(&world, &args).exits(0);
    let document = world.show("latest");
    let storage = &document["sessions"][0]["storage"][0];
    let Some(health) = health(&storage["devices"]) else {
        return eprintln!("skipped: smart: no disk is to be seen below {}", world.disk().display());
    };
    assert!(asked(&world).contains("--device cciss,1 /dev/"), "{}", asked(&world));
    assert_eq!(health["report"]["document"]["model_name"], "OCZ-VERTEX4");
}

#[test]
fn a_type_that_smartctl_does_not_know_is_refused_before_anything_is_asked() {
    let world = World::new();
    fake_smartctl(&world, RECORDED);
    run(&world, &["doctor", "--smart", "megaride,3"]).exits(1).says("megaraid");
    run(&world, &["run", "quickstart", "--dry-run", "--set", "storage.disk.smart=megaraid"])
        .exits(1)
        .says("write `megaraid,0`");
    assert!(!Path::new(&world.path("asked")).exists());
}
