//! `[storage.<name>]`: what carries the bytes, the filesystem on it, and how its device is set.

use std::collections::BTreeMap;
use std::error::Error as _;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use pgdyno_model::Storage;
use pgdyno_model::level::LevelValue;
use pgdyno_model::nearest::nearest;
use pgdyno_model::storage::{
    Backing, DeviceSettings, DiskLatency, EmulatedDisk, FilesystemChoice, Hook, Limit, LoopFile,
    Raid0, Striper,
};
use pgdyno_model::units::{Bytes, Span};
use pgdyno_storage::{Stack, StorageError, Wipe};
use serde::Deserialize;
use toml::Spanned;

use super::error::{Complaint, read_at};

/// The tables as read, by name.
pub(super) type Tables = BTreeMap<Spanned<String>, StorageTable>;

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct StorageTable {
    directory: Option<PathBuf>,
    backing: Option<Spanned<BackingTable>>,
    limit: Option<LimitTable>,
    filesystem: Option<Spanned<String>>,
    mkfs: Option<Spanned<Vec<String>>>,
    mount: Option<Spanned<Vec<String>>>,
    pool: Option<Spanned<BTreeMap<String, LevelValue>>>,
    dataset: Option<Spanned<BTreeMap<String, LevelValue>>>,
    wal: Option<Spanned<String>>,
    tablespaces: BTreeMap<Spanned<String>, Vec<String>>,
    #[serde(with = "DeviceTable")]
    device: DeviceSettings,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BackingTable {
    directory: Option<PathBuf>,
    r#loop: Option<LoopTable>,
    emulated: Option<EmulatedTable>,
    device: Option<PathBuf>,
    ram: Option<Size>,
    raid0: Option<Vec<Spanned<BackingTable>>>,
    raid0_by: Option<Striper>,
    chunk: Option<Size>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LoopTable {
    size: Size,
    directory: Option<PathBuf>,
    sector_size: Option<u32>,
    direct_io: Option<bool>,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct EmulatedTable {
    size: Option<Size>,
    directory: Option<PathBuf>,
    sector_size: Option<u32>,
    cache: Option<Size>,
    read: Span,
    write: Span,
    flush: Span,
    parallel: Option<NonZeroU32>,
    log: bool,
    seed: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LimitTable {
    read_iops: Option<u64>,
    write_iops: Option<u64>,
    read_bps: Option<Size>,
    write_bps: Option<Size>,
}

/// The keys of [`DeviceSettings`].
#[derive(Default, Deserialize)]
#[serde(remote = "DeviceSettings", default, deny_unknown_fields)]
struct DeviceTable {
    scheduler: Option<String>,
    read_ahead_kb: Option<u32>,
    nr_requests: Option<u32>,
    write_cache: Option<bool>,
    trim: bool,
    #[serde(deserialize_with = "some_hook")]
    hook: Option<Hook>,
}

/// The keys of a [`Hook`].
#[derive(Deserialize)]
#[serde(remote = "Hook", deny_unknown_fields)]
struct HookTable {
    set: Vec<String>,
    read_back: Vec<String>,
    expect: Option<String>,
    restore: Vec<String>,
}

fn some_hook<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<Hook>, D::Error> {
    HookTable::deserialize(from).map(Some)
}

/// A size with its unit, in quotes.
struct Size(Bytes);

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = LevelValue::deserialize(from)?.to_string();
        text.parse().map(Self).map_err(serde::de::Error::custom)
    }
}

/// Every storage of `tables`; `disk`, a directory of pgdyno's own, where none is described. `at`
/// makes a path absolute; `trim` has every storage trimmed before each trial.
pub(super) fn storages(
    tables: Tables,
    at: &dyn Fn(PathBuf) -> PathBuf,
    trim: bool,
) -> Result<BTreeMap<String, Storage>, Complaint> {
    let names: Vec<String> = tables.keys().map(|name| name.get_ref().clone()).collect();
    let mut storages = BTreeMap::new();
    for (name, table) in tables {
        let storage = read_at(name.clone(), |name| table.into_storage(&name, &names, at, trim))?;
        storages.insert(name.into_inner(), storage);
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
            let table = table.map(Spanned::into_inner).unwrap_or_default();
            table.into_iter().map(|(name, value)| (name, value.to_string())).collect()
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
        let mut device = self.device;
        device.trim |= trim;
        let tablespaces = self.tablespaces.into_iter();
        let storage = Storage {
            backing,
            limit: self.limit.map(Limit::from),
            filesystem,
            wal: self.wal.map(Spanned::into_inner),
            tablespaces: tablespaces.map(|(name, tables)| (name.into_inner(), tables)).collect(),
            device,
        };
        goes_together(name, &storage).map_err(|complaint| match filesystem_at {
            Some(span) if complaint.1 => complaint.0.at(span),
            _ => complaint.0,
        })?;
        Ok(storage)
    }
}

/// Whether the storage could be made on some machine; the flag is true where its filesystem is to
/// blame.
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

/// Whether `other` is another storage of the file.
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
        let bytes = |size: Option<Size>| size.map(|s| s.0.0);
        Self { read_iops, write_iops, read_bps: bytes(read_bps), write_bps: bytes(write_bps) }
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use pgdyno_model::Experiment;
    use pgdyno_model::level::Key;
    use pgdyno_model::storage::{Backing, Striper};
    use pgdyno_model::units::Bytes;

    use crate::file::{FileError, Override, Source, parse};

    fn with(text: &str, sets: &[&str]) -> Result<Experiment, FileError> {
        let base = PathBuf::from("/base");
        let source =
            Source { name: "try".into(), shown: "try.toml".into(), text: text.into(), base };
        let sets: Vec<Override> = sets.iter().map(|s| Override::parse(s).unwrap()).collect();
        parse(&source, &sets)
    }

    const STACK: &str = include_str!("../dry_run/storages.toml");

    #[test]
    fn every_key_reaches_the_storage() {
        let e = with(STACK, &[]).unwrap();
        let Backing::Raid0(raid) = &e.storage["striped"].backing else { panic!("{:?}", e.storage) };
        assert_eq!((raid.by, raid.chunk), (Some(Striper::Mdadm), Some(Bytes(64 << 10))));
        let Backing::Loop(second) = &raid.members[1] else { panic!("{raid:?}") };
        assert_eq!(
            (second.size, second.sector_size, second.direct_io),
            (Bytes(4 << 30), Some(4096), true)
        );
        let striped = &e.storage["striped"];
        assert_eq!(striped.wal.as_deref(), Some("log"));
        assert_eq!(striped.tablespaces["log"], ["pgbench_history"]);
        assert_eq!(striped.limit.unwrap().write_bps, Some(20_000_000));
        assert_eq!(striped.device.hook.as_ref().unwrap().expect.as_deref(), Some("off"));
        let nvme = &e.storage["nvme-xfs"];
        assert!(nvme.device.trim && nvme.device.write_cache == Some(false));
        assert_eq!(nvme.filesystem.as_ref().unwrap().mount, ["logbsize=256k"]);
        assert_eq!(e.factors[1].levels[0].sets[0].0, Key::DeviceScheduler);
    }

    #[test]
    fn an_emulated_disk_is_read_with_its_latencies_and_has_a_usual_size() {
        let text = "[storage.hdd]\nbacking = { emulated = { flush = \"8ms\", read = \"4ms\", parallel = 1, \
                    cache = \"16MiB\", seed = 7 } }\nfilesystem = \"ext4\"\n";
        let e = with(text, &["storage.hdd.backing.emulated.directory=/x"]).unwrap();
        let Backing::Emulated(disk) = &e.storage["hdd"].backing else { panic!("{:?}", e.storage) };
        assert_eq!(disk.latency.to_string(), "4ms a read, 8ms a flush, one request at a time");
        assert_eq!((disk.size, disk.cache, disk.seed), (Bytes(4 << 30), Bytes(16 << 20), 7));
        assert_eq!(e.storage["hdd"].named_directory(), Some("/x".as_ref()));
    }

    #[test]
    fn relative_paths_start_from_the_files_folder_and_trim_between_trials_reaches_every_storage() {
        let text = "[storage.disk]\nbacking = { loop = { size = \"1GiB\", directory = \"x\" } }\nfilesystem = \"ext4\"\n\
                    [between]\ntrim = true\n";
        let e = with(text, &[]).unwrap();
        assert_eq!(e.storage["disk"].named_directory(), Some("/base/x".as_ref()));
        assert!(e.storage["disk"].device.trim);
    }

    #[test]
    fn an_override_makes_another_filesystem_and_is_blamed_for_one_that_is_not_known() {
        let text =
            "[storage.disk]\nbacking = { loop = { size = \"1GiB\" } }\nfilesystem = \"ext4\"\n";
        let e = with(text, &["storage.disk.filesystem=xfs"]).unwrap();
        assert_eq!(e.storage["disk"].filesystem.as_ref().unwrap().name, "xfs");
        let error = with(text, &["storage.disk.filesystem=xsf"]).unwrap_err();
        assert!(error.to_string().starts_with("--set storage.disk.filesystem=xsf: "), "{error}");
    }

    #[test]
    fn what_cannot_be_is_answered_with_its_place_and_what_to_do() {
        let all: Vec<String> = [
            "[storage.d]\nfilesystm = \"xfs\"\n",
            "[storage.d]\nbacking = { emulated = { flush = 8 } }\nfilesystem = \"xfs\"\n",
            "[storage.d]\nbacking = { emulated = { flsh = \"8ms\" } }\nfilesystem = \"xfs\"\n",
            "[storage.d]\nbacking = { emulated = { parallel = 0 } }\nfilesystem = \"xfs\"\n",
            "[storage.d]\nbacking = { emulated = { size = \"1001B\" } }\nfilesystem = \"xfs\"\n",
            "[storage.d]\nbacking = { loop = { size = \"1GiB\" } }\nfilesystem = \"xsf\"\n",
            "[storage.d]\nbacking = { loop = { size = 5 } }\nfilesystem = \"xfs\"\n",
            "[storage.d]\nbacking = { loop = { size = \"1GiB\" } }\n",
            "[storage.d]\nbacking = { loop = { size = \"1GiB\" }, ram = \"1GiB\" }\n",
            "[storage.d]\nbacking = {}\n",
            "[storage.d]\ndirectory = \"/mnt\"\nfilesystem = \"xfs\"\n",
            "[storage.d]\ndirectory = \"/mnt\"\nmount = [\"noatime\"]\n",
            "[storage.d]\nbacking = { device = \"/dev/none\" }\nfilesystem = \"xfs\"\nmkfs = [\"-llogdev=/dev/sdb\"]\n",
            "[storage.d]\nwal = \"logs\"\n[storage.log]\n",
            "[storage.d]\nwal = \"d\"\n",
            "[storage.d]\nbacking = { raid0 = [{ ram = \"1GiB\" }] }\nfilesystem = \"xfs\"\n",
            "[storage.d]\nbacking = { ram = \"1GiB\", chunk = \"64KiB\" }\n",
            "[factors]\ndevice.write_cache = [\"yes\"]\n",
            "[factors]\ndevice.schedulr = [\"none\"]\n",
            "[between]\nprewarm = true\ndrop_caches = true\n",
        ]
        .iter()
        .map(|text| {
            let error = with(text, &[]).unwrap_err();
            format!("{error}\nhelp: {}\n", error.help().unwrap_or_default())
        })
        .collect();
        insta::assert_snapshot!(all.join("\n"));
    }
}
