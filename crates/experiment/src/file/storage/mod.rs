//! `[storage.<name>]`: what carries the bytes, the filesystem on it, and how its device is set.

use std::collections::BTreeMap;
use std::error::Error as _;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use pgdyno_model::facts::SmartType;
use pgdyno_model::level::LevelValue;
use pgdyno_model::raid::{RaidVolume, WritePolicy};
use pgdyno_model::storage::{
    Backing, DeviceSettings, DiskLatency, EmulatedDisk, FilesystemChoice, Hook, Limit, LoopFile,
    Raid0, Striper,
};
use pgdyno_model::units::{Bytes, Span};
use pgdyno_model::{Advice, Storage};
use pgdyno_storage::{Stack, StorageError, Wipe};
use pgdyno_text::nearest::nearest;
use serde::Deserialize;
use toml::Spanned;

use super::error::{Complaint, read_at};

/// The tables as read, by name.
pub(super) type Tables = BTreeMap<Spanned<String>, StorageTable>;

#[derive(Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(transform = super::schema::storage_rules))]
#[serde(default, deny_unknown_fields)]
pub(super) struct StorageTable {
    /// An existing directory; clusters are made in it and removed again. By default pgdyno's own.
    directory: Option<PathBuf>,
    /// The carrier of the bytes. All but a directory are made and removed again, which needs root.
    #[cfg_attr(test, schemars(with = "BackingTable"))]
    backing: Option<Spanned<BackingTable>>,
    /// Limits of the device's traffic, by pgdyno's control group. They let bursts through.
    limit: Option<LimitTable>,
    /// The filesystem that is made on the backing.
    #[cfg_attr(test, schemars(schema_with = "super::schema::filesystem"))]
    filesystem: Option<Spanned<String>>,
    /// Further arguments for the program that makes the filesystem.
    #[cfg_attr(test, schemars(with = "Vec<String>"))]
    mkfs: Option<Spanned<Vec<String>>>,
    /// Mount options beside `noatime`.
    #[cfg_attr(test, schemars(with = "Vec<String>"))]
    mount: Option<Spanned<Vec<String>>>,
    /// ZFS: properties of the pool.
    #[cfg_attr(test, schemars(with = "BTreeMap<String, LevelValue>"))]
    pool: Option<Spanned<BTreeMap<String, LevelValue>>>,
    /// ZFS: properties of the dataset.
    #[cfg_attr(test, schemars(with = "BTreeMap<String, LevelValue>"))]
    dataset: Option<Spanned<BTreeMap<String, LevelValue>>>,
    /// The name of the storage that holds `pg_wal`. By default it lies in PGDATA.
    #[cfg_attr(test, schemars(with = "String"))]
    wal: Option<Spanned<String>>,
    /// Names of storages, and the tables that lie there in a tablespace, with their indexes.
    #[cfg_attr(test, schemars(with = "BTreeMap<String, Vec<String>>"))]
    tablespaces: BTreeMap<Spanned<String>, Vec<String>>,
    /// Judge whether each commit of a trial was acknowledged after a flush of the disk under
    /// `pg_wal`, which has to be emulated.
    #[cfg_attr(test, schemars(with = "bool"))]
    flush_accounting: Option<Spanned<bool>>,
    /// How smartctl reaches the disk behind a RAID controller, as its `--device` has it:
    /// `megaraid,3`.
    #[cfg_attr(test, schemars(with = "String"))]
    smart: Option<Spanned<String>>,
    /// Settings of every device under the storage. They are read back, and put back afterwards.
    device: DeviceTable,
}

#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(transform = super::schema::backing_rules))]
#[serde(deny_unknown_fields)]
struct BackingTable {
    /// An existing directory.
    directory: Option<PathBuf>,
    /// A file, allocated in full, behind a loop device.
    r#loop: Option<LoopTable>,
    /// A disk that pgdyno emulates, with known latencies.
    emulated: Option<EmulatedTable>,
    /// A disk or partition. ITS CONTENTS ARE LOST: `--wipe` has to name it too.
    device: Option<PathBuf>,
    /// The size of a tmpfs; with a `filesystem`, of a loop device over a file in one.
    ram: Option<ByteSize>,
    /// Loop files, emulated disks and devices that are striped.
    #[cfg_attr(test, schemars(with = "Option<Vec<BackingTable>>"))]
    raid0: Option<Vec<Spanned<BackingTable>>>,
    /// The program that stripes the members. By default the filesystem where it can, else mdadm,
    /// else LVM.
    raid0_by: Option<Striper>,
    /// Bytes on one member before the next has its turn.
    chunk: Option<ByteSize>,
}

