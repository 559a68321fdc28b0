//! The disk probe on a block device: a loop device of this test's own.
use std::io::Write as _; // past the test runner, which keeps what passing tests print to itself
use std::process::Command;
use std::time::Duration;

use crate::common::{Place, RUN};
use pgdyno_model::probe::Pattern;
use pgdyno_storage::probe::{DiskOptions, DiskPlan};

/// A loop device, detached by its name when the test ends.
struct Loop(String);

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = Command::new("losetup").args(["-d", &self.0]).status();
    }
}

#[test]
fn a_block_device_is_read_and_not_changed() {
    let skip = |why: &str| {
        let _ =
            writeln!(std::io::stderr(), "\nskipped: a_block_device_is_read_and_not_changed: {why}");
    };
    if !rustix::process::geteuid().is_root() {
        return skip("a loop device needs root");
    }
    let place = Place::new();
    let image = place.path().join("image");
    let contents: Vec<u8> = (0..40_u32 << 20).map(|i| i.to_be_bytes()[3]).collect();
    std::fs::write(&image, &contents).unwrap();
    let attached = Command::new("losetup").args(["--find", "--show"]).arg(&image).output().unwrap();
    if !attached.status.success() {
        return skip(String::from_utf8_lossy(&attached.stderr).trim());
    }
    let device = Loop(String::from_utf8(attached.stdout).unwrap().trim().to_owned());

    let options = DiskOptions {
        per_point: Duration::from_millis(20),
        zones: 2,
        builtin: true,
        ..Default::default()
    };
    let plan = DiskPlan::new(device.0.as_ref(), &options).unwrap();
    let (storage, probe) = plan.measure(&place.journal, &|_, _| {}, &RUN).unwrap();
    assert_eq!(storage.disk.as_deref(), device.0.strip_prefix("/dev/"));
    assert!(probe.complete && probe.points.len() == 2 + 7 && probe.span.0 == 40 << 20, "{probe:?}");
    assert!(probe.points.iter().all(|p| matches!(p.pattern, Pattern::Read | Pattern::RandRead)));
    assert!(
        probe.not_measured[0].contains("would destroy")
            && probe.warnings[0].contains("loop device")
    );
    drop(device);
    assert_eq!(std::fs::read(&image).unwrap(), contents);
    std::fs::remove_file(&image).unwrap();
    assert!(place.is_clean());
}
