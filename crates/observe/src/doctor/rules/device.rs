//! Block devices: how they are set, cached and laid out.

use pgdyno_model::facts::{BlockDevice, DeviceKind};
use pgdyno_model::units::Bytes;

use crate::doctor::advice::Severity;
use crate::doctor::rule::{DoctorRule, Facts, Finding, Judged, danger, finding, note, warning};

/// Where partitions begin since about 2010.
const MEBIBYTE: u64 = 1 << 20;

pub(super) const RULES: &[DoctorRule] = &[
    DoctorRule {
        name: "instance-store",
        fine: "the disk outlives its machine",
        source: "Amazon EC2 User Guide, Instance store temporary block storage",
        judge: instance_store,
    },
    DoctorRule {
        name: "alignment",
        fine: "partitions begin where blocks and stripes do",
        source: "Linux documentation, ABI/stable/sysfs-block, alignment_offset; GNU Parted manual, \
                 --align",
        judge: alignment,
    },
    DoctorRule {
        name: "loop-direct-io",
        fine: "loop devices bypass the page cache below them",
        source: "losetup(8), --direct-io",
        judge: loop_direct_io,
    },
    DoctorRule {
        name: "scheduler",
        fine: "the I/O scheduler fits the disk",
        source: "Red Hat Enterprise Linux documentation, Setting the disk scheduler",
        judge: scheduler,
    },
    DoctorRule {
        name: "cgroup-io",
        fine: "no control group limits I/O",
        source: "Linux documentation, admin-guide/cgroup-v2, IO",
        judge: cgroup_io,
    },
    DoctorRule {
        name: "write-cache",
        fine: "the disk has no volatile write cache, as far as the kernel knows",
        source: "PostgreSQL documentation, Reliability; Linux documentation, \
                 block/writeback_cache_control",
        judge: write_cache,
    },
];

/// Returns one finding for each device in which `of` finds something. Not applicable where there
/// are no devices.
fn each<'a>(
    devices: impl IntoIterator<Item = &'a BlockDevice>,
    of: impl Fn(&BlockDevice) -> Option<Finding>,
) -> Judged {
    let mut devices = devices.into_iter().peekable();
    if devices.peek().is_none() {
        return Judged::NotApplicable;
    }
    devices.filter_map(of).collect::<Vec<_>>().into()
}

fn of_kind<'a>(facts: &Facts<'a>, kind: DeviceKind) -> impl Iterator<Item = &'a BlockDevice> {
    facts.storage.layers().into_iter().filter(move |d| d.kind == kind)
}

fn instance_store(facts: &Facts<'_>) -> Judged {
    each(facts.disks(), |disk| {
        let model = disk.model.as_deref().filter(|m| m.contains("Instance Storage"))?;
        let words = format!(
            "{} ({model}) is emptied when the instance stops, or its host fails.",
            disk.name
        );
        Some(danger(words).remedy("keep only data on it that may be lost, or that is replicated"))
    })
}

fn alignment(facts: &Facts<'_>) -> Judged {
    each(of_kind(facts, DeviceKind::Partition), |partition| {
        let offset = partition.offset?.0;
        let physical = partition.physical_block_bytes.unwrap_or(512).max(512);
        // Some USB bridges claim sizes that are no multiple of a block.
        let stripe = partition.optimal_io_bytes.filter(|n| n % physical == 0);
        let (severity, what, unit) = if !offset.is_multiple_of(physical)
            || partition.alignment_offset.is_some_and(|n| n != 0)
        {
            (
                Severity::Warning,
                "within a physical block: writes of a block touch two, and must read first",
                physical,
            )
        } else if let Some(stripe) = stripe.filter(|n| !offset.is_multiple_of(*n)) {
            (Severity::Warning, "within a stripe: writes of a stripe touch two", stripe)
        } else if !offset.is_multiple_of(MEBIBYTE) {
            (
                Severity::Note,
                "at no multiple of 1 MiB, which fits erase blocks that the disk does not tell of",
                MEBIBYTE,
            )
        } else {
            return None;
        };
        let words = format!("{} begins {offset} bytes into its disk, {what}.", partition.name);
        Some(finding(severity, words).remedy(format!(
            "back up the data, and recreate the partition at a multiple of {unit} bytes: parted \
             --align optimal"
        )))
    })
}

fn loop_direct_io(facts: &Facts<'_>) -> Judged {
    each(of_kind(facts, DeviceKind::Loop), |device| {
        let backing = device.backing.as_ref()?;
        (backing.direct_io == Some(false)).then(|| {
            let words = format!(
                "/dev/{} keeps {} in the page cache a second time: reads may come from memory \
                 where a disk would be read.",
                device.name, backing.file
            );
            warning(words).remedy(format!("losetup --direct-io=on /dev/{}", device.name))
        })
    })
}

fn scheduler(facts: &Facts<'_>) -> Judged {
    each(facts.disks(), |disk| {
        let scheduler = disk.scheduler.as_deref()?;
        let nvme = disk.transport.as_deref().is_some_and(|t| t.starts_with("nvme"));
        let better = if nvme && !matches!(scheduler, "none" | "kyber") {
            "none"
        } else if scheduler == "bfq" {
            "mq-deadline"
        } else {
            return None;
        };
        let words = format!(
            "{} is scheduled by `{scheduler}`: {better} costs less CPU time for each request; \
             measure both.",
            disk.name
        );
        Some(
            note(words).remedy(format!("echo {better} > /sys/block/{}/queue/scheduler", disk.name)),
        )
    })
}

fn cgroup_io(facts: &Facts<'_>) -> Judged {
    let limits = &facts.host.cgroup.io;
    let found = (!limits.is_empty()).then(|| {
        warning(format!("a control group limits I/O: {}.", limits.join("; ")))
            .remedy("remove the limits, unless trials are to measure them")
    });
    found.into()
}

fn write_cache(facts: &Facts<'_>) -> Judged {
    let hypervisor = facts.host.virtualization.hypervisor.as_deref();
    if let Some(disk) = facts.disks().find(|d| d.write_cache.is_none()) {
        return Judged::Unobservable(format!(
            "the kernel does not tell of {}'s write cache",
            disk.name
        ));
    }
    each(facts.disks(), |disk| {
        if disk.write_cache.as_deref() != Some("write back") {
            return None;
        }
        let size = if disk.size > Bytes(0) { format!(" ({})", disk.size) } else { String::new() };
        let virtual_disk =
            hypervisor.is_some() || matches!(disk.transport.as_deref(), Some("virtio" | "xen"));
        let found = if virtual_disk {
            note(format!(
                "{}{size} has a write-back cache and is virtual: a COMMIT is as safe as the host's \
                 promise that a flush reached its disks, which is not visible from here.",
                disk.name
            ))
            .remedy("ask who runs the host; QEMU: never cache=unsafe")
        } else {
            note(format!(
                "{}{size} has a write-back cache: a COMMIT is safe if the drive keeps it through a \
                 power cut or truly empties it when told to flush. Data centre drives state \
                 power-loss protection; of consumer drives expect none.",
                disk.name
            ))
            .remedy("look up power-loss protection in the drive's data sheet")
        };
        Some(found)
    })
}
