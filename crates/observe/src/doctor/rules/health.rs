//! Disks and arrays that fail.

use pgdyno_model::facts::{BlockDevice, Health};

use crate::doctor::rule::{DoctorRule, Facts, Finding, Judged, danger, warning};

pub(super) const RULES: &[DoctorRule] = &[
    DoctorRule {
        name: "smart",
        fine: "the disks report that they are healthy",
        source: "smartctl(8), --health; NVM Express Base Specification, SMART / Health Information",
        judge: smart,
    },
    DoctorRule {
        name: "raid-state",
        fine: "the software RAID is complete and idle",
        source: "Linux documentation, admin-guide/md, degraded and sync_action",
        judge: raid_state,
    },
    DoctorRule {
        name: "zfs-pool",
        fine: "the ZFS pool is complete",
        source: "zpoolconcepts(7), Device Failure and Recovery",
        judge: zfs_pool,
    },
];

fn smart(facts: &Facts<'_>) -> Judged {
    let disks: Vec<(&BlockDevice, &Health)> =
        facts.disks().filter_map(|d| d.health.as_ref().map(|h| (d, h))).collect();
    let found: Vec<Finding> =
        disks.iter().flat_map(|(disk, health)| of_disk(disk, health)).collect();
    let silent = disks
        .iter()
        .find_map(|(d, h)| h.unavailable.as_ref().map(|why| format!("{}: {why}", d.name)));
    match silent {
        _ if !found.is_empty() => Judged::Found(found),
        Some(why) => Judged::Unobservable(why),
        None if disks.is_empty() => Judged::NotApplicable,
        None => Judged::Fine,
    }
}

fn of_disk(disk: &BlockDevice, health: &Health) -> Vec<Finding> {
    let name = &disk.name;
    let look = format!("smartctl -x /dev/{name}");
    let mut found = Vec::new();
    if health.passed == Some(false) {
        let words = format!("{name} reports that it is failing, or will fail within 24 hours.");
        found.push(danger(words).remedy("back up the data, replace the disk"));
    }
    if let Some(bits) = health.critical_warning.filter(|bits| *bits != 0) {
        const MEANINGS: &[&str] = &[
            "spare blocks are short",
            "too hot or too cold",
            "reliability degraded",
            "read-only",
            "the volatile memory's backup failed: a power cut loses what it acknowledged",
            "persistent memory region read-only or unreliable",
        ];
        let said: Vec<&str> =
            (0..).zip(MEANINGS).filter(|(bit, _)| bits >> bit & 1 == 1).map(|(_, m)| *m).collect();
        let words = format!("{name} warns: {} (critical_warning {bits:#x}).", said.join("; "));
        found.push(danger(words).remedy(look.clone()));
    }
    if let Some(sectors) = health.pending_sectors.filter(|n| *n > 0) {
        let words = format!("{name} has {sectors} sectors that it cannot read now.");
        found.push(danger(words).remedy("back up the data, replace the disk"));
    }
    if let Some(used) = health.percentage_used.filter(|n| *n >= 100) {
        let words = format!("{name} has used {used}% of its rated endurance.");
        found.push(warning(words).remedy(look));
    }
    found
}

fn raid_state(facts: &Facts<'_>) -> Judged {
    let layers = facts.storage.layers();
    let mut arrays = layers.iter().filter_map(|d| Some((&d.name, d.raid.as_ref()?))).peekable();
    if arrays.peek().is_none() {
        return Judged::NotApplicable;
    }
    let mut found = Vec::new();
    for (name, raid) in arrays {
        if let Some(lacks) = raid.degraded.filter(|n| *n > 0) {
            let words = format!(
                "{name} ({}) lacks {lacks} of its members: no redundancy, and a different speed.",
                raid.level
            );
            found.push(danger(words).remedy(format!("mdadm --detail /dev/{name}")));
        }
        if let Some(action) =
            raid.sync_action.as_deref().filter(|a| !matches!(*a, "idle" | "frozen"))
        {
            let words = format!("{name} is busy with `{action}`: trials share the disks with it.");
            found.push(warning(words).remedy(format!("mdadm --wait /dev/{name}")));
        }
    }
    found.into()
}

fn zfs_pool(facts: &Facts<'_>) -> Judged {
    let Some(state) = facts.storage.geometry.get("state") else { return Judged::NotApplicable };
    let found = (state != "ONLINE").then(|| {
        let words = format!("the pool of {} is {state}.", facts.storage.source);
        danger(words).remedy("zpool status -x")
    });
    found.into()
}
