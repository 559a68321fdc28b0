//! Every rule keeps silent on a machine that is well set, and speaks where one thing is not.

use std::collections::BTreeSet;

use pgdyno_model::facts::{
    BlockDevice, CpuFacts, DeviceKind, Health, HostFacts, KernelFacts, LoopFacts, MemoryFacts,
    RaidFacts, StorageFacts, Virtualization,
};
use pgdyno_model::units::Bytes;

use super::super::advice::Severity::{self, Danger, Note, Warning};
use super::{HOST_RULES, STORAGE_RULES, advise};

/// A machine on which there is nothing to say: xfs on a partition of an NVMe drive with power-loss
/// protection.
fn well_set() -> (HostFacts, StorageFacts) {
    let sysctls = [
        ("kernel.numa_balancing", "0"),
        ("kernel.sched_autogroup_enabled", "0"),
        ("vm.dirty_background_bytes", "67108864"),
        ("vm.dirty_background_ratio", "0"),
        ("vm.overcommit_memory", "2"),
        ("vm.swappiness", "3"),
        ("vm.zone_reclaim_mode", "0"),
    ];
    let host = HostFacts {
        cpus: 32,
        memory: Bytes(256 << 30),
        cpu: CpuFacts {
            governors: vec!["performance".into()],
            driver: Some("acpi-cpufreq".into()),
            hardware_max_khz: Some(3_600_000),
            allowed_max_khz: Some(3_600_000),
            ..CpuFacts::default()
        },
        paging: MemoryFacts {
            transparent_hugepage: Some("madvise".into()),
            huge_pages: Some(33_000),
            swap: Some(Bytes(8 << 30)),
            numa_nodes: vec![Bytes(128 << 30), Bytes(128 << 30)],
            ..MemoryFacts::default()
        },
        settings: KernelFacts {
            sysctl: sysctls.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect(),
            clocksource: Some("tsc".into()),
            clocksources: vec!["tsc".into(), "hpet".into()],
            ..KernelFacts::default()
        },
        virtualization: Virtualization { steal: Some(0.0), ..Virtualization::default() },
        ..HostFacts::default()
    };
    let queue = BlockDevice {
        scheduler: Some("none".into()),
        write_cache: Some("write through".into()),
        physical_block_bytes: Some(4096),
        ..BlockDevice::default()
    };
    let disk = BlockDevice {
        name: "nvme0n1".into(),
        transport: Some("nvme".into()),
        health: Some(Health { passed: Some(true), critical_warning: Some(0), ..Health::default() }),
        ..queue.clone()
    };
    let partition = BlockDevice {
        name: "nvme0n1p1".into(),
        kind: DeviceKind::Partition,
        offset: Some(Bytes(1 << 20)),
        alignment_offset: Some(0),
        on: vec![disk],
        ..queue
    };
    let storage = StorageFacts {
        directory: "/data/pgdyno".into(),
        filesystem: "xfs".into(),
        mount_point: "/data".into(),
        mount_options: "rw,noatime,attr2,logbufs=8".into(),
        source: "/dev/nvme0n1p1".into(),
        size: Bytes(1 << 40),
        available: Bytes(1 << 39),
        devices: vec![partition],
        ..StorageFacts::default()
    };
    (host, storage)
}

