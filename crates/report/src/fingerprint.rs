//! Describes a machine, and the storage under a directory.

use pgdyno_model::facts::{
    BlockDevice, DeviceKind, FilesystemBeneath, Health, HostFacts, StorageFacts,
};
use pgdyno_model::units::Bytes;
use pgdyno_text::format::{self, counted};

pub use super::text::Row;
use super::{smart, stack};

/// Words of a row; missing facts add none.
#[derive(Default)]
struct Words(Vec<String>);

impl Words {
    fn add(&mut self, text: impl Into<String>) {
        self.0.push(text.into());
    }

    fn maybe<T>(&mut self, value: Option<T>, words: impl FnOnce(T) -> String) {
        self.0.extend(value.map(words));
    }

    fn row(self, name: &str, detail: bool) -> Option<Row> {
        (!self.0.is_empty()).then(|| Row { name: name.to_owned(), text: self.0.join(", "), detail })
    }
}

fn on(flag: bool) -> &'static str {
    if flag { "on" } else { "off" }
}

/// Describes the machine, one row for each known subject.
pub fn host(host: &HostFacts) -> Vec<Row> {
    let mut system = Words::default();
    system.add(&host.os);
    system.add(&host.kernel);
    let sysctl = host.settings.sysctl.iter().map(|(name, value)| format!("{name} = {value}"));
    let rows = [
        Words(Vec::from_iter(host.name.clone())).row("Host", false),
        system.row("System", false),
        hardware(host).row("Hardware", false),
        place(host).row("Runs in", false),
        cpu(host).row("CPU", false),
        memory(host).row("Memory", false),
        limits(host).row("Control group", false),
        load(host).row("Load", false),
        clock(host).row("Clock", true),
        Words(sysctl.collect()).row("Sysctl", true),
        Words(Vec::from_iter(host.settings.cmdline.clone())).row("Cmdline", true),
        vulnerabilities(host).row("Mitigations", true),
    ];
    rows.into_iter().flatten().collect()
}

fn hardware(host: &HostFacts) -> Words {
    let hardware = &host.hardware;
    let mut words = Words::default();
    let names: Vec<&str> = [&hardware.vendor, &hardware.product, &hardware.version]
        .into_iter()
        .flatten()
        .map(String::as_str)
        .collect();
    words.maybe((!names.is_empty()).then_some(names), |names| names.join(" "));
    words.maybe(hardware.board.as_ref(), |board| format!("board {board}"));
    words.maybe(hardware.bios.as_ref(), |bios| format!("BIOS {bios}"));
    words
}

fn place(host: &HostFacts) -> Words {
    let place = &host.virtualization;
    let mut words = Words::default();
    words.maybe(place.cloud.as_ref(), Clone::clone);
    words.maybe(place.instance_type.as_ref(), |name| format!("instance type {name}"));
    words.maybe(place.hypervisor.as_ref(), |name| format!("a virtual machine ({name})"));
    words.maybe(place.container.as_ref(), |name| format!("a container ({name})"));
    // On hardware of one's own nothing can be stolen.
    let stolen = place.steal.filter(|_| place.hypervisor.is_some());
    words.maybe(stolen, |share| {
        format!("{}% of CPU time since boot stolen", format::percent(share))
    });
    words
}

fn cpu(host: &HostFacts) -> Words {
    let cpu = &host.cpu;
    let mut words = Words::default();
    words.add(format!("{} × {}", host.cpus, host.cpu_model));
    words.maybe(cpu.sockets, |n| counted(n, "socket"));
    words.maybe(cpu.cores, |n| counted(n, "core"));
    words.maybe(cpu.smt, |smt| format!("SMT {}", on(smt)));
    words.maybe((!cpu.governors.is_empty()).then(|| cpu.governors.join("/")), |g| {
        format!("governor {g}")
    });
    words.maybe(cpu.driver.as_ref(), |driver| format!("driver {driver}"));
    let preferences =
        (!cpu.energy_preferences.is_empty()).then(|| cpu.energy_preferences.join("/"));
    words.maybe(preferences, |p| format!("energy preference {p}"));
    words.maybe(cpu.allowed_max_khz, |khz| format!("up to {} MHz", format::count(khz / 1000)));
    words.maybe(cpu.boost, |boost| format!("boost {}", on(boost)));
    words.maybe(cpu.microcode.as_ref(), |m| format!("microcode {m}"));
    words
}

