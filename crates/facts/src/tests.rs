//! Other people's machines, as trees of files.

use pgdyno_model::facts::DeviceKind;

use super::tree::MadeTree;
use super::*;

/// Returns the storage facts of the first mount in `mounts_text`.
fn under(made: &MadeTree, mounts_text: &str, serials: Serials) -> StorageFacts {
    let mounts = mountinfo::parse(mounts_text);
    on_mount(&made.tree(), &mounts, &mounts[0], serials, None)
}

/// A block device: its directory below `sys/devices`, the links to it, and files in it.
fn device(made: &MadeTree, numbers: &str, path: &str, files: &[(&str, &str)]) {
    let name = path.rsplit('/').next().unwrap();
    let path = format!("sys/devices/{path}");
    for (file, text) in files {
        made.files(&[(&format!("{path}/{file}"), &format!("{text}\n"))]);
    }
    made.links(&[
        (&format!("sys/class/block/{name}"), &path),
        (&format!("sys/dev/block/{numbers}"), &path),
    ]);
}

fn nvme(made: &MadeTree) {
    let disk = "pci0000:00/0000:00:04.0/nvme/nvme0/nvme0n1";
    device(
        made,
        "259:0",
        disk,
        &[
            ("size", "2097152"),
            ("wwid", "nvme.1d0f-766f6c-416d617a6f6e-00000001"),
            ("device/model", "Amazon Elastic Block Store"),
            ("device/serial", "vol0123456789abcdef0"),
            ("device/firmware_rev", "1.0"),
            ("device/transport", "pcie"),
            ("queue/scheduler", "[none] mq-deadline"),
            ("queue/rotational", "0"),
            ("queue/write_cache", "write through"),
            ("queue/logical_block_size", "512"),
            ("queue/physical_block_size", "4096"),
            ("queue/optimal_io_size", "0"),
            ("queue/discard_max_bytes", "0"),
        ],
    );
    device(
        made,
        "259:1",
        &format!("{disk}/nvme0n1p1"),
        &[("partition", "1"), ("start", "2048"), ("size", "2095104"), ("alignment_offset", "0")],
    );
}

#[test]
fn a_partition_of_an_nvme_disk() {
    let made = MadeTree::new();
    nvme(&made);
    let mounts = "31 22 259:1 / /data rw,noatime - xfs /dev/nvme0n1p1 rw\n";
    let found = under(&made, mounts, Serials::Hashed);
    assert_eq!(
        (found.device.as_deref(), found.disk.as_deref()),
        (Some("nvme0n1p1"), Some("nvme0n1"))
    );
    assert_eq!(found.write_cache.as_deref(), Some("write through"));
    let partition = &found.devices[0];
    assert_eq!((partition.kind, partition.offset), (DeviceKind::Partition, Some(Bytes(1 << 20))));
    assert_eq!(partition.physical_block_bytes, Some(4096));
    let disk = &partition.on[0];
    assert_eq!((disk.kind, disk.size), (DeviceKind::Disk, Bytes(1 << 30)));
    assert_eq!(disk.model.as_deref(), Some("Amazon Elastic Block Store"));
    assert_eq!((disk.transport.as_deref(), disk.firmware.as_deref()), (Some("nvme"), Some("1.0")));
    assert_eq!((disk.scheduler.as_deref(), disk.optimal_io_bytes), (Some("none"), None));
    assert_eq!((disk.discard, disk.rotational), (Some(false), Some(false)));
}

#[test]
fn serials_are_hashed_alike_each_time_unless_they_are_to_be_kept() {
    let made = MadeTree::new();
    nvme(&made);
    let mounts = "31 22 259:0 / /data rw - xfs /dev/nvme0n1 rw\n";
    let of = |serials| {
        let disk = under(&made, mounts, serials).devices.remove(0);
        (disk.serial.unwrap(), disk.wwn.unwrap())
    };
    let (serial, wwn) = of(Serials::Hashed);
    // The beginning of `printf vol0123456789abcdef0 | sha256sum`.
    assert_eq!(serial, "sha256:7a5fdc85a4320d81");
    assert!(wwn.starts_with("sha256:") && wwn != serial && !wwn.contains("766f6c"));
    assert_eq!(of(Serials::Hashed), (serial, wwn));
    assert_eq!(of(Serials::Kept).0, "vol0123456789abcdef0");
}

