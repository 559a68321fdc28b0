//! Block devices: from what a filesystem lies on down to the disks, from `/sys/class/block`.

use std::path::Path;

use pgdyno_exec::mountinfo::{self, MountEntry};
use pgdyno_exec::setting::in_brackets;
use pgdyno_model::facts::{BlockDevice, DeviceKind, LoopFacts, RaidFacts};
use pgdyno_model::units::Bytes;

use super::health;
use super::serials::Serials;
use super::tree::Tree;

const BLOCK: &str = "sys/class/block";

/// Sysfs counts in these, whatever the device's own sectors are.
const SECTOR: u64 = 512;

/// Loops on loops on loops: no sane stack is deeper.
const DEEPEST: u32 = 16;

/// Reads devices.
pub(super) struct Devices<'a> {
    pub(super) tree: &'a Tree,
    pub(super) mounts: &'a [MountEntry],
    pub(super) serials: Serials,
    /// How disks are asked for their health; none asks no program.
    pub(super) health: Option<health::Question<'a>>,
}

/// Returns the kernel's name of the block device that `mount` is of, where there is one.
pub(super) fn of_mount(tree: &Tree, mount: &MountEntry) -> Option<String> {
    let by_number = || {
        Some(
            tree.real(format!("sys/dev/block/{}", mount.numbers))?
                .file_name()?
                .to_str()?
                .to_owned(),
        )
    };
    // Filesystems over several devices (btrfs) have no number of their own; their source names the
    // first.
    let by_source = || named(tree, &mount.source);
    by_number().or_else(by_source)
}

/// Returns the kernel's name of the block device at `path`, a node or a link below `/dev`.
pub(super) fn named(tree: &Tree, path: &str) -> Option<String> {
    let real = tree.real(path).filter(|p| p.starts_with("/dev"))?;
    let name = real.file_name()?.to_str()?.to_owned();
    tree.exists(format!("{BLOCK}/{name}")).then_some(name)
}

/// Returns the whole disk that `device` is a partition of, or `device` itself.
pub(super) fn disk_of(tree: &Tree, device: &str) -> String {
    partition_of(tree, device).unwrap_or_else(|| device.to_owned())
}

fn partition_of(tree: &Tree, device: &str) -> Option<String> {
    if !tree.exists(format!("{BLOCK}/{device}/partition")) {
        return None;
    }
    let real = tree.real(format!("{BLOCK}/{device}"))?;
    Some(real.parent()?.file_name()?.to_str()?.to_owned())
}

