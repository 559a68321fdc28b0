use std::path::PathBuf;

use pgdyno_model::level::Key;
use pgdyno_model::storage::{Backing, Striper};
use pgdyno_model::units::Bytes;
use pgdyno_model::{Advice, Experiment};

use crate::file::{FileError, Override, Source, parse};

fn with(text: &str, sets: &[&str]) -> Result<Experiment, FileError> {
    let base = PathBuf::from("/base");
    let source = Source { name: "try".into(), shown: "try.toml".into(), text: text.into(), base };
    let sets: Vec<Override> = sets.iter().map(|s| Override::parse(s).unwrap()).collect();
    parse(&source, &sets)
}

const STACK: &str = include_str!("../../dry_run/storages.toml");

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
    assert_eq!(striped.device.module_parameters["no_module"]["depth"], "8");
    let nvme = &e.storage["nvme-xfs"];
    assert!(nvme.device.trim && nvme.device.write_cache == Some(false));
    assert_eq!(nvme.filesystem.as_ref().unwrap().mount, ["logbsize=256k"]);
    assert_eq!(e.factors[1].levels[0].sets[0].0, Key::DeviceScheduler);
}

#[test]
fn an_emulated_disk_is_read_with_its_latencies_and_has_a_usual_size() {
    let text = "[storage.hdd]\n\
                backing = { emulated = { flush = \"8ms\", read = \"4ms\", parallel = 1, \
                cache = \"16MiB\", seed = 7 } }\nfilesystem = \"ext4\"\n";
    let e = with(text, &["storage.hdd.backing.emulated.directory=/x"]).unwrap();
    let Backing::Emulated(disk) = &e.storage["hdd"].backing else { panic!("{:?}", e.storage) };
    assert_eq!(disk.latency.to_string(), "4ms a read, 8ms a flush, one request at a time");
    assert_eq!((disk.size, disk.cache, disk.seed), (Bytes(4 << 30), Bytes(16 << 20), 7));
    assert_eq!(e.storage["hdd"].named_directory(), Some("/x".as_ref()));
}

#[test]
fn relative_paths_start_from_the_files_folder_and_trim_between_trials_reaches_every_storage() {
    let text = "[storage.disk]\nbacking = { loop = { size = \"1GiB\", directory = \"x\" } }\n\
                filesystem = \"ext4\"\n\
                [between]\ntrim = true\n";
    let e = with(text, &[]).unwrap();
    assert_eq!(e.storage["disk"].named_directory(), Some("/base/x".as_ref()));
    assert!(e.storage["disk"].device.trim);
}

#[test]
fn an_override_makes_another_filesystem_and_is_blamed_for_one_that_is_not_known() {
    let text = "[storage.disk]\nbacking = { loop = { size = \"1GiB\" } }\nfilesystem = \"ext4\"\n";
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
        "[storage.d]\nbacking = { device = \"/dev/none\" }\nfilesystem = \"xfs\"\n\
         mkfs = [\"-llogdev=/dev/sdb\"]\n",
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
