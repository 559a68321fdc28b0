//! Mount options.

use pgdyno_facts::is_zfs;

use crate::doctor::rule::{DoctorRule, Facts, Judged, danger, note, warning};

pub(super) const RULES: &[DoctorRule] = &[
    DoctorRule {
        name: "barriers",
        fine: "the filesystem flushes the disk's cache",
        source: "Linux documentation, admin-guide/ext4, barrier; btrfs(5), barrier; PostgreSQL \
                 documentation, Reliability",
        judge: barriers,
    },
    DoctorRule {
        name: "data-mode",
        fine: "file contents do not go through the journal",
        source: "Linux documentation, admin-guide/ext4, Data Mode; PostgreSQL documentation, \
                 Write-Ahead Logging (WAL)",
        judge: data_mode,
    },
    DoctorRule {
        name: "sync-option",
        fine: "the mount does not make every write synchronous",
        source: "mount(8), sync; chattr(1), S",
        judge: sync,
    },
    DoctorRule {
        name: "discard",
        fine: "freed blocks are not discarded one by one",
        source: "fstrim(8)",
        judge: discard,
    },
    DoctorRule {
        name: "access-time",
        fine: "reading a file writes nothing",
        source: "mount(8), noatime and relatime",
        judge: access_time,
    },
];

/// Returns the command that remounts the storage with `option`.
fn remount(facts: &Facts<'_>, option: &str) -> String {
    format!("mount -o remount,{option} {}   # and in /etc/fstab", facts.storage.mount_point)
}

fn barriers(facts: &Facts<'_>) -> Judged {
    let storage = facts.storage;
    if storage.devices.is_empty() && storage.beneath.is_empty() {
        return Judged::NotApplicable;
    }
    // Another rule judges overlays.
    let off = storage.unflushed().filter(|(mounted, _)| mounted.filesystem != "overlay");
    let told = off.map(|(mounted, option)| {
        let on = if option == "nobarrier" { "barrier" } else { "barrier=1" };
        danger(format!(
            "{} is mounted with `{option}`: the disk's cache is not flushed. A power cut loses \
             acknowledged commits and can ruin the filesystem, unless every cache below keeps its \
             contents without power.",
            mounted.mount_point
        ))
        .remedy(format!("mount -o remount,{on} {}   # and in /etc/fstab", mounted.mount_point))
    });
    told.collect::<Vec<_>>().into()
}

fn data_mode(facts: &Facts<'_>) -> Judged {
    let storage = facts.storage;
    if !matches!(storage.filesystem.as_str(), "ext3" | "ext4") {
        return Judged::NotApplicable;
    }
    match storage.option("data") {
        Some("journal") => warning(format!(
            "{} is mounted with data=journal: everything is written twice, and PostgreSQL's WAL \
             already protects its files.",
            storage.mount_point
        ))
        .remedy("tune2fs -o ^journal_data DEVICE, or data=ordered in /etc/fstab; then mount again")
        .into(),
        Some("writeback") => note(format!(
            "{} is mounted with data=writeback: that is safe for PostgreSQL, but after a crash \
             other files there may hold old contents.",
            storage.mount_point
        ))
        .remedy("keep nothing but PostgreSQL's files there")
        .into(),
        _ => Judged::Fine,
    }
}

fn sync(facts: &Facts<'_>) -> Judged {
    const WAITS: &str =
        "every write waits for the disk, also those that PostgreSQL does not need to wait for.";
    let storage = facts.storage;
    let mut found = Vec::new();
    if storage.has_option("sync") {
        let what = format!("{} is mounted with `sync`: {WAITS}", storage.mount_point);
        found.push(warning(what).remedy(remount(facts, "async")));
    }
    if storage.attributes.iter().any(|attribute| attribute == "+S") {
        let what = format!("{} has the attribute `S` (chattr): {WAITS}", storage.directory);
        found.push(warning(what).remedy(format!("chattr -S {}", storage.directory)));
    }
    found.into()
}

fn discard(facts: &Facts<'_>) -> Judged {
    let storage = facts.storage;
    // btrfs's discard=async gathers them.
    let found = (storage.has_option("discard") || storage.has_option("discard=sync")).then(|| {
        note(format!(
            "{} is mounted with `discard`: each freed block is discarded at once. WAL segments \
             and dropped tables cost discards during the load, which some disks do slowly.",
            storage.mount_point
        ))
        .remedy(remount(facts, "nodiscard"))
        .remedy("systemctl enable --now fstrim.timer")
    });
    found.into()
}

fn access_time(facts: &Facts<'_>) -> Judged {
    let storage = facts.storage;
    if storage.devices.is_empty() || storage.has_option("ro") {
        return Judged::NotApplicable;
    }
    let zfs = is_zfs(&storage.filesystem);
    // zfs-fuse's mounts do not show it.
    let off_in_zfs = zfs && storage.geometry.get("atime").is_some_and(|atime| atime == "off");
    let found = if storage.has_option("noatime") || off_in_zfs {
        None
    } else if storage.has_option("relatime") {
        Some(note(format!(
            "{} is mounted with `relatime`: a file's first read after a change, and one each day, \
             writes its inode.",
            storage.mount_point
        )))
    } else {
        Some(warning(format!(
            "{} is mounted with `strictatime`: each read of a file writes its inode.",
            storage.mount_point
        )))
    };
    let remedy = if zfs {
        format!("zfs set atime=off {}", storage.source)
    } else {
        remount(facts, "noatime")
    };
    found.map(|f| f.remedy(remedy)).into()
}
