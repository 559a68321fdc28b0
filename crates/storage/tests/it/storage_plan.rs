//! Dry runs of storage stacks, word for word, also of stacks that this machine could not make.
use std::num::NonZeroU32;
use std::path::Path;
use std::time::Duration;

use crate::common::stacks::{image, on};
use pgdyno_exec::Step;
use pgdyno_model::Advice;
use pgdyno_model::raid::{RaidTool, RaidVolume, WritePolicy};
use pgdyno_model::storage::{
    Backing, DeviceSettings, DiskLatency, EmulatedDisk, Hook, Limit, LoopFile, Raid0, Storage,
    Striper,
};
use pgdyno_model::units::{Bytes, Span};
use pgdyno_storage::{Stack, StorageError, Wipe};

fn device(path: &str) -> Backing {
    Backing::Device(path.into())
}

fn loop_file(directory: Option<&str>) -> Backing {
    let directory = directory.map(Into::into);
    Backing::Loop(LoopFile { directory, sector_size: Some(4096), ..image(Bytes(4 << 30)) })
}

fn raid(members: Vec<Backing>, by: Option<Striper>) -> Backing {
    // btrfs and zfs have no chunk to choose.
    Backing::Raid0(Raid0 { members, by, chunk: by.map(|_| Bytes(256 << 10)) })
}

fn design(storage: &Storage, overwrite_signature: bool) -> Result<Stack, StorageError> {
    let devices = storage.devices().into_iter().map(Path::to_owned).collect();
    let wipe = Wipe { devices, overwrite_signature };
    Stack::design("disk", storage, Path::new("/var/lib/pgdyno"), "pgdyno-0a1b2c3d", &wipe)
}