fn load(host: &HostFacts) -> Words {
    let mut words = Words::default();
    words.maybe(host.load_average, |load| format!("{load:.2} on average over the minute before"));
    words
}

fn memory(host: &HostFacts) -> Words {
    let paging = &host.paging;
    let mut words = Words::default();
    words.add(host.memory.to_string());
    let nodes = paging.numa_nodes.len();
    words.maybe((nodes > 0).then_some(nodes as u64), |n| counted(n, "NUMA node"));
    words.maybe(paging.swap, |swap| {
        if swap == Bytes(0) { "no swap".to_owned() } else { format!("swap {swap}") }
    });
    words.maybe(paging.transparent_hugepage.as_ref(), |thp| {
        let defrag = paging.transparent_hugepage_defrag.as_ref();
        format!(
            "transparent huge pages {thp}{}",
            defrag.map_or_else(String::new, |d| format!(" (defrag {d})"))
        )
    });
    words.maybe(paging.huge_pages, |n| match paging.huge_page_size {
        Some(size) if n > 0 => format!("{} of {size}", counted(n, "huge page")),
        _ => counted(n, "huge page"),
    });
    words
}

fn limits(host: &HostFacts) -> Words {
    let cgroup = &host.cgroup;
    let mut words = Words::default();
    words.maybe(cgroup.cpus, |cpus| format!("at most {cpus} CPUs' worth of time"));
    words.maybe(cgroup.cpuset.as_ref(), |set| format!("CPU {set} only"));
    words.maybe(cgroup.memory, |bytes| format!("at most {bytes} of memory"));
    words.0.extend(cgroup.io.iter().cloned());
    words
}

fn clock(host: &HostFacts) -> Words {
    let settings = &host.settings;
    let mut words = Words::default();
    words.maybe(settings.clocksource.as_ref(), |clock| {
        format!("{clock} (of {})", settings.clocksources.join(" "))
    });
    words
}

fn vulnerabilities(host: &HostFacts) -> Words {
    let affected =
        host.settings.vulnerabilities.iter().filter(|(_, state)| *state != "Not affected");
    let state = |state: &str| state.trim_start_matches("Mitigation: ").to_owned();
    let all: Vec<String> = affected.map(|(name, s)| format!("{name}: {}", state(s))).collect();
    // What the kernel says of one holds commas and semicolons.
    Words(Vec::from_iter((!all.is_empty()).then(|| all.join(" · "))))
}

/// Describes the storage under a directory: the filesystem, then each device down to the disks.
pub fn storage(facts: &StorageFacts) -> Vec<Row> {
    let row = |name: &str, text: String| Row { name: name.to_owned(), text, detail: false };
    let mut rows: Vec<Row> =
        facts.asked.iter().map(|asked| row("Asked for", stack::describe_request(asked))).collect();
    if let Some(why) = &facts.failure {
        let what = if facts.not_available_here { "Not available here" } else { "Not made" };
        rows.push(row(what, why.clone()));
        return rows;
    }
    rows.extend(facts.obtained.iter().flat_map(stack::obtained));
    rows.extend([row("Directory", facts.directory.clone()), row("Filesystem", filesystem(facts))]);
    rows.extend(facts.beneath.iter().map(|f| {
        let FilesystemBeneath { holds, filesystem, mount_point, mount_options } = f;
        row("Beneath", format!("{holds} lies on {filesystem} at {mount_point} ({mount_options})"))
    }));
    // ramfs and its like count nothing.
    if facts.size.0 > 0 {
        rows.push(row("Free", format!("{} of {}", facts.available, facts.size)));
    }
    let layers = facts.layers();
    rows.extend(
        layers.iter().flat_map(|d| [Some(row(&d.name, device(d))), smart::row(d)]).flatten(),
    );
    // Older runs know only this of a disk.
    if let (true, Some(disk)) = (layers.is_empty(), &facts.disk) {
        let mut words = Words::default();
        words.maybe(facts.model.as_ref(), Clone::clone);
        words.maybe(facts.rotational, |r| {
            if r { "rotational" } else { "not rotational" }.to_owned()
        });
        words.maybe(facts.scheduler.as_ref(), |s| format!("scheduler {s}"));
        words.maybe(facts.write_cache.as_ref(), |c| format!("cache {c}"));
        rows.extend(words.row(disk, false));
    }
    rows.extend(facts.unavailable.iter().map(|why| row("Not known", why.clone())));
    rows
}

