//! Where the directory lies: what kind of filesystem, and how full.

use crate::doctor::rule::{DoctorRule, Facts, Judged, danger, warning};

/// Filesystems on other machines, as mountinfo names them.
const NETWORK: &[&str] = &[
    "9p",
    "afs",
    "ceph",
    "cifs",
    "fuse.glusterfs",
    "fuse.sshfs",
    "glusterfs",
    "lustre",
    "nfs",
    "nfs4",
    "smb3",
];

pub(super) const RULES: &[DoctorRule] = &[
    DoctorRule {
        name: "network-filesystem",
        fine: "the filesystem is this machine's own",
        source: "PostgreSQL documentation, Creating a Database Cluster, File Systems (NFS)",
        judge: network,
    },
    DoctorRule {
        name: "memory-filesystem",
        fine: "data survives a power cut",
        source: "Linux documentation, filesystems/tmpfs",
        judge: memory,
    },
    DoctorRule {
        name: "overlay",
        fine: "the directory does not lie in a container's own layers",
        source: "Linux documentation, filesystems/overlayfs; Docker documentation, Storage drivers",
        judge: overlay,
    },
    DoctorRule {
        name: "nearly-full",
        fine: "the filesystem has room",
        source: "PostgreSQL documentation, Monitoring Disk Usage, Disk Full Failure",
        judge: nearly_full,
    },
];

fn network(facts: &Facts<'_>) -> Judged {
    let storage = facts.storage;
    if !NETWORK.contains(&storage.filesystem.as_str()) {
        return Judged::Fine;
    }
    let found = if !storage.filesystem.starts_with("nfs") {
        warning(format!(
            "{} is a network filesystem ({}): whether a flush reaches the other machine's disk is \
             not visible from here, and trials measure the network too.",
            storage.mount_point, storage.filesystem
        ))
        .remedy("put PGDATA on a filesystem of this machine")
    } else if storage.has_option("soft") {
        danger(format!(
            "{} is NFS mounted `soft`: a slow server makes writes fail that PostgreSQL needs.",
            storage.mount_point
        ))
        .remedy(format!("umount {0} && mount -o hard {1} {0}", storage.mount_point, storage.source))
    } else {
        warning(format!(
            "{} is NFS: commits are safe only if the server exports with `sync`, and trials \
             measure the network too.",
            storage.mount_point
        ))
        .remedy("exportfs -v   # on the NFS server: `sync` must be among the options")
    };
    found.into()
}

fn memory(facts: &Facts<'_>) -> Judged {
    let storage = facts.storage;
    let found = storage.memory().map(|what| {
        danger(format!(
            "{} lies in main memory ({what}): all data is lost in a power cut or restart, and \
             trials measure no disk.",
            storage.directory
        ))
        .remedy("name a directory on a disk, unless memory is intended")
    });
    found.into()
}

fn overlay(facts: &Facts<'_>) -> Judged {
    let storage = facts.storage;
    let mut volatile = storage.unflushed().filter(|(mounted, _)| mounted.filesystem == "overlay");
    let found = match volatile.next() {
        Some((mounted, option)) => danger(format!(
            "{} is an overlay mounted with `{option}`: no flush is ever carried out.",
            mounted.mount_point
        )),
        None if storage.filesystem == "overlay" => warning(format!(
            "{} is an overlay: trials measure it too, and the first change of a file in the lower \
             layer copies the whole file.",
            storage.mount_point
        )),
        None => return Judged::Fine,
    };
    found.remedy("put PGDATA on a volume (container: --volume DIR:/data)").into()
}

fn nearly_full(facts: &Facts<'_>) -> Judged {
    let (available, size) = (facts.storage.available, facts.storage.size);
    if size.0 == 0 {
        return Judged::Unobservable("the filesystem does not tell its size".to_owned());
    }
    let found = (available.0 < size.0 / 10).then(|| {
        warning(format!(
            "{available} of {size} are free: some filesystems and drives are slow when nearly \
             full."
        ))
        .remedy(format!("free room on {}", facts.storage.mount_point))
    });
    found.into()
}