/// A rule, how much it matters, and what makes it speak on that machine.
type Case = (&'static str, Severity, fn(&mut HostFacts, &mut StorageFacts));

fn sysctl(host: &mut HostFacts, name: &str, value: &str) {
    host.settings.sysctl.insert(name.to_owned(), value.to_owned());
}

fn disk(storage: &mut StorageFacts) -> &mut BlockDevice {
    &mut storage.devices[0].on[0]
}

/// Puts `device` between the filesystem and what it lay on.
fn between(storage: &mut StorageFacts, mut device: BlockDevice) {
    device.on = std::mem::take(&mut storage.devices);
    storage.devices = vec![device];
}

fn array(storage: &mut StorageFacts, degraded: u32, sync_action: &str) {
    let raid = RaidFacts {
        level: "raid1".into(),
        degraded: Some(degraded),
        sync_action: Some(sync_action.into()),
        ..RaidFacts::default()
    };
    between(
        storage,
        BlockDevice {
            name: "md0".into(),
            kind: DeviceKind::Md,
            raid: Some(raid),
            ..BlockDevice::default()
        },
    );
}

/// Has a filesystem hold what the directory's own lies on.
fn beneath(storage: &mut StorageFacts, filesystem: &str, options: &str) {
    storage.beneath.push(pgdyno_test_support::beneath(filesystem, options));
}

fn loop_device(storage: &mut StorageFacts, direct_io: bool) {
    let backing =
        LoopFacts { file: "/images/1".into(), direct_io: Some(direct_io), ..LoopFacts::default() };
    between(
        storage,
        BlockDevice {
            name: "loop3".into(),
            kind: DeviceKind::Loop,
            backing: Some(backing),
            ..BlockDevice::default()
        },
    );
}

/// ZFS as it should be; two of its notes are always made.
fn zfs(storage: &mut StorageFacts, property: &str, value: &str) {
    storage.filesystem = "zfs".into();
    storage.source = "tank/pg".into();
    for (name, set) in
        [("sync", "standard"), ("ashift", "12"), ("state", "ONLINE"), (property, value)]
    {
        storage.geometry.insert(name.to_owned(), set.to_owned());
    }
}

const CASES: &[Case] = &[
    ("network-filesystem", Warning, |_, s| s.filesystem = "ceph".into()),
    ("network-filesystem", Warning, |_, s| s.filesystem = "nfs4".into()),
    ("network-filesystem", Danger, |_, s| {
        s.filesystem = "nfs".into();
        s.mount_options.push_str(",soft");
    }),
    ("memory-filesystem", Danger, |_, s| {
        s.filesystem = "tmpfs".into();
        s.devices.clear();
    }),
    ("memory-filesystem", Danger, |_, s| disk(s).kind = DeviceKind::Ram),
    ("overlay", Warning, |_, s| s.filesystem = "overlay".into()),
    ("overlay", Danger, |_, s| {
        s.filesystem = "overlay".into();
        s.mount_options.push_str(",volatile");
    }),
    ("overlay", Danger, |_, s| {
        s.filesystem = "overlay".into();
        s.mount_options.push_str(",fsync=volatile");
    }),
    ("overlay", Danger, |_, s| beneath(s, "overlay", "rw,volatile")),
    ("memory-filesystem", Danger, |_, s| beneath(s, "tmpfs", "rw")),
    ("barriers", Danger, |_, s| beneath(s, "ext4", "rw,nobarrier")),
    ("nearly-full", Warning, |_, s| s.available = Bytes(1 << 30)),
    ("barriers", Danger, |_, s| s.mount_options.push_str(",nobarrier")),
    ("barriers", Danger, |_, s| s.mount_options.push_str(",barrier=0")),
    ("data-mode", Warning, |_, s| {
        s.filesystem = "ext4".into();
        s.mount_options.push_str(",data=journal");
    }),
    ("data-mode", Note, |_, s| {
        s.filesystem = "ext3".into();
        s.mount_options.push_str(",data=writeback");
    }),
    ("sync-option", Warning, |_, s| s.attributes.push("+S".into())),
    ("sync-option", Warning, |_, s| s.mount_options.push_str(",sync")),
    ("discard", Note, |_, s| s.mount_options.push_str(",discard")),
    ("access-time", Note, |_, s| s.mount_options = "rw,relatime".into()),
    ("access-time", Warning, |_, s| s.mount_options = "rw".into()),
    ("smart", Danger, |_, s| disk(s).health.as_mut().unwrap().passed = Some(false)),
    ("smart", Danger, |_, s| disk(s).health.as_mut().unwrap().critical_warning = Some(0x10)),
    ("smart", Danger, |_, s| disk(s).health.as_mut().unwrap().pending_sectors = Some(1)),
    ("smart", Warning, |_, s| disk(s).health.as_mut().unwrap().percentage_used = Some(104)),
    ("raid-state", Danger, |_, s| array(s, 1, "idle")),
    ("raid-state", Warning, |_, s| array(s, 0, "check")),
    ("zfs-pool", Danger, |_, s| zfs(s, "state", "DEGRADED")),
    ("instance-store", Danger, |_, s| {
        disk(s).model = Some("Amazon EC2 NVMe Instance Storage".into());
    }),
    ("alignment", Warning, |_, s| s.devices[0].offset = Some(Bytes(63 * 512))),
    ("alignment", Warning, |_, s| s.devices[0].alignment_offset = Some(-1)),
    ("alignment", Warning, |_, s| s.devices[0].optimal_io_bytes = Some(3 << 20)),
    ("alignment", Note, |_, s| s.devices[0].offset = Some(Bytes(65536))),
    ("loop-direct-io", Warning, |_, s| loop_device(s, false)),
    ("scheduler", Note, |_, s| disk(s).scheduler = Some("mq-deadline".into())),
    ("scheduler", Note, |_, s| {
        disk(s).transport = Some("ata".into());
        disk(s).scheduler = Some("bfq".into());
    }),
    ("cgroup-io", Warning, |h, _| h.cgroup.io = vec!["io.max 259:0 wiops=100".into()]),
    ("write-cache", Note, |_, s| disk(s).write_cache = Some("write back".into())),
    ("zfs-sync", Danger, |_, s| zfs(s, "sync", "disabled")),
    ("zfs-logbias", Warning, |_, s| zfs(s, "logbias", "throughput")),
    ("zfs-ashift", Warning, |_, s| zfs(s, "ashift", "9")),
    ("zfs-full-page-writes", Note, |_, s| zfs(s, "sync", "standard")),
    ("wal-recycling", Note, |_, s| zfs(s, "sync", "standard")),
    ("btrfs-copy-on-write", Warning, |_, s| s.filesystem = "btrfs".into()),
    ("btrfs-copy-on-write", Note, |_, s| {
        s.filesystem = "btrfs".into();
        s.no_copy_on_write = Some(true);
    }),
    ("transparent-hugepage", Warning, |h, _| h.paging.transparent_hugepage = Some("always".into())),
    ("dirty-background", Note, |h, _| {
        sysctl(h, "vm.dirty_background_bytes", "0");
        sysctl(h, "vm.dirty_background_ratio", "10");
    }),
    ("zone-reclaim", Warning, |h, _| sysctl(h, "vm.zone_reclaim_mode", "1")),
    ("swappiness", Note, |h, _| sysctl(h, "vm.swappiness", "60")),
    ("huge-pages", Note, |h, _| h.paging.huge_pages = Some(0)),
    ("overcommit", Note, |h, _| sysctl(h, "vm.overcommit_memory", "0")),
    ("numa-balancing", Note, |h, _| sysctl(h, "kernel.numa_balancing", "1")),
    ("cgroup-memory", Note, |h, _| h.cgroup.memory = Some(Bytes(4 << 30))),
    ("governor", Warning, |h, _| h.cpu.governors = vec!["powersave".into()]),
    ("governor", Note, |h, _| {
        h.cpu.governors = vec!["powersave".into()];
        h.cpu.driver = Some("intel_pstate".into());
    }),
    ("frequency-limit", Warning, |h, _| h.cpu.allowed_max_khz = Some(2_000_000)),
    ("clocksource", Warning, |h, _| h.settings.clocksource = Some("hpet".into())),
    ("steal", Warning, |h, _| h.virtualization.steal = Some(0.04)),
    ("cgroup-cpu", Warning, |h, _| h.cgroup.cpus = Some(2.0)),
    ("cgroup-cpu", Note, |h, _| h.cgroup.cpuset = Some("0-3".into())),
    ("autogroup", Note, |h, _| sysctl(h, "kernel.sched_autogroup_enabled", "1")),
];

#[test]
fn a_machine_that_is_well_set_hears_nothing() {
    let (host, storage) = well_set();
    let advised = advise(&host, Some(&storage));
    assert_eq!((advised.advice, advised.unseen), (Vec::new(), Vec::new()));
    assert!(advised.fine.len() > 20, "{:?}", advised.fine);
}

#[test]
fn each_rule_speaks_where_its_one_thing_is_wrong_and_no_other_does() {
    // What goes with a filesystem whatever its state.
    let along = ["zfs-full-page-writes", "wal-recycling"];
    for (rule, severity, spoil) in CASES {
        let (mut host, mut storage) = well_set();
        spoil(&mut host, &mut storage);
        let advised = advise(&host, Some(&storage));
        let found: Vec<_> = advised.advice.iter().filter(|a| a.rule == *rule).collect();
        assert_eq!(found.len(), 1, "{rule}: {advised:?}");
        assert_eq!(found[0].severity, *severity, "{found:?}");
        assert!(found[0].found.ends_with('.') && !found[0].remedy.is_empty(), "{found:?}");
        let others: Vec<_> =
            advised.advice.iter().filter(|a| a.rule != *rule && !along.contains(&a.rule)).collect();
        assert!(others.is_empty(), "{rule} wakes others: {others:?}");
    }
}

#[test]
fn every_rule_has_a_case_a_name_of_its_own_and_a_source() {
    let rules: Vec<_> = STORAGE_RULES.iter().chain(HOST_RULES).copied().flatten().collect();
    let names: BTreeSet<&str> = rules.iter().map(|r| r.name).collect();
    assert_eq!(names.len(), rules.len());
    assert_eq!(names, CASES.iter().map(|(rule, ..)| *rule).collect());
    assert!(rules.iter().all(|r| !r.source.is_empty() && !r.fine.is_empty()));
}

#[test]
fn what_cannot_be_seen_is_said_and_not_called_fine() {
    let (mut host, mut storage) = well_set();
    let health = disk(&mut storage).health.as_mut().unwrap();
    health.passed = None;
    health.unavailable = Some("smartctl is not installed".into());
    disk(&mut storage).write_cache = None;
    host.settings = KernelFacts::default();
    host.virtualization.steal = None;
    let advised = advise(&host, Some(&storage));
    assert_eq!(advised.advice, Vec::new());
    let unseen: BTreeSet<&str> = advised.unseen.iter().map(|u| u.rule).collect();
    for rule in [
        "smart",
        "write-cache",
        "dirty-background",
        "overcommit",
        "clocksource",
        "steal",
        "autogroup",
    ] {
        assert!(unseen.contains(rule), "{rule}: {unseen:?}");
    }
    zfs(&mut storage, "sync", "standard");
    storage.geometry.clear();
    storage.unavailable.push("the properties of tank/pg: zfs is not installed".into());
    let advised = advise(&host, Some(&storage));
    let sync = advised.unseen.iter().find(|u| u.rule == "zfs-sync").unwrap();
    assert!(sync.why.contains("zfs is not installed"), "{sync:?}");
}

#[test]
fn nothing_is_said_of_a_storage_that_is_unknown() {
    let (host, _) = well_set();
    let advised = advise(&host, None);
    assert_eq!((advised.advice, advised.unseen), (Vec::new(), Vec::new()));
    assert!(advised.fine.iter().all(|f| !f.contains("filesystem")), "{:?}", advised.fine);
}

#[test]
fn a_loop_device_with_direct_io_and_a_clean_array_are_fine() {
    let (host, mut storage) = well_set();
    loop_device(&mut storage, true);
    array(&mut storage, 0, "idle");
    assert_eq!(advise(&host, Some(&storage)).advice, Vec::new());
}

#[test]
fn access_times_are_turned_off_where_zfs_keeps_them() {
    let (host, mut storage) = well_set();
    storage.mount_options = "rw,relatime".into();
    zfs(&mut storage, "atime", "on");
    let about = |storage: &StorageFacts| {
        advise(&host, Some(storage)).advice.into_iter().find(|a| a.rule == "access-time")
    };
    assert_eq!(about(&storage).unwrap().remedy, ["zfs set atime=off tank/pg"]);
    zfs(&mut storage, "atime", "off");
    assert_eq!(about(&storage), None);
}

#[test]
fn danger_comes_first() {
    let (mut host, mut storage) = well_set();
    sysctl(&mut host, "vm.swappiness", "60");
    host.virtualization.steal = Some(0.5);
    storage.mount_options.push_str(",discard,barrier=0");
    let severities: Vec<_> =
        advise(&host, Some(&storage)).advice.iter().map(|a| a.severity).collect();
    assert_eq!(severities, [Danger, Warning, Note, Note]);
}