#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct LoopTable {
    /// Size of the file.
    size: ByteSize,
    /// The folder of the file. By default pgdyno's own.
    directory: Option<PathBuf>,
    /// Sector size of the loop device (bytes).
    sector_size: Option<u32>,
    /// Bypass the page cache below the filesystem.
    #[cfg_attr(test, schemars(extend("default" = true)))]
    direct_io: Option<bool>,
    /// Where the loop device begins in its file: at 0B aligned, at 32256B not.
    offset: Option<ByteSize>,
}

#[derive(Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
struct EmulatedTable {
    /// Size of the disk.
    #[cfg_attr(test, schemars(extend("default" = "4GiB")))]
    size: Option<ByteSize>,
    /// The folder of the disk's medium. By default pgdyno's own.
    directory: Option<PathBuf>,
    /// Sector size of the disk (bytes).
    sector_size: Option<u32>,
    /// Size of the disk's volatile cache.
    #[cfg_attr(test, schemars(extend("default" = "64MiB")))]
    cache: Option<ByteSize>,
    /// Latency of a read.
    read: Span,
    /// Latency of a write.
    write: Span,
    /// Latency of a flush.
    flush: Span,
    /// Requests that are served at the same time. By default without a limit.
    parallel: Option<NonZeroU32>,
    /// Keep a log of all writes.
    log: bool,
    /// Seed for what is lost when the power is cut.
    #[cfg_attr(test, schemars(extend("default" = 1)))]
    seed: Option<u64>,
}

#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct LimitTable {
    /// Reads per second.
    read_iops: Option<u64>,
    /// Writes per second.
    write_iops: Option<u64>,
    /// Bytes read per second.
    read_bps: Option<ByteSize>,
    /// Bytes written per second.
    write_bps: Option<ByteSize>,
}

#[derive(Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
struct DeviceTable {
    /// I/O scheduler.
    scheduler: Option<String>,
    /// Read-ahead (KiB).
    read_ahead_kb: Option<u32>,
    /// Length of the request queue.
    nr_requests: Option<u32>,
    /// Whether the drive's volatile write cache is on.
    write_cache: Option<bool>,
    /// Free unused blocks before every trial.
    trim: bool,
    /// Parameters of kernel modules, by module and name, such as `zfs.zfs_arc_max`. They hold for
    /// the whole host while trials run.
    module_parameters: BTreeMap<String, BTreeMap<String, LevelValue>>,
    /// The volume of a RAID controller that carries the storage.
    raid_volume: Option<RaidVolume>,
    /// The policy of that volume's write cache.
    raid_cache: Option<WritePolicy>,
    /// Commands of your own for settings that pgdyno does not know, such as a RAID controller's
    /// cache.
    hook: Option<HookTable>,
}

#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct HookTable {
    /// The program, with arguments, that makes the setting.
    set: Vec<String>,
    /// The program whose output shows the setting. It is stored.
    read_back: Vec<String>,
    /// The text that the output must equal.
    expect: Option<String>,
    /// The program that puts the setting back afterwards.
    restore: Vec<String>,
}

/// A size with its unit, in quotes.
pub(super) struct ByteSize(Bytes);

impl<'de> Deserialize<'de> for ByteSize {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = LevelValue::deserialize(from)?.to_string();
        text.parse().map(Self).map_err(serde::de::Error::custom)
    }
}

/// Returns every storage of `tables`; `disk`, a directory of pgdyno's own, where none is described.
/// `at` makes a path absolute; `trim` has every storage trimmed before each trial.
pub(super) fn storages(
    tables: Tables,
    at: &dyn Fn(PathBuf) -> PathBuf,
    trim: bool,
) -> Result<BTreeMap<String, Storage>, Complaint> {
    let names: Vec<String> = tables.keys().map(|name| name.get_ref().clone()).collect();
    let mut storages = BTreeMap::new();
    let mut accounted = Vec::new();
    for (name, table) in tables {
        let asked = table.flush_accounting.as_ref().filter(|asked| *asked.get_ref());
        accounted.extend(asked.map(|asked| (name.get_ref().clone(), asked.span())));
        let storage = read_at(name.clone(), |name| table.into_storage(&name, &names, at, trim))?;
        storages.insert(name.into_inner(), storage);
    }
    for (name, span) in accounted {
        can_account_for_flushes(&name, &storages).map_err(|complaint| complaint.at(span))?;
    }
    if storages.is_empty() {
        let mut disk = Storage::default();
        disk.device.trim = trim;
        storages.insert("disk".into(), disk);
    }
    Ok(storages)
}

