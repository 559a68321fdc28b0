//! Describes a storage stack, as requested and as obtained.

use pgdyno_model::storage::{Backing, DeviceFacts, DeviceSettings, StackFacts, Storage};

use super::text::Row;

/// Describes the requested storage in a line.
pub(super) fn describe_request(storage: &Storage) -> String {
    let mut words = vec![backing(&storage.backing)];
    if let Some(filesystem) = &storage.filesystem {
        let properties = |all: &std::collections::BTreeMap<String, String>| {
            all.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
        };
        words.push(filesystem.name.clone());
        for (what, text) in [
            ("mkfs", filesystem.mkfs.join(" ")),
            ("mount", filesystem.mount.join(",")),
            ("pool", properties(&filesystem.pool)),
            ("dataset", properties(&filesystem.dataset)),
        ] {
            words.extend((!text.is_empty()).then(|| format!("{what} {text}")));
        }
    }
    words.extend(storage.wal.iter().map(|wal| format!("WAL on `{wal}`")));
    for (name, tables) in &storage.tablespaces {
        words.push(format!("{} on `{name}`", tables.join(" and ")));
    }
    words.extend(settings(&storage.device));
    words.extend(storage.limit.map(|limit| format!("at most {limit}")));
    words.join(", ")
}

fn backing(backing: &Backing) -> String {
    match backing {
        Backing::Directory(None) => "a directory of pgdyno's".to_owned(),
        Backing::Directory(Some(path)) => format!("directory {}", path.display()),
        Backing::Loop(file) => {
            let sectors =
                file.sector_size.map_or_else(String::new, |n| format!(", sectors of {n} bytes"));
            let cached = if file.direct_io { "" } else { ", through the page cache" };
            let begin = file
                .offset
                .map_or_else(String::new, |offset| format!(", from byte {} on", offset.0));
            format!("loop file of {}{sectors}{cached}{begin}", file.size)
        }
        Backing::Emulated(disk) => {
            let latency = disk.latency.to_string();
            let latency = if latency.is_empty() { "no latency added" } else { &latency };
            format!("emulated disk of {}, {latency}", disk.size)
        }
        Backing::Device(path) => format!("device {}", path.display()),
        Backing::Ram(size) => format!("{size} of main memory"),
        Backing::Raid0(raid) => {
            let members: Vec<String> = raid.members.iter().map(self::backing).collect();
            let by = raid.by.map_or_else(String::new, |by| format!(" by {}", by.name()));
            let chunk = raid.chunk.map_or_else(String::new, |c| format!(", chunk {} bytes", c.0));
            format!("RAID-0{by}{chunk} of ({})", members.join("; "))
        }
    }
}

fn settings(device: &DeviceSettings) -> Vec<String> {
    let DeviceSettings {
        scheduler,
        read_ahead_kb,
        nr_requests,
        write_cache,
        trim,
        module_parameters,
        raid_volume,
        raid_cache,
        hook,
    } = device;
    let on = |on: bool| if on { "on" } else { "off" };
    let mut words = Vec::new();
    words.extend(scheduler.as_ref().map(|s| format!("scheduler {s}")));
    words.extend(read_ahead_kb.map(|n| format!("read-ahead {n} KiB")));
    words.extend(nr_requests.map(|n| format!("nr_requests {n}")));
    words.extend(write_cache.map(|c| format!("write cache {}", on(c))));
    words.extend(trim.then(|| "trimmed before every trial".to_owned()));
    for (module, parameters) in module_parameters {
        words.extend(parameters.iter().map(|(name, value)| format!("{module}.{name} {value}")));
    }
    words.extend(raid_volume.map(|volume| match raid_cache {
        Some(policy) => format!("{volume} {}", policy.name()),
        None => volume.to_string(),
    }));
    words.extend(hook.as_ref().map(|hook| format!("set by `{}`", hook.set.join(" "))));
    words
}

/// Describes the storage as it was read back once it was mounted.
pub(super) fn obtained(facts: &StackFacts) -> Vec<Row> {
    let row = |name: &str, text: String, detail| Row { name: name.to_owned(), text, detail };
    let mut rows = Vec::new();
    if let Some(filesystem) = &facts.filesystem {
        let by = if filesystem.tools.is_empty() {
            String::new()
        } else {
            format!(", made by {}", filesystem.tools)
        };
        rows.push(row(
            "Made",
            format!(
                "{} ({}{by}), mounted {}",
                filesystem.kind,
                filesystem.driver,
                filesystem.options.join(",")
            ),
            false,
        ));
        let properties: Vec<String> =
            filesystem.properties.iter().map(|(name, value)| format!("{name} {value}")).collect();
        if !properties.is_empty() {
            rows.push(row("Properties", properties.join(", "), true));
        }
    }
    rows.extend(facts.striper.map(|by| row("Striped by", by.name().to_owned(), false)));
    let devices: Vec<String> = facts.devices.iter().map(device).collect();
    if !devices.is_empty() {
        rows.push(row("Devices", devices.join("; "), false));
    }
    let settings: Vec<String> =
        facts.settings.iter().map(|(name, value)| format!("{name} {value}")).collect();
    if !settings.is_empty() {
        rows.push(row("Set", settings.join(", "), false));
    }
    rows.extend(facts.notes.iter().map(|note| row("Note", note.clone(), false)));
    rows
}

fn device(device: &DeviceFacts) -> String {
    let DeviceFacts { name, by_id, model, serial, size, .. } = device;
    let mut words = vec![size.to_string()];
    words.extend(by_id.clone());
    words.extend(model.as_ref().map(|model| format!("model {model}")));
    words.extend(serial.as_ref().map(|serial| format!("serial {serial}")));
    format!("{name} ({})", words.join(", "))
}
