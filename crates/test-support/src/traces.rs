//! Traces of a storage stack on the machine.

use std::fs;
use std::path::Path;

/// Returns the mounts, the loop devices and the processes of emulated disks that belong to files
/// below `place`, in words.
pub fn traces(place: &Path) -> Vec<String> {
    let place = place.canonicalize().unwrap();
    let place = place.to_str().unwrap();
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let mut traces: Vec<String> =
        mounts.lines().filter(|line| line.contains(place)).map(String::from).collect();
    for device in fs::read_dir("/sys/block").unwrap().flatten() {
        let backing =
            fs::read_to_string(device.path().join("loop/backing_file")).unwrap_or_default();
        if backing.contains(place) {
            traces.push(format!("{:?} over {backing}", device.file_name()));
        }
    }
    let served = format!("PGDYNO_EMULATED_DISK={place}");
    for process in fs::read_dir("/proc").unwrap().flatten() {
        let environment = fs::read(process.path().join("environ")).unwrap_or_default();
        if String::from_utf8_lossy(&environment).contains(&served) {
            traces.push(format!("process {:?}", process.file_name()));
        }
    }
    traces
}