fn filesystem(facts: &StorageFacts) -> String {
    let mut words = Words::default();
    words.add(format!(
        "{} on {} at {} ({})",
        facts.filesystem, facts.source, facts.mount_point, facts.mount_options
    ));
    words.maybe(facts.block_bytes, |n| format!("blocks of {n} bytes"));
    words.0.extend(facts.geometry.iter().map(|(name, value)| format!("{name} {value}")));
    words.0.extend(facts.taken_over());
    words.0.join(", ")
}

fn device(d: &BlockDevice) -> String {
    let mut words = Words::default();
    words.add(format!("{} of {}", d.kind.name(), d.size));
    words.maybe(d.label.as_ref(), |label| format!("called {label}"));
    words.maybe(d.offset, |offset| format!("from byte {}", offset.0));
    if let Some(raid) = &d.raid {
        words.add(&raid.level);
        words.maybe(raid.disks, |n| counted(n, "member"));
        words.maybe(raid.chunk, |chunk| format!("chunk {} bytes", chunk.0));
        words.maybe(raid.degraded.filter(|n| *n > 0), |n| format!("{n} missing"));
        words.maybe(raid.sync_action.as_ref(), Clone::clone);
    }
    if let Some(backing) = &d.backing {
        words.add(&backing.file);
        words.maybe(backing.filesystem.as_ref(), |f| format!("which lies on {f}"));
        words.maybe(backing.direct_io, |dio| format!("direct I/O {}", on(dio)));
    }
    words.maybe(d.transport.as_ref(), Clone::clone);
    words.maybe(d.model.as_ref(), |m| format!("model {m}"));
    words.maybe(d.firmware.as_ref(), |f| format!("firmware {f}"));
    words.maybe(d.serial.as_ref(), |s| format!("serial {s}"));
    words.maybe(d.wwn.as_ref(), |w| format!("WWN {w}"));
    // A partition's queue is its disk's.
    if d.kind != DeviceKind::Partition {
        queue(d, &mut words);
    }
    words.maybe(d.health.as_ref(), health);
    words.0.join(", ")
}

fn queue(d: &BlockDevice, words: &mut Words) {
    words.maybe(d.rotational, |r| if r { "rotational" } else { "not rotational" }.to_owned());
    words.maybe(d.scheduler.as_ref(), |s| format!("scheduler {s}"));
    words.maybe(d.write_cache.as_ref(), |c| format!("cache {c}"));
    words.maybe(d.fua, |fua| format!("FUA {}", if fua { "yes" } else { "no" }));
    words.maybe(d.read_ahead_kb, |n| format!("read-ahead {n} KiB"));
    words.maybe(d.nr_requests, |n| counted(n, "request"));
    if let (Some(logical), Some(physical)) = (d.logical_block_bytes, d.physical_block_bytes) {
        words.add(format!("blocks of {logical} bytes, physically {physical}"));
    }
    words.maybe(d.optimal_io_bytes, |n| format!("best request {n} bytes"));
    words.maybe(d.discard, |d| if d { "discards" } else { "cannot discard" }.to_owned());
}

fn health(health: &Health) -> String {
    let Some(passed) = health.passed else {
        return format!("health unknown: {}", health.unavailable.as_deref().unwrap_or("not asked"));
    };
    let mut words = Words::default();
    words.add(if passed { "health passed" } else { "health FAILED" });
    words
        .maybe(health.critical_warning.filter(|n| *n != 0), |n| format!("critical warning {n:#x}"));
    words.maybe(health.percentage_used, |n| format!("{n}% used"));
    words.maybe(health.available_spare, |n| format!("{n}% spare"));
    words.maybe(health.media_errors, |n| counted(n, "media error"));
    words.maybe(health.reallocated_sectors, |n| counted(n, "reallocated sector"));
    words.maybe(health.pending_sectors, |n| counted(n, "pending sector"));
    words.maybe(health.temperature, |t| format!("{t} °C"));
    words.maybe(health.power_on_hours, |n| counted(n, "hour"));
    words.maybe(health.errors_logged, |n| format!("{} in its log", counted(n, "error")));
    words.0.join(", ")
}