impl Devices<'_> {
    /// Returns the device with the kernel's name `name` and all below it.
    pub(super) fn read(&self, name: &str) -> BlockDevice {
        self.at_depth(name, 0)
    }

    fn at_depth(&self, name: &str, depth: u32) -> BlockDevice {
        let of = |file: &str| format!("{BLOCK}/{name}/{file}");
        let text = |file: &str| self.tree.read(of(file));
        let parent = partition_of(self.tree, name);
        // A partition has the queue of its disk.
        let queued = parent.as_deref().unwrap_or(name);
        let queue = |file: &str| format!("{BLOCK}/{queued}/queue/{file}");
        let number = |file: &str| self.tree.number::<u64>(queue(file));
        let sectors =
            |file: &str| self.tree.number::<u64>(of(file)).map(|n| Bytes(n.saturating_mul(SECTOR)));
        let kind = self.kind(name);
        let below =
            if depth < DEEPEST { self.below(name, parent.as_deref(), depth) } else { Vec::new() };
        let mut device = BlockDevice {
            name: name.to_owned(),
            kind,
            label: text("dm/name"),
            size: sectors("size").unwrap_or_default(),
            rotational: self.tree.flag(queue("rotational")),
            scheduler: self.tree.read(queue("scheduler")).map(|s| in_brackets(&s)),
            read_ahead_kb: number("read_ahead_kb"),
            nr_requests: number("nr_requests"),
            write_cache: self.tree.read(queue("write_cache")),
            fua: self.tree.flag(queue("fua")),
            logical_block_bytes: number("logical_block_size"),
            physical_block_bytes: number("physical_block_size"),
            minimum_io_bytes: number("minimum_io_size"),
            optimal_io_bytes: number("optimal_io_size").filter(|n| *n > 0),
            discard: number("discard_max_bytes").map(|n| n > 0),
            offset: (kind == DeviceKind::Partition).then(|| sectors("start")).flatten(),
            alignment_offset: self.tree.number(of("alignment_offset")),
            raid: self.raid(name),
            backing: self.backing(name),
            on: below,
            ..BlockDevice::default()
        };
        if kind == DeviceKind::Disk {
            self.identify(&mut device);
        }
        device
    }

    fn kind(&self, name: &str) -> DeviceKind {
        let has = |what: &str| self.tree.exists(format!("{BLOCK}/{name}/{what}"));
        let uuid = || self.tree.read(format!("{BLOCK}/{name}/dm/uuid")).unwrap_or_default();
        if has("partition") {
            DeviceKind::Partition
        } else if has("md") {
            DeviceKind::Md
        } else if has("dm") {
            match uuid().split('-').next() {
                Some("LVM") => DeviceKind::Lvm,
                Some("CRYPT") => DeviceKind::Crypt,
                Some("mpath") => DeviceKind::Multipath,
                _ => DeviceKind::Dm,
            }
        } else if has("loop") {
            DeviceKind::Loop
        } else if name.starts_with("zram") || name.starts_with("ram") {
            DeviceKind::Ram
        } else {
            DeviceKind::Disk
        }
    }

    fn below(&self, name: &str, disk: Option<&str>, depth: u32) -> Vec<BlockDevice> {
        if let Some(disk) = disk {
            return vec![self.at_depth(disk, depth + 1)];
        }
        let slaves = self.tree.names(format!("{BLOCK}/{name}/slaves"));
        if !slaves.is_empty() {
            return slaves.iter().map(|slave| self.at_depth(slave, depth + 1)).collect();
        }
        let under_file = || {
            let file = self.tree.read(format!("{BLOCK}/{name}/loop/backing_file"))?;
            of_mount(self.tree, mountinfo::holding(self.mounts, Path::new(&file))?)
        };
        under_file().map(|device| self.at_depth(&device, depth + 1)).into_iter().collect()
    }

    fn raid(&self, name: &str) -> Option<RaidFacts> {
        let of = |file: &str| format!("{BLOCK}/{name}/md/{file}");
        Some(RaidFacts {
            level: self.tree.read(of("level"))?,
            disks: self.tree.number(of("raid_disks")),
            degraded: self.tree.number(of("degraded")),
            chunk: self.tree.number(of("chunk_size")).filter(|n| *n > 0).map(Bytes),
            state: self.tree.read(of("array_state")),
            sync_action: self.tree.read(of("sync_action")),
        })
    }

    fn backing(&self, name: &str) -> Option<LoopFacts> {
        let of = |file: &str| format!("{BLOCK}/{name}/loop/{file}");
        let file = self.tree.read(of("backing_file"))?;
        let mount = mountinfo::holding(self.mounts, Path::new(&file));
        Some(LoopFacts {
            direct_io: self.tree.flag(of("dio")),
            filesystem: mount.map(|m| m.filesystem.clone()),
            mount_options: mount.map(|m| m.options().join(",")),
            file,
        })
    }

    /// Fills in the disk's model, firmware, serial numbers, transport and health.
    fn identify(&self, device: &mut BlockDevice) {
        let name = &device.name;
        let of = |file: &str| self.tree.read(format!("{BLOCK}/{name}/device/{file}"));
        let model = of("model").or_else(|| of("name"));
        // SCSI tells who made it; for ATA that is only `ATA`.
        let vendor = of("vendor").filter(|v| v != "ATA" && !v.starts_with("0x"));
        device.model = match (vendor, model) {
            (Some(vendor), Some(model)) => Some(format!("{vendor} {model}")),
            (vendor, model) => model.or(vendor),
        };
        device.firmware = of("firmware_rev").or_else(|| of("rev")).or_else(|| of("fwrev"));
        let serial =
            self.tree.read(format!("{BLOCK}/{name}/serial")).or_else(|| of("serial")).or_else(
                || unit_serial(&self.tree.bytes(format!("{BLOCK}/{name}/device/vpd_pg80"))?),
            );
        let wwn = self.tree.read(format!("{BLOCK}/{name}/wwid")).or_else(|| of("wwid"));
        device.serial = serial.map(|s| self.serials.render(&s));
        device.wwn = wwn.map(|w| self.serials.render(&w));
        device.transport = self.transport(name);
        device.health = self.health.map(|question| health::read(name, question));
    }

    fn transport(&self, name: &str) -> Option<String> {
        const BY_PATH: &[(&str, &str)] = &[
            ("usb", "usb"),
            ("nvme", "nvme"),
            ("virtio", "virtio"),
            ("ata", "ata"),
            ("mmc", "mmc"),
            ("vbd", "xen"),
            ("host", "scsi"),
        ];
        if let Some(fabric) = self.tree.read(format!("{BLOCK}/{name}/device/transport")) {
            // NVMe over PCIe says `pcie`; over a network it names the fabric.
            return Some(if fabric == "pcie" {
                "nvme".to_owned()
            } else {
                format!("nvme over {fabric}")
            });
        }
        let real = self.tree.real(format!("{BLOCK}/{name}"))?;
        let parts: Vec<&str> = real.iter().filter_map(|p| p.to_str()).collect();
        let followed = |part: &str, start: &str| {
            part.strip_prefix(start)
                .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit() || c == '-'))
        };
        let found =
            BY_PATH.iter().find(|(start, _)| parts.iter().any(|part| followed(part, start)))?;
        Some(found.1.to_owned())
    }
}

/// SCSI's vital product data, page 0x80: four bytes, then the serial number.
fn unit_serial(page: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(page.get(4..)?);
    let text = text.trim_matches(|c: char| c.is_whitespace() || c == '\0');
    (!text.is_empty()).then(|| text.to_owned())
}
