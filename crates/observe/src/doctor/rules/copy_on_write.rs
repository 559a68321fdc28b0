//! Filesystems that write changed blocks to new places.

use pgdyno_facts::is_zfs;

use crate::doctor::rule::{DoctorRule, Facts, Judged, danger, note, warning};

pub(super) const RULES: &[DoctorRule] = &[
    DoctorRule {
        name: "zfs-sync",
        fine: "ZFS carries out flushes",
        source: "zfsprops(7), sync",
        judge: zfs_sync,
    },
    DoctorRule {
        name: "zfs-logbias",
        fine: "ZFS writes flushes to its log",
        source: "zfsprops(7), logbias",
        judge: zfs_logbias,
    },
    DoctorRule {
        name: "zfs-ashift",
        fine: "ZFS's sectors are as large as the disk's",
        source: "OpenZFS documentation, Performance and Tuning, Workload Tuning, Alignment Shift \
                 (ashift)",
        judge: zfs_ashift,
    },
    DoctorRule {
        name: "zfs-full-page-writes",
        fine: "torn pages are possible, and full_page_writes is needed",
        source: "PostgreSQL documentation, Reliability (full_page_writes)",
        judge: zfs_full_page_writes,
    },
    DoctorRule {
        name: "btrfs-copy-on-write",
        fine: "the filesystem writes in place",
        source: "btrfs(5), Mount Options, datacow and nodatacow",
        judge: btrfs_copy_on_write,
    },
    DoctorRule {
        name: "wal-recycling",
        fine: "recycling WAL segments saves work here",
        source: "PostgreSQL documentation, Write Ahead Log settings, wal_recycle and wal_init_zero",
        judge: wal_recycling,
    },
];

/// Whether changing a file's block writes a new one.
fn copies(facts: &Facts<'_>) -> bool {
    match facts.storage.filesystem.as_str() {
        "btrfs" => !in_place(facts),
        "bcachefs" | "nilfs2" => true,
        other => is_zfs(other),
    }
}

/// Whether btrfs writes in place.
fn in_place(facts: &Facts<'_>) -> bool {
    facts.storage.has_option("nodatacow") || facts.storage.no_copy_on_write == Some(true)
}

fn zfs_sync(facts: &Facts<'_>) -> Judged {
    if !is_zfs(&facts.storage.filesystem) {
        return Judged::NotApplicable;
    }
    match facts.storage.geometry.get("sync").map(String::as_str) {
        None => Judged::Unobservable(unseen(facts, "sync")),
        Some("disabled") => danger(format!(
            "{} has sync=disabled: no commit waits for the disk, and a power cut loses seconds of \
             them.",
            facts.storage.source
        ))
        .remedy(format!("zfs set sync=standard {}", facts.storage.source))
        .into(),
        Some(_) => Judged::Fine,
    }
}

fn zfs_logbias(facts: &Facts<'_>) -> Judged {
    if !is_zfs(&facts.storage.filesystem) {
        return Judged::NotApplicable;
    }
    match facts.storage.geometry.get("logbias").map(String::as_str) {
        // zfs-fuse and old pools have no such property: nothing is lost by that.
        Some("throughput") => warning(format!(
            "{} has logbias=throughput: a flush writes each block to the pool itself and uses no \
             log device. It is as durable, but commits take longer and the pool is fragmented.",
            facts.storage.source
        ))
        .remedy(format!("zfs set logbias=latency {}", facts.storage.source))
        .into(),
        _ => Judged::Fine,
    }
}

fn zfs_ashift(facts: &Facts<'_>) -> Judged {
    if !is_zfs(&facts.storage.filesystem) {
        return Judged::NotApplicable;
    }
    let Some(ashift) = facts.storage.geometry.get("ashift").and_then(|a| a.parse::<u32>().ok())
    else {
        return Judged::Unobservable(unseen(facts, "ashift"));
    };
    let sector = 1_u64.checked_shl(ashift).unwrap_or(u64::MAX);
    let Some((block, disk)) =
        facts.disks().filter_map(|d| Some((d.physical_block_bytes?, &d.name))).max()
    else {
        return Judged::Unobservable("the disks' block size".to_owned());
    };
    let found = (sector < block).then(|| {
        warning(format!(
            "the pool has ashift={ashift} ({sector} bytes), and {disk} has blocks of {block} \
             bytes: it must read and rewrite a block for each smaller write."
        ))
        .remedy(format!(
            "it cannot be changed: recreate the pool with zpool create -o ashift={}",
            block.next_power_of_two().trailing_zeros()
        ))
    });
    found.into()
}

fn unseen(facts: &Facts<'_>, what: &str) -> String {
    let why = facts.storage.unavailable.join("; ");
    if why.is_empty() { format!("ZFS's {what}") } else { format!("ZFS's {what} ({why})") }
}

fn zfs_full_page_writes(facts: &Facts<'_>) -> Judged {
    if !is_zfs(&facts.storage.filesystem) {
        return Judged::NotApplicable;
    }
    note(
        "ZFS never leaves a page half written: full_page_writes=off is safe on it and saves WAL. \
         A run shows what that gains here.",
    )
    .remedy("factors: full_page_writes = [\"on\", \"off\"]")
    .into()
}

fn btrfs_copy_on_write(facts: &Facts<'_>) -> Judged {
    let storage = facts.storage;
    if storage.filesystem != "btrfs" {
        return Judged::NotApplicable;
    }
    let found = if in_place(facts) {
        note(format!(
            "files in {} are written in place: faster for a database, without btrfs's checksums; \
             full_page_writes must stay on.",
            storage.directory
        ))
        .remedy("initdb --data-checksums   # in place of btrfs's own")
    } else {
        warning(format!(
            "btrfs writes each changed page of {} to a new place: files become fragmented, and \
             random writes slow down over time.",
            storage.directory
        ))
        .remedy(format!(
            "chattr +C {}   # while it is empty; or mount with nodatacow",
            storage.directory
        ))
    };
    found.into()
}

fn wal_recycling(facts: &Facts<'_>) -> Judged {
    if !copies(facts) {
        return Judged::NotApplicable;
    }
    note(format!(
        "{} writes changed blocks to new places: filling and recycling WAL segments saves \
         nothing.",
        facts.storage.filesystem
    ))
    .remedy(
        "factors: wal = { recycled = {}, new = { wal_recycle = \"off\", wal_init_zero = \
         \"off\" } }",
    )
    .into()
}