#[test]
fn a_logical_volume_on_a_raid_on_two_disks() {
    let made = MadeTree::new();
    device(
        &made,
        "253:0",
        "virtual/block/dm-0",
        &[("dm/name", "vg0-data"), ("dm/uuid", "LVM-abc"), ("size", "1000")],
    );
    device(
        &made,
        "9:0",
        "virtual/block/md0",
        &[
            ("md/level", "raid1"),
            ("md/raid_disks", "2"),
            ("md/degraded", "1"),
            ("md/chunk_size", "0"),
            ("md/array_state", "clean"),
            ("md/sync_action", "recover"),
        ],
    );
    for (name, numbers, host) in [("sda", "8:0", "host0"), ("sdb", "8:16", "host1")] {
        device(
            &made,
            numbers,
            &format!("pci0000:00/ata1/{host}/target0:0:0/0:0:0:0/block/{name}"),
            &[("device/vendor", "ATA"), ("device/model", "SAMSUNG MZ7"), ("device/rev", "104Q")],
        );
        made.files(&[(
            &format!("sys/class/block/{name}/device/vpd_pg80"),
            "\0\u{1}\0\u{8}  S4EV1234",
        )]);
    }
    made.links(&[
        ("sys/devices/virtual/block/dm-0/slaves/md0", "sys/devices/virtual/block/md0"),
        ("sys/devices/virtual/block/md0/slaves/sda", "sys/class/block/sda"),
        ("sys/devices/virtual/block/md0/slaves/sdb", "sys/class/block/sdb"),
    ]);
    let found =
        under(&made, "31 22 253:0 / /data rw - ext4 /dev/mapper/vg0-data rw\n", Serials::Kept);
    let names: Vec<_> = found.layers().iter().map(|d| (d.name.clone(), d.kind)).collect();
    let disk = DeviceKind::Disk;
    assert_eq!(
        names,
        [
            ("dm-0".into(), DeviceKind::Lvm),
            ("md0".into(), DeviceKind::Md),
            ("sda".into(), disk),
            ("sdb".into(), disk)
        ]
    );
    assert_eq!(found.devices[0].label.as_deref(), Some("vg0-data"));
    let raid = found.devices[0].on[0].raid.clone().unwrap();
    assert_eq!((raid.level.as_str(), raid.degraded, raid.chunk), ("raid1", Some(1), None));
    assert_eq!(raid.sync_action.as_deref(), Some("recover"));
    let sda = &found.devices[0].on[0].on[0];
    assert_eq!(
        (sda.model.as_deref(), sda.firmware.as_deref()),
        (Some("SAMSUNG MZ7"), Some("104Q"))
    );
    assert_eq!((sda.serial.as_deref(), sda.transport.as_deref()), (Some("S4EV1234"), Some("ata")));
}

#[test]
fn a_loop_device_lies_on_what_its_file_lies_on() {
    let made = MadeTree::new();
    nvme(&made);
    device(
        &made,
        "7:0",
        "virtual/block/loop0",
        &[("loop/backing_file", "/data/images/a b.img"), ("loop/dio", "0")],
    );
    let mounts = "40 22 7:0 / /mnt rw - ext4 /dev/loop0 rw\n\
        31 22 259:1 / /data rw - xfs /dev/nvme0n1p1 rw\n";
    let found = under(&made, mounts, Serials::Hashed);
    let backing = found.devices[0].backing.clone().unwrap();
    assert_eq!((backing.file.as_str(), backing.direct_io), ("/data/images/a b.img", Some(false)));
    assert_eq!(backing.filesystem.as_deref(), Some("xfs"));
    let names: Vec<_> = found.layers().iter().map(|d| d.name.clone()).collect();
    assert_eq!(names, ["loop0", "nvme0n1p1", "nvme0n1"]);
}

#[test]
fn memory_has_no_device() {
    let found = under(
        &MadeTree::new(),
        "25 24 0:23 / /dev/shm rw - tmpfs tmpfs rw,size=4k\n",
        Serials::Hashed,
    );
    assert_eq!((found.device, found.disk, found.devices), (None, None, Vec::new()));
}

#[test]
fn this_machine_tells_of_itself() {
    let host = host();
    assert!(
        host.cpus > 0 && host.memory > Bytes(1 << 20) && host.kernel.starts_with("Linux "),
        "{host:?}"
    );
    assert!(host.settings.sysctl.contains_key("vm.swappiness"), "{host:?}");
    let dir = tempfile::tempdir().unwrap();
    let storage = fingerprint("here", dir.path(), Serials::Hashed, None).unwrap();
    assert!(storage.size >= storage.available && !storage.filesystem.is_empty(), "{storage:?}");
    assert!(storage.block_bytes.is_some_and(|b| b >= 512), "{storage:?}");
    assert_eq!(storage.device.is_some(), storage.disk.is_some());
    assert_eq!(storage.device.is_some(), !storage.devices.is_empty());
    for disk in storage.layers().into_iter().filter(|d| d.kind == DeviceKind::Disk) {
        // A verdict, or why there is none.
        let health = disk.health.as_ref().unwrap();
        assert_ne!(health.passed.is_some(), health.unavailable.is_some(), "{health:?}");
    }
    assert!(super::storage("x", &dir.path().join("missing")).is_err());
}