impl StorageTable {
    fn into_storage(
        self,
        name: &str,
        names: &[String],
        at: &dyn Fn(PathBuf) -> PathBuf,
        trim: bool,
    ) -> Result<Storage, Complaint> {
        let backing = match (self.directory, self.backing) {
            (Some(_), Some(backing)) => {
                return Err(Complaint::new(format!(
                    "`storage.{name}` has a `directory` and a `backing`"
                ))
                .with_help(
                    "`directory` is short for `backing = { directory = … }`: keep one of the two",
                )
                .at(backing.span()));
            }
            (directory, None) => Backing::Directory(directory.map(at)),
            (None, Some(backing)) => backing_of(backing, at)?,
        };
        if self.filesystem.is_none() {
            let spans = [
                ("mkfs", self.mkfs.as_ref().map(Spanned::span)),
                ("mount", self.mount.as_ref().map(Spanned::span)),
                ("pool", self.pool.as_ref().map(Spanned::span)),
                ("dataset", self.dataset.as_ref().map(Spanned::span)),
            ];
            if let Some((key, Some(span))) = spans.into_iter().find(|(_, span)| span.is_some()) {
                return Err(Complaint::new(format!(
                    "`storage.{name}.{key}` is for a filesystem, and none is named"
                ))
                .with_help("add `filesystem`, for example `filesystem = \"ext4\"`")
                .at(span));
            }
        }
        let list = |words: Option<Spanned<Vec<String>>>| {
            words.map(Spanned::into_inner).unwrap_or_default()
        };
        let properties = |table: Option<Spanned<BTreeMap<String, LevelValue>>>| {
            table.map(Spanned::into_inner).map(texts).unwrap_or_default()
        };
        let filesystem_at = self.filesystem.as_ref().map(Spanned::span);
        let filesystem = self.filesystem.map(|filesystem| FilesystemChoice {
            name: filesystem.into_inner(),
            mkfs: list(self.mkfs),
            mount: list(self.mount),
            pool: properties(self.pool),
            dataset: properties(self.dataset),
        });
        for other in self.wal.iter().chain(self.tablespaces.keys()) {
            another(name, other, names)?;
        }
        let smart = self.smart.map(|smart| {
            smart.get_ref().parse::<SmartType>().map_err(|e| {
                let help = "`man smartctl` tells of each under --device=TYPE";
                Complaint::new(format!("`storage.{name}.smart`: {e}"))
                    .with_help(help)
                    .at(smart.span())
            })
        });
        let mut device = DeviceSettings::from(self.device);
        device.trim |= trim;
        let tablespaces = self.tablespaces.into_iter();
        let storage = Storage {
            backing,
            limit: self.limit.map(Limit::from),
            filesystem,
            wal: self.wal.map(Spanned::into_inner),
            tablespaces: tablespaces.map(|(name, tables)| (name.into_inner(), tables)).collect(),
            device,
            flush_accounting: self.flush_accounting.is_some_and(Spanned::into_inner),
            smart: smart.transpose()?,
        };
        goes_together(name, &storage).map_err(|complaint| match filesystem_at {
            Some(span) if complaint.1 => complaint.0.at(span),
            _ => complaint.0,
        })?;
        Ok(storage)
    }
}

/// Checks that the storage could be made on some machine; the flag is true where its filesystem is
/// to blame.
fn goes_together(name: &str, storage: &Storage) -> Result<(), (Complaint, bool)> {
    let somewhere = Path::new("/var/lib/pgdyno");
    let Err(e) = Stack::design(name, storage, somewhere, "pgdyno-00000000", &Wipe::default())
    else {
        return Ok(());
    };
    let cause = e.source().map_or_else(String::new, |cause| format!(": {cause}"));
    let complaint = Complaint::new(format!("{e}{cause}"));
    let complaint = match e.help() {
        Some(help) => complaint.with_help(help),
        None => complaint,
    };
    Err((complaint, matches!(e, StorageError::Filesystem { .. })))
}

/// Checks that pgdyno sees the flushes that commits of clusters on storage `name` wait for.
fn can_account_for_flushes(
    name: &str,
    storages: &BTreeMap<String, Storage>,
) -> Result<(), Complaint> {
    let wal = storages[name].wal.as_deref().unwrap_or(name);
    let lies_on = match &storages[wal].backing {
        Backing::Emulated(_) => return Ok(()),
        Backing::Directory(_) => "a directory",
        Backing::Loop(_) => "a loop file",
        Backing::Device(_) => "a device",
        Backing::Ram(_) => "main memory",
        Backing::Raid0(_) => "a RAID-0",
    };
    Err(Complaint::new(format!(
        "`storage.{name}.flush_accounting` looks at the flushes of an emulated disk, and pg_wal \
         lies on {lies_on} (storage `{wal}`)"
    ))
    .with_help(format!(
        "give `storage.{wal}` a `backing = {{ emulated = {{ size = \"4GiB\" }} }}` and a \
         `filesystem`, or leave `flush_accounting` out"
    )))
}

