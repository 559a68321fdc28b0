//! Results that a medium can hardly have given: suspicions with their reasons, never verdicts.

use pgdyno_model::facts::{MountedFilesystem, StorageFacts};
use pgdyno_model::probe::{DiskProbe, FsyncGroup, FsyncProbe, Pattern, Suspicion};

/// Turns a second of the fastest disks sold, 15,000 a minute: the same block passes the head no
/// more often.
const FASTEST_ROTATION: f64 = 250.0;

/// A write and a flush are two commands at least. Intel's brief for the Optane P5800X, the quickest
/// drive sold, gives about 6 µs for one 4 kB command, without the kernel and the filesystem around
/// it.
const QUICKEST_FLUSH_US: f64 = 20.0;

/// Programming a page of NAND flash takes 200 µs and more (TLC, as data sheets give it); quicker
/// flushes end in a memory that a capacitor must keep alive, which a virtual disk tells nothing of.
const QUICKEST_VIRTUAL_FLUSH_US: f64 = 100.0;

/// A flush that takes less than this many times the same write without one did nothing that takes
/// time.
const FLUSH_OVER_WRITE: f64 = 1.5;

/// Returns warnings about implausible flushes, and by kind the suspicions that make it doubtful
/// whether anything was durable.
pub(super) fn fsync(storage: &StorageFacts, probe: &FsyncProbe) -> (Vec<String>, Vec<Suspicion>) {
    let mut warnings = about_the_place(storage);
    let mut suspicions = Vec::new();
    if storage.memory().is_some() {
        suspicions.push(Suspicion::Memory);
    }
    if storage.unflushed().next().is_some() {
        suspicions.push(Suspicion::NoBarriers);
    }
    let Some(flushes) = probe.flushes(FsyncGroup::OneBlock, "fdatasync") else {
        return (warnings, suspicions);
    };
    let (rate, us) = (flushes.per_second(), flushes.latency.us_p50);
    let memory = storage.memory().is_some();
    if is_rotating(storage) && rate > FASTEST_ROTATION && !memory {
        suspicions.push(Suspicion::QuickerThanRotation);
        warnings.push(format!(
            "{rate:.0} flushes a second on {}, which the kernel calls rotating: the same block \
             passes the head 120 times a second at 7,200 rpm, 250 at 15,000. A volatile write \
             cache is suspected, unless a controller's cache with a battery acknowledges",
            disk(storage)
        ));
    }
    let write_back = storage.write_cache.as_deref() == Some("write back");
    if write_back && us < QUICKEST_FLUSH_US && !memory {
        suspicions.push(Suspicion::QuickerThanCommands);
        warnings.push(format!(
            "{} has a write-back cache and half of the flushes took less than {us:.0} µs, where a \
             write and a flush are two commands of some 6 µs each on the quickest drives: the \
             flush is suspected not to reach the medium",
            disk(storage)
        ));
    } else if is_virtual(storage) && us < QUICKEST_VIRTUAL_FLUSH_US {
        suspicions.push(Suspicion::QuickerThanFlash);
        warnings.push(format!(
            "{} is virtual and half of the flushes took less than {us:.0} µs, quicker than flash \
             is programmed (200 µs and more): the host is suspected to acknowledge from a cache; \
             whether that survives a power loss cannot be seen from here",
            disk(storage)
        ));
    }
    if let Some(write) = probe.flushes(FsyncGroup::NotSynced, "write").map(|w| w.latency.us_p50)
        && us < FLUSH_OVER_WRITE * write
        && !memory
    {
        suspicions.push(Suspicion::NoSlowerThanWrites);
        warnings.push(format!(
            "a write with its flush takes {us:.0} µs, one without {write:.0} µs: flushes are \
             suspected to be ignored"
        ));
    }
    (warnings, suspicions)
}