fn lines(steps: &[Step]) -> String {
    steps.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

/// Making and taking down.
fn shown(storage: &Storage) -> String {
    up_and_down(&design(storage, false).unwrap())
}

fn up_and_down(stack: &Stack) -> String {
    format!("{}\n--\n{}", lines(&stack.steps()), lines(&stack.take_down_steps()))
}

#[test]
fn a_loop_file_with_ext4() {
    insta::assert_snapshot!(shown(&on(loop_file(Some("/mnt/nvme 1")), "ext4")));
}

#[test]
fn an_emulated_disk_with_xfs() {
    let each = Span(Duration::from_millis(8));
    let latency =
        DiskLatency { flush: each, parallel: NonZeroU32::new(1), ..DiskLatency::default() };
    let disk = EmulatedDisk { latency, ..EmulatedDisk::default() };
    insta::assert_snapshot!(shown(&on(Backing::Emulated(disk), "xfs")));
}

#[test]
fn an_md_raid_of_named_devices_with_jfs() {
    let members = vec![device("/dev/sdb"), device("/dev/sdc")];
    insta::assert_snapshot!(shown(&on(raid(members, Some(Striper::Mdadm)), "jfs")));
}

#[test]
fn a_loop_file_whose_filesystem_begins_at_sector_63() {
    let file = LoopFile { offset: Some(Bytes(63 * 512)), ..image(Bytes(1 << 30)) };
    insta::assert_snapshot!(shown(&on(Backing::Loop(file), "ext4")));
}

#[test]
fn a_striped_logical_volume_over_loop_files_in_two_directories() {
    let members = vec![loop_file(Some("/mnt/a")), loop_file(Some("/mnt/b"))];
    insta::assert_snapshot!(shown(&on(raid(members, Some(Striper::Lvm)), "xfs")));
}

#[test]
fn a_named_nvme_drive_that_is_trimmed_and_set_with_f2fs() {
    let settings = DeviceSettings {
        scheduler: Some("none".into()),
        read_ahead_kb: Some(128),
        nr_requests: Some(64),
        write_cache: Some(false),
        trim: true,
        ..DeviceSettings::default()
    };
    let storage = Storage { device: settings, ..on(device("/dev/nvme1n1"), "f2fs") };
    insta::assert_snapshot!(up_and_down(&design(&storage, true).unwrap()));
}

#[test]
fn a_plain_directory_whose_device_is_set_by_hdparm_and_by_the_users_own_commands() {
    let words = |text: &str| text.split(' ').map(String::from).collect();
    let hook = Hook {
        set: words("storcli64 /c0/v0 set wrcache=wt"),
        read_back: words("storcli64 /c0/v0 show all J"),
        expect: None,
        restore: words("storcli64 /c0/v0 set wrcache=wb"),
    };
    let on_a_drive = Storage {
        device: DeviceSettings { write_cache: Some(false), ..DeviceSettings::default() },
        ..on(device("/dev/sdb"), "ext4")
    };
    let steps = lines(&design(&on_a_drive, false).unwrap().steps());
    assert!(steps.contains("run: hdparm -W0 /dev/sdb"), "{steps}");
    let plain = Storage {
        device: DeviceSettings { hook: Some(hook), ..DeviceSettings::default() },
        limit: Some(Limit { write_iops: Some(120), ..Limit::default() }),
        ..Storage::directory(Some("/mnt/raid".into()))
    };
    insta::assert_snapshot!(shown(&plain));
}

#[test]
fn the_cache_of_a_raid_controller_is_set_by_each_manufacturers_program() {
    let shown = |tool| {
        let device = DeviceSettings {
            raid_volume: Some(RaidVolume { tool, controller: 1, volume: 2 }),
            raid_cache: Some(WritePolicy::WriteThrough),
            ..DeviceSettings::default()
        };
        shown(&Storage { device, ..Storage::directory(Some("/mnt/raid".into())) })
    };
    use RaidTool::{Arcconf, Megacli, Ssacli, Storcli};
    let all = [Storcli, Megacli, Ssacli, Arcconf].map(shown);
    insta::assert_snapshot!(all.join("\n----\n"));

    let device =
        DeviceSettings { raid_cache: Some(WritePolicy::WriteBack), ..DeviceSettings::default() };
    let storage = Storage { device, ..Storage::directory(Some("/mnt/raid".into())) };
    assert!(matches!(design(&storage, false), Err(StorageError::Contradiction { .. })));
}

#[test]
fn main_memory_with_and_without_a_filesystem() {
    let backing = Backing::Ram(Bytes(1 << 30));
    insta::assert_snapshot!(shown(&Storage { backing: backing.clone(), ..Storage::default() }));
    insta::assert_snapshot!(shown(&on(backing, "ext2")));
}

#[test]
fn a_zpool_over_two_loop_files() {
    let members = vec![loop_file(None), loop_file(None)];
    insta::assert_snapshot!(shown(&on(raid(members, None), "zfs")));
}

fn module_parameters(module: &str, parameters: &[(&str, &str)]) -> DeviceSettings {
    let text = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    let parameters = parameters.iter().map(text).collect();
    DeviceSettings {
        module_parameters: [(module.to_owned(), parameters)].into(),
        ..DeviceSettings::default()
    }
}

#[test]
fn parameters_of_a_module_are_written_once_the_pool_is_made_and_put_back_first() {
    let parameters = [("zfs_arc_shrink_shift", "14"), ("zfs_prefetch_disable", "1")];
    let device = module_parameters("zfs", &parameters);
    insta::assert_snapshot!(shown(&Storage { device, ..on(loop_file(None), "zfs") }));
}

/// Error and help of a stack that must not be designed.
fn refused(storage: &Storage) -> String {
    let error = design(storage, false).unwrap_err();
    let cause = std::error::Error::source(&error).map_or_else(String::new, |c| format!(": {c}"));
    format!("{error}{cause}\n  {}", error.help().unwrap())
}

#[test]
fn what_does_not_go_together_is_refused() {
    let bare = |backing| Storage { backing, ..Storage::default() };
    let image = image(Bytes(1 << 30));
    let odd = LoopFile { sector_size: Some(520), direct_io: false, ..image.clone() };
    let misplaced = LoopFile { direct_io: false, offset: Some(Bytes(1000)), ..image };
    let chunk = Some(Bytes(5000));
    let two = || vec![device("/dev/sdb"), device("/dev/sdc")];
    let trimmed = DeviceSettings { trim: true, ..DeviceSettings::default() };
    let refusals = [
        on(Backing::Directory(None), "xfs"),
        bare(device("/dev/sdb")),
        on(loop_file(None), "ext5"),
        on(Backing::Loop(odd), "ext4"),
        on(Backing::Loop(misplaced), "ext4"),
        on(raid(vec![device("/dev/sdb")], None), "ext4"),
        on(raid(vec![device("/dev/sdb"), Backing::Directory(None)], None), "ext4"),
        on(raid(vec![device("/dev/sdb"), device("/dev/sdb")], None), "ext4"),
        on(raid(two(), Some(Striper::Btrfs)), "ext4"),
        on(Backing::Raid0(Raid0 { members: two(), by: None, chunk }), "ext4"),
        Storage {
            device: module_parameters("../kernel", &[("panic", "1")]),
            ..on(device("/dev/sdb"), "ext4")
        },
        Storage { device: trimmed, ..on(device("/dev/sdb"), "zfs") },
        Storage {
            limit: Some(Limit { read_bps: Some(1), ..Limit::default() }),
            ..bare(Backing::Ram(Bytes(1 << 20)))
        },
    ];
    insta::assert_snapshot!(refusals.map(|s| refused(&s)).join("\n"));
}