/// Describes the machine in a line.
pub fn host_in_brief(host: &HostFacts) -> String {
    let mut words = Words::default();
    words.maybe(host.name.as_ref(), |name| format!("host {name}"));
    words.add(format!("{} × {}", host.cpus, host.cpu_model));
    words.add(host.memory.to_string());
    let place = &host.virtualization;
    words.maybe(place.cloud.as_ref(), Clone::clone);
    words.maybe(place.instance_type.as_ref(), Clone::clone);
    words.maybe(place.hypervisor.as_ref(), |name| format!("virtual ({name})"));
    words.maybe(place.container.as_ref(), |name| format!("in a container ({name})"));
    words.add(&host.os);
    words.add(&host.kernel);
    words.0.join(", ")
}

/// Describes the storage under a directory in a line.
pub fn storage_in_brief(facts: &StorageFacts) -> String {
    if facts.failure.is_some() {
        let asked =
            facts.asked.as_ref().map(|asked| format!(" ({})", stack::describe_request(asked)));
        let what =
            if facts.not_available_here { "not available here" } else { "could not be made" };
        return format!("{what}{}", asked.unwrap_or_default());
    }
    let options = std::iter::once(facts.mount_options.clone()).chain(facts.taken_over());
    let filesystem = format!("{} ({})", facts.filesystem, options.collect::<Vec<_>>().join(", "));
    let layers = facts.layers();
    if layers.is_empty() {
        let on = facts.disk.as_ref().map_or_else(String::new, |disk| format!(" on {disk}"));
        return format!("{filesystem}{on}");
    }
    let each = layers.iter().map(|d| {
        let mut words = Words::default();
        match d.kind {
            DeviceKind::Partition => return d.name.clone(),
            DeviceKind::Disk => words.maybe(d.transport.as_ref(), Clone::clone),
            kind => words.add(kind.name()),
        }
        words.maybe(d.raid.as_ref(), |raid| raid.level.clone());
        words.maybe(d.model.as_ref(), Clone::clone);
        if d.kind == DeviceKind::Disk {
            words.maybe(d.scheduler.as_ref(), Clone::clone);
            words.maybe(d.write_cache.as_ref(), Clone::clone);
        }
        if words.0.is_empty() {
            d.name.clone()
        } else {
            format!("{} ({})", d.name, words.0.join(", "))
        }
    });
    format!("{filesystem} on {}", each.collect::<Vec<_>>().join(" on "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_is_not_mentioned() {
        let host_facts =
            HostFacts { os: "Debian".into(), kernel: "Linux 6.1".into(), ..HostFacts::default() };
        let names: Vec<String> = host(&host_facts).into_iter().map(|r| r.name).collect();
        assert_eq!(names, ["System", "CPU", "Memory"]);
    }

    #[test]
    fn a_stack_is_told_from_the_filesystem_down() {
        let disk = BlockDevice {
            name: "sda".into(),
            size: Bytes(1_000_000_000),
            transport: Some("ata".into()),
            write_cache: Some("write back".into()),
            health: Some(Health {
                unavailable: Some("Permission denied".into()),
                ..Health::default()
            }),
            ..BlockDevice::default()
        };
        let partition = BlockDevice {
            name: "sda1".into(),
            kind: DeviceKind::Partition,
            offset: Some(Bytes(1 << 20)),
            on: vec![disk],
            ..BlockDevice::default()
        };
        let facts = StorageFacts {
            filesystem: "xfs".into(),
            mount_options: "rw".into(),
            size: Bytes(900_000_000),
            devices: vec![partition],
            ..StorageFacts::default()
        };
        assert_eq!(storage_in_brief(&facts), "xfs (rw) on sda1 on sda (ata, write back)");
        let rows = storage(&facts);
        assert_eq!(
            (rows[3].name.as_str(), rows[3].text.as_str()),
            ("sda1", "partition of 0 B, from byte 1048576")
        );
        assert_eq!(
            rows[4].text,
            "disk of 1.0 GB, ata, cache write back, health unknown: Permission denied"
        );
    }

    #[test]
    fn a_run_of_an_older_pgdyno_still_names_its_disk() {
        let facts = StorageFacts {
            filesystem: "ext4".into(),
            mount_options: "rw".into(),
            disk: Some("vda".into()),
            rotational: Some(false),
            ..StorageFacts::default()
        };
        assert_eq!(storage_in_brief(&facts), "ext4 (rw) on vda");
        assert_eq!(storage(&facts).last().unwrap().text, "not rotational");
    }
}