/// Returns warnings about implausible curves.
pub(super) fn disk_curves(storage: &StorageFacts, probe: &DiskProbe) -> Vec<String> {
    let mut warnings = about_the_place(storage);
    let one_by_one =
        probe.points.iter().find(|p| p.pattern == Pattern::RandRead && p.queue_depth == 1);
    if let Some(read) = one_by_one.and_then(|p| p.read)
        && is_rotating(storage)
        && read.iops > FASTEST_ROTATION
    {
        warnings.push(format!(
            "{:.0} random reads a second, one at a time, on {}, which the kernel calls rotating: a \
             head waits half a turn for each, so that 250 a second are more than any disk gives. A \
             cache of the drive or the controller is suspected",
            read.iops,
            disk(storage)
        ));
    }
    if !probe.direct {
        warnings.push(
            "the filesystem refuses O_DIRECT: everything went through the page cache, so that \
             reads are memory's speed"
                .into(),
        );
    }
    warnings
}

/// Returns the warnings that need no measurement.
fn about_the_place(storage: &StorageFacts) -> Vec<String> {
    let mut warnings = Vec::new();
    if let Some(memory) = storage.memory() {
        warnings.push(format!("{memory} is memory: nothing in it survives a power loss"));
    }
    for (mounted, option) in storage.unflushed() {
        let MountedFilesystem { filesystem, mount_point, .. } = mounted;
        warnings.push(match filesystem {
            "overlay" => format!(
                "{mount_point} is an overlay mounted with {option}: it passes no flush on, so that \
                 what the page cache holds is lost with the power (Linux documentation, \
                 filesystems/overlayfs)"
            ),
            _ => format!(
                "{mount_point} is mounted with {option}: the filesystem sends the disk no flushes, \
                 so that what a volatile write cache holds is lost with the power (ext4(5), \
                 btrfs(5))"
            ),
        });
    }
    if storage.is_emulated() {
        warnings.push(format!(
            "{} lies on a disk that pgdyno emulates: these are no real device's figures",
            disk(storage)
        ));
    } else if storage.disk.as_deref().is_some_and(|d| d.starts_with("loop")) {
        warnings.push(format!(
            "{} is a loop device: its flushes are those of the filesystem that holds its file, and \
             its reads may come from memory",
            disk(storage)
        ));
    }
    warnings
}

/// Tells whether the storage is a rotating disk. A virtual disk's word counts for nothing: virtio's
/// claim to rotate, whatever is behind them.
fn is_rotating(storage: &StorageFacts) -> bool {
    storage.rotational == Some(true) && !is_virtual(storage)
}

/// Tells whether a hypervisor makes the disk: virtio, Xen, or a model whose name says so.
fn is_virtual(storage: &StorageFacts) -> bool {
    let name = storage.disk.as_deref().is_some_and(|d| d.starts_with("vd") || d.starts_with("xvd"));
    let model = |m: &str| ["QEMU", "VMware", "VBOX", "Virtual"].iter().any(|v| m.contains(v));
    name || storage.model.as_deref().is_some_and(model)
}

fn disk(storage: &StorageFacts) -> &str {
    storage.disk.as_deref().unwrap_or(&storage.source)
}

#[cfg(test)]
mod tests {
    use pgdyno_model::facts::{BlockDevice, LoopFacts};
    use pgdyno_model::probe::{Flushes, FsyncOutcome, FsyncTest, LatencySummary};
    use pgdyno_test_support::beneath;

    use super::*;

    /// Returns a probe whose flushes, and whose writes without one, took so many microseconds.
    fn probe(flush_us: f64, write_us: f64) -> FsyncProbe {
        let test = |group, name: &str, us: f64| {
            let latency = LatencySummary { us_p50: us, ..LatencySummary::default() };
            let flushes = Flushes { operations: 1_000, seconds: us / 1000.0, latency };
            FsyncTest {
                group,
                name: name.into(),
                files: 1,
                outcome: FsyncOutcome::Measured(flushes),
            }
        };
        FsyncProbe {
            block_bytes: 8192,
            seconds_per_test: 5.0,
            tests: vec![
                test(FsyncGroup::OneBlock, "fdatasync", flush_us),
                test(FsyncGroup::NotSynced, "write", write_us),
            ],
            complete: true,
            warnings: Vec::new(),
            suspicions: Vec::new(),
        }
    }