/// Checks that `other` is another storage of the file.
fn another(name: &str, other: &Spanned<String>, names: &[String]) -> Result<(), Complaint> {
    let (span, other) = (other.span(), other.get_ref());
    if other == name {
        return Err(Complaint::new(format!("`storage.{name}` names itself as a second storage"))
            .with_help("leave it out: what is not said to lie elsewhere lies in PGDATA")
            .at(span));
    }
    if names.contains(other) {
        return Ok(());
    }
    let known: Vec<&str> =
        names.iter().map(String::as_str).filter(|known| *known != name).collect();
    let complaint = Complaint::new(format!("there is no `[storage.{other}]`"));
    let complaint = match nearest(other, &known).first() {
        Some(near) => {
            complaint.with_help(format!("nearest is `{near}`; described are {}", known.join(", ")))
        }
        None => complaint.with_help(format!("describe it: `[storage.{other}]`")),
    };
    Err(complaint.at(span))
}

fn backing_of(
    table: Spanned<BackingTable>,
    at: &dyn Fn(PathBuf) -> PathBuf,
) -> Result<Backing, Complaint> {
    const KINDS: &str = "`directory`, `loop`, `emulated`, `device`, `ram` or `raid0`";
    let span = table.span();
    let BackingTable { directory, r#loop, emulated, device, ram, raid0, raid0_by, chunk } =
        table.into_inner();
    if raid0.is_none() && (raid0_by.is_some() || chunk.is_some()) {
        return Err(
            Complaint::new("`raid0_by` and `chunk` are for a `raid0`, and there is none").at(span)
        );
    }
    let mut given = Vec::new();
    given.extend(directory.map(|path| Backing::Directory(Some(at(path)))));
    given.extend(r#loop.map(|table| {
        // What a page cache below the filesystem would hide is what is to be measured.
        Backing::Loop(LoopFile {
            directory: table.directory.map(at),
            size: table.size.0,
            sector_size: table.sector_size,
            direct_io: table.direct_io.unwrap_or(true),
            offset: table.offset.map(|offset| offset.0),
        })
    }));
    given.extend(emulated.map(|table| {
        let usual = EmulatedDisk::default();
        let EmulatedTable { read, write, flush, parallel, .. } = table;
        Backing::Emulated(EmulatedDisk {
            directory: table.directory.map(at),
            size: table.size.map_or(usual.size, |s| s.0),
            sector_size: table.sector_size,
            cache: table.cache.map_or(usual.cache, |s| s.0),
            latency: DiskLatency { read, write, flush, parallel },
            log: table.log,
            seed: table.seed.unwrap_or(usual.seed),
        })
    }));
    given.extend(device.map(|path| Backing::Device(at(path))));
    given.extend(ram.map(|size| Backing::Ram(size.0)));
    if let Some(members) = raid0 {
        let members =
            members.into_iter().map(|member| backing_of(member, at)).collect::<Result<_, _>>()?;
        given.push(Backing::Raid0(Raid0 { members, by: raid0_by, chunk: chunk.map(|c| c.0) }));
    }
    match (given.pop(), given.is_empty()) {
        (Some(backing), true) => Ok(backing),
        (Some(_), false) => Err(Complaint::new("a backing is one thing, and several are named")
            .with_help(format!("keep one of {KINDS}"))
            .at(span)),
        (None, _) => Err(Complaint::new("a backing of nothing")
            .with_help(format!("name one of {KINDS}"))
            .at(span)),
    }
}

impl From<LimitTable> for Limit {
    fn from(LimitTable { read_iops, write_iops, read_bps, write_bps }: LimitTable) -> Self {
        let bytes = |size: Option<ByteSize>| size.map(|s| s.0.0);
        Self { read_iops, write_iops, read_bps: bytes(read_bps), write_bps: bytes(write_bps) }
    }
}

impl From<DeviceTable> for DeviceSettings {
    fn from(table: DeviceTable) -> Self {
        let modules = table.module_parameters.into_iter();
        let hook = |HookTable { set, read_back, expect, restore }| Hook {
            set,
            read_back,
            expect,
            restore,
        };
        Self {
            scheduler: table.scheduler,
            read_ahead_kb: table.read_ahead_kb,
            nr_requests: table.nr_requests,
            write_cache: table.write_cache,
            trim: table.trim,
            module_parameters: modules.map(|(module, all)| (module, texts(all))).collect(),
            raid_volume: table.raid_volume,
            raid_cache: table.raid_cache,
            hook: table.hook.map(hook),
        }
    }
}

fn texts(values: BTreeMap<String, LevelValue>) -> BTreeMap<String, String> {
    values.into_iter().map(|(name, value)| (name, value.to_string())).collect()
}

#[cfg(test)]
mod tests;