    fn on(disk: &str, rotational: bool, write_cache: &str) -> StorageFacts {
        StorageFacts {
            filesystem: "ext4".into(),
            disk: Some(disk.into()),
            rotational: Some(rotational),
            write_cache: Some(write_cache.into()),
            ..StorageFacts::default()
        }
    }

    #[test]
    fn honest_results_are_not_doubted() {
        let doubts = |storage: &StorageFacts, probe: &FsyncProbe| fsync(storage, probe).0;
        assert!(doubts(&on("sda", true, "write back"), &probe(8_300.0, 3.0)).is_empty());
        assert!(doubts(&on("nvme0n1", false, "write through"), &probe(15.0, 2.0)).is_empty());
        assert!(doubts(&on("vda", false, "write back"), &probe(400.0, 2.0)).is_empty());
        assert!(
            doubts(&on("vda", true, "write back"), &probe(400.0, 2.0)).is_empty(),
            "virtio claims to rotate"
        );
    }

    #[test]
    fn flushes_faster_than_the_medium_are_suspected_with_the_reason() {
        let warned =
            |storage: &StorageFacts, probe: &FsyncProbe| fsync(storage, probe).0.join("\n");
        assert!(
            warned(&on("sda", true, "write back"), &probe(100.0, 3.0))
                .contains("volatile write cache")
        );
        assert!(
            warned(&on("nvme0n1", false, "write back"), &probe(12.0, 3.0)).contains("two commands")
        );
        assert!(warned(&on("vda", false, "write through"), &probe(60.0, 3.0)).contains("virtual"));
        assert!(
            warned(&on("nvme0n1", false, "write through"), &probe(4.0, 3.0)).contains("ignored")
        );
        let tmpfs = StorageFacts { filesystem: "tmpfs".into(), ..StorageFacts::default() };
        assert_eq!(
            fsync(&tmpfs, &probe(3.0, 3.0)),
            (
                vec!["tmpfs is memory: nothing in it survives a power loss".to_owned()],
                vec![Suspicion::Memory]
            )
        );
        let kinds = |storage: &StorageFacts, probe: &FsyncProbe| fsync(storage, probe).1;
        let quick = kinds(&on("nvme0n1", false, "write back"), &probe(12.0, 3.0));
        assert_eq!(quick, [Suspicion::QuickerThanCommands]);
        let no_barrier =
            StorageFacts { mount_options: "rw,barrier=0".into(), ..on("sda", false, "write back") };
        assert!(warned(&no_barrier, &probe(500.0, 3.0)).contains("barrier=0"));
        let mut looped = on("loop3", false, "write back");
        looped.beneath = vec![beneath("overlay", "rw,fsync=volatile"), beneath("tmpfs", "rw")];
        assert!(warned(&looped, &probe(500.0, 3.0)).contains("/under is an overlay"));
        assert_eq!(
            kinds(&looped, &probe(500.0, 3.0)),
            [Suspicion::Memory, Suspicion::NoBarriers],
            "whatever the figures are"
        );
        let mut plain = on("loop3", false, "write back");
        assert!(warned(&plain, &probe(500.0, 3.0)).contains("loop device"));
        let file = LoopFacts {
            file: "/var/lib/pgdyno/pgdyno-0a1b2c3d/emulated-0/mnt/disk".into(),
            filesystem: Some("fuse".into()),
            ..LoopFacts::default()
        };
        plain.devices = vec![BlockDevice { backing: Some(file), ..BlockDevice::default() }];
        assert!(warned(&plain, &probe(500.0, 3.0)).contains("pgdyno emulates"));
    }
}
